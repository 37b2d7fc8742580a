"""Private quantiles that meet round numbers: people share them, and a fine grid passes them by.

Among 2^40 points of a range the one number that a third of all people share weighs nothing against
the gaps beside it. Here a part of the weight lies on every scale of round numbers: ..., 10, 5, 1,
.5, .1, ...; which of them people use need not be known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.accounting.account import Account, sample_for
from quorate.core.sealed import SealedRows
from quorate.exceptions import ParameterError, SchemaError
from quorate.guarantees import Guarantee, Pure, Relation
from quorate.mechanisms.choices.exponential import choose_weighted, weighted_probabilities
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.quantiles import PrivateQuantile, paid_pieces
from quorate.noise import NoiseSource
from quorate.noise.composed_laws import PiecewiseLaw

__all__ = ["RoundNumbers", "RoundQuantile"]

_DIGITS = 12
"""The finest scale has at least 10^12 points in the range."""

_DIGITS_OF_FLOATS = 15
"""Numbers of points stay below 2^50, so that a float's nearest point is found without a doubt."""

_NARROWEST, _LARGEST = 1e-290, 1e300

_SCALE_WEIGHT = 1 << 57
"""About the weight of each scale: 2^6 scales stay below 2^63, a finest point has some 2^13."""


@dataclass(frozen=True)
class RoundNumbers:
    """Round numbers of a public range, on all scales from its width to a 10^12-th of it.

    Point u stands for the number u * 10^exponent. The scale of stride s has its multiples of s.

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
        """Return how many points a scale has."""
        return self.last // stride - -(-self.first // stride) + 1

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the nearest point of each value; beyond the range its end, for NaN the middle."""
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
        """Return the number that a point stands for, inside the range."""
        return max(self.lower, min(float(point * self.step), self.upper))


