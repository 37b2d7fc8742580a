"""Cut-offs on one ordered feature, and the public domain of its values.

This is the class of section 5 of paper L (L5, L6). A cut-off u means "x >= u". The domain has D
points, numbered from 0: integers (up to 2**63 of them) or floats on a public grid. So there are D +
1 different cut-offs, including "always 1" (the lowest) and "always 0" (above the highest). Values
are clipped to the domain and rounded down to its grid, so that the rule "x >= value(j)" and the
position of x always agree, in floating point too. Intervals, rectangles and point functions use
such a domain as well. Small domains have a matrix of mistakes; all domains have ``mistake_events``.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.users.grouping import group_by_user
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import (
    Concept,
    Constant,
    LabelledRecords,
    OrderedConceptClass,
    as_features,
    check_enumerable,
    labelled_records,
)
from quorate.learners.concepts.dimensions import Dimension
from quorate.learners.concepts.mistake_events import MistakeEvents

if TYPE_CHECKING:
    from quorate.core.users import UserData

__all__ = ["CutOff", "Direction", "OrderedDomain", "Thresholds", "at_least"]

_INT64 = np.iinfo(np.int64)

# (x - lower) / step carries a relative error of a few 2**-53; below this many points one step of
# correction makes the position exact.
_MAX_FLOAT_POINTS = 2**50


def at_least(x: NDArray[Any], cut: int | float) -> NDArray[np.bool_]:
    """Return where ``x >= cut``, exactly even for integers that floats cannot represent.

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
        """Return the index of the grid point at or below each value, clipped (NaN: 0)."""
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


class Direction(Enum):
    """The side of the cut-off on which 1 is predicted.

    >>> Thresholds(0, 9, direction=Direction.EITHER).size
    20
    """

    ABOVE = "above"
    BELOW = "below"
    EITHER = "either"


@dataclass(frozen=True)
class CutOff(Concept):
    """Predict 1 on one side of ``cut``; the value ``cut`` itself belongs to the upper side.

    >>> rule = CutOff(cut=3, above=False, name="age")
    >>> print(rule)
    Predict 1 if age < 3, else 0.
    >>> rule.predict([2, 3])
    array([1, 0])
    """

    cut: int | float
    above: bool
    name: str = "x"

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``, which has one column."""
        reached = at_least(as_features(X, n_features=1)[:, 0], self.cut)
        return (reached if self.above else ~reached).astype(np.int64)

    def __str__(self) -> str:
        return f"Predict 1 if {self.name} {'>=' if self.above else '<'} {self.cut}, else 0."


@dataclass(frozen=True)
class Thresholds(OrderedConceptClass):
    """All cut-offs between ``lower`` and ``upper``, both public.

    Hypothesis number u is "x >= lower + u * step" (``ABOVE``) or "x < lower + u * step"
    (``BELOW``), u = 0, ..., D. ``EITHER`` has first all hypotheses of the first kind, then those of
    the second kind that are not constant. These are 2 D ordered hypotheses, because "always 0" is
    the last of one kind and the first of the other.

    VC dimension 1, or 2 with ``EITHER`` (and D >= 2). Littlestone dimension floor(log2(D + 1)), by
    binary search. With ``EITHER`` it is 1 + floor(log2 D): it is at most log2 of 2 D hypotheses,
    and after one label an ordered class of D hypotheses is left.

    ``UserData`` stores records as float64, so integers beyond 2**53 have already lost their last
    digits.

    Complexity
    ----------
    ``mistake_events``: O(N log N) for N records, one sort. ``mistakes``: O(N + n D), up to two
    million hypotheses.

    Parameters
    ----------
    lower, upper : int or float
        First and last point of the domain; values outside are clipped. Public.
    step : int or float, default=1
        Distance between points. With integers for ``lower``, ``upper`` and ``step`` the domain is
        exact.
    direction : Direction, default=Direction.ABOVE
        The side on which 1 is predicted.
    name : str, default="x"
        Name of the feature, for printing.

    Examples
    --------
    >>> cut_offs = Thresholds(0, 2**32 - 1)
    >>> cut_offs.size
    4294967297
    >>> print(Thresholds(0.0, 1.0, step=0.25, name="dose").concept(3))
    Predict 1 if dose >= 0.75, else 0.
    """

    lower: int | float
    upper: int | float
    step: int | float = field(default=1, kw_only=True)
    direction: Direction = field(default=Direction.ABOVE, kw_only=True)
    name: str = field(default="x", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.direction, Direction):
            raise ParameterError(
                f"Expected a Direction, got direction={self.direction!r}; "
                "use Direction.ABOVE, BELOW or EITHER."
            )
        if self.size >= 2**64:
            raise ParameterError(
                "Expected fewer than 2**63 points for both directions together, "
                f"got {self.domain.points}; use one direction or a smaller range."
            )

    @cached_property
    def domain(self) -> OrderedDomain:
        """The points D of the feature."""
        return OrderedDomain.between(self.lower, self.upper, step=self.step)

    @property
    def size(self) -> int:
        """The number of hypotheses: D + 1, or 2 D for both directions."""
        points = self.domain.points
        return 2 * points if self.direction is Direction.EITHER else points + 1

    @property
    def n_features(self) -> int:
        """One column."""
        return 1

    @property
    def _vc(self) -> Dimension:
        both = self.direction is Direction.EITHER
        return Dimension(value=min(2, self.domain.points) if both else 1, exact=True)

    @property
    def _littlestone(self) -> Dimension:
        points = self.domain.points
        both = self.direction is Direction.EITHER
        deepest = points.bit_length() if both else (points + 1).bit_length() - 1
        return Dimension(value=deepest, exact=True)

    @property
    def errs_at_most_half(self) -> bool:
        """True: the class contains both constants."""
        return True

    def cut_off(self, index: int) -> int | float:
        """Return the cut-off of hypothesis ``index``; it may be above all points.

        >>> Thresholds(10, 20).cut_off(3)
        13
        """
        place = self._check_index(index)
        points = self.domain.points
        return self.domain.value(place if place <= points else place - points)

    def concept(self, index: int) -> CutOff | Constant:
        """Return hypothesis ``index``: a cut-off, or a constant at the ends."""
        place = self._check_index(index)
        points = self.domain.points
        above = self.direction is not Direction.BELOW and place <= points
        if place in (0, points):
            return Constant(int(above == (place == 0)))
        return CutOff(cut=self.cut_off(place), above=above, name=self.name)

    def mistake_events(self, users: UserData) -> MistakeEvents:
        """Describe every user's mistakes by their changes along the line of hypotheses."""
        records = labelled_records(users, n_features=1)
        position = self.domain.position(records.X[:, 0])
        order = _order(position, points=self.domain.points)
        user = records.user[order]
        # The cut-off just above a record turns it from 1 into 0.
        edge = position[order] + np.uint64(1)
        change = np.where(records.y[order], np.int64(1), np.int64(-1))
        initial = records.counts() - records.positives()
        after = _running_count(user, change, initial)
        before = after - change
        above = MistakeEvents(
            size=self.domain.points + 1,
            positions=edge,
            user=user,
            before=before,
            after=after,
            initial=initial,
        )
        match self.direction:
            case Direction.ABOVE:
                return above
            case Direction.BELOW:
                return _opposite(above, records.counts())
            case Direction.EITHER:
                return _joined(above, _opposite(above, records.counts()))
            case _:
                assert_never(self.direction)

    def _labeling_candidates(self, domain: NDArray[Any]) -> Sequence[int]:
        points = self.domain.points
        above = {0, *(int(p) + 1 for p in self.domain.position(domain[:, 0]))}
        if self.direction is not Direction.EITHER:
            return sorted(above)
        return sorted(above | {points + edge for edge in above if edge < points})

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        check_enumerable(
            self.size,
            name=f"Thresholds over {self.domain.points} points",
            instead="Use mistake_events, which needs no list, or a coarser step.",
        )
        points = self.domain.points
        votes = records.count_by_cell(self.domain.cell(records.X[:, 0]), n_cells=points)
        above = np.empty((records.n_users, points + 1), dtype=np.int64)
        above[:, 0] = records.counts() - records.positives()
        np.cumsum(votes, axis=1, out=above[:, 1:])
        above[:, 1:] += above[:, :1]
        if self.direction is Direction.ABOVE:
            return above
        below = records.counts()[:, np.newaxis] - above
        if self.direction is Direction.BELOW:
            return below
        return np.concatenate([above, below[:, 1:points]], axis=1)


