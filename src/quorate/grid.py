"""Fixed point: bounded reals to integers on a public grid, and back.

A :class:`Grid` clips what one user adds to a :class:`~quorate.bounds.Bound`, rounds it *towards the
centre* to a whole number of steps, and knows exactly, in integers, how far one user can move the
sum. Sums of integers are exact and associative: every engine gives the same total, and no
floating-point error can leak or break a sensitivity. The proof that no integer vector leaves its
bound stands at the top of :mod:`quorate.bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.bounds import Ball, Bound, Box, Interval, Simplex, Vote
from quorate.exceptions import GridOverflowError, ParameterError, SchemaError
from quorate.guarantees import Relation

__all__ = [
    "Ball",
    "Bound",
    "Box",
    "Grid",
    "Interval",
    "Simplex",
    "Vote",
    "choose_grid",
    "fitting_grid",
    "public_size",
]

# Under add/remove the number of users is private, so grids are made for this many.
_MANY_USERS = 2**31
# Blocks of a megabyte stay in the cache while they are clipped, rounded and summed.
_BLOCK = 2**17
# Integers up to here are exact as floats, so that blocks can be summed by the float units.
_MAX_STEPS = 2**52
_SUM_LIMIT = 2**62
_LOW = 2**32 - 1
_HEAD_ROOM = 2**10


@dataclass(frozen=True)
class Grid:
    """A bound together with the step to which contributions are rounded.

    Parameters
    ----------
    bound : Bound
    step : float
        A power of two; see :func:`choose_grid`.

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
        if not 1 <= self.bound.largest_offset / self.step <= _MAX_STEPS:
            raise ParameterError(
                "Expected a step of which 1 to 2^52 fit between the centre and the bound, "
                f"got step={self.step!r}; use choose_grid."
            )

    @cached_property
    def max_steps(self) -> int:
        """Largest absolute integer that one user can contribute to one coordinate."""
        return int(self.bound.largest_offset / self.step)

    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return one integer vector per row: clipped, rounded towards the centre."""
        rows = self._rows(values)
        integers = np.empty(rows.shape, dtype=np.int64)
        for part, block in self._truncated(rows):
            np.copyto(integers[part], block, casting="unsafe")
        return integers

    def encode_sum(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the sum of :meth:`encode` over the rows, without storing it.

        Exact up to 2^62, where it saturates: how many users there are may be private, so it must
        not raise. Cutting each coordinate brings no two sums further apart. Where the number is
        public, :meth:`check_sum` refuses in advance.

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
            halves += (total >> 32, total & _LOW)
        return halves

    def join(self, halves: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what :meth:`encode_halves` stands for, saturating at 2^62.

        >>> Grid(Interval(-1.0, 1.0), step=0.5).join(np.array([[-1], [2**32 - 7]]))
        array([-7])
        """
        high, low = halves[0] + (halves[1] >> 32), halves[1] & _LOW
        limit = _SUM_LIMIT >> 32
        if np.abs(high).max() < limit:  # as nearly always
            return np.asarray((high << 32) + low)
        joined = (np.minimum(np.maximum(high, -limit), limit - 1) << 32) + low
        return np.where(high >= limit, _SUM_LIMIT, np.where(high < -limit, -_SUM_LIMIT, joined))

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
        if int(n_users) * self.max_steps >= _SUM_LIMIT:
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
        if relation not in self._changes:
            self._changes[relation] = self.bound.change_in_steps(self.step, relation)
        return self._changes[relation]

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
            with np.errstate(all="ignore"):
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


def choose_grid(
    bound: Bound, *, n_users: int, noise_scale: float | None = None, max_steps: int = 2**40
) -> Grid:
    """Return the finest grid on which a noisy sum over ``n_users`` cannot overflow.

    The step is the smallest power of two for which the largest offset has at most ``max_steps``
    steps, and the sum plus 64 noise scales stays 2^10 times below 2^62. (Noise beyond 64 scales has
    a probability below 1e-27.) A :class:`Vote` is counted in whole votes.

    Parameters
    ----------
    bound : Bound
    n_users : int
        Public: the number of users, or an upper bound of it.
    noise_scale : float, default=the L1 diameter of the bound
        Scale of the noise to come, in the units of the data. The default fits Laplace noise for
        every epsilon of at least 1/500, thanks to the head room.
    max_steps : int, default=2**40

    Examples
    --------
    >>> choose_grid(Ball(1.0, dimension=3), n_users=1000).step == 2.0**-40
    True
    >>> choose_grid(Vote(5), n_users=1000).step
    1.0
    """
    _validate.non_negative_integer(n_users=n_users)
    if not (isinstance(max_steps, int) and 2 <= max_steps <= _MAX_STEPS):
        raise ParameterError(f"Expected 2 <= max_steps <= 2^52, got max_steps={max_steps!r}.")
    if not isinstance(bound, Bound):
        raise ParameterError(f"Expected bound to be a Bound, got bound={bound!r}.")
    if noise_scale is None:
        noise_scale = bound.l1_diameter
    _validate.non_negative(noise_scale=noise_scale)
    # In integers: every step of a descent chooses a grid, and fractions reduce after each sum.
    top, bottom = Fraction(bound.largest_offset).as_integer_ratio()
    noise, unit = Fraction(noise_scale).as_integer_ratio()
    reach = int(n_users) * top * unit + 64 * noise * bottom
    finest = max(
        _power_of_two_at_least(top, bottom * max_steps),
        _power_of_two_at_least(reach * _HEAD_ROOM, bottom * unit * _SUM_LIMIT),
    )
    step = 1.0 if isinstance(bound, Vote) else finest
    if not finest <= step <= bound.largest_offset:
        raise GridOverflowError(
            f"A sum over n_users={n_users} with noise_scale={noise_scale!r} needs steps larger "
            "than the bound itself; split the users or reduce the noise."
        )
    return Grid(bound, step)


def _power_of_two_at_least(numerator: int, denominator: int) -> float:
    exponent = numerator.bit_length() - denominator.bit_length() - 1
    while numerator << max(0, -exponent) > denominator << max(0, exponent):
        exponent += 1
    return math.ldexp(1.0, exponent) if exponent < 1024 else math.inf


def public_size(n_users: int, relation: Relation) -> int:
    """Return a public upper bound of the number of users, for which grids are made.

    >>> public_size(100, Relation.REPLACE)
    100
    >>> public_size(100, Relation.ADD_REMOVE) == public_size(101, Relation.ADD_REMOVE)
    True
    """
    return n_users if relation is Relation.REPLACE else _MANY_USERS


def fitting_grid(bound: Bound, *, n_users: int, relation: Relation, noise: float) -> Grid:
    """Return the finest grid for a sum over the users with noise of size ``noise``.

    >>> coarse = fitting_grid(
    ...     Interval(-1.0, 1.0), n_users=10, relation=Relation.REPLACE, noise=1e9
    ... )
    >>> coarse.step > 1e-6
    True
    """
    scale = max(bound.l1_diameter, noise)
    return choose_grid(bound, n_users=public_size(n_users, relation), noise_scale=scale)
