"""Learning with user-level privacy, run
=====================================

Theorem 1 of Levy, Sun, Amin, Kale, Kulesza, Mohri, Suresh (2021): the private mean of n users with
m records each has an error of order 1/sqrt(m n) for sampling and 1/(epsilon n sqrt(m)) for privacy:
both fall as users bring more records. Noise in proportion to the whole range does not.

Run ``python examples/paper_user_level.py``.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from quorate import UserMean

USERS, EPSILON, DELTA, BOUND, RUNS = 1000, 1.0, 1e-6, 1000.0, 20
RECORDS = (1, 4, 16, 64, 256)


def error(records: int, seed: int) -> float:
    """Return how far the private mean is from the mean of the distribution."""
    rng = np.random.default_rng(seed)
    x = rng.normal(7.0, 10.0, size=(USERS * records, 1))
    mean = UserMean(epsilon=EPSILON, delta=DELTA, bounds=BOUND)
    mean.fit(x, users=np.repeat(np.arange(USERS), records))
    return float(abs(mean.mean_[0] - 7.0))


def main() -> None:
    """Measure the root mean square error against the records of a user."""
    kept = [
        float(np.sqrt(np.mean([error(records, run) ** 2 for run in range(RUNS)])))
        for records in RECORDS
    ]
    range_noise = np.sqrt(2) * 2 * BOUND / (USERS * EPSILON)
    print(", ".join(f"m={m}: {k:.3f}" for m, k in zip(RECORDS, kept, strict=True)))
    print(f"Laplace noise for the whole range: {range_noise:.2f} for every m")
    plt.loglog(RECORDS, kept, "o-", label="UserMean")
    plt.loglog(RECORDS, [kept[0] / np.sqrt(m) for m in RECORDS], "k--", label="1 / sqrt(m)")
    plt.axhline(range_noise, color="grey", label="noise for the whole range")
    plt.title(f"Error of the mean of {USERS} users, values within 1,000, epsilon = 1", fontsize=10)
    plt.xlabel("records m of a user")
    plt.ylabel("root mean square error")
    plt.legend()
    plt.show()


if __name__ == "__main__":
    main()
