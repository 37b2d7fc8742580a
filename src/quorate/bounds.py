"""Where one user's contribution must lie: an interval, a box, a ball, a simplex, a single vote.

A bound clips whatever a user sends and knows how far one user can move a sum. Parameters are
public knowledge; they are never computed from the data.

No value raises or warns. The public rules are: a coordinate of a box that is NaN or infinite
counts as the centre; a row of a ball that contains NaN or infinity counts as the centre, a row of a
simplex as no shares; a row that is not a vote counts as no vote; everything finite is clipped,
however huge.

Why no integer vector leaves its bound
--------------------------------------
:class:`quorate.grid.Grid` truncates what :meth:`Bound.offsets_in_steps` returns.

*Box.* The offset in steps is cut to [a, b] with a <= 0 <= b. Truncation is monotone, so the result
lies in [trunc(a), trunc(b)], and these integers are what the sensitivity is computed from. Whatever
rounding happened before the cut does not matter.

*Ball* of radius r in d dimensions. Write u = 2^-53 and let o be the offsets as floats. The computed
sum of squares is at least (1-u)^d times the true one, in any order of summation: one rounding per
square, at most d-1 per chain of additions of numbers >= 0. A square can underflow only for a
coordinate below 2^-500, which is less than a step and ends up as 0. The computed norm N is hence at
least (1-u)^(d/2+1) ||o||. With R = fl(r (1 - (d+8) 2u)) each coordinate is multiplied by
fl((R/step) / max(N, R)), two more roundings. The result has norm at most

    (r/step) (1 - (2d+16) u) (1+u)^3 / (1-u)^(d/2+1)  <  r/step        for d <= 2^30,

and truncation makes no coordinate larger. Division by the step is exact, as it is a power of two
and sizes are kept within 2^-256 ... 2^256. Rows whose squares overflow are first multiplied by
2^-600; then the same holds, since a coordinate that ends up as more than 0 is at least 2^-52 times
the norm, and its square does not underflow.

*Simplex* in d dimensions. Negative shares are cut to 0 first. The computed sum S of the shares s is
at least (1-u)^(d-1) times the true one, in any order of summation, and no sum of numbers >= 0
underflows. Each share is multiplied by fl((R/step) / max(S, 1)) with R = fl(1 - (d+8) 2u), two more
roundings, so that the results add up to at most

    (1/step) (1 - (2d+16) u) (1+u)^3 / (1-u)^(d-1)  <  1/step          for d <= 2^30,

and truncation makes no coordinate larger. Rows whose sum overflows are first multiplied by 2^-60.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.arrays import described
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation

__all__ = ["Ball", "Bound", "Box", "Interval", "Simplex", "Vote"]

_LARGEST = 2.0**256
_SMALLEST = 2.0**-256
_MAX_DIMENSION = 2**30


class Bound(ABC):
    """Where one user's contribution must lie.

    Attributes
    ----------
    dimension : int
    centre : array of shape (dimension,)
        The contribution that counts as zero.
    """

    dimension: int
    centre: NDArray[np.float64]

    def clip(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the offsets of the rows of ``values`` from the centre, inside the bound.

        >>> Ball(1.0, dimension=2).clip([[3.0, 4.0], [np.nan, 0.0]]).round(6)
        array([[0.6, 0.8],
               [0. , 0. ]])
        """
        with np.errstate(all="ignore"):
            rows = np.asarray(values, dtype=np.float64).reshape(-1, self.dimension)
        offsets = np.empty(rows.shape)
        self.offsets_in_steps(rows, 1.0, out=offsets)
        return offsets

    @abstractmethod
    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Write the clipped offsets of the rows of ``values``, divided by ``step``, to ``out``.

        ``step`` is a power of two; the two arrays have ``dimension`` columns and do not overlap.
        """

    @abstractmethod
    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the largest change of an integer sum by one user: L1 norm, squared L2 norm."""

    def balance_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return how many leading coordinates balance, and the largest change of an integer sum.

        Of these the larger one of the sums of rises and of falls counts, twice; others as in L1.
        """
        return 0, self.change_in_steps(step, relation)[0]

    @abstractmethod
    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the largest change of a real sum by one user: L1 and L2 norm, rounded up."""

    @property
    @abstractmethod
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""

    @property
    def l1_radius(self) -> float:
        """Largest L1 norm of an offset, rounded up."""
        return self.change(Relation.ADD_REMOVE)[0]

    @property
    def l2_radius(self) -> float:
        """Largest L2 norm of an offset, rounded up."""
        return self.change(Relation.ADD_REMOVE)[1]

    @property
    def l1_diameter(self) -> float:
        """Largest L1 distance of two offsets, rounded up."""
        return self.change(Relation.REPLACE)[0]

    @property
    def l2_diameter(self) -> float:
        """Largest L2 distance of two offsets, rounded up."""
        return self.change(Relation.REPLACE)[1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bound) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        values = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        return type(self), *(np.asarray(value, np.float64).tobytes() for value in values)


