"""Cut-offs on one ordered feature, over integer domains of up to 2**63 points or a grid of floats.

The class of paper L, section 5 (L5, L6). A cut-off u means "x >= u". The domain has D points, so
there are D + 1 different cut-offs, among them "always 1" (the lowest) and "always 0" (above the
highest). Small domains also give the matrix of mistakes; all of them give ``mistake_events``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.concepts.base import (
    Concept,
    Constant,
    LabelledRecords,
    OrderedConceptClass,
    as_features,
    check_enumerable,
    labelled_records,
)
from quorate.concepts.dimensions import Dimension
from quorate.concepts.mistake_events import MistakeEvents, group_by_user
from quorate.concepts.numeric.domains import OrderedDomain, at_least
from quorate.exceptions import ParameterError

if TYPE_CHECKING:
    from quorate.users import UserData

__all__ = ["CutOff", "Direction", "Thresholds"]


class Direction(Enum):
    """On which side of the cut-off 1 is predicted.

    >>> Thresholds(0, 9, direction=Direction.EITHER).size
    20
    """

    ABOVE = "above"
    BELOW = "below"
    EITHER = "either"


@dataclass(frozen=True)
class CutOff(Concept):
    """Predict 1 on one side of ``cut``; the cut itself lies above.

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
    (``BELOW``), u = 0, ..., D. ``EITHER`` lists the first kind and then those of the second kind
    that are not constant: 2 D hypotheses in a line, because "always 0" ends one kind and begins
    the other.

    VC dimension 1, or 2 with ``EITHER`` (and D >= 2). Littlestone dimension floor(log2(D + 1)),
    by binary search; or 1 + floor(log2 D) with ``EITHER``: no more than log2 of 2 D hypotheses,
    and the label of any one point leaves a line of D.

    Records are read as float64 by ``UserData``: integers beyond 2**53 lose their last digits
    there, before they come here.

    Complexity
    ----------
    ``mistake_events``: O(N log N) for N records, one sort. ``mistakes``: O(N + n D), up to two
    million hypotheses.

    Parameters
    ----------
    lower, upper : int or float
        First and last point of the domain; values outside are clipped. Public.
    step : int or float, default=1
        Distance between points. With integers everywhere the domain is exact.
    direction : Direction, default=Direction.ABOVE
        On which side 1 is predicted.
    name : str, default="x"
        What sentences call the feature.

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
        """Yes: the class holds both constants."""
        return True

    def cut_off(self, index: int) -> int | float:
        """Return the cut-off of hypothesis ``index``; the one above all points is allowed.

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
    """Exchange 0 and 1: every record is right where it was wrong."""
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
    """Walk along ``above`` and then along ``below`` without its constant ends."""
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
