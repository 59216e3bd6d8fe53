"""
The voltage of a battery
========================

KFHE rests on one idea: a fixed, unknown thing can be estimated from many noisy readings of it. For
an ensemble the unknown is the ideal classifier and the readings are its components. The idea is
easier to see where the unknown is a single number, so this page uses the example that the paper
starts with: the voltage of a battery.
"""

# %%
# The readings
# ------------
#
# The battery has 1.5 V, but nobody knows that. Two voltmeters take turns. How accurate each of them
# is, is known: the readings of the first have a standard deviation of 0.3 V, those of the second
# one of 0.6 V.
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
# We start from a guess of 1 V and give it a variance of 0.25 V²: a poor guess, and the filter is
# told so. For each reading the filter works out the gain, which is how far to move towards it: far
# while the estimate is uncertain, less for a reading that is.
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
# That is the best one can do: the mean of the guess and all readings, each weighted by the inverse
# of its variance.
best = np.average([1.0, *readings], weights=[1 / 0.25, *(1 / noise)])
print(f"weighted mean of all that is known: {best:.3f} V")

# %%
# What happened
# -------------
#
# The estimate settles down at the truth and its band narrows. The gain falls with the variance, and
# it is smaller for the less accurate voltmeter. In KFHE the same curves come out of
# training: see ``trace_`` of a fitted :class:`~kfhe.KFHEClassifier`.
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