class _Rectangle(Bound):
    """What an interval and a box share: each coordinate has its own limits."""

    _below: NDArray[np.float64]
    _above: NDArray[np.float64]

    def _set_limits(self, lower: ArrayLike, upper: ArrayLike, centre: ArrayLike | None) -> None:
        low, high = _vector(lower, "lower"), _vector(upper, "upper")
        if low.shape != high.shape or not np.all(high - low >= _SMALLEST):
            raise ParameterError(
                f"Expected lower < upper in every coordinate (by at least 2^-256), "
                f"got lower={described(lower)} and upper={described(upper)}."
            )
        middle = low / 2 + high / 2 if centre is None else _vector(centre, "centre")
        if middle.shape != low.shape or not np.all((low <= middle) & (middle <= high)):
            raise ParameterError(
                "Expected lower <= centre <= upper in every coordinate, got "
                f"centre={described(centre)}."
            )
        object.__setattr__(self, "dimension", low.size)
        object.__setattr__(self, "centre", _frozen(middle))
        object.__setattr__(self, "_below", _frozen(low - middle))
        object.__setattr__(self, "_above", _frozen(high - middle))

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Cut each coordinate to its limits; NaN and infinities become 0."""
        with np.errstate(all="ignore"):
            np.subtract(values, self.centre, out=out)
            np.multiply(out, 1.0 / step, out=out)
            np.maximum(out, self._below / step, out=out)
            np.minimum(out, self._above / step, out=out)
            finite = np.isfinite(values)
            if not finite.all():
                out[~finite] = 0.0

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Add up the limits of the coordinates, truncated as contributions are."""
        below, above = -np.trunc(self._below / step), np.trunc(self._above / step)
        pairs = zip(map(int, below), map(int, above), strict=True)
        changes = [a + b if relation is Relation.REPLACE else max(a, b) for a, b in pairs]
        return sum(changes), sum(change * change for change in changes)

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the norms of the sides, or of the half sides."""
        changes = np.maximum(-self._below, self._above)
        if relation is Relation.REPLACE:
            changes = self._above - self._below
        return _up(math.fsum(changes)), _up(math.hypot(*changes))

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return float(max(-self._below.min(), self._above.max()))


@dataclass(frozen=True, eq=False, init=False)
class Interval(_Rectangle):
    """One number per user, between ``lower`` and ``upper``.

    Parameters
    ----------
    lower, upper : float
    centre : float, default=the midpoint
        What counts as zero. ``centre=0.0`` makes a plain sum releasable under add/remove without
        a count, at up to twice the sensitivity.

    Examples
    --------
    >>> Interval(0.0, 10.0).clip([[12.0], [5.0], [np.nan]]).ravel()
    array([5., 0., 0.])
    >>> Interval(0.0, 10.0).l1_radius.__round__(9)
    5.0
    """

    lower: float
    upper: float
    centre: NDArray[np.float64]

    def __init__(self, lower: float, upper: float, *, centre: float | None = None) -> None:
        _validate.ordered(lower, upper, name="bounds")
        self._set_limits([lower], [upper], None if centre is None else [centre])
        object.__setattr__(self, "lower", float(lower))
        object.__setattr__(self, "upper", float(upper))


@dataclass(frozen=True, eq=False, init=False)
class Box(_Rectangle):
    """A vector per user, each coordinate between its own limits.

    Parameters
    ----------
    lower, upper : array-like of shape (dimension,)
    centre : array-like of shape (dimension,), default=the midpoints

    Examples
    --------
    >>> Box([0.0, -1.0], [2.0, 1.0]).clip([[9.0, np.inf]])
    array([[1., 0.]])
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    centre: NDArray[np.float64]

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, *, centre: ArrayLike | None = None
    ) -> None:
        self._set_limits(lower, upper, centre)
        object.__setattr__(self, "lower", _frozen(_vector(lower, "lower")))
        object.__setattr__(self, "upper", _frozen(_vector(upper, "upper")))


