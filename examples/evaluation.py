"""
How good is it?
===============

A number says how often a classifier is right. Pictures say what it takes for what, whether its
probabilities can be believed, and which classes are hard to tell from the others.
"""

# %%
# Predictions of unseen rows
# --------------------------
#
# The digits are pictures of 8 × 8 pixels. Cross-validation predicts each of them by a model that has
# not seen it.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict

from kfhe import KFHEClassifier
from kfhe.metrics import METRICS, metrics_of
from kfhe.plotting import CalibrationDisplay, ConfusionMatrixDisplay, RocCurveDisplay

X, y = load_digits(return_X_y=True)
n_estimators = 100
model = KFHEClassifier(n_estimators=n_estimators, random_state=0)
scores = cross_val_predict(model, X, y, cv=5, method="predict_proba")
predicted = scores.argmax(axis=1)
for metric, value in metrics_of(y, predicted, scores, 10).items():
    print(f"{METRICS[metric]}: {value:.3f}")

# %%
# What is taken for what
# ----------------------
#
# Right predictions are blue, mistakes are orange, and the stronger the larger their share of the class. 5 and
# 7 are taken for 9 most often, and 8 for 1.
#
# Beside it, whether the scores can be believed: rows whose likeliest class has a score of 0.5 should be right
# in half of the cases. The paper's ensemble is right more often than that: its scores are shares of votes,
# and too careful as probabilities.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
ConfusionMatrixDisplay.from_predictions(y, predicted, ax=left)
left.set_title("Confusion matrix")
CalibrationDisplay.from_predictions(y, scores, name="KFHE-e", ax=right)
right.set_title("Calibration")
plt.show()

# %%
# One class against all others
# ----------------------------
#
# Each line is a class. The rows are ordered by its score; the line says how many of the class have been found
# (upwards) once so many of the others (to the right) have been taken for it. Of more than seven classes those
# with the smallest areas have names.
display = RocCurveDisplay.from_predictions(y, scores)
display.ax_.set_title("ROC curves")
plt.show()

# %%
# On the command line, ``kfhe evaluate table.csv --target label --plots pictures`` writes all three.
