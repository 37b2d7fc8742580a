r"""The length of a person's contribution to a whole table: one bound across all groups.

A person may have records in many groups, with many or few in each. What one person adds to a table
is one vector over all its cells, and the vector is scaled down to a length: L2 for Gaussian noise,
L1 for Laplace noise. A cap on the number of groups, together with a cap for each group, would need
noise for people who reach both caps, which hardly anybody does.

The vectors are sparse, because most people are in few groups. :func:`capped_steps` clips them cell
by cell, without storing empty cells.

Why no integer vector leaves its length
---------------------------------------
The proof for the ball, in ``docs/proofs/grid.md``, needs two properties of the computed length: it
is a sum of at most d numbers >= 0, in any order, and every number in it was rounded once. Both hold
here with d = ``dimension``, because a person has at most that many cells. The same factor is then
applied to each cell, with two more roundings, and truncation makes nothing larger. For the L1
length the proof for the simplex applies in the same way. Entries are clipped to 2^200 before they
are squared, so nothing overflows, and NaN counts as 0.

How far apart two people can be
-------------------------------
Two vectors of length R are at most 2R apart. If no coordinate is negative, as for counts, the inner
product is not either, and :math:`\|a-b\|_2^2 \le \|a\|_2^2 + \|b\|_2^2 \le 2R^2`; in one dimension
they are at most R apart. If also no coordinate exceeds e (for presence it is 1), no coordinate
moves by more than e: d coordinates are at most d e apart in L1, and the root of d e^2 in L2. Adding
or removing a person moves the sum by one vector, of length R at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.grid import Bound
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

__all__ = ["Lengths", "capped_steps", "lengths_of", "powers_of"]

Floats = NDArray[np.float64]
_LARGEST_ENTRY = 2.0**200
_SMALLEST, _LARGEST = 2.0**-128, 2.0**128


@dataclass(frozen=True, eq=False)
class Lengths(Bound):
    """Vectors of length at most ``radius``, in the L1 or the L2 norm.

    Parameters
    ----------
    radius : float
    dimension : int
    norm : {1, 2}
    signed : bool
        Whether coordinates may be negative. If not, negative coordinates are set to 0.
    entry : float, default=inf
        Largest value of a coordinate.

    Examples
    --------
    >>> Lengths(5.0, 2, norm=2, signed=True).clip([[6.0, -8.0]]).round(6)
    array([[ 3., -4.]])
    >>> Lengths(7.0, 2, norm=1, signed=False).clip([[6.0, 8.0], [-1.0, 2.0]]).round(6)
    array([[3., 4.],
           [0., 2.]])
    """

    radius: float
    dimension: int
    norm: int = 2
    signed: bool = True
    entry: float = math.inf

    def __post_init__(self) -> None:
        _validate.positive(radius=self.radius)
        _validate.positive_integer(dimension=self.dimension)
        _validate.one_of((1, 2), norm=self.norm)
        if not self.entry > 0 or (self.signed and self.entry < math.inf):
            raise ParameterError("Expected entry > 0, of coordinates that are not negative.")
        if not _SMALLEST <= self.radius <= _LARGEST:
            raise ParameterError(
                f"Expected a radius between 2^-128 and 2^128, got radius={self.radius!r}."
            )
        centre = np.zeros(self.dimension)
        centre.flags.writeable = False
        object.__setattr__(self, "centre", centre)

    def offsets_in_steps(self, values: Floats, step: float, *, out: Floats) -> None:
        """Shrink each row to the radius; a row with NaN or infinity becomes 0."""
        with np.errstate(all="ignore"):
            finite = np.asarray(np.isfinite(values).all(axis=1))
            np.copyto(out, np.where(finite[:, None], values, 0.0))
            owners = np.repeat(np.arange(len(values)), self.dimension)
            flat = out.reshape(1, -1)
            np.copyto(out, _pulled_in(flat, owners, len(values), self, step).reshape(out.shape))

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the largest L1 norm and squared L2 norm of a change, in steps."""
        reach = Fraction(self.radius) / Fraction(step)
        plain, squared = self._times(relation)[0] * reach, self._times(relation)[1] * reach * reach
        if self.norm == 2:
            # An integer that is at most sqrt(d) times the L2 norm is at most its integer part.
            plain = Fraction(math.isqrt(int(self.dimension * squared)))
        if self.entry < math.inf:
            most = int(Fraction(self.entry) / Fraction(step))
            plain, squared = (
                min(plain, Fraction(self.dimension * most)),
                min(squared, Fraction(self.dimension * most * most)),
            )
        return int(plain), int(squared)

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the largest L1 and L2 norm of a change, rounded up."""
        plain, squared = self._times(relation)
        reach, sum_of = math.sqrt(squared) * self.radius, plain * self.radius
        if self.norm == 2:
            sum_of = _up(math.sqrt(self.dimension) * reach)
        most = self.dimension * self.entry
        return min(sum_of, most), _up(min(reach, math.sqrt(self.dimension) * self.entry))

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return float(min(self.radius, self.entry))

    def _times(self, relation: Relation) -> tuple[int, int]:
        """Return the change divided by the radius: in the L1 norm, and squared in the L2 norm."""
        if relation is Relation.ADD_REMOVE or (self.dimension == 1 and not self.signed):
            return 1, 1
        return 2, 4 if self.signed else 2


def lengths_of(values: Floats, owners: NDArray[np.int64], n_users: int, *, norm: int) -> Floats:
    """Return the norm of each user's cells; ``values`` has one column per cell.

    A person's cells are added up one after the other, so the result does not depend on other
    people, to the last bit.

    >>> lengths_of(np.array([[3.0, 4.0, 1.0]]), np.array([0, 0, 2]), 3, norm=2).tolist()
    [5.0, 0.0, 1.0]
    """
    sums = powers_of(values, owners, n_users, norm=norm)
    return sums if norm == 1 else np.sqrt(sums)


def powers_of(values: Floats, owners: NDArray[np.int64], n_users: int, *, norm: int) -> Floats:
    """Return each person's sum of squares or of absolute values, of which the length is the root.

    >>> powers_of(np.array([[3.0, 4.0, 1.0]]), np.array([0, 0, 2]), 3, norm=2).tolist()
    [25.0, 0.0, 1.0]
    """
    return _powers(_cut(values, -_LARGEST_ENTRY), owners, n_users, norm)


def _powers(cut: Floats, owners: NDArray[np.int64], n_users: int, norm: int) -> Floats:
    power = np.abs if norm == 1 else np.square
    own = power(cut[0]) if len(cut) else np.zeros(cut.shape[1])
    for each in cut[1:]:
        own += power(each)
    sums = np.bincount(owners, weights=own, minlength=n_users)
    return np.asarray(sums, dtype=np.float64)


def _cut(values: Floats, lowest: float, highest: float = _LARGEST_ENTRY) -> Floats:
    """Return entries clipped to ``lowest`` and the largest summand; NaN stays NaN."""
    highest = min(highest, _LARGEST_ENTRY)
    # Nothing to cut is by far the most usual, and quick to see; a NaN is not in any range.
    with np.errstate(invalid="ignore"):
        if values.min(initial=0.0) >= lowest and values.max(initial=0.0) <= highest:
            return values
        return np.clip(values, lowest, highest)


def capped_steps(
    values: Floats, owners: NDArray[np.int64], n_users: int, *, bound: Lengths, step: float
) -> Floats:
    """Return the cells in whole steps, with each person's scaled down to the radius of ``bound``.

    Parameters
    ----------
    values : array of shape (k, cells)
        NaN counts as 0.
    owners : array of shape (cells,)
        The index of each cell's person; the cells of a person are in one fixed order.
    n_users : int
    bound : Lengths
    step : float
        A power of two.

    Examples
    --------
    >>> bound = Lengths(5.0, 4, norm=2, signed=True)
    >>> cells = np.array([[6.0, 0.0, 1.0], [0.0, 8.0, 1.0]])
    >>> (capped_steps(cells, np.array([0, 0, 1]), 2, bound=bound, step=2.0**-20) / 2**20).round(3)
    array([[3., 0., 1.],
           [0., 4., 1.]])
    """
    pulled = _pulled_in(values, owners, n_users, bound, step)
    return np.asarray(np.trunc(pulled, out=pulled))


def _pulled_in(
    values: Floats, owners: NDArray[np.int64], n_users: int, bound: Lengths, step: float
) -> Floats:
    cut = _cut(values, -_LARGEST_ENTRY if bound.signed else 0.0, bound.entry)
    if cut is not values:
        cut[np.isnan(cut)] = 0.0
    radius = bound.radius * (1.0 - (bound.dimension + 8) * 2.0**-52)
    lengths = _powers(cut, owners, n_users, bound.norm)
    if bound.norm == 2:
        np.sqrt(lengths, out=lengths)
    factors = (radius / step) / np.maximum(lengths, radius)
    # Every owner is in the table, so nothing is clipped: it is the quickest way to look up.
    return np.asarray(cut * np.take(factors, owners, mode="clip"))


def _up(value: float) -> float:
    """Round up by more than the errors of the few operations before."""
    return value * (1 + 2.0**-48)
