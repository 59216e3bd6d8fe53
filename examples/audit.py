"""
Which labels are wrong?
=======================

Some labels are wrong, and you want to know which. An audit ranks all labels by how little the rest of the
data supports them. Here we know the answer, because we changed the labels ourselves.
"""

# %%
# Wrong labels
# ------------
#
# The digits are pictures of 8 × 8 pixels. We change a tenth of their labels.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kfhe.audit import label_quality
from kfhe.noise import flip_labels

X, y = load_digits(return_X_y=True)
noisy = flip_labels(y, 0.1, random_state=0)
wrong = noisy != y

# %%
# The audit
# ---------
#
# Trees are grown on samples of the rows, and each label is judged by the trees that have not seen its row. So
# no label confirms itself.
audit = label_quality(X, noisy, random_state=0)
found = wrong[audit.suspects]
print(f"estimated share of wrong labels: {audit.estimated_share:.1%}, true share {wrong.mean():.1%}")
print(f"{len(found)} suspects, {found.sum()} of them wrong; {wrong.sum() - found.sum()} wrong ones missed")

# %%
# The figure
# ----------
#
# Left: the quality of the labels. Wrong ones get few votes, right ones get many. Right: the right labels that
# look most suspicious. Hard rows look like wrong ones, so a person should decide.
figure = plt.figure(figsize=(9, 4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(5, 4))

ax = left.subplots()
bins = np.linspace(0, 1, 41)
ax.hist(audit.quality[~wrong], bins, label="right labels", color="#0072B2")
ax.hist(audit.quality[wrong], bins, label="wrong labels", color="#D55E00", alpha=0.8)
ax.set(
    xlabel="quality", ylabel="number of labels", yscale="log", ylim=(0.7, 500), title="Quality of the labels"
)
ax.legend(loc="upper right", frameon=False)

right.suptitle("Right labels that look wrong", fontsize="large")
doubtful = np.flatnonzero(~wrong)[np.argsort(audit.rank[~wrong])][:8]
for row, ax in zip(doubtful, right.subplots(2, 4).flat, strict=True):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"label {noisy[row]}\nvotes {audit.suggested[row]}", fontsize="small")
    ax.axis("off")
plt.show()

# %%
# ``AuditDisplay`` shows what is known without the answer: the sorted qualities, and the suspects by given
# and suggested class.
from kfhe.plotting import AuditDisplay

AuditDisplay.from_audit(audit)
plt.show()

# %%
# What to do with the suspects
# ----------------------------
#
# If nobody can check the suspects, give them less weight in training (``weights``), drop them, or use the
# suggested labels (``cleaned``). This helps if many labels are wrong and the classifier trusts each of them,
# as a decision tree does. Here 30 % are wrong. Half of the rows are for testing, with right labels.
from sklearn.tree import DecisionTreeClassifier

X_train, X_test, y_test = X[::2], X[1::2], y[1::2]
noisier = flip_labels(y[::2], 0.3, random_state=0)
audit = label_quality(X_train, noisier, random_state=0)
for how, rows, labels, weights in [
    ("labels as given", X_train, noisier, None),
    ("weights", X_train, noisier, audit.weights()),
    ("suspects dropped", *audit.cleaned(X_train, noisier), None),
    ("suspects relabelled", *audit.cleaned(X_train, noisier, suspects="relabel"), None),
]:
    model = DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(rows, labels, weights)
    print(f"{how}: {model.score(X_test, y_test):.1%} of the test rows are right")
