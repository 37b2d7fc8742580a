"""User-level privacy with few examples per user, run
==================================================

Theorem 4 of Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang (2023): if some rule of the class errs
nowhere, a pure private learner needs of order d / (epsilon min(1, alpha m)) users with m records
each, d being the logarithm of the size of the class. So at a fixed number of
users the error falls as 1 / m, faster than the square root that averaging gives.

Run ``python examples/paper_few_examples.py``.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from quorate.concepts import Thresholds
from quorate.learners import ConceptLearner

SIZE, USERS, EPSILON, RUNS = 2**12, 100, 1.0, 20
RECORDS = (1, 2, 4, 8, 16, 32)


def error(records: int, algorithm: str, seed: int) -> float:
    """Return how often a rule errs that was learned from users with so many records each."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, SIZE, USERS * records)
    learner = ConceptLearner(Thresholds(0, SIZE - 1), EPSILON, algorithm=algorithm, records=records)
    learner.fit(x[:, None], x >= SIZE // 3, users=np.repeat(np.arange(USERS), records))
    every = np.arange(SIZE)
    return float(np.mean(learner.predict(every[:, None]) != (every >= SIZE // 3)))


def main() -> None:
    """Measure the mean error against the records of a user, beside 1/m."""
    for algorithm, label in (
        ("any_mistake", "each user counts once (Theorem 4)"),
        ("mistakes", "mistakes of all records, as in 2011"),
    ):
        kept = [
            float(np.mean([error(records, algorithm, run) for run in range(RUNS)]))
            for records in RECORDS
        ]
        print(f"{label}:", ", ".join(f"m={m}: {k:.4f}" for m, k in zip(RECORDS, kept, strict=True)))
        plt.loglog(RECORDS, kept, "o-", label=label)
        if algorithm == "any_mistake":
            plt.loglog(RECORDS, [kept[0] / m for m in RECORDS], "k--", label="1 / m")
    plt.title(f"Mean error of a cut-off among {SIZE}, {USERS} users, epsilon = 1", fontsize=10)
    plt.xlabel("records m of a user")
    plt.ylabel("error")
    plt.legend()
    plt.show()


if __name__ == "__main__":
    main()
