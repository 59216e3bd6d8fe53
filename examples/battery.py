"""
The voltage of a battery
========================

KFHE is based on one idea: a fixed, unknown quantity can be estimated from many noisy measurements. For an
ensemble, the unknown is the ideal classifier, and the measurements are its components. The idea is easier to
see if the unknown is a single number, so this page uses the first example of the paper: the voltage of a
battery.
"""

# %%
# The readings
# ------------
#
# The battery has 1.5 V, but nobody knows that. Two voltmeters take turns. Their accuracy is known: the
# readings of the first one have a standard deviation of 0.3 V, those of the second one of 0.6 V.
import numpy as np

true_voltage = 1.5
n_readings = 40
rng = np.random.default_rng(0)
noise = np.where(np.arange(n_readings) % 2 == 0, 0.3**2, 0.6**2)
readings = true_voltage + rng.normal(scale=np.sqrt(noise))

# %%
# The filter
# ----------
#
# We start from a guess of 1 V, with a variance of 0.25 V²: the guess is poor, and the filter knows it. For
# each reading the filter computes the gain, which is how far the estimate moves towards it: far while the
# estimate is uncertain, less for an uncertain reading.
from kfhe import KalmanFilter

voltage = KalmanFilter(1.0, 0.25)
estimates, variances, gains = [float(voltage.state)], [voltage.variance], []
for reading, variance in zip(readings, noise, strict=True):
    voltage.predict()
    gains.append(voltage.update(reading, variance))
    estimates.append(float(voltage.state))
    variances.append(voltage.variance)

print(f"estimate {estimates[-1]:.3f} V, standard deviation {np.sqrt(variances[-1]):.3f} V")

# %%
# This is the best possible estimate: the mean of the guess and all readings, each weighted by the inverse of
# its variance.
best = np.average([1.0, *readings], weights=[1 / 0.25, *(1 / noise)])
print(f"weighted mean of guess and readings: {best:.3f} V")

# %%
# What happened
# -------------
#
# The estimate approaches the truth, and its band narrows. The gain falls with the variance, and it is smaller
# for the less accurate voltmeter. In KFHE, training gives the same curves: see ``trace_`` of a fitted
# :class:`~kfhe.KFHEClassifier`.
import matplotlib.pyplot as plt

blue, orange, green, black = "#0072B2", "#E69F00", "#009E73", "#000000"
number = np.arange(n_readings + 1)
accurate = noise == noise.min()

figure, (above, below) = plt.subplots(
    2, 1, figsize=(8, 6.5), sharex=True, height_ratios=(3, 2), layout="constrained"
)
above.axhline(true_voltage, color=black, linestyle="--", linewidth=1.2, label="true voltage")
above.plot(number[1:][accurate], readings[accurate], "o", color=green, markersize=5, label="voltmeter 1")
above.plot(
    number[1:][~accurate],
    readings[~accurate],
    "x",
    color=orange,
    markersize=6,
    label="voltmeter 2 (less accurate)",
)
above.plot(number, estimates, color=blue, linewidth=2, label="estimate")
width = 2 * np.sqrt(variances)
above.fill_between(
    number,
    estimates - width,
    estimates + width,
    color=blue,
    alpha=0.2,
    linewidth=0,
    label="estimate ± 2 standard deviations",
)
above.set(ylabel="voltage (V)", ylim=(-0.1, 3.6), title="A battery's voltage, estimated from noisy readings")
above.legend(loc="upper right", ncols=2, frameon=False)

below.plot(
    number[1:][accurate], np.array(gains)[accurate], "o", color=green, markersize=5, label="gain, voltmeter 1"
)
below.plot(
    number[1:][~accurate],
    np.array(gains)[~accurate],
    "x",
    color=orange,
    markersize=6,
    label="gain, voltmeter 2",
)
below.plot(number, variances, color=blue, linewidth=2, label="variance of the estimate (V²)")
below.set(xlabel="reading", ylabel="gain, variance", yscale="log", ylim=(1e-3, 2))
below.set(xlim=(-0.5, n_readings + 0.5))
below.legend(loc="upper right", frameon=False)
plt.show()
