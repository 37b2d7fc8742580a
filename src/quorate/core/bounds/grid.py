"""One user's contribution to a sum: clipped to a public shape, and rounded to whole steps.

A :class:`Bound` is the public set that contains one user's contribution: an interval, a box or a
ball. It clips every contribution and knows how far one user can move a sum. A :class:`Grid` rounds
what is clipped *towards the centre* to a whole number of steps. Sums of integers are exact and
associative: every engine gives the same total, and no floating-point error can leak or break a
sensitivity. Parameters are public knowledge; they are never computed from the data.

No value raises or warns. The public rules are: a coordinate of a box that is NaN or infinite counts
as the centre; a row of a ball that contains NaN or infinity counts as the centre; everything finite
is clipped, however huge. That no integer vector leaves its bound is proved in
``docs/proofs/grid.md``.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate._validate import LARGEST_SIZE, LONGEST_VECTOR, described, public_vector, readonly
from quorate.core.guarantees import Relation
from quorate.exceptions import GridOverflowError, ParameterError, SchemaError

__all__ = [
    "MAX_STEPS",
    "SUM_LIMIT",
    "Ball",
    "Bound",
    "Box",
    "Grid",
    "Interval",
    "Joint",
    "Law",
    "enlarged",
    "join_halves",
    "row_lengths",
]

_SMALLEST = 2.0**-256
# Blocks of a megabyte stay in the cache while they are clipped, rounded and summed.
_BLOCK = 2**17
_LOW = 2**32 - 1
# Integers up to here are exact as floats, so that blocks can be summed by the float units.
MAX_STEPS = 2**52
SUM_LIMIT = 2**62


Law = Literal["balanced_laplace", "blocks_laplace", "cube_laplace"]
Joint = tuple[Law, tuple[int, ...], int]
"""A law of joint noise, the shape of the leading coordinates that it is for, and their change."""


class Bound(ABC):
    """The public set that contains one user's contribution.

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

    def joint_in_steps(self, step: float, relation: Relation) -> Joint | None:
        """Return the joint noise for this shape, if any, and the largest change by one user.

        That is the largest coordinate of a cube, the longest block in L1, or of shares the larger
        one of the sums of rises and of falls, twice. Other coordinates add their L1 norm.
        """
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bound) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._known)

    @cached_property
    def _known(self) -> tuple[object, ...]:
        return self._key()  # once: every step of a descent looks its bound up

    def _key(self) -> tuple[object, ...]:
        names = self.__dataclass_fields__  # type: ignore[attr-defined]
        values = [np.asarray(getattr(self, name), np.float64).tobytes() for name in names]
        return type(self), *values


class _Rectangle(Bound):
    """The common part of intervals and boxes: each coordinate has its own limits."""

    _below: NDArray[np.float64]
    _above: NDArray[np.float64]

    def _set_limits(self, lower: ArrayLike, upper: ArrayLike, centre: ArrayLike | None) -> None:
        low, high = public_vector(lower, "lower"), public_vector(upper, "upper")
        if low.shape != high.shape or not np.all(high - low >= _SMALLEST):
            raise ParameterError(
                f"Expected lower < upper in every coordinate (by at least 2^-256), "
                f"got lower={described(lower)} and upper={described(upper)}."
            )
        middle = low / 2 + high / 2 if centre is None else public_vector(centre, "centre")
        if middle.shape != low.shape or not np.all((low <= middle) & (middle <= high)):
            raise ParameterError(
                "Expected lower <= centre <= upper in every coordinate, got "
                f"centre={described(centre)}."
            )
        object.__setattr__(self, "dimension", low.size)
        object.__setattr__(self, "centre", readonly(middle))
        object.__setattr__(self, "_below", readonly(low - middle))
        object.__setattr__(self, "_above", readonly(high - middle))

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Clip each coordinate to its limits; NaN and infinities become 0."""
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
        moves = self._changes_in_steps(step, relation)
        return sum(moves), sum(move * move for move in moves)

    def joint_in_steps(self, step: float, relation: Relation) -> Joint:
        """Return a cube of all coordinates, and the largest of their limits."""
        return "cube_laplace", (self.dimension,), max(self._changes_in_steps(step, relation))

    def _changes_in_steps(self, step: float, relation: Relation) -> list[int]:
        below, above = -np.trunc(self._below / step), np.trunc(self._above / step)
        pairs = zip(map(int, below), map(int, above), strict=True)
        return [a + b if relation is Relation.REPLACE else max(a, b) for a, b in pairs]

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the norms of the full widths, or of the half-widths."""
        replaced = relation is Relation.REPLACE
        changes = (np.add if replaced else np.maximum)(-self._below, self._above)
        return enlarged(math.fsum(changes)), enlarged(math.hypot(*changes))

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
        The value that counts as zero. With ``centre=0.0`` a plain sum can be released under
        add/remove without a count, at up to twice the sensitivity.

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
        object.__setattr__(self, "lower", readonly(public_vector(lower, "lower")))
        object.__setattr__(self, "upper", readonly(public_vector(upper, "upper")))


