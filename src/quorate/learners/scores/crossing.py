"""Choose the t of "more than t mistakes" privately, where the crowd crosses one half.

For each rate r let f(r) be the smallest number of users with more than ``r x records`` mistakes,
over all hypotheses. The best rate is near the median of the best hypothesis' user errors, where f
falls through half of the users: there the two sides of the cut are about equally full, and the
separation of L2 is largest. The loss of the rate number k is
``max(2 f(r_k) - n, n - 2 f(r_{k-1}))`` with f = n before the first rate; ``|2 f(r_k) - n|`` would
tie all rates on realizable data. It replaces the binary search of Lemma 4.5 (L3) by one choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.learners.scores.base import Integers, MistakeLine, Score
from quorate.learners.scores.more_than import MoreThan

__all__ = ["DEFAULT_RATES", "Crossing", "check_rates"]

# Steps of 1/64 up to one half: finer than the spread of user errors up to a thousand records.
DEFAULT_RATES = tuple(k / 64 for k in range(33))


def check_rates(rates: tuple[float, ...]) -> None:
    """Reject rates that are not strictly increasing shares.

    >>> check_rates((0.0, 0.5))
    """
    for rate in rates:
        _validate.fraction(rate=rate)
    if not rates or any(a >= b for a, b in pairwise(rates)):
        raise ParameterError(f"Expected strictly increasing rates, got rates={rates!r}.")


@dataclass(frozen=True, kw_only=True)
class Crossing(Score):
    """Loss of each *rate* (not of each hypothesis): how far it is from halving the crowd.

    Privacy
    -------
    sensitivity : 2 under replacement, 1 under addition or removal
    proof : Replacing a user moves each count "users above the rate" by at most 1 for every
        hypothesis, hence its minimum f by at most 1, and n not at all: 2 f - n moves by at most 2.
        Adding a user moves f by 0 or 1 and n by 1: 2 f - n moves by -1 or +1. A maximum of two
        terms moves no further than its terms.

    Parameters
    ----------
    rates : tuple of float, default=0, 1/64, ..., 1/2
        Candidates, public and increasing.

    Examples
    --------
    >>> score = Crossing(rates=(0.0, 0.25, 0.5))
    >>> counts = score.tally(np.array([[1, 3], [2, 4], [0, 4]]), np.array([4, 4, 4]))
    >>> score.losses(counts, n_users=3)
    array([ 1, -1,  1])
    """

    name = "crossing"
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
        """Turn the counts into one loss for each rate."""
        return self.losses_of_fewest(tally.min(axis=1), n_users=n_users)

    def losses_on_line(self, line: MistakeLine) -> Integers:
        """Turn the counts along an ordered class into one loss for each rate."""
        fewest = [MoreThan(rate=rate).losses_on_line(line).min() for rate in self.rates]
        return self.losses_of_fewest(np.array(fewest), n_users=line.n_users)

    def losses_of_fewest(self, fewest: Integers, *, n_users: int) -> Integers:
        """Turn f, the fewest users above each rate, into one loss for each rate."""
        before = np.r_[np.int64(n_users), fewest[:-1]]
        return np.asarray(np.maximum(2 * fewest - n_users, n_users - 2 * before))
