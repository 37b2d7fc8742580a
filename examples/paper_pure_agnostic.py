"""Improved bounds for pure private agnostic learning, run
=======================================================

Theorem 5.2 of Li, Wang, Ye (2024): a cut-off over a domain X is learned with pure user-level
privacy, whatever the labels, and what the domain costs is a logarithm of its size. Here a tenth of
all labels are wrong and the domain grows from 2^8 to 2^60 points.

Run ``python examples/paper_pure_agnostic.py``.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from quorate.learners.private_threshold import PrivateThreshold

EPSILON, RECORDS, RUNS = 1.0, 20, 10
BITS = (8, 20, 32, 44, 60)
USERS = (100, 400, 1600)


def excess(bits: int, users: int, seed: int) -> float:
    """Return how far the learned cut-off is from the best one, as a share of the domain."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2**bits, users * RECORDS)
    wrong = rng.random(len(x)) < 0.1
    learner = PrivateThreshold(EPSILON, domain=(0, 2**bits - 1), records=RECORDS)
    learner.fit(x, (x >= 2**bits // 3) ^ wrong, users=np.repeat(np.arange(users), RECORDS))
    return 0.8 * abs(learner.threshold_ / 2**bits - 1 / 3)


def main() -> None:
    """Measure the mean excess error against the bits of the domain, for several crowds."""
    for users in USERS:
        kept = [float(np.mean([excess(bits, users, run) for run in range(RUNS)])) for bits in BITS]
        print(
            f"{users} users:", ", ".join(f"2^{b}: {k:.3f}" for b, k in zip(BITS, kept, strict=True))
        )
        plt.semilogy(BITS, kept, "o-", label=f"{users} users with {RECORDS} records")
    plt.title(
        "Excess error of a pure private cut-off, one label in ten wrong, epsilon = 1", fontsize=10
    )
    plt.xlabel("bits of the domain")
    plt.ylabel("mean excess over the best error")
    plt.legend()
    plt.show()


if __name__ == "__main__":
    main()