@dataclass(frozen=True, eq=False, init=False)
class Ball(Bound):
    """A vector per user at L2 distance at most ``radius`` from ``centre``.

    Parameters
    ----------
    radius : float
    centre : array-like of shape (dimension,), default=the origin
    dimension : int, optional
        Needed if no centre is given.

    Examples
    --------
    >>> Ball(5.0, dimension=2).clip([[3.0, 4.0]]).round(6)
    array([[3., 4.]])
    >>> Ball(1.0, centre=[1.0, 1.0]).clip([[1.0, 7.0]]).round(6)
    array([[0., 1.]])
    """

    radius: float
    centre: NDArray[np.float64]

    def __init__(
        self, radius: float, *, centre: ArrayLike | None = None, dimension: int | None = None
    ) -> None:
        _validate.positive(radius=radius)
        # Python compares integers of any size; a short NumPy float would squeeze 2^256 into itself.
        size = radius if isinstance(radius, numbers.Rational) else float(radius)
        if not _SMALLEST <= size <= _LARGEST:
            raise ParameterError(f"Expected 2^-256 <= radius <= 2^256, got radius={radius!r}.")
        if dimension is None and centre is None:
            raise ParameterError("Ball needs dimension= or centre=; got neither.")
        if dimension is not None:
            _validate.positive_integer(dimension=dimension)
        middle = np.zeros(dimension or 1) if centre is None else _vector(centre, "centre")
        if middle.size != (dimension or middle.size) or middle.size > _MAX_DIMENSION:
            raise ParameterError(
                f"Expected a centre of length dimension={dimension!r} <= 2^30, "
                f"got length {middle.size}."
            )
        object.__setattr__(self, "radius", float(radius))
        object.__setattr__(self, "dimension", middle.size)
        object.__setattr__(self, "centre", _frozen(middle))

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Shrink each row to the radius; a row with NaN or infinity becomes 0."""
        radius = self.radius * (1.0 - (self.dimension + 8) * 2.0**-52)
        with np.errstate(all="ignore"):
            offsets = np.subtract(values, self.centre, out=out) if self.centre.any() else values
            squares = np.vecdot(offsets, offsets)
            factors = (radius / step) / np.maximum(np.sqrt(squares), radius)
            np.multiply(offsets, factors[:, None], out=out)
            lost = np.flatnonzero(~np.isfinite(squares))
            if lost.size:
                far = values[lost] * 2.0**-600 - self.centre * 2.0**-600
                squares = np.vecdot(far, far)
                far *= ((radius / step) / np.sqrt(squares))[:, None]
                far[~np.isfinite(squares)] = 0.0
                out[lost] = far

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the integer parts of sqrt(d) r and r^2, or of the diameter, in steps."""
        (top, bottom), (unit, parts) = self.radius.as_integer_ratio(), step.as_integer_ratio()
        top, bottom = top * parts, bottom * unit
        square, divisor = (4 if relation is Relation.REPLACE else 1) * top * top, bottom * bottom
        # An integer that is at most sqrt(d) times the L2 norm is at most its integer part.
        return math.isqrt(self.dimension * square // divisor), square // divisor

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return sqrt(d) r and r, or twice that."""
        reach = 2 * self.radius if relation is Relation.REPLACE else self.radius
        return _up(math.sqrt(self.dimension) * reach), reach

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return self.radius


@dataclass(frozen=True, eq=False)
class Simplex(Bound):
    """Shares of a whole: numbers >= 0, one for each of ``categories``, that add up to at most 1.

    What one user holds of each category, divided by all that the user holds. Two users differ by at
    most 2 in the L1 norm and by the root of 2 in the L2 norm, however many categories there are,
    where a box of the same side would say d and the root of d. Shares that add up to more than 1
    are divided by their sum; negative ones count as 0.

    Parameters
    ----------
    categories : int

    Examples
    --------
    >>> Simplex(3).clip([[1.0, 1.0, 2.0], [0.5, 0.0, -7.0], [np.nan, 1.0, 0.0]]).round(6)
    array([[0.25, 0.25, 0.5 ],
           [0.5 , 0.  , 0.  ],
           [0.  , 0.  , 0.  ]])
    >>> Simplex(100_000).l1_diameter, round(Simplex(100_000).l2_diameter, 6)
    (2.0, 1.414214)
    """

    categories: int

    def __post_init__(self) -> None:
        _validate.positive_integer(categories=self.categories)
        if self.categories > _MAX_DIMENSION:
            raise ParameterError(
                f"Expected categories <= 2^30, got categories={self.categories!r}."
            )
        object.__setattr__(self, "dimension", int(self.categories))
        object.__setattr__(self, "centre", _frozen(np.zeros(self.categories)))

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Divide each row by its sum if that exceeds 1; NaN or infinity makes a row 0."""
        largest = (1.0 - (self.dimension + 8) * 2.0**-52) / step
        ones = np.ones(self.dimension)
        with np.errstate(all="ignore"):
            np.maximum(values, 0.0, out=out)
            sums = np.vecdot(out, ones)
            out *= (largest / np.maximum(sums, 1.0))[:, None]
            lost = np.flatnonzero(~np.isfinite(values).all(axis=1) | np.isinf(sums))
            if lost.size:
                far = np.maximum(values[lost], 0.0) * 2.0**-60
                far *= (largest / np.vecdot(far, ones))[:, None]
                far[~np.isfinite(values[lost]).all(axis=1)] = 0.0
                out[lost] = far

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Count a whole that comes or goes, or that moves from one category to another."""
        wholes, length = self._wholes(relation), int(Fraction(1) / Fraction(step))
        return wholes * length, wholes * length * length

    def balance_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Count a whole that rises somewhere and one that falls: all shares balance."""
        return self.dimension, 2 * int(Fraction(1) / Fraction(step))

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the number of wholes that change, and its root."""
        wholes = self._wholes(relation)
        return float(wholes), _up(math.sqrt(wholes)) if wholes > 1 else 1.0

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return 1.0

    def _wholes(self, relation: Relation) -> int:
        return 2 if relation is Relation.REPLACE and self.categories > 1 else 1


@dataclass(frozen=True, eq=False)
class Vote(Bound):
    """One 1 among zeros, or all zeros: a user votes for at most one of ``options``.

    A row that is anything else counts as no vote.

    Examples
    --------
    >>> Vote(3).clip([[0, 1, 0], [1, 1, 0], [0, 0.5, 0]])
    array([[0., 1., 0.],
           [0., 0., 0.],
           [0., 0., 0.]])
    >>> Vote(3).change_in_steps(1.0, Relation.REPLACE)
    (2, 2)
    """

    options: int

    def __post_init__(self) -> None:
        _validate.positive_integer(options=self.options)
        object.__setattr__(self, "dimension", int(self.options))
        object.__setattr__(self, "centre", _frozen(np.zeros(self.options)))

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Keep the rows that are votes; every other row becomes 0."""
        with np.errstate(all="ignore"):
            binary = ((values == 0.0) | (values == 1.0)).all(axis=1)
            np.multiply(values, 1.0 / step, out=out)
            out[~(binary & (values.sum(axis=1) <= 1.0))] = 0.0

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """One vote appears or disappears, or both."""
        votes, length = self._votes(relation), int(1.0 / step)
        return votes * length, votes * length * length

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the number of votes that change, and its root."""
        return float(self._votes(relation)), _up(math.sqrt(self._votes(relation)))

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return 1.0

    def _votes(self, relation: Relation) -> int:
        return 2 if relation is Relation.REPLACE and self.options > 1 else 1


def _up(value: float) -> float:
    """Enlarge by more than the rounding errors of the few operations before."""
    return value * (1 + 2.0**-48)


def _frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array = array.copy()
    array.flags.writeable = False
    return array


def _vector(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return a public vector as floats; refuse what is not finite or of an absurd size."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or not 0 < vector.size <= _MAX_DIMENSION:
        raise ParameterError(f"Expected {name} to be a vector, got {vector.ndim} axes.")
    if not np.all(np.abs(vector) <= _LARGEST):
        raise ParameterError(
            f"Expected {name} to be finite and at most 2^256, got {described(values)}."
        )
    return vector
