"""Private quantiles that can be round numbers shared by many people, which a fine grid misses.

Among 2^40 points of a range a single number that a third of all people share has too little weight
compared with the gaps beside it. Here the weight is divided equally among the scales of round
numbers: ..., 10, 5, 1, .5, .1, .... So it need not be known which scale people use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.account.along_a_line import Scale
from quorate.core.guarantees import Guarantee, Pure, Relation
from quorate.core.sealed import SealedRows
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.quantiles import PrivateQuantile

__all__ = ["RoundNumbers", "RoundQuantile"]

_DIGITS = 12  # public: the digits of an answer, as documented
"""The finest scale has at least 10^12 points in the range."""

_DIGITS_OF_FLOATS = 15  # machine: 10^15 < 2^50
"""Numbers of points stay below 2^50, so that a float's nearest point is found without a doubt."""

_NARROWEST, _LARGEST = 1e-290, 1e300  # machine: floats

_SCALE_WEIGHT = 1 << 57
"""About the weight of each scale: 2^6 scales stay below 2^63, a finest point has some 2^13."""


@dataclass(frozen=True)
class RoundNumbers:
    """Round numbers in a public range, on all scales from its width to 10^-12 of it.

    Point u is the number u * 10^exponent. The points of a scale are the multiples of its stride.

    >>> numbers = RoundNumbers.within(0.0, 125.0, digits=2)
    >>> numbers.exponent, numbers.strides, numbers.first, numbers.last
    (0, (1, 5, 10, 50, 100), 0, 125)
    >>> numbers.encode(np.array([3.2, np.inf, -7.0, np.nan])).tolist()
    [3, 125, 0, 62]
    >>> RoundNumbers.within(0.0, 125.0).decode(3_050_000_000)
    0.305
    """

    lower: float
    upper: float
    exponent: int
    strides: tuple[int, ...]

    @classmethod
    def within(cls, lower: float, upper: float, *, digits: int = _DIGITS) -> RoundNumbers:
        """Return the round numbers from ``lower`` to ``upper``."""
        _validate.ordered(lower, upper, name="range")
        width = Fraction(upper) - Fraction(lower)
        largest = max(abs(Fraction(lower)), abs(Fraction(upper)))
        if width < _NARROWEST or largest > _LARGEST:
            # Steps and points must be floats: beyond, a division would warn about some values only.
            raise ParameterError(
                f"Expected a range of width {_NARROWEST:g} at least and numbers up to "
                f"{_LARGEST:g}, got ({lower!r}, {upper!r}); use other units."
            )
        coarsest = _power_at_most(width)
        exponent = max(coarsest - digits, _power_at_most(largest) + 1 - _DIGITS_OF_FLOATS)
        made = cls(float(lower), float(upper), exponent, (1,))
        strides = [
            multiple * 10**power
            for power in range(max(0, coarsest - exponent) + 1)
            for multiple in (1, 5)
            if multiple * 10**power * made.step <= max(width, made.step)
        ]
        return cls(
            made.lower,
            made.upper,
            exponent,
            tuple(stride for stride in strides if made.points(stride)),
        )

    @property
    def step(self) -> Fraction:
        """The distance of points."""
        return Fraction(10) ** self.exponent

    @cached_property
    def first(self) -> int:
        """The last point that is not above the range."""
        return math.floor(Fraction(self.lower) / self.step)

    @cached_property
    def last(self) -> int:
        """The first point that is not below the range."""
        return math.ceil(Fraction(self.upper) / self.step)

    def points(self, stride: int) -> int:
        """Return the number of points of a scale."""
        return self.last // stride - -(-self.first // stride) + 1

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the nearest point of each value, clipped to the range; the middle for NaN."""
        values = np.asarray(values)
        if values.ndim != 1 or values.dtype.kind not in "fiu":
            raise SchemaError(
                f"Expected one real number per user in one axis, got {values.ndim} axes of "
                f"{values.dtype}."
            )
        middle = (self.first + self.last) // 2
        with np.errstate(over="ignore"):  # of longer floats; a warning would tell of a value
            reals = values.astype(np.float64)
        inside = np.where(np.isnan(reals), self.lower, np.clip(reals, self.lower, self.upper))
        # A float that stands for a decimal is off by at most three roundings of 2^-53 of below
        # 2^50 steps, which is less than half a step.
        steps = np.rint(inside / float(self.step))
        points = np.clip(steps, self.first, self.last).astype(np.int64)
        points = np.where(reals <= self.lower, self.first, points)
        points = np.where(reals >= self.upper, self.last, points)
        return np.where(np.isnan(reals), middle, points)

    def decode(self, point: int) -> float:
        """Return the round number at a point, clipped to the range."""
        return max(self.lower, min(float(point * self.step), self.upper))


@dataclass(frozen=True, kw_only=True)
class RoundQuantile:
    r"""Release a number near a quantile of the users' values; round numbers are preferred.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``lower``, ``upper``, ``quantile``, ``epsilon``; under ``Relation.REPLACE`` the number
        of users
    numerics : exact
    proof : Each value is moved to a point by a function of that value alone. The candidates are the
        points of all scales, each c_k times for scale k: a finite public list. The loss of a
        candidate is that of its point in :class:`~quorate.mechanisms.choices.quantiles.
        PrivateQuantile`, whose sealed values carry their sensitivity. Each entry of the list is
        chosen with probability proportional to :math:`e^{-\lambda s}`, the exponential mechanism;
        which copy was chosen is not released (:mod:`quorate.core.account.along_a_line`).

    Utility
    -------
    With probability at least :math:`1 - \beta` the rank among the values, rounded to points, is off
    by at most ``error_bound(beta)`` users, wherever they lie. If many users share a number with few
    digits, it is found with an error of a few users instead of a multiple of :math:`\ln(10^{12})`.

    Complexity
    ----------
    As for :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`, plus two divisions of 2n
    integers for each of about 26 scales.

    Parameters
    ----------
    lower, upper : float
        Range of the answer; public.
    epsilon : float
    quantile : float or Fraction, default=0.5
    relation : Relation, default=Relation.REPLACE
    digits : int, default=12
        The finest scale is the width times 10 to the power of minus this number.

    References
    ----------
    See :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`.

    Examples
    --------
    In this example half of the users are at least 3, and few of them above it:

    >>> from quorate.core.by_hand import rows_by_hand
    >>> visits = rows_by_hand(np.repeat([1.0, 2.5, 3.0, 4.0], [300, 190, 20, 490]))
    >>> median = RoundQuantile(lower=0.0, upper=125.0, epsilon=4.0)
    >>> median.decode(median.release(visits.map(median.encode)))
    3.0
    """

    lower: float
    upper: float
    epsilon: float | Fraction
    quantile: float | Fraction = Fraction(1, 2)
    relation: Relation = Relation.REPLACE
    digits: int = _DIGITS

    def __post_init__(self) -> None:
        _ = self.ranks

    @cached_property
    def numbers(self) -> RoundNumbers:
        """The round numbers that may be released."""
        return RoundNumbers.within(self.lower, self.upper, digits=self.digits)

    @cached_property
    def ranks(self) -> PrivateQuantile:
        """The quantile mechanism on the finest scale alone; it computes the losses."""
        return PrivateQuantile(
            domain=(self.numbers.first, self.numbers.last),
            epsilon=self.epsilon,
            quantile=self.quantile,
            relation=self.relation,
        )

    @property
    def choice(self) -> ChooseOrdered:
        """The mechanism underneath."""
        return self.ranks.choice

    @property
    def sensitivity(self) -> int:
        """The largest change of the loss of any candidate by one user."""
        return self.ranks.sensitivity

    @property
    def event(self) -> Pure:
        """The event for the accountant."""
        return self.choice.event

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one call of :meth:`release` or :meth:`release_between`."""
        return self.choice.guarantee

    @cached_property
    def copies(self) -> tuple[int, ...]:
        """The multiplicity of the points of each scale; all scales have about the same weight."""
        numbers = self.numbers
        return tuple(_SCALE_WEIGHT // numbers.points(stride) for stride in numbers.strides)

    @property
    def scales(self) -> tuple[Scale, ...]:
        """Strides and multiplicities of all scales."""
        return tuple(zip(self.numbers.strides, self.copies, strict=True))

    @cached_property
    def weight(self) -> int:
        """The number of candidates, with multiplicities."""
        return sum(copies * self.numbers.points(stride) for stride, copies in self.scales)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the nearest point of each value."""
        return self.numbers.encode(values)

    def decode(self, point: int) -> float:
        """Return the number of a point."""
        return self.numbers.decode(point)

    def release(self, points: SealedRows, *, account: Account | None = None) -> int:
        """Return a point near the quantile of one point of each user."""
        return self.release_between(points, points, account=account)

    def release_between(
        self,
        lower: SealedRows,
        upper: SealedRows,
        *,
        account: Account | None = None,
    ) -> int:
        """Return a point that is outside of few users' intervals [``lower``, ``upper``].

        >>> between = RoundQuantile(lower=0.0, upper=9.0, epsilon=1.0, digits=0)
        >>> from quorate.core.by_hand import rows_by_hand
        >>> low, high = rows_by_hand([7] * 200), rows_by_hand([8] * 200)
        >>> 7 <= between.release_between(low, high) <= 8
        True
        """
        losses = self.ranks.losses(lower, upper)
        first = self.numbers.first
        return self.choice.release_among(self.scales, losses, lower=first, account=account)

    def probabilities(
        self, lower: NDArray[np.int64], upper: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of each point of a small range, in order; for audits.

        >>> median = RoundQuantile(lower=4.0, upper=6.0, epsilon=2.0, digits=0)
        >>> median.numbers.strides, median.probabilities(np.array([4])).round(3).tolist()
        ((1,), [0.576, 0.212, 0.212])
        """
        points = np.arange(self.numbers.first, self.numbers.last + 1)
        often = sum(copies * (points % stride == 0.0) for stride, copies in self.scales)
        chances = self.ranks.probabilities(lower, upper) * often
        return np.asarray(chances / np.sum(chances))

    def error_bound(self, beta: float) -> float:
        """Bound the error of the rank, in users, except with probability ``beta``."""
        # In the worst case one point is right, and belongs to no scale but the finest.
        worse = self.choice.error_bound(self.weight, beta, optimal_points=self.copies[0])
        return worse / self.ranks.exact_quantile.denominator


def _power_at_most(value: Fraction) -> int:
    """Return the largest k for which 10^k is at most a positive number.

    >>> [_power_at_most(Fraction(value)) for value in (1, 999, 0.1)]
    [0, 2, -1]
    """
    power = len(str(value.numerator)) - len(str(value.denominator))
    return power if Fraction(10) ** power <= value else power - 1
