r"""Learning with user-level privacy
================================

Theorem 1 of Levy, Sun, Amin, Kale, Kulesza, Mohri, Suresh (2021). The private mean of n users with
m records each has an error of order :math:`1/\sqrt{mn}` for sampling and :math:`1/(\varepsilon n
\sqrt m)` for privacy. Both fall as users bring more records. Noise in proportion to the whole range
does not.
"""

# %%
# **The experiment.** 1,000 users whose values lie within 1,000, epsilon 1, 20 runs for each m.
# Algorithm 1 is purely private and needs to know how far users' means spread; the default finds
# that out, with a delta of 1e-6.

import matplotlib.pyplot as plt
import numpy as np

from quorate import UserMean

USERS, EPSILON, BOUND, SPREAD, RUNS = 1000, 1.0, 1000.0, 10.0, 20
RECORDS = (1, 4, 16, 64, 256)


def error(records, seed, **options):
    """Return how far the private mean is from the mean of the distribution."""
    rng = np.random.default_rng(seed)
    x = rng.normal(7.0, SPREAD, size=(USERS * records, 1))
    mean = UserMean(epsilon=EPSILON, bounds=BOUND, **options)
    mean.fit(x, users=np.repeat(np.arange(USERS), records))
    return float(abs(mean.mean_[0] - 7.0))


def algorithm_1(records):
    """Return its options: in 99 of 100 crowds the means of all users lie within tau of 7."""
    tau = SPREAD * np.sqrt(2 * np.log(2 * USERS / 0.01) / records)
    return {"algorithm": "winsorized", "constants": "published", "radius": tau}


ways = {
    "Algorithm 1 as printed (Theorem 1)": algorithm_1,
    "UserMean, delta = 1e-6": lambda records: {"delta": 1e-6},
}
kept = {
    way: [
        np.sqrt(np.mean([error(m, run, **options(m)) ** 2 for run in range(RUNS)])) for m in RECORDS
    ]
    for way, options in ways.items()
}
range_noise = np.sqrt(2) * 2 * BOUND / (USERS * EPSILON)
for way, errors in kept.items():
    print(f"{way}:", ", ".join(f"m={m}: {k:.3f}" for m, k in zip(RECORDS, errors, strict=True)))
print(f"Laplace noise for the whole range: {range_noise:.2f} for every m")

# %%

for (way, errors), marker in zip(kept.items(), "so", strict=True):
    plt.loglog(RECORDS, errors, f"{marker}-", label=way)
    plt.loglog(RECORDS, [errors[0] / np.sqrt(m) for m in RECORDS], "k--", linewidth=1)
plt.plot([], [], "k--", linewidth=1, label="1 / sqrt(m)")
plt.axhline(range_noise, color="grey", label="noise for the whole range")
plt.title(f"Error of the mean of {USERS} users, values within 1,000, epsilon = 1", fontsize=10)
plt.xticks(RECORDS, RECORDS)
plt.minorticks_off()
plt.xlabel("records m of a user")
plt.ylabel("root mean square error")
plt.ylim(bottom=4e-3)  # room for the legend
plt.legend(loc="lower left")
plt.show()
