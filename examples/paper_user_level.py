r"""Learning with user-level privacy
================================

Theorem 1 of Levy, Sun, Amin, Kale, Kulesza, Mohri, Suresh (2021). The private mean of n users with
m records each has an error of order :math:`1/\sqrt{mn}` for sampling and :math:`1/(\varepsilon n
\sqrt m)` for privacy. Both fall as users bring more records. Noise in proportion to the whole range
does not.
"""

# %%
# **The experiment.** 1,000 users whose values lie within 1,000, epsilon 1, 20 runs for each m.

import matplotlib.pyplot as plt
import numpy as np

from quorate import UserMean

USERS, EPSILON, DELTA, BOUND, RUNS = 1000, 1.0, 1e-6, 1000.0, 20
RECORDS = (1, 4, 16, 64, 256)


def error(records, seed):
    """Return how far the private mean is from the mean of the distribution."""
    rng = np.random.default_rng(seed)
    x = rng.normal(7.0, 10.0, size=(USERS * records, 1))
    mean = UserMean(epsilon=EPSILON, delta=DELTA, bounds=BOUND)
    mean.fit(x, users=np.repeat(np.arange(USERS), records))
    return float(abs(mean.mean_[0] - 7.0))


kept = [np.sqrt(np.mean([error(m, run) ** 2 for run in range(RUNS)])) for m in RECORDS]
range_noise = np.sqrt(2) * 2 * BOUND / (USERS * EPSILON)
print(", ".join(f"m={m}: {k:.3f}" for m, k in zip(RECORDS, kept, strict=True)))
print(f"Laplace noise for the whole range: {range_noise:.2f} for every m")

# %%

plt.loglog(RECORDS, kept, "o-", label="UserMean")
plt.loglog(RECORDS, [kept[0] / np.sqrt(m) for m in RECORDS], "k--", label="1 / sqrt(m)")
plt.axhline(range_noise, color="grey", label="noise for the whole range")
plt.title(f"Error of the mean of {USERS} users, values within 1,000, epsilon = 1", fontsize=10)
plt.xlabel("records m of a user")
plt.ylabel("root mean square error")
plt.legend()
plt.show()
