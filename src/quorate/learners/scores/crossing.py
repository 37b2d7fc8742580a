"""A private choice of t for "more than t mistakes", such that half of the users exceed it.

For each rate r let f(r) be the smallest number of users with more than ``r x records`` mistakes,
over all hypotheses. The best rate is near the median of the users' errors under the best
hypothesis, where f falls below half of the users. There the two groups are about equally large, and
the separation of L2 is largest. The loss of the rate number k is ``max(2 f(r_k) - n, n - 2
f(r_{k-1}))`` with f = n before the first rate. With ``|2 f(r_k) - n|`` all rates would be equal on
realizable data. It replaces the binary search of Lemma 4.5 (L3) by one choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions.lines import Walk
from quorate.core.sealed import Sealed
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import ConceptClass
from quorate.learners.scores.base import Judged, Score, Spoken
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
    """Loss of each *rate* (not of each hypothesis): how far it is from splitting the users in half.

    Privacy
    -------
    sensitivity : 2 under replacement, 1 under addition or removal
    proof : Replacing a user changes each count "users above the rate" by at most 1 for every
        hypothesis, hence its minimum f by at most 1, and n not at all: 2 f - n moves by at most 2.
        Adding a user changes f by 0 or 1 and n by 1: 2 f - n moves by -1 or +1. A maximum of two
        terms changes by at most as much as its terms.

    Parameters
    ----------
    rates : tuple of float, default=0, 1/64, ..., 1/2
        Candidates, public and increasing.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.core.users import UserData
    >>> data = UserData.from_arrays([[0], [4], [4]], [0, 1, 0], users=["a", "a", "b"])
    >>> people = People(data, Relation.REPLACE)
    >>> Crossing(rates=(0.0, 0.25, 0.5)).losses_of_rates(people, Thresholds(0, 9))
    Sealed(shape=(3,), one user moves a coordinate by at most 2)
    """

    name = "crossing"
    rates: tuple[float, ...] = DEFAULT_RATES

    def __post_init__(self) -> None:
        check_rates(self.rates)

    def sensitivity(self, relation: Relation) -> int:
        """Return 2 under replacement, 1 under addition or removal."""
        return 2 if relation is Relation.REPLACE else 1

    def losses_of_rates(self, people: People, concepts: ConceptClass) -> Sealed:
        """Return one loss for each rate, of a finite class."""
        each = tuple(MoreThan(rate=rate) for rate in self.rates)
        return self._losses(people.scores(Judged(concepts, each, -1, 1)).min(axis=1), people)

    def losses_of_rates_along(self, walk: Walk) -> Sealed:
        """Return one loss for each rate, of an ordered class."""
        each = (walk.scores(Spoken(MoreThan(rate=rate), -1, 1)).min() for rate in self.rates)
        return self._losses(reduce(Sealed.beside, each), walk.people)

    def _losses(self, balance: Sealed, people: People) -> Sealed:
        """Convert 2 f - n, where users above a rate count 1 and others -1, into the losses."""
        before = people.everybody().beside(balance[:-1])
        return balance.maximum(-before)