@dataclass(frozen=True, kw_only=True)
class RoundQuantile:
    r"""Release a number near a quantile of the users' real values, a round one where they share it.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``lower``, ``upper``, ``quantile``, ``epsilon``; under ``Relation.REPLACE`` the number
        of users
    numerics : exact
    proof : Each value is moved to a point by a function of that value alone. Candidate is every
        point of every scale, c_k times where it belongs to scale k: a finite public list. The loss
        of a candidate is that of its point in :class:`~quorate.mechanisms.choices.quantiles.
        PrivateQuantile`, and a user moves it by at most the sensitivity proved there. Each entry of
        the list is taken with probability proportional to :math:`e^{-\lambda s}`, the exponential
        mechanism; which copy it was is not released. *Sampling:* users cut the points into pieces
        of equal loss. A piece holds W entries in all and has weight :math:`W e^{-\lambda s}`
        (:func:`~quorate.mechanisms.choices.exponential.choose_weighted`); a uniform number below W
        then names one of its entries.

    Utility
    -------
    With probability at least :math:`1 - \beta` the rank among the values as moved to points is off
    by at most ``error_bound(beta)`` users, wherever they lie. A number with few digits that many
    users share is met with a few users in the place of :math:`\ln(10^{12})`.

    Complexity
    ----------
    That of :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`, and two divisions of 2n
    integers for each of some 26 scales.

    Parameters
    ----------
    lower, upper : float
        Range of the answer; public.
    epsilon : float
    quantile : float or Fraction, default=0.5
    relation : Relation, default=Relation.REPLACE
    digits : int, default=12
        How many powers of ten the finest scale lies below the width.

    References
    ----------
    See :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`.

    Examples
    --------
    Half of the users are not below 3, and few of them above it:

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
        """What may be released."""
        return RoundNumbers.within(self.lower, self.upper, digits=self.digits)

    @cached_property
    def ranks(self) -> PrivateQuantile:
        """The mechanism on the finest scale alone, whose losses these are."""
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
        """How far one user moves the loss of any candidate."""
        return self.ranks.sensitivity

    @property
    def event(self) -> Pure:
        """What the accountant prices."""
        return self.choice.event

    @property
    def guarantee(self) -> Guarantee:
        """The promise of one call of :meth:`release` or :meth:`release_between`."""
        return self.choice.guarantee

    @cached_property
    def copies(self) -> tuple[int, ...]:
        """How often a point of each scale is a candidate: all scales weigh about the same."""
        numbers = self.numbers
        return tuple(_SCALE_WEIGHT // numbers.points(stride) for stride in numbers.strides)

    @cached_property
    def weight(self) -> int:
        """How many candidates there are, copies counted."""
        numbers = self.numbers
        held = (numbers.points(stride) for stride in numbers.strides)
        return sum(copies * points for copies, points in zip(self.copies, held, strict=True))

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the nearest point of each value."""
        return self.numbers.encode(values)

    def decode(self, point: int) -> float:
        """Return the number that a point stands for."""
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
        """Return a point that few users find below ``lower`` and few above ``upper``.

        >>> between = RoundQuantile(lower=0.0, upper=9.0, epsilon=1.0, digits=0)
        >>> from quorate.core.by_hand import rows_by_hand
        >>> low, high = rows_by_hand([7] * 200), rows_by_hand([8] * 200)
        >>> 7 <= between.release_between(low, high) <= 8
        True
        """
        edges, losses = self._edges(*paid_pieces(self.ranks, lower, upper, account))

        def draw(noise: NoiseSource) -> int:
            weights = np.zeros(len(losses), dtype=np.uint64)
            for copies, held in zip(self.copies, self._held(edges), strict=True):
                weights += np.uint64(copies) * held.astype(np.uint64)
            piece = choose_weighted(weights, losses, rate=self.choice.rate, noise=noise)
            return self._candidate(
                int(edges[piece]), int(edges[piece + 1]), noise.uniform_below(int(weights[piece]))
            )

        number = sample_for(
            Account.of_release(account, self),
            "round_choice",
            draw,
            law=lambda: self._law(edges, losses),
            loss=self.choice.rate * self.choice.spread,
            rate=self.choice.rate,
            range=(self.lower, self.upper),
            digits=self.digits,
        )
        return self._point(number)

    def probabilities(
        self, lower: NDArray[np.int64], upper: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of each point of a small range, in order; for audits.

        >>> median = RoundQuantile(lower=4.0, upper=6.0, epsilon=2.0, digits=0)
        >>> median.numbers.strides, median.probabilities(np.array([4])).round(3).tolist()
        ((1,), [0.576, 0.212, 0.212])
        """
        pieces = self.ranks.pieces(lower, lower if upper is None else upper)
        law = self._law(*self._edges(*pieces))
        each = law.probabilities / np.maximum(law.lengths, 1)
        chances = np.zeros(self.numbers.last - self.numbers.first + 1)
        listed = np.repeat(each, law.lengths.astype(np.int64))
        for number, chance in enumerate(listed):
            chances[self._point(number) - self.numbers.first] += chance
        return chances

    def error_bound(self, beta: float) -> float:
        """Return by how many users the rank may be off, except with probability ``beta``."""
        # In the worst case one point is right, and belongs to no scale but the finest.
        worse = self.choice.error_bound(self.weight, beta, optimal_points=self.copies[0])
        return worse / self.ranks.exact_quantile.denominator

    def _edges(
        self, lengths: NDArray[np.uint64], losses: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where pieces of equal loss begin and end, and their losses."""
        begin = np.zeros(1, dtype=np.int64)
        return self.numbers.first + np.cumsum(np.r_[begin, lengths.astype(np.int64)]), losses

    def _held(self, edges: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Yield, for each scale, how many of its points lie in each piece."""
        for stride in self.numbers.strides:
            yield np.diff(-(-edges // stride))

    def _candidate(self, begin: int, end: int, drawn: int) -> int:
        """Return the entry of the list of points, scale after scale, that ``drawn`` names."""
        numbers, before = self.numbers, 0
        for stride, copies in zip(numbers.strides, self.copies, strict=True):
            lowest = -(-begin // stride)
            weight = copies * (-(-end // stride) - lowest)
            if drawn < weight:
                return before + lowest - -(-numbers.first // stride) + drawn // copies
            drawn -= weight
            before += numbers.points(stride)
        raise AssertionError("A number was drawn beyond its piece.")

    def _point(self, number: int) -> int:
        """Return the point that an entry of that list is."""
        for stride in self.numbers.strides:
            if number < self.numbers.points(stride):
                return (-(-self.numbers.first // stride) + number) * stride
            number -= self.numbers.points(stride)
        raise AssertionError("There are not so many points.")

    def _law(self, edges: NDArray[np.int64], losses: NDArray[np.int64]) -> PiecewiseLaw:
        held = list(self._held(edges))
        weights = [copies * points for copies, points in zip(self.copies, held, strict=True)]
        chances = weighted_probabilities(
            np.concatenate(weights), np.tile(losses, len(held)), rate=self.choice.rate
        )
        return PiecewiseLaw(0, np.concatenate(held), chances)


def _power_at_most(value: Fraction) -> int:
    """Return the largest k for which 10^k is at most a positive number.

    >>> [_power_at_most(Fraction(value)) for value in (1, 999, 0.1)]
    [0, 2, -1]
    """
    power = len(str(value.numerator)) - len(str(value.denominator))
    return power if Fraction(10) ** power <= value else power - 1
