"""User-level private learning via correlated sampling, run
========================================================

Theorems 1, 2 and 3 of Ghazi, Kumar, Manurangsi (2021) in one figure: how many users find the one of
2^d hypotheses on which most of them agree. With a trusted server and a delta their number does not
depend on d; with pure privacy it is of order d / epsilon; without trust, of order d / epsilon^2.

Run ``python examples/paper_correlated_sampling.py``.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from quorate.guarantees import Relation
from quorate.protocols import local_choice
from quorate.protocols.reliability import users_needed
from quorate.stability.stable_learner import choose_selection

EPSILON, SHARE = 1.0, 0.8
BITS = (8, 16, 32, 64, 96, 128, 192, 256)


def votes(bits: int, *, delta: float) -> float:
    """Return the votes that a trusted server needs, over the share of users who agree."""
    found = choose_selection(
        size=2**bits, seeds=1, epsilon=EPSILON, delta=delta, relation=Relation.REPLACE
    )
    return found.votes / SHARE


def main() -> None:
    """Draw the users of the three models against the bits of a hypothesis; run the last one."""
    pure = [votes(bits, delta=0.0) for bits in BITS]
    stable = [min(votes(bits, delta=1e-6), votes(256, delta=1e-6)) for bits in BITS]
    local = [users_needed(candidates=2**bits, epsilon=EPSILON, plurality=SHARE) for bits in BITS]
    for bits, *users in zip(BITS, stable, pure, local, strict=True):
        print(f"2^{bits}: delta 1e-6 {users[0]:.0f}, pure {users[1]:.0f}, local {users[2]} users")

    rng = np.random.default_rng(0)
    named = [int.from_bytes(rng.bytes(32), "little") for _ in range(local[-1] // 5)]
    keys = np.array([named[0]] * (local[-1] - len(named)) + named, dtype=object)
    chosen = local_choice(keys, candidates=2**256, epsilon=EPSILON)
    print(f"{len(keys)} users who trust nobody: found one of 2^256 is {chosen.key == named[0]}")

    plt.loglog(BITS, local, "o-", label="trusting nobody (Theorem 2)")
    plt.loglog(BITS, pure, "s-", label="trusted server, delta = 0 (Theorem 3)")
    plt.loglog(BITS, stable, "^-", label="trusted server, delta = 1e-6 (Theorem 1)")
    plt.title("Users who find the hypothesis that four of five arrive at, epsilon = 1", fontsize=10)
    plt.xlabel("bits d of a hypothesis")
    plt.ylabel("users")
    plt.legend()
    plt.show()


if __name__ == "__main__":
    main()
