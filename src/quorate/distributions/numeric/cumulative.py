"""A private distribution function over cells of a line, by sums over nested intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Interval
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions.shares import Coder, ShareSet, share_totals
from quorate.core.users.data import UserData
from quorate.distributions.numeric.hierarchy import Hierarchy, choose_hierarchy, rising
from quorate.distributions.shares import Weights
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.sums import choose_grid

__all__ = ["CumulativeRun", "ReleasedSums"]

_BETA = 0.05  # public: 95 % is the convention of stated errors
_MAX_STEPS = 2**30
_COUNT_SHARE = Fraction(5, 100)


@dataclass(frozen=True)
class _Groups:
    """Assigns a number to each group of neighbouring cells."""

    cells: Coder
    size: int

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        codes = self.cells(part)
        return np.where(codes < 0, -1, codes // self.size)


@dataclass(frozen=True, kw_only=True)
class ReleasedSums:
    """Released shares up to the end of each cell, and a bound on all of their errors."""

    up_to: NDArray[np.float64]
    bound: float
    hierarchy: Hierarchy


@dataclass(frozen=True, kw_only=True)
class CumulativeRun:
    """One distribution function.

    Parameters
    ----------
    people : People
    coder : Coder
        Maps records to cell numbers, in increasing order.
    cells : int
    account : Account
    cap : int, default=1
        As for :func:`~quorate.core.questions.shares.share_totals`.
    """

    people: People
    coder: Coder
    cells: int
    account: Account
    cap: int = 1

    def release(self, epsilon: Fraction) -> ReleasedSums:
        """Release the sums for ``epsilon``.

        Privacy: in every level a user contributes shares of intervals that add up to at most 1.
        This is a point of :class:`~quorate.core.bounds.blocks.Blocks` in whole steps.
        """
        hierarchy = choose_hierarchy(self.cells)
        relation = self.account.relation
        total, wrong = float(max(1, self.people.size_bound)), 0.0
        if relation is Relation.ADD_REMOVE:
            total, wrong = self._size(_COUNT_SHARE * epsilon)
            epsilon -= _COUNT_SHARE * epsilon
        # What is missing to a whole is counted once, with the coarsest level.
        knows_absent = relation is Relation.REPLACE
        absent = (knows_absent,) + (False,) * (hierarchy.levels - 1)
        sizes = tuple(n + a for n, a in zip(hierarchy.sizes, absent, strict=True))
        whole = Blocks(tuple(map(Simplex, sizes)))
        mechanism = self._sum(whole, epsilon)
        groups = [
            ShareSet(_Groups(self.coder, hierarchy.leaves // n), n, absent=a)
            for n, a in zip(hierarchy.sizes, absent, strict=True)
        ]
        totals = share_totals(self.people, groups, mechanism.grid, cap=self.cap)
        noisy = mechanism.release(totals, count=0, account=self.account)
        levels = [noisy[part] for part in whole.places]
        missing = float(levels[0][-1]) if knows_absent else 0.0
        levels[0] = levels[0][: hierarchy.sizes[0]]
        leaves, gone = hierarchy.consistent(levels, missing, np.float64(total))
        if not knows_absent:
            # Nobody is counted as missing: what was given to absence belongs to the leaves.
            leaves, gone = leaves + gone / leaves.size, 0.0
        present = max(1.0, total - max(0.0, float(gone)))
        scale = mechanism.scale * mechanism.grid.step
        error = hierarchy.largest_error(scale=scale, beta=0.8 * _BETA) + wrong
        return ReleasedSums(
            up_to=rising(np.cumsum(leaves)[: self.cells] / present),
            bound=min(1.0, error / present),
            hierarchy=hierarchy,
        )

    def _sum(self, bound: Blocks | Interval, epsilon: Fraction) -> LaplaceSum:
        relation = self.account.relation
        grid = choose_grid(
            bound,
            n_users=self.people.size_bound,
            noise_scale=bound.change(relation)[0] / float(epsilon),
            max_steps=_MAX_STEPS,
        )
        return LaplaceSum(grid=grid, epsilon=float_down(epsilon), relation=relation)

    def _size(self, epsilon: Fraction) -> tuple[float, float]:
        """Release the sum of the weights, which is private under add/remove."""
        line = Interval(0.0, 1.0, centre=0.0)
        mechanism = self._sum(line, epsilon)
        weights = Weights(self.coder, line, int(1.0 / mechanism.grid.step), self.cap)
        totals = self.people.total(weights, mechanism.grid)
        noisy = float(mechanism.release(totals, count=0, account=self.account)[0])
        scale = mechanism.scale * mechanism.grid.step
        return max(1.0, noisy), scale * math.log(1.0 / (0.2 * _BETA))
