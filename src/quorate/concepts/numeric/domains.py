"""Ordered public domains: integers, or floats on a public grid, numbered from 0.

Thresholds, intervals, rectangles and point functions all see a feature through such a domain.
What a record holds is clipped into the domain and rounded down to its grid, so that the rule
"x >= value(j)" and the position of x always agree, in floating point too.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.exceptions import ParameterError

__all__ = ["OrderedDomain", "at_least"]

_INT64 = np.iinfo(np.int64)

# (x - lower) / step carries a relative error of a few 2**-53; below this many points one step of
# correction makes the position exact.
_MAX_FLOAT_POINTS = 2**50


def at_least(x: NDArray[Any], cut: int | float) -> NDArray[np.bool_]:
    """Tell where ``x >= cut``, exactly even for integers that no float can hold.

    >>> at_least(np.array([2.0**53]), 2**53 + 1)
    array([False])
    """
    if isinstance(cut, int) and x.dtype.kind == "f":
        # numpy would round the cut to the nearest float; the next one above is right.
        nearest = float(cut)
        cut = math.nextafter(nearest, math.inf) if nearest < cut else nearest
    result: NDArray[np.bool_] = x >= cut
    return result


@dataclass(frozen=True)
class OrderedDomain:
    """The points ``lower + j * step`` for j = 0, ..., ``points - 1``.

    With integers in ``lower`` and ``step`` everything is exact and up to 2**63 points are
    allowed; otherwise up to 2**50.

    >>> grid = OrderedDomain(lower=0.0, points=5, step=0.25)
    >>> grid.position([-3.0, 0.25, 0.49, 7.0])
    array([0, 1, 1, 4], dtype=uint64)
    >>> grid.value(3)
    0.75
    >>> OrderedDomain(lower=-(2**62), points=2**63).position(np.array([2**62 - 1]))
    array([9223372036854775807], dtype=uint64)
    """

    lower: int | float
    points: int
    step: int | float = 1

    def __post_init__(self) -> None:
        _validate.finite(lower=self.lower)
        _validate.positive(step=self.step)
        _validate.positive_integer(points=self.points)
        # numpy's integers would overflow where Python's do not.
        object.__setattr__(self, "points", int(self.points))
        object.__setattr__(self, "lower", _plain(self.lower))
        object.__setattr__(self, "step", _plain(self.step))
        if self.is_integer:
            last = self.value(self.points - 1)
            if not (_INT64.min <= self.lower and last <= _INT64.max and self.points <= 2**63):
                raise ParameterError(
                    "Expected at most 2**63 integer points inside the 64-bit integers, got "
                    f"lower={self.lower}, last={last}; use a coarser step or a smaller range."
                )
            return
        if self.points > _MAX_FLOAT_POINTS:
            raise ParameterError(
                f"Expected at most 2**50 points on a grid of floats, got {self.points}; "
                "use a coarser step, or integers."
            )
        ends = [self.value(j) for j in (0, 1, self.points - 1, self.points)]
        if not (ends[0] < ends[1] and ends[2] < ends[3] and all(map(math.isfinite, ends))):
            raise ParameterError(
                f"Expected a step that floats near {ends[2]!r} can resolve, got step={self.step!r}."
            )

    @classmethod
    def between(
        cls, lower: int | float, upper: int | float, *, step: int | float = 1
    ) -> OrderedDomain:
        """Build the points from ``lower`` to at most ``upper``.

        >>> OrderedDomain.between(0, 9).points
        10
        """
        _validate.finite(lower=lower, upper=upper)
        _validate.positive(step=step)
        if not lower <= upper:
            raise ParameterError(f"Expected lower <= upper, got lower={lower!r}, upper={upper!r}.")
        lower, upper, step = _plain(lower), _plain(upper), _plain(step)
        if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
            return cls(lower=lower, points=(upper - lower) // step + 1, step=step)
        # A ratio that should be whole may come out a hair below it: 0.3 / 0.1 = 2.999...96.
        ratio = (upper - lower) / step
        if not ratio < _MAX_FLOAT_POINTS:
            raise ParameterError(
                f"Expected at most 2**50 points on a grid of floats, got lower={lower!r}, "
                f"upper={upper!r}, step={step!r}; use a coarser step, or integers."
            )
        whole = round(ratio)
        steps = whole if math.isclose(ratio, whole, rel_tol=1e-12) else math.floor(ratio)
        return cls(lower=lower, points=steps + 1, step=step)

    @property
    def is_integer(self) -> bool:
        """Whether positions and values are exact integers."""
        return isinstance(self.lower, int) and isinstance(self.step, int)

    def value(self, position: int) -> int | float:
        """Return the point at ``position``; the one after the last is allowed."""
        return self.lower + position * self.step

    def position(self, x: ArrayLike) -> NDArray[np.uint64]:
        """Return the number of the grid point at or below each value, clipped (NaN: 0)."""
        values = np.asarray(x)
        return self._integer_position(values) if self.is_integer else self._float_position(values)

    def cell(self, x: ArrayLike) -> NDArray[np.int64]:
        """Return ``position`` as int64, for domains small enough to enumerate."""
        return self.position(x).astype(np.int64)

    def _integer_position(self, values: NDArray[Any]) -> NDArray[np.uint64]:
        first, last = int(self.lower), int(self.value(self.points - 1))
        if values.dtype.kind == "f":
            low, high = _float_below(first), _float_below(last)
            # fmax and fmin pass over NaN.
            clipped = np.fmin(np.fmax(values.astype(np.float64, copy=False), low), high)
            whole = np.floor(clipped, out=clipped).astype(np.int64)
            if high < last:
                whole[values > high] = last
        elif values.dtype == np.uint64:
            whole = np.minimum(values, np.uint64(_INT64.max)).astype(np.int64)
        else:
            whole = values.astype(np.int64)
        whole = np.clip(whole, first, last)
        # Unsigned differences are exact where signed ones would overflow.
        offset = whole.view(np.uint64) - np.uint64(first % 2**64)
        return offset if self.step == 1 else offset // np.uint64(self.step)

    def _float_position(self, values: NDArray[Any]) -> NDArray[np.uint64]:
        first, last = float(self.lower), float(self.value(self.points - 1))
        step = float(self.step)
        clipped = np.clip(np.where(np.isnan(values), first, values), first, last)
        j = np.clip(np.floor((clipped - first) / step), 0, self.points - 1)
        # The division may be off by one ulp; the comparison with the grid point decides.
        j -= (first + j * step > clipped) & (j > 0)
        j += (first + (j + 1) * step <= clipped) & (j < self.points - 1)
        return j.astype(np.uint64)


def _plain(number: int | float) -> int | float:
    return int(number) if isinstance(number, numbers.Integral) else float(number)


def _float_below(number: int) -> float:
    """Return the largest float that is at most ``number``."""
    nearest = float(number)
    return math.nextafter(nearest, -math.inf) if nearest > number else nearest
