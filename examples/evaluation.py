"""
How good is it?
===============

A score says how often a classifier is right. Plots show which classes it confuses, whether its probabilities
can be trusted, and which classes are hard to separate.
"""

# %%
# Predictions of unseen rows
# --------------------------
#
# The digits are pictures of 8 × 8 pixels. In cross-validation, each of them is predicted by a model that has
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
# Confusion matrix
# ----------------
#
# Correct predictions are blue, mistakes are orange; the shade shows their share of the class. 5 and 7 are
# most often mistaken for 9, and 8 for 1.
#
# The second plot shows whether the scores can be trusted: rows whose most likely class has a score of 0.5
# should be right in half of the cases. The paper's ensemble is right more often: its scores are shares of
# votes, which are too cautious as probabilities.
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
# Each line is a class. The rows are sorted by its score. The line shows how many rows of the class are found
# (upwards) when so many rows of other classes (to the right) are mistaken for it. With more than seven
# classes, only those with the smallest areas have names.
display = RocCurveDisplay.from_predictions(y, scores)
display.ax_.set_title("ROC curves")
plt.show()

# %%
# On the command line, ``kfhe evaluate table.csv --target label --plots pictures`` writes all three.
