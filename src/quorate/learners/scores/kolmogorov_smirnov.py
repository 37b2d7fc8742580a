"""Compare hypotheses at all levels of error at once: a Kolmogorov-Smirnov distance.

In population the best hypothesis minimises "users with more than t mistakes" for *every* t. So the
loss of a hypothesis is its worst shortfall over t, and no t has to be chosen: one selection in
place of Lemma 4.5 and Theorem 4.6 (L3, L4). The maximum over t costs nothing, because all counts
move together (Dvoretzky-Kiefer-Wolfowitz).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.guarantees import Relation
from quorate.learners.scores.base import Integers, MistakeLine, Score
from quorate.learners.scores.crossing import DEFAULT_RATES, check_rates
from quorate.learners.scores.more_than import MoreThan

__all__ = ["KolmogorovSmirnov"]


@dataclass(frozen=True, kw_only=True)
class KolmogorovSmirnov(Score):
    """Loss: the largest excess, over all rates, of users above the rate beyond the fewest possible.

    Privacy
    -------
    sensitivity : 2 under replacement, 1 under addition or removal
    proof : Let C_r(h) be the users above rate r. Replacing a user moves C_r(h) by at most 1 and so
        its minimum over h by at most 1: their difference by at most 2. Adding a user moves both by
        0 or 1: the difference by at most 1. A maximum over r moves no further than its terms.

    Parameters
    ----------
    rates : tuple of float, default=0, 1/64, ..., 1/2
        Levels, public and increasing.

    Examples
    --------
    >>> score = KolmogorovSmirnov(rates=(0.0, 0.5))
    >>> counts = score.tally(np.array([[1, 3], [0, 4]]), np.array([4, 4]))
    >>> score.losses(counts, n_users=2)
    array([0, 2])
    """

    name = "kolmogorov_smirnov"
    rates: tuple[float, ...] = DEFAULT_RATES

    def __post_init__(self) -> None:
        check_rates(self.rates)

    def sensitivity(self, relation: Relation) -> int:
        """Return 2 under replacement, 1 under addition or removal."""
        return 2 if relation is Relation.REPLACE else 1

    def tally(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Count the users above each rate (rows), for each hypothesis (columns)."""
        return np.stack([MoreThan(rate=rate).tally(mistakes, held) for rate in self.rates])

    def losses(self, tally: Integers, *, n_users: int) -> Integers:
        """Turn the counts into one loss for each hypothesis."""
        del n_users
        shortfall: Integers = (tally - tally.min(axis=1, keepdims=True)).max(axis=0)
        return shortfall

    def losses_on_line(self, line: MistakeLine) -> Integers:
        """Turn the counts along an ordered class into one loss for each piece."""
        worst: Integers | None = None
        for rate in self.rates:
            above = MoreThan(rate=rate).losses_on_line(line)
            excess = above - above.min()
            worst = excess if worst is None else np.maximum(worst, excess, out=worst)
        return np.zeros(len(line.starts), dtype=np.int64) if worst is None else worst