def _order(position: NDArray[np.uint64], *, points: int) -> NDArray[np.int64]:
    """Return the order that sorts the positions."""
    bits = int(position.size).bit_length()
    if points.bit_length() + bits > 64:
        return np.argsort(position).astype(np.int64, copy=False)
    # Sorting numbers is much faster than sorting places: put the place into the low bits.
    places = np.arange(position.size, dtype=np.uint64)
    keys = np.sort((position << np.uint64(bits)) | places)
    return (keys & np.uint64((1 << bits) - 1)).view(np.int64)


def _running_count(
    user: NDArray[np.int64], change: NDArray[np.int64], initial: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Add up each user's changes in the given order, from that user's initial count."""
    order = group_by_user(user, n_users=initial.size)
    summed = np.cumsum(change[order])
    owner = user[order]
    held = np.bincount(owner, minlength=initial.size)
    ends = np.cumsum(held)
    padded = np.r_[0, summed]
    start = initial - padded[ends - held]
    running = np.empty_like(change)
    running[order] = summed + start[owner]
    return running


def _opposite(events: MistakeEvents, counts: NDArray[np.int64]) -> MistakeEvents:
    """Exchange 0 and 1, so that mistakes become correct predictions."""
    held = counts[events.user]
    return MistakeEvents(
        size=events.size,
        positions=events.positions,
        user=events.user,
        before=held - events.before,
        after=held - events.after,
        initial=counts - events.initial,
    )


def _joined(above: MistakeEvents, below: MistakeEvents) -> MistakeEvents:
    """Concatenate the lines ``above`` and ``below``, without the constant ends of ``below``."""
    points = above.size - 1
    inside = below.positions < np.uint64(points)
    return MistakeEvents(
        size=2 * points,
        positions=np.r_[above.positions, below.positions[inside] + np.uint64(points)],
        user=np.r_[above.user, below.user[inside]],
        before=np.r_[above.before, below.before[inside]],
        after=np.r_[above.after, below.after[inside]],
        initial=above.initial,
    )


def _plain(number: int | float) -> int | float:
    return int(number) if isinstance(number, numbers.Integral) else float(number)


def _float_below(number: int) -> float:
    """Return the largest float that is at most ``number``."""
    nearest = float(number)
    return math.nextafter(nearest, -math.inf) if nearest > number else nearest
