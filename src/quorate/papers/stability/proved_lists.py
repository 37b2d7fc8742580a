r"""Lists of hypotheses with a proof that samples share one (G3, Theorems 17 and 18).

Write :math:`V_D(a)` for the concepts that err with probability at most a, :math:`V_S(a)` for those
that err on at most that share of a sample, and :math:`V|_p` for the concepts of V that agree with a
set p of labelled points. A set V of Littlestone dimension k is *irreducible* if at every point one
of its sides has dimension k; the optimal learner then predicts that side.

**Samples have a prediction in common.** If :math:`A \subseteq B`, both have dimension k and A is
irreducible, then the optimal learner predicts the same on A and on B: the side of A of dimension k
gives a side of B of dimension k, and B, of dimension k, cannot have two such sides.

**Where.** Let the concept :math:`c` be the target, :math:`a_t = t/(d+1)` for t = 0, ..., d + 1, and
begin with t = d + 1 and no points p. Let k be the dimension of :math:`V_D(a_t)|_p` and compare with
:math:`A = V_D(a_{t-1})|_p`, which contains c. There are three cases. If the dimension of A is below
k, continue with t - 1. If it is k, A is irreducible and its optimal prediction h errs with
probability at most :math:`\alpha`, stop. Otherwise there is a point at which both sides of A are
below k, or one at which h is wrong, so that the side of c is below k. Add that point with its label
under c to p, and continue with t - 1. The dimension falls with every step and is never below zero,
because c remains; at dimension zero only c is left, which is irreducible and never errs. So the
procedure stops after at most d - k steps, at some t, with at most d - k points, and h depends on
the distribution alone.

**How often.** If a sample has no concept on the wrong side, :math:`V_D(a_{t-1}) \subseteq
V_S(a_{t-1/2}) \subseteq V_D(a_t)`, then :math:`V_S|_p` has dimension k and the prediction h. The
list has the prediction for every level and every set of at most d - k points for which
:math:`V_S|_p` is irreducible of dimension k, so it contains h. The probability that one concept is
on the wrong side is a binomial tail. All concepts except the target count, and
:meth:`ProvedListLearner.eta` is one minus the sum of these tails.

Theorem 18 of [1]_ has lists whose length does not grow with the domain and chooses the level at
random, which costs a factor of d + 1 in :math:`\eta`; here all levels are listed, and domains are
small tables. Drawing one hypothesis of the list at random gives Theorem 17, with :math:`\eta`
divided by the length of the list.

References
----------
.. [1] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS 2021,
   Definitions 14 and 16, Theorems 17 and 18, after Bun, Livni, Moran (FOCS 2020) and Ghazi,
   Golowich, Kumar, Manurangsi (STOC 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from quorate import _validate
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.papers.stability.list_stable import ListLearner
from quorate.papers.stability.littlestone import VersionSpaces, space_of

__all__ = ["ProvedListLearner"]

MOST_CONDITIONS = 1 << 16
"""A machine limit: sets of labelled points that tell concepts apart."""


@dataclass(frozen=True, eq=False)
class ProvedListLearner(ListLearner):
    r"""Reduce a sample to a list with a common accurate hypothesis, with a proved probability.

    It is for labels that a concept of the class explains. A list may also contain inaccurate
    hypotheses; :meth:`~quorate.papers.stability.list_stable.ListLearner.filtered` drops them.

    Parameters
    ----------
    concepts : FiniteTable
        The class, on a finite domain: at most 65,536 sets of up to d labelled points may
        distinguish its concepts.
    alpha : float, default=0.02
        Largest error of the common hypothesis.

    Examples
    --------
    >>> from quorate.learners.concepts.tables import FiniteTable
    >>> learner = ProvedListLearner(FiniteTable(np.tri(8, 7, -1).astype(int)))
    >>> learner.dimension, learner.longest, round(learner.eta(200), 3)
    (3, 144, 0.998)
    >>> x = np.tile(np.arange(7), 30)
    >>> users = UserData.from_arrays(x[:, None], x < 3, users=np.zeros(210, dtype=int))
    >>> 0b111 in learner.lists(users)[0]
    True
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.conditions

    @cached_property
    def conditions(self) -> dict[int, int]:
        """The sets of concepts that agree with up to d labelled points.

        Each is stored with its fewest points.
        """
        found = {self.spaces.everything: 0}
        frontier = [self.spaces.everything]
        for points in range(1, self.dimension + 1):
            sides = {space & one for space in frontier for one in self.spaces.ones}
            sides |= {space & ~one for space in frontier for one in self.spaces.ones}
            frontier = [space for space in sides if space and space not in found]
            found |= dict.fromkeys(frontier, points)
            if len(found) > MOST_CONDITIONS:
                raise ParameterError(
                    f"Expected a class that at most {MOST_CONDITIONS} sets of {self.dimension} "
                    "labelled points split differently; use ListLearner for more."
                )
        return found

    @property
    def longest(self) -> int:
        """The largest length of a list: one prediction for each level and set of points."""
        return (self.dimension + 1) * len(self.conditions)

    def eta(self, records: int) -> float:
        """Bound from below how likely a sample's list contains the common hypothesis.

        No concept except the target may be on the wrong side of a level by more than half of a step
        between levels; the bound uses the larger tail at the worst level for each concept.
        """
        from scipy.stats import binom

        _validate.positive_integer(records=records)
        steps = self.dimension + 1
        levels = np.arange(steps)
        # The same comparison in integers as in `lists`.
        allowed = ((2 * levels + 1) * records) // (2 * steps)
        below = binom.sf(allowed, records, levels / steps)
        above = binom.cdf(allowed, records, (levels + 1) / steps)
        others = len(np.unique(self.concepts.table, axis=0)) - 1
        return max(0.0, 1.0 - others * float(np.max([below, above])))

    def global_stability(self, records: int) -> float:
        """Return the same bound for one hypothesis that is drawn from the list (Theorem 17)."""
        return self.eta(records) / self.longest

    def _listed(self, space: int, spaces: VersionSpaces) -> tuple[int, ...]:
        """Return the predictions of the irreducible sets given by few labelled points."""
        fewest: dict[int, int] = {}
        for condition, points in self.conditions.items():
            left = space & condition
            if left:
                fewest[left] = min(points, fewest.get(left, points))
        listed = (
            spaces.optimal(left)
            for left, points in fewest.items()
            if points + spaces.dimension(left) <= self.dimension and spaces.splits(left) is None
        )
        return tuple(dict.fromkeys(listed))

    def lists(self, users: UserData) -> list[tuple[int, ...]]:
        """Return the list of each user; each user is one sample."""
        steps, counts = self.dimension + 1, users.record_counts()
        found: list[tuple[int, ...]] = []
        list_of = cache(self.list_of)
        for block, mistakes in self.concepts.mistakes_in_batches(users):
            for row, held in zip(mistakes, counts[block].tolist(), strict=True):
                spaces = (
                    space_of(row <= ((2 * level + 1) * held) // (2 * steps))
                    for level in range(steps)
                )
                lists = (list_of(space) for space in spaces if space)
                found.append(tuple(dict.fromkeys(h for each in lists for h in each)))
        return found
