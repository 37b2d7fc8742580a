r"""How a table spends its budget, and which noise it has: from public and released numbers alone.

A fit and a plan call the same functions. A table pays for private queries called *looks*, each of
which finds one cap; for one measurement of what the caps cut; and for the noise of its cells.

* A look that costs e is off by some 1/e people, and what a cap cuts of a Pareto tail of index 2 is
  half as many caps.
* With Laplace noise a share f of epsilon for T looks leaves cells with noise a/(1 - f) and an error
  of looks of b/f, which add up to least at :math:`f = 1/(1 + \sqrt{a/b})`.
* With Gaussian noise a share f of :math:`\mu^2` leaves :math:`a/\sqrt{1-f}` and
  :math:`b/\sqrt f`, least at :math:`f = 1/(1 + (a/b)^{2/3})`; a pure look of e costs about
  :math:`\pi e^2/2` of it.

Both a and b are deviations of one of G cells, in caps: what looks leave above is spread over all of
them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from quorate.guarantees import Relation

__all__ = ["COUNTED", "COUNT_SHARE", "FEW", "LEAST", "ROUGH", "TOP", "Outlook", "Terms", "evenness"]

LEAST = 4.0
"""A look that costs e aims at LEAST/e people above a cap, or more.

A cap that is x times too long then has odds of x^-LEAST, and the variance of the noise is
E x^2 = LEAST/(LEAST - 2) = 2 times that of the right cap at most.
"""
TOP = 1e6
"""The longest cap of records that is looked for; longer ones have to be stated."""
COUNT_SHARE = 0.02
"""Part of epsilon for the number of people where it is not public: right within 50/epsilon."""
COUNTED = 1.5
"""A look at a cap, with a count of who holds anything for half of its price."""
ROUGH = 32.0
"""A rough median costs ROUGH/n: it is off by a quarter of n people, ln(64) * 8 / n, at most."""
FEW = 0.2
"""A look aims at no more than this part of the people."""
# Looks of all kinds cost no more than this part, however few people there are.
_MOST = 1 / 3


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What public numbers say about the noise of a table before anything is drawn.

    Attributes
    ----------
    norm : {1, 2}
        Which lengths noise is about: 1 for Laplace, 2 for Gaussian noise.
    noise : float
        Standard deviation of the noise in a cell, over the cap.
    stated : float
        The same if caps are stated and nothing is searched for.
    cut : float
        About how many people will be above a cap.
    missed : float
        By how many people the measurement of what is cut is off.
    measured : bool
        Whether enough people answer to find caps.
    """

    norm: int
    noise: float
    stated: float
    cut: float
    missed: float
    measured: bool


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Public numbers that the budget of a table is split by.

    Attributes
    ----------
    epsilon : float
    mu : float
        Of Gaussian differential privacy; 0 if noise has to be pure.
    relation : Relation
    groups : int
    parts : int
        How many numbers a cell has: records, people, and one for each column that is added up.
    looks : int
        How many caps are to be found.
    measured : int
        How many numbers say what caps cut.
    shared : int, default=0
        How many of the looks are about people who have been counted: groups and records alike.

    Examples
    --------
    >>> few = Terms(
    ...     epsilon=1.0,
    ...     mu=0.2367,
    ...     relation=Relation.ADD_REMOVE,
    ...     groups=2,
    ...     parts=3,
    ...     looks=3,
    ...     measured=4,
    ... )
    >>> few.gaussian(2.0), round(few.pure_look, 3)
    (False, 0.056)
    """

    epsilon: float
    mu: float
    relation: Relation
    groups: int
    parts: int
    looks: int
    measured: int
    shared: int = 0

    @property
    def priced_looks(self) -> float:
        """The cost of all private queries and counts, in units of one query."""
        return COUNTED * self.looks - (COUNTED - 1) * self.shared

    @property
    def apart(self) -> float:
        """The largest L1 distance between the counts of two users, in caps."""
        return 2.0 if self.relation is Relation.REPLACE and self.groups > 1 else 1.0

    @property
    def laplace_noise(self) -> float:
        """Standard deviation of Laplace noise in a cell, in caps (L1), if all is spent on it.

        One group has noise of the largest coordinate, whose scale is that of one number.
        """
        if self.groups == 1:
            return math.sqrt((self.parts + 1) * (self.parts + 2) / 3) / self.epsilon
        return math.sqrt(2.0) * self.apart * self.parts / self.epsilon

    @property
    def gaussian_noise(self) -> float:
        """Standard deviation of Gaussian noise in a cell, in caps (L2), if all is spent on it."""
        return math.sqrt(self.apart * self.parts) / self.mu if self.mu else math.inf

    def gaussian(self, held: float) -> bool:
        """Tell whether Gaussian noise is smaller for people in so many groups."""
        return self.gaussian_noise < evenness(held) * self.laplace_noise

    @property
    def pure_look(self) -> float:
        """The cost of one look with Laplace noise."""
        kinds = max(1.0, self.priced_looks + self.measured_price)
        share = 1 / (1 + math.sqrt(2 * self.laplace_noise * self.epsilon * self.groups / kinds))
        return share * self.epsilon / kinds

    @property
    def measured_price(self) -> float:
        """The cost of the measurement, in looks: each number has the noise of one look.

        The mean absolute value of noise of the largest of d coordinates is (d + 1)/2 scales.
        """
        return (self.measured + 1) / 2 if self.measured else 0.0

    def squared_look(self, held: float) -> float:
        """Return the cost of one private query, in units of mu squared, next to Gaussian noise."""
        kinds = max(1.0, self.priced_looks + bool(self.measured))
        noise = self.gaussian_noise / evenness(held)
        look = math.sqrt(math.pi * kinds / 2) / (self.mu * self.groups) / 2
        return self.mu**2 / (1 + math.pow(noise / look, 2 / 3)) / kinds

    def look(self, held: float, *, gaussian: bool, n_users: float) -> float:
        """Return the epsilon of one look, which is larger for few users.

        >>> terms = Terms(
        ...     epsilon=1.0,
        ...     mu=0.0,
        ...     relation=Relation.REPLACE,
        ...     groups=9,
        ...     parts=1,
        ...     looks=1,
        ...     measured=2,
        ... )
        >>> [round(terms.look(9.0, gaussian=False, n_users=n), 3) for n in (200, 20_000)]
        [0.1, 0.065]
        """
        wanted = LEAST / (FEW * max(1.0, n_users))
        if gaussian:
            most = self.mu**2 * _MOST / (self.priced_looks + 1)
            usual = math.sqrt(self.squared_look(held) * 2 / math.pi)
            return max(usual, min(wanted, math.sqrt(most * 2 / math.pi)))
        most = _MOST * self.epsilon / max(1.0, self.priced_looks + self.measured_price)
        return max(self.pure_look, min(wanted, most))

    def aim(self, held: float, look: float, *, gaussian: bool) -> float:
        """Return how many people a cap should leave above it.

        Lengthening a cap by one adds its noise to each of the groups and takes one from everybody
        above it.
        """
        noise = self.gaussian_noise / evenness(held) if gaussian else self.laplace_noise
        return max(self.groups * noise, LEAST / look)

    def outlook(self, held: float, *, users: float, columns: int) -> Outlook:
        """Return what a fit will pay and add, if people are in ``held`` groups.

        >>> terms = Terms(
        ...     epsilon=1.0,
        ...     mu=0.2367,
        ...     relation=Relation.ADD_REMOVE,
        ...     groups=50,
        ...     parts=2,
        ...     looks=3,
        ...     measured=3,
        ... )
        >>> seen = terms.outlook(9.0, users=20_000.0, columns=1)
        >>> seen.norm, round(seen.noise, 1), round(seen.cut), seen.measured
        (2, 6.4, 147, True)
        """
        gaussian = self.groups > 1 and self.gaussian(held)
        look = self.look(held, gaussian=gaussian, n_users=users)
        count = 0.0 if self.relation is Relation.REPLACE else COUNT_SHARE * self.epsilon
        centre = min(ROUGH / users, look) if self.parts > columns else 0.0
        if gaussian:
            squares = (self.priced_looks + 1) * look**2 + columns * centre**2 + count**2
            left = 1 - math.pi / 2 * squares / self.mu**2
            noise, missed = self.gaussian_noise, math.sqrt(2 * self.measured / math.pi) / look
            kept = math.sqrt(max(left, 1 - _MOST))
        else:
            spent = look * (self.priced_looks + self.measured_price) + columns * centre + count
            noise, missed = self.laplace_noise, math.sqrt(2.0) / look
            kept = max(1 - spent / self.epsilon, 0.0)
        return Outlook(
            norm=2 if gaussian else 1,
            noise=noise / kept if kept else math.inf,
            stated=noise,
            cut=self.aim(held, look, gaussian=gaussian),
            missed=missed,
            measured=LEAST / look <= FEW * users * (1 + 1e-9),
        )


def evenness(held: float) -> float:
    """Return the ratio of the L1 and the L2 length of somebody in ``held`` groups.

    Held as unevenly as exponential weights, whose mean square is twice the square of their mean.

    >>> evenness(1.0), evenness(7.0)
    (1.0, 2.0)
    """
    return math.sqrt((held + 1) / 2)
