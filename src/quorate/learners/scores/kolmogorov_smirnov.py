"""Compare hypotheses at all levels of error at once: a Kolmogorov-Smirnov distance.

In expectation the best hypothesis minimises the number of users with more than t mistakes for
*every* t. So the loss of a hypothesis is its largest excess over all t, and no t has to be chosen:
one selection replaces Lemma 4.5 and Theorem 4.6 (L3, L4). The maximum over t costs no accuracy,
because the sampling errors of all counts are bounded together (Dvoretzky-Kiefer-Wolfowitz).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions.lines import SealedLine, Walk
from quorate.core.sealed import Sealed
from quorate.learners.concepts.base import ConceptClass
from quorate.learners.scores.base import Judged, Score
from quorate.learners.scores.crossing import DEFAULT_RATES, check_rates
from quorate.learners.scores.more_than import MoreThan

__all__ = ["KolmogorovSmirnov"]


@dataclass(frozen=True, kw_only=True)
class KolmogorovSmirnov(Score):
    """Loss: the largest excess, over all rates, of users above the rate beyond the fewest possible.

    Privacy
    -------
    sensitivity : 2 under replacement, 1 under addition or removal
    proof : Let C_r(h) be the users above rate r. Replacing a user changes C_r(h) by at most 1 and
        so its minimum over h by at most 1: their difference by at most 2. Adding a user changes
        both by 0 or 1: the difference by at most 1. A maximum over r changes by at most as
        much as its terms.

    Parameters
    ----------
    rates : tuple of float, default=0, 1/64, ..., 1/2
        Levels, public and increasing.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.core.users import UserData
    >>> data = UserData.from_arrays([[0], [4], [4]], [0, 1, 0], users=["a", "a", "b"])
    >>> people = People(data, Relation.ADD_REMOVE)
    >>> KolmogorovSmirnov(rates=(0.0, 0.5)).losses_over(people, Thresholds(0, 9))
    Sealed(shape=(11,), one user moves a coordinate by at most 1)
    """

    name = "kolmogorov_smirnov"
    rates: tuple[float, ...] = DEFAULT_RATES

    def __post_init__(self) -> None:
        check_rates(self.rates)

    def sensitivity(self, relation: Relation) -> int:
        """Return 2 under replacement, 1 under addition or removal."""
        return 2 if relation is Relation.REPLACE else 1

    @property
    def _levels(self) -> tuple[MoreThan, ...]:
        return tuple(MoreThan(rate=rate) for rate in self.rates)

    def losses_over(self, people: People, concepts: ConceptClass) -> Sealed:
        """Return the loss of every hypothesis of a finite class."""
        return people.scores(Judged(concepts, self._levels, 0, 1)).above_least().max(axis=0)

    def losses_along(self, walk: Walk) -> SealedLine:
        """Return the loss of every hypothesis of an ordered class, along its line."""
        shortfalls = (level.losses_along(walk).above_least() for level in self._levels)
        return reduce(SealedLine.maximum, shortfalls)