def row_lengths(offsets: NDArray[np.float64], norm: int) -> NDArray[np.float64]:
    """Return the L1 or L2 norm of each row, each computed by itself.

    >>> row_lengths(np.array([[3.0, -4.0]]), 1), row_lengths(np.array([[3.0, -4.0]]), 2)
    (array([7.]), array([5.]))
    """
    if norm == 1:
        return np.asarray(np.vecdot(np.abs(offsets), np.ones(offsets.shape[1])))
    return np.asarray(np.sqrt(np.vecdot(offsets, offsets)))


@dataclass(frozen=True, eq=False, init=False)
class Ball(Bound):
    r"""A vector per user at distance at most ``radius`` from ``centre``, in the L2 or the L1 norm.

    Two vectors of length R are at most 2R apart. If no coordinate is negative, as for counts, the
    inner product is not either, and :math:`\|a-b\|_2^2 \le \|a\|_2^2 + \|b\|_2^2 \le 2R^2`; in
    one dimension they are at most R apart. If no coordinate exceeds e either, as for presence,
    where it is 1, no coordinate moves by more than e: d coordinates are at most d e apart in L1,
    and the root of d e^2 in L2. Adding or removing a person changes the sum by one vector.

    Parameters
    ----------
    radius : float
    centre : array-like of shape (dimension,), default=the origin
    dimension : int, optional
        Needed if no centre is given.
    norm : {1, 2}, default=2
    signed : bool, default=True
        Whether coordinates of an offset may be negative. If not, negative ones are cut to 0.
    entry : float, default=inf
        An upper bound on every coordinate, for coordinates that are not negative.

    Examples
    --------
    >>> Ball(5.0, dimension=2).clip([[3.0, 4.0]]).round(6)
    array([[3., 4.]])
    >>> Ball(1.0, centre=[1.0, 1.0]).clip([[1.0, 7.0]]).round(6)
    array([[0., 1.]])
    >>> Ball(7.0, dimension=2, norm=1, signed=False).clip([[6.0, 8.0], [-1.0, 2.0]]).round(6)
    array([[3., 4.],
           [0., 2.]])
    """

    radius: float
    centre: NDArray[np.float64]
    norm: int
    signed: bool
    entry: float

    def __init__(
        self,
        radius: float,
        *,
        centre: ArrayLike | None = None,
        dimension: int | None = None,
        norm: int = 2,
        signed: bool = True,
        entry: float = math.inf,
    ) -> None:
        _validate.positive(radius=radius)
        _validate.one_of((1, 2), norm=norm)
        # Python compares integers of any size; a short NumPy float would squeeze 2^256 into itself.
        size = radius if isinstance(radius, numbers.Rational) else float(radius)
        if not _SMALLEST <= size <= LARGEST_SIZE:
            raise ParameterError(f"Expected 2^-256 <= radius <= 2^256, got radius={radius!r}.")
        if not entry >= _SMALLEST or (signed and entry < math.inf):
            raise ParameterError("Expected entry > 0, of coordinates that are not negative.")
        if dimension is None and centre is None:
            raise ParameterError("Ball needs dimension= or centre=; got neither.")
        if dimension is not None:
            _validate.positive_integer(dimension=dimension)
        given = None if centre is None else public_vector(centre, "centre")
        length = dimension or 0 if given is None else given.size
        if length != (dimension or length) or length > LONGEST_VECTOR:
            raise ParameterError(
                f"Expected a centre of length dimension={dimension!r} <= 2^30, got length {length}."
            )
        object.__setattr__(self, "radius", float(radius))
        object.__setattr__(self, "dimension", length)
        object.__setattr__(self, "centre", readonly(np.zeros(length) if given is None else given))
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "signed", signed)
        object.__setattr__(self, "entry", float(entry))

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Shrink each row to the radius; a row with NaN or infinity becomes 0."""
        radius = self.radius * (1.0 - (self.dimension + 8) * 2.0**-52)
        with np.errstate(all="ignore"):
            central = not np.logical_or.reduce(self.centre)
            offsets = values if central else np.subtract(values, self.centre, out=out)
            if not self.signed:
                offsets = np.clip(offsets, 0.0, self.entry, out=out)
            lengths = row_lengths(offsets, self.norm)
            factors = (radius / step) / np.maximum(lengths, radius)
            known = np.isfinite(lengths)
            if not self.signed:  # an infinity may have been cut
                known &= np.isfinite(values).all(axis=1)
            np.multiply(offsets, factors[:, None], out=out)
            (lost,) = (~known).nonzero()
            if lost.size:
                far = values[lost] * 2.0**-600 - self.centre * 2.0**-600
                if not self.signed:
                    np.clip(far, 0.0, self.entry * 2.0**-600, out=far)
                far *= ((radius / step) / row_lengths(far, self.norm))[:, None]
                far[~np.isfinite(values[lost]).all(axis=1)] = 0.0
                out[lost] = far

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the largest L1 norm and squared L2 norm of a change, in whole steps."""
        plain, times = self._times(relation)
        (top, bottom), (unit, parts) = self.radius.as_integer_ratio(), step.as_integer_ratio()
        top, bottom = top * parts, bottom * unit
        if self.norm == 1:
            # Whole numbers that add up to at most the radius add up to at most its integer part.
            length = top // bottom
            l1, squared = plain * length, times * length * length
        else:
            square, divisor = times * top * top, bottom * bottom
            # An integer that is at most sqrt(d) times the L2 norm is at most its integer part.
            l1, squared = math.isqrt(self.dimension * square // divisor), square // divisor
        if self.entry == math.inf:
            return l1, squared
        most = int(self.entry / step)
        return min(l1, self.dimension * most), min(squared, self.dimension * most * most)

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the largest L1 norm and L2 norm of a change, rounded up."""
        plain, times = self._times(relation)
        reach, wide = math.sqrt(times) * self.radius, math.sqrt(self.dimension)
        l1 = plain * self.radius if self.norm == 1 else enlarged(wide * reach)
        l2 = enlarged(reach) if times == 2 else reach  # the other roots are whole
        return min(l1, self.dimension * self.entry), min(l2, enlarged(wide * self.entry))

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return min(self.radius, self.entry)

    def _times(self, relation: Relation) -> tuple[int, int]:
        """Return the largest change over the radius: in the ball's norm, and squared in L2."""
        if relation is Relation.ADD_REMOVE or (self.dimension == 1 and not self.signed):
            return 1, 1
        return 2, 4 if self.signed else 2


@dataclass(frozen=True)
class Grid:
    """A bound together with the step to which contributions are rounded.

    Parameters
    ----------
    bound : Bound
    step : float
        A power of two; see :func:`~quorate.mechanisms.sums.choose_grid`.

    Examples
    --------
    >>> grid = Grid(Interval(-1.0, 1.0), step=0.25)
    >>> grid.encode([[0.6], [-0.6], [7.0], [np.inf]]).ravel()
    array([ 2, -2,  4,  0])
    >>> grid.decode(grid.encode_sum([[0.6], [7.0]]), count=2)
    array([1.5])
    >>> grid.l1_sensitivity(Relation.REPLACE), grid.l1_sensitivity(Relation.ADD_REMOVE)
    (8, 4)
    """

    bound: Bound
    step: float

    def __post_init__(self) -> None:
        if not isinstance(self.bound, Bound):
            raise ParameterError(f"Expected bound to be a Bound, got bound={self.bound!r}.")
        _validate.positive(step=self.step)
        # A step of a shorter float type would let its own rounding and range into what follows.
        object.__setattr__(self, "step", float(self.step))
        if math.frexp(self.step)[0] != 0.5:
            raise ParameterError(f"Expected step to be a power of two, got step={self.step!r}.")
        if not 1 <= self.bound.largest_offset / self.step <= MAX_STEPS:
            raise ParameterError(
                "Expected a step of which 1 to 2^52 fit between the centre and the bound, "
                f"got step={self.step!r}; use choose_grid."
            )

    @property
    def max_steps(self) -> int:
        """Largest absolute integer that one user can contribute to one coordinate."""
        return int(self.bound.largest_offset / self.step)

    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return one integer vector per row: clipped, and rounded towards the centre."""
        rows = self._rows(values)
        integers = np.empty(rows.shape, dtype=np.int64)
        for part, block in self._truncated(rows):
            np.copyto(integers[part], block, casting="unsafe")
        return integers

    def encode_sum(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the sum of :meth:`encode` over the rows, without storing it.

        It is exact up to 2^62, where it saturates. It must not raise, because the number of users
        may be private. Saturating the coordinates never increases the distance of two sums. Where
        the number is public, :meth:`check_sum` refuses in advance.

        >>> Grid(Interval(-1.0, 1.0), step=2.0**-52).encode_sum(np.ones(5000)) == 2**62
        array([ True])
        """
        return self.join(self.encode_halves(values))

    def encode_halves(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the sum as two rows, high * 2^32 + low; sums of parts of the users may be added.

        >>> grid = Grid(Interval(-1.0, 1.0), step=2.0**-52)
        >>> grid.encode_halves(np.ones(3)).tolist()
        [[3145728], [0]]
        """
        halves = np.zeros((2, self.bound.dimension), dtype=np.int64)
        for _, block in self._truncated(self._rows(values)):
            # Every partial sum is an integer of at most 2^53: exact in any order of addition.
            total = (np.ones(len(block)) @ block).astype(np.int64)
            halves[0] += total >> 32
            halves[1] += total & _LOW
        return halves

    def join(self, halves: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum that :meth:`encode_halves` encodes, saturating at 2^62."""
        return join_halves(halves)

    def decode(self, totals: ArrayLike, *, count: float) -> NDArray[np.float64]:
        """Return ``totals`` in the units of the data: totals x step + count x centre."""
        return np.asarray(totals, np.float64) * self.step + count * self.bound.centre

    def l1_sensitivity(self, relation: Relation) -> int:
        """Largest L1 norm, in steps, of the change that one user can make to a sum."""
        return self._change(relation)[0]

    def l2_sensitivity_squared(self, relation: Relation) -> int:
        """Largest squared L2 norm, in steps, of the change that one user can make to a sum."""
        return self._change(relation)[1]

    def check_sum(self, n_users: int) -> None:
        """Refuse if a sum over ``n_users``, a *public* number, might not fit into 62 bits."""
        _validate.non_negative_integer(n_users=n_users)
        if int(n_users) * self.max_steps >= SUM_LIMIT:
            raise GridOverflowError(
                f"A sum of n_users={n_users} contributions of up to {self.max_steps} steps can "
                "exceed 2^62; use choose_grid(bound, n_users=...)."
            )

    def rounding_error(self, n_users: int) -> float:
        """Largest error of one coordinate of a sum of contributions that lie in the bound."""
        shrink = self.bound.largest_offset * (self.bound.dimension + 8) * 2.0**-51
        return n_users * (self.step + shrink)

    def _change(self, relation: Relation) -> tuple[int, int]:
        if not isinstance(relation, Relation):
            raise ParameterError(f"Expected relation to be a Relation, got relation={relation!r}.")
        found = self._changes.get(relation)
        if found is None:
            found = self._changes[relation] = self.bound.change_in_steps(self.step, relation)
        return found

    @cached_property
    def _changes(self) -> dict[Relation, tuple[int, int]]:
        return {}

    def _truncated(self, rows: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield blocks of clipped rows as floats with integer values, in one reused buffer."""
        width = self.bound.dimension
        size = max(1, min(_BLOCK // width, 2**53 // self.max_steps))
        buffer = np.empty((min(size, len(rows)), width))
        for start in range(0, len(rows), size):
            part = slice(start, min(start + size, len(rows)))
            block = buffer[: part.stop - start]
            with np.errstate(all="ignore"):  # a word about an underflow would tell of a value
                values = rows[part].astype(np.float64, copy=False)
                self.bound.offsets_in_steps(values, self.step, out=block)
            yield part, np.trunc(block, out=block)

    def _rows(self, values: ArrayLike) -> NDArray[Any]:
        """Return a matrix with one row per user; refuse by shape and dtype, which are public."""
        rows = np.asarray(values)
        if rows.dtype.kind not in "fiub":
            raise SchemaError(f"Expected numbers, one row per user, got dtype={rows.dtype}.")
        if rows.ndim == 1 and self.bound.dimension == 1:
            rows = rows[:, None]
        if rows.ndim != 2 or rows.shape[1] != self.bound.dimension:
            # How many rows there are may be private, so the shape itself is not told.
            found = f"{rows.shape[1]} columns" if rows.ndim == 2 else f"{rows.ndim} axes"
            raise SchemaError(
                f"Expected one row per user with {self.bound.dimension} columns, got {found}."
            )
        return rows


def join_halves(halves: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return high * 2^32 + low for two arrays of such parts, saturating at 2^62.

    >>> join_halves(np.array([[-1, 2**31], [2**32 - 7, 0]])).tolist()
    [-7, 4611686018427387904]
    """
    high, low = halves[0] + (halves[1] >> 32), halves[1] & _LOW
    limit = SUM_LIMIT >> 32
    if np.abs(high).max(initial=0) < limit:  # as nearly always
        return np.asarray((high << 32) + low)
    joined = (np.minimum(np.maximum(high, -limit), limit - 1) << 32) + low
    return np.where(high >= limit, SUM_LIMIT, np.where(high < -limit, -SUM_LIMIT, joined))


def enlarged(value: float) -> float:
    """Return a number plus more than the rounding errors of the few operations that computed it.

    >>> enlarged(1.0) > 1.0
    True
    """
    return value * (1 + 2.0**-48)
