"""Noisy sums with pure privacy: Laplace noise, or noise for the largest coordinate.

The scale of Laplace noise is proportional to the L1 sensitivity. In a box one user may change every
coordinate at once. In this case noise whose density depends on the largest coordinate is smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Grid
from quorate.core.guarantees import Relation
from quorate.core.moves import GridMoves
from quorate.core.noise.exact_decisions import LARGEST_SCALE
from quorate.core.sealed import Sealed
from quorate.exceptions import GridOverflowError
from quorate.mechanisms.pure import PureMechanism
from quorate.mechanisms.stated_error import chance_of_each
from quorate.mechanisms.sums import NoisySum

__all__ = [
    "CubeSum",
    "LaplaceNoise",
    "LaplaceSum",
    "check_joint_scale",
    "cube_deviation",
    "laplace_deviation",
    "laplace_quantile",
]

Integers = NDArray[np.int64]


class LaplaceNoise(PureMechanism):
    """Base of sums and counts with Laplace noise."""

    @property
    def sensitivity(self) -> int:
        """L1 sensitivity of the sum to which the noise is added."""
        raise NotImplementedError

    @property
    def scale(self) -> float:
        """Scale of the noise (for a sum, in steps), rounded up."""
        return float_up(Fraction(self.sensitivity) / exact(self.epsilon))


@dataclass(frozen=True, kw_only=True)
class LaplaceSum(NoisySum, LaplaceNoise):
    r"""Release a sum of bounded contributions with discrete Laplace noise.

    Every user's contribution is clipped and rounded towards the centre by ``grid``; the integers
    are added up over the users; each total gets independent discrete Laplace noise of scale
    L1 sensitivity / ``epsilon``.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``grid``, ``epsilon``, ``relation``, ``count``
    numerics : exact
    proof : Let :math:`x, x'` be the integer totals of neighbours and :math:`\Delta` =
        ``sensitivity``; :math:`\|x - x'\|_1 \le \Delta` for every input, by the proof in
        ``docs/proofs/grid.md``. The noise has mass proportional to :math:`e^{-|z|/s}`, so the ratio
        of the two probabilities of any output is at most :math:`e^{\Delta/s}` [1]_, and
        :math:`s = \Delta/\varepsilon` is rounded up to a float whose exact value the sampler
        uses. Decoding is post-processing.

    Utility
    -------
    With probability at least :math:`1-\beta` every coordinate is within ``error_bound(beta)``,
    which is :math:`O(\frac{\Delta}{\varepsilon}\log\frac{d}{\beta})`, of the sum of the *clipped*
    contributions. Rounding adds at most ``grid.rounding_error(n)``.

    Complexity
    ----------
    Time :math:`O(nd)` for n users, :math:`O(d)` draws; memory :math:`O(d)` beside the
    contributions; one message of d integers per engine worker.

    Parameters
    ----------
    grid : Grid
        Bound and resolution of a contribution.
    epsilon : float
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy mechanisms.
       SIAM J. Comput. 41(6), 2012.

    Examples
    --------
    >>> from quorate.core.bounds.grid import Interval
    >>> from quorate.mechanisms.sums import choose_grid
    >>> grid = choose_grid(Interval(0.0, 10.0), n_users=1000)
    >>> total = LaplaceSum(grid=grid, epsilon=1.0)
    >>> bool(abs(total.release_values(np.full(1000, 4.0))[0] - 4000) < 500)
    True
    >>> round(total.error_bound(0.05), 1), total.guarantee.epsilon
    (30.0, 1.0)
    """

    grid: Grid
    epsilon: float | Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        self._check("scale")

    @property
    def sensitivity(self) -> int:
        """Largest L1 distance, in steps, between the totals of neighbours."""
        return self.grid.l1_sensitivity(self.relation)

    def error_bound(self, beta: float) -> float:
        """Return a bound on the error of every coordinate, except with probability ``beta``.

        It is the smallest multiple of the step for which this holds: the tail is exact, and the
        coordinates are independent.
        """
        return self.grid.step * laplace_quantile(
            self.scale, chance_of_each(beta, self.grid.bound.dimension)
        )

    @property
    def standard_error(self) -> float:
        """Standard deviation of the noise in one coordinate."""
        return self.grid.step * laplace_deviation(self.scale)

    def _add_noise(self, sums: Sealed, account: Account) -> Integers:
        return account.laplace(sums, scale=self.scale)


@dataclass(frozen=True, kw_only=True)
class CubeSum(LaplaceSum):
    r"""Release a sum of vectors in a box with joint noise for the largest coordinate.

    One user may move every coordinate of a box at once. The scale of independent Laplace noise is
    proportional to the sum of these moves. Joint noise whose density depends on the *largest*
    coordinate only needs the largest move: in d coordinates of a cube its standard deviation is
    :math:`\sqrt{(d+1)(d+2)/3}` scales instead of :math:`\sqrt 2\,d`, which is .71 of it for two
    coordinates and .41 in the limit. A vote (:class:`~quorate.core.bounds.or_absent.OrAbsent`) is a
    coordinate outside of the box and gets independent Laplace noise.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``grid``, ``epsilon``, ``relation``, ``count``
    numerics : exact
    proof : For the first b coordinates of an integer vector z, those of the box, write :math:`N(z)
        = \max_{j \le b} |z_j| + \sum_{j > b} |z_j|`, which is a norm. Let :math:`x, x'` be the
        totals of neighbours; :math:`N(x - x') \le \Delta` = ``sensitivity`` for every input by
        ``bound.joint_in_steps``: each coordinate of a box is clipped to its limits, and a user who
        votes has no offset. The noise has mass proportional to :math:`e^{-N(z)/s}`; by the triangle
        inequality the ratio of the two probabilities of any output is at most :math:`e^{\Delta/s}`,
        and :math:`s = \Delta/\varepsilon` is rounded up. The sampler
        (:func:`~quorate.core.noise.composed_laws.cube_integers`) is exact. This is the K-norm
        mechanism [1]_ of a cube, which Steinke and Ullman [2]_ use for averages of many attributes.

    Utility
    -------
    With probability at least :math:`1-\beta` every coordinate is within ``error_bound(beta)`` of
    the sum of the *clipped* contributions. A point x of the unit cell around an integer vector z
    has :math:`|\max|x_j| - \max|z_j|| \le 1/2`, so the mass of any set of integer vectors is that
    of their cells under the density :math:`\propto e^{-\max|x_j|/s}`, up to a factor of
    :math:`e^{1/s}`; the largest coordinate of such an x has a gamma law with b degrees.

    Complexity
    ----------
    Time :math:`O(nd)` for n users; about 2d draws of noise.

    Parameters
    ----------
    grid : Grid
        Bound and resolution of a contribution.
    epsilon : float
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] Hardt, Talwar. On the geometry of differential privacy. STOC 2010.
    .. [2] Steinke, Ullman. Between pure and approximate differential privacy. J. Priv. Confid.
       7(2), 2017.

    Examples
    --------
    >>> from quorate.core.bounds.grid import Box
    >>> from quorate.mechanisms.sums import choose_grid
    >>> grid = choose_grid(Box([-1.0] * 3, [1.0] * 3), n_users=1000)
    >>> total, plain = (kind(grid=grid, epsilon=1.0) for kind in (CubeSum, LaplaceSum))
    >>> people = np.tile([0.5, 0.3, 0.2], (1000, 1))
    >>> bool(np.abs(total.release_values(people) - [500, 300, 200]).max() < 60)
    True
    >>> round(total.standard_error, 2), round(plain.standard_error, 2)
    (5.16, 8.49)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        check_joint_scale(self.scale)

    @property
    def sensitivity(self) -> int:
        """Largest change N, in steps, between the totals of neighbours."""
        _validate.one_of(tuple(Relation), relation=self.relation)
        return self._cube[1]

    @property
    def _cube(self) -> tuple[int, int]:
        """The number of leading coordinates in a box, and the largest change N."""
        (width,), change = GridMoves(self.grid, self.relation).joint("cube_laplace")
        return width, change

    def error_bound(self, beta: float) -> float:
        """Return a bound on the error of every coordinate, except with probability ``beta``."""
        from scipy.special import gammainccinv

        width, whole = self._cube[0], self.grid.bound.dimension
        beside = super().error_bound(beta * (whole - width) / whole) if width < whole else 0.0
        if not width:
            return beside
        _validate.probability(beta=beta)
        tail = beta * width / whole * math.exp(-1.0 / self.scale)
        reach = self.scale * float(gammainccinv(width, tail)) - 0.5
        return max(beside, self.grid.step * max(0, math.ceil(reach)))

    @property
    def standard_error(self) -> float:
        """Standard deviation of the noise in one coordinate of the box, from above."""
        deviation = self.scale * cube_deviation(max(1, self._cube[0]))
        return self.grid.step * deviation * math.exp(0.5 / self.scale)

    def _add_noise(self, sums: Sealed, account: Account) -> Integers:
        return account.joint(sums, "cube_laplace", scale=self.scale)


def check_joint_scale(scale: float) -> None:
    """Refuse joint noise whose integers might not fit into 64 bits."""
    if not scale <= LARGEST_SCALE:
        raise GridOverflowError(
            f"Noise of scale = {scale:.3g} steps may not fit; use choose_grid(bound, n_users=..., "
            "noise_scale=...) for a coarser grid."
        )


def laplace_quantile(scale: float, tail: float) -> int:
    """Return the smallest integer t >= 0 with P(|Z| > t) <= ``tail``."""
    # P(|Z| > t) = 2 exp(-(t + 1) / scale) / (1 + exp(-1 / scale)) for an integer t >= 0.
    return max(0, math.ceil(scale * math.log(2 / (tail * (1 + math.exp(-1 / scale)))) - 1))


def laplace_deviation(scale: float) -> float:
    """Return the root of the variance 2 p / (1 - p)^2 with p = exp(-1 / scale)."""
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)


def cube_deviation(dimension: int) -> float:
    """Return the standard deviation of one coordinate of the noise, in scales.

    >>> round(cube_deviation(1), 4), round(cube_deviation(4), 4)
    (1.4142, 3.1623)
    """
    return math.sqrt((dimension + 1) * (dimension + 2) / 3.0)
