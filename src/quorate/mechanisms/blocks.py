"""Noisy sums of several vectors per person, with noise calibrated to the longest vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.bounds.blocks import Blocks
from quorate.core.guarantees import Relation
from quorate.core.moves import GridMoves
from quorate.core.sealed import Sealed
from quorate.exceptions import ParameterError
from quorate.mechanisms.laplace import LaplaceSum, check_joint_scale
from quorate.mechanisms.stated_error import chance_of_each

__all__ = ["BlockSum", "block_deviation", "block_quantile"]

Integers = NDArray[np.int64]

# machine: points of a quadrature over a gamma law, whose tails beyond them weigh less than 1e-3.
_POINTS = 2000


@dataclass(frozen=True, kw_only=True)
class BlockSum(LaplaceSum):
    r"""Release a sum of several bounded vectors per person with joint noise.

    For a table, a person has one vector for each statistic, and each is bounded in the L1 norm. The
    scale of independent Laplace noise is proportional to the sum of their lengths. Joint noise
    whose density depends on the *longest* vector only needs the largest length. Its standard
    deviation is .72 of that of Laplace noise for three vectors of two coordinates, .61 for three of
    one coordinate, and 1 in the limit of many coordinates.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``grid``, ``epsilon``, ``relation``, ``count``
    numerics : exact
    proof : For integer vectors z of b blocks write :math:`N(z) = \max_i \|z_i\|_1`, which is a
        norm. Let :math:`x, x'` be the totals of neighbours; :math:`N(x - x') \le \Delta` =
        ``sensitivity`` for every input by ``bound.joint_in_steps``: each block of a user is
        clipped to its own length. The noise has mass proportional to :math:`e^{-N(z)/s}`; by the
        triangle inequality the ratio of the two probabilities of any output is at most
        :math:`e^{\Delta/s}`, and :math:`s = \Delta/\varepsilon` is rounded up. The sampler
        (:func:`~quorate.core.noise.composed_laws.block_integers`) is exact. This is the K-norm
        mechanism [1]_ of a product of cross-polytopes.

    Utility
    -------
    A coordinate of the noise is approximately a gamma variable of shape d + 1, for d coordinates in
    all, times a coordinate of a uniform point of the L1 unit ball in g dimensions, which exceeds u
    with probability :math:`(1-u)^g`. ``error_bound(beta)`` is its quantile, for all coordinates
    together.

    Complexity
    ----------
    Time :math:`O(nd)` for n users; about 4d draws of noise.

    Parameters
    ----------
    grid : Grid
        A grid of :class:`~quorate.core.bounds.blocks.Blocks`.
    epsilon : float
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] Hardt, Talwar. On the geometry of differential privacy. STOC 2010.

    Examples
    --------
    >>> from quorate.core.bounds.grid import Ball
    >>> from quorate.mechanisms.sums import choose_grid
    >>> both = Blocks((Ball(1.0, dimension=2, norm=1, signed=False),) * 3)
    >>> total = BlockSum(grid=choose_grid(both, n_users=1000), epsilon=1.0)
    >>> plain = LaplaceSum(grid=total.grid, epsilon=1.0)
    >>> round(total.standard_error, 2), round(plain.standard_error, 2)
    (6.11, 8.49)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        check_joint_scale(self.scale)
        bound = self.grid.bound
        if not isinstance(bound, Blocks) or len({part.dimension for part in bound.parts}) != 1:
            raise ParameterError(f"Expected a grid of blocks of one size, got {bound!r}.")

    @property
    def sensitivity(self) -> int:
        """Largest change N, in steps, between the totals of neighbours."""
        _validate.one_of(tuple(Relation), relation=self.relation)
        return GridMoves(self.grid, self.relation).joint("blocks_laplace")[1]

    @property
    def _sizes(self) -> tuple[int, int]:
        parts, groups = GridMoves(self.grid, self.relation).joint("blocks_laplace")[0]
        return parts, groups

    def error_bound(self, beta: float) -> float:
        """Return a bound on the error of every coordinate, except with probability ``beta``."""
        parts, groups = self._sizes
        tail = chance_of_each(beta, parts * groups)
        # An integer point stands for a cell, whose norm differs by half a step a coordinate.
        reach = self.scale * block_quantile(tail * math.exp(-groups / self.scale), parts, groups)
        return self.grid.step * math.ceil(reach + 0.5)

    @property
    def standard_error(self) -> float:
        """Standard deviation of the noise in one coordinate, from above."""
        parts, groups = self._sizes
        slack = math.exp(groups / 2 / self.scale)
        return self.grid.step * self.scale * block_deviation(parts, groups) * slack

    def _add_noise(self, sums: Sealed, account: Account) -> Integers:
        return account.joint(sums, "blocks_laplace", scale=self.scale)


def block_deviation(parts: int, groups: int) -> float:
    """Return the standard deviation of one coordinate of the noise, in scales.

    >>> round(block_deviation(1, 9), 4), round(block_deviation(3, 1), 4)
    (1.4142, 2.582)
    """
    size = parts * groups
    return math.sqrt(2.0 * (size + 1) * (size + 2) / ((groups + 1) * (groups + 2)))


@lru_cache(maxsize=256)
def block_quantile(beta: float, parts: int, groups: int) -> float:
    """Return the ``1 - beta`` quantile of one coordinate of the noise, in scales.

    >>> round(block_quantile(0.05, 1, 5), 2), round(block_quantile(0.05, 3, 1), 2)
    (3.0, 5.19)
    """
    from scipy.optimize import brentq
    from scipy.special import gammaincinv

    places = (np.arange(_POINTS) + 0.5) / _POINTS
    radii = gammaincinv(parts * groups + 1, places)

    def beyond(t: float) -> float:
        return float(np.mean(np.clip(1.0 - t / radii, 0.0, 1.0) ** groups)) - beta

    # Even one block, whose noise is Laplace's, exceeds -ln(beta); others more.
    high = parts * (8.0 - 4.0 * math.log(beta))
    return float(brentq(beyond, 0.0, high))
