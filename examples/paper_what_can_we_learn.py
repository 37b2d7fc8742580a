"""What can we learn privately?, run
=================================

Theorem 3.4 of Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith (2011): any finite class
is learned privately from O((d + ln 1/beta) max(1/(epsilon alpha), 1/alpha^2)) people with one
record each, d being the logarithm of its size. Here the class grows from 128 to 65,536 cut-offs,
and what nine of ten runs keep stays below the bound of the theorem with a constant of one.

Run ``python examples/paper_what_can_we_learn.py``.
"""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np

from quorate.concepts import Thresholds
from quorate.learners import ConceptLearner

EPSILON, BETA, RUNS = 0.25, 0.1, 20
SIZES = (2**7, 2**10, 2**13, 2**16)
PEOPLE = (50, 100, 200, 400, 800)


def error(size: int, people: int, seed: int) -> float:
    """Return how often a rule learned from people with one record each errs; the best never."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, size, people)
    learner = ConceptLearner(Thresholds(0, size - 1), EPSILON, algorithm="mistakes", records=1)
    learner.fit(x[:, None], x >= size // 3, users=np.arange(people))
    every = np.arange(size)
    return float(np.mean(learner.predict(every[:, None]) != (every >= size // 3)))


def main() -> None:
    """Measure the error that nine of ten runs keep, and draw it beside the theorem."""
    for size in SIZES:
        kept = [
            float(np.quantile([error(size, people, run) for run in range(RUNS)], 1 - BETA))
            for people in PEOPLE
        ]
        print(
            f"{size:6d} cut-offs:",
            ", ".join(f"{people}: {k:.3f}" for people, k in zip(PEOPLE, kept, strict=True)),
        )
        line = plt.loglog(PEOPLE, kept, "o-", label=f"{size} cut-offs")[0]
        bits = math.log(size + 1) + math.log(1 / BETA)
        theorem = [max(bits / (EPSILON * people), math.sqrt(bits / people)) for people in PEOPLE]
        plt.loglog(PEOPLE, theorem, "--", color=line.get_color(), linewidth=1)
    plt.title("Error that 9 of 10 private runs keep (dashed: Theorem 3.4, constant 1)", fontsize=10)
    plt.xlabel("people with one record each")
    plt.ylabel("error of the learned cut-off")
    plt.legend()
    plt.show()


if __name__ == "__main__":
    main()
