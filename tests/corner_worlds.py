"""Users of whom a share lies in a corner of their range, and what a choice about them sees."""

import numpy as np

from quorate.core.account.account import Account
from quorate.mechanisms.choices.choose import ChooseBest
from sealing import numbers_of, vectors_of


def corner(n, d=1, *, inside=1.0, seed=0):
    """Return users of whom a share lies in a corner, the others anywhere."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1.0, 1.0, size=(n, d))
    rows[: round(inside * n)] = 0.4 + rng.uniform(0.0, 0.05, size=(round(inside * n), d))
    return rows


def scores_of_neighbours(monkeypatch, ask, *, pairs=40):
    """Return the scores of pairs of neighbours, as the choice sees them."""
    seen = []

    def watch(self, scores, *, account):
        assert 2 * scores.moves.largest == scores.moves.spread == self.spread
        seen.append(numbers_of(scores))
        return 0

    monkeypatch.setattr(ChooseBest, "release", watch)
    rng = np.random.default_rng(1)
    for seed in range(pairs):
        rows = corner(30, inside=0.5, seed=seed)
        rows[:8] = 0.42
        for _ in range(2):
            ask(vectors_of(rows), account=Account.open(epsilon=1.0))
            rows[rng.integers(30)] = rng.choice([-1.0, 0.42, 1.0, np.nan])
    return np.array(seen[::2]), np.array(seen[1::2])
