r"""How a table divides its budget, and which noise it uses; from public and released numbers.

A fit and a plan call the same functions. A table first pays for *tallies*: noisy histograms of the
lengths of users' contributions, from which the caps are derived. The rest of the budget is for the
noise in the cells.

* A tally with noise of scale 1/e leaves about 1/e people above a cap undetected. Each of them loses
  about half a cap to clipping (as in a Pareto tail of index 3), spread over G cells.
* With joint Laplace noise, a share f of epsilon for T tallies leaves cells with noise a/(1 - f),
  and an error due to the tallies of b/f. The sum of their squares is smallest at :math:`f = 1/(1 +
  (a/b)^{2/3})`.
* With Gaussian noise a share f of :math:`\mu^2` leaves :math:`a/\sqrt{1-f}` and :math:`b/\sqrt f`.
  The sum of their squares is smallest at :math:`f = 1/(1 + a/b)`; a pure tally with epsilon e costs
  about :math:`\pi e^2/2` of :math:`\mu^2`.

Both a and b are standard deviations in one of G cells, in units of the cap. Tables with fewer
groups pay more for tallies, because the people above the cap affect fewer cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from quorate.core.guarantees import Relation
from quorate.mechanisms.blocks import block_deviation

__all__ = ["COUNT_SHARE", "KNOWN", "ROUGH", "Outlook", "Terms", "evenness"]

COUNT_SHARE = 0.02
"""Part of epsilon for the number of people where it is not public: right within 50/epsilon."""
KNOWN = 32.0
"""So many people, in units of the noise of a look, show how a tail falls: five halvings of them."""
ROUGH = 32.0
"""A rough median costs ROUGH/n: it is off by a quarter of n people, ln(64) * 8 / n, at most."""
# What precedes the cells costs no more than this, however few people there are: noise grows to 1.5.
_MOST = 1 / 3


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """The expected noise of a table, from public numbers, before anything is drawn.

    Attributes
    ----------
    norm : {1, 2}
        The norm of contributions: 1 for Laplace noise, 2 for Gaussian noise.
    noise : float
        Standard deviation of the noise in a cell, divided by the cap.
    stated : float
        The same if caps are stated, so that no tally is needed.
    above : float
        Expected number of people above a cap.
    people : float
        Number of people, divided by the noise of a tally.
    look : float
        The epsilon of one tally.
    """

    norm: int
    noise: float
    stated: float
    above: float
    people: float
    look: float

    @property
    def known(self) -> bool:
        """Whether there are enough people to estimate the tail of their lengths."""
        return self.people >= KNOWN * (1 - 1e-9)

    @property
    def steps(self) -> int:
        """How many edges a tally has per factor of two; more with more people."""
        return 2 if self.people >= 2 * KNOWN else 1


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public numbers that decide how the budget of a table is divided.

    Attributes
    ----------
    epsilon : float
    mu : float
        Parameter of Gaussian differential privacy; 0 if noise has to be pure.
    relation : Relation
    groups : int
    parts : int
        How many numbers each cell has: records, users, and one for each column that is summed.
    looks : int
        How many caps are estimated, each by a tally.
    centres : int, default=0
        How many columns are summed relative to a rough private median.

    Examples
    --------
    >>> few = Terms(
    ...     epsilon=1.0, mu=0.2367, relation=Relation.ADD_REMOVE, groups=2, parts=3, looks=3
    ... )
    >>> few.gaussian(2.0), round(few.look(2.0, gaussian=False, n_users=1e4), 3)
    (False, 0.094)
    """

    epsilon: float
    mu: float
    relation: Relation
    groups: int
    parts: int
    looks: int
    centres: int = 0

    @property
    def tally(self) -> int:
        """The largest change of a tally by one user; a replaced user changes two counts."""
        return 2 if self.relation is Relation.REPLACE else 1

    @property
    def apart(self) -> int:
        """The largest distance between two users' contributions, in multiples of the cap."""
        return self.tally if self.groups > 1 else 1

    @property
    def laplace_noise(self) -> float:
        """Standard deviation of joint Laplace noise in a cell, in caps, with the whole budget."""
        return block_deviation(self.parts, self.groups) * self.apart / self.epsilon

    @property
    def gaussian_noise(self) -> float:
        """Standard deviation of Gaussian noise in a cell, in caps (L2), with the whole budget."""
        return math.sqrt(self.apart * self.parts) / self.mu if self.mu else math.inf

    def gaussian(self, held: float) -> bool:
        """Return whether Gaussian noise is smaller than Laplace for people in ``held`` groups."""
        return self.groups > 1 and self.gaussian_noise < evenness(held) * self.laplace_noise

    def look(self, held: float, *, gaussian: bool, n_users: float) -> float:
        """Return the epsilon of one tally, which is larger for few users.

        >>> terms = Terms(
        ...     epsilon=1.0, mu=0.0, relation=Relation.REPLACE, groups=9, parts=1, looks=1
        ... )
        >>> [round(terms.look(9.0, gaussian=False, n_users=n), 3) for n in (100, 20_000)]
        [0.333, 0.104]
        """
        looks = max(1, self.looks)
        most = _MOST * looks / (looks + self.centres)
        wanted = KNOWN * self.tally / max(1.0, n_users)
        if gaussian:
            missed = self.tally * math.sqrt(math.pi * looks / 8) / (self.mu * self.groups)
            share = 1 / (1 + self.gaussian_noise / evenness(held) / missed)
            usual, most = (self.mu * math.sqrt(2 * f / (math.pi * looks)) for f in (share, most))
        else:
            missed = looks * self.tally / (2 * self.groups * self.epsilon)
            share = 1 / (1 + math.pow(self.laplace_noise / missed, 2 / 3))
            usual, most = share * self.epsilon / looks, most * self.epsilon / looks
        return min(max(usual, wanted), most)

    def outlook(self, held: float, *, users: float, algorithm: str = "auto") -> Outlook:
        """Return the expected costs and noise of a fit, if people are in ``held`` groups.

        >>> terms = Terms(
        ...     epsilon=1.0, mu=0.2367, relation=Relation.ADD_REMOVE, groups=50, parts=2, looks=3
        ... )
        >>> seen = terms.outlook(9.0, users=20_000.0)
        >>> seen.norm, round(seen.noise, 1), round(seen.above), seen.known
        (2, 6.1, 137, True)
        """
        gaussian = algorithm == "gaussian" or (algorithm == "auto" and self.gaussian(held))
        look = self.look(held, gaussian=gaussian, n_users=users)
        count = COUNT_SHARE * self.epsilon if self.relation is Relation.ADD_REMOVE else 0.0
        centre = min(ROUGH / max(1.0, users), look)
        noise, even = self.laplace_noise, 1.0
        if gaussian:
            noise, even = self.gaussian_noise, evenness(held)
            squares = self.looks * look**2 + self.centres * centre**2 + count**2
            kept = math.sqrt(max(1 - math.pi / 2 * squares / self.mu**2, _MOST))
        else:
            kept = max(
                1 - (look * self.looks + self.centres * centre + count) / self.epsilon, _MOST
            )
        return Outlook(
            norm=2 if gaussian else 1,
            noise=noise / kept,
            stated=noise,
            above=max(self.groups * noise / kept / even, self.tally / look),
            look=look,
            people=look * users / self.tally,
        )


def evenness(held: float) -> float:
    """Return the ratio of the L1 and the L2 length for a user in ``held`` groups.

    The user's records are assumed to be spread over the groups like exponential weights, whose mean
    square is twice the square of their mean.

    >>> evenness(1.0), evenness(7.0)
    (1.0, 2.0)
    """
    return math.sqrt((held + 1) / 2)
