"""The private queries about users: one bounded contribution of each user.

A crowd is n users in parts; a part has whole users, each with their records in the order of the
source. The parts may be in this process, in files, or on other machines. A part returns only
integers and numbers under public names: exact totals of a statistic on a grid, counts at public
thresholds, tallies, changes along a line, and vectors of a bounded number of users. Noise is added
to totals by the caller, so a part that is computed twice, or again after a crash, changes nothing.
:class:`~quorate.core.users.UserData` is the crowd of one part. Everything here gives the same
integers for the same records, however they are divided into parts: sums of integers do not depend
on the order, and if users have to be numbered (secret samples, pairs) they are in the order of
their keys.

A *statistic* maps users to vectors, one per user. Its result is clipped and rounded by the grid, so
a statistic with a wrong bound cannot break privacy. It has one duty: the row of a user is, to the
last bit, a function of this user's records alone, and of public parameters. Whether an
exception is raised must not depend on records either.

Code of the caller may warn ("mean of empty slice") or raise ("cannot handle 31337"). Both would be
unpaid outputs about people, so both are suppressed: warnings are not shown, and of an exception
neither the message nor the traceback is kept. This includes ``SystemExit`` and everything else that
is not an ``Exception``, because a record must not be able to end the program. Only a
``KeyboardInterrupt`` is raised, without its traceback, because it comes from a keyboard.
"""

from __future__ import annotations

import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.core.bounds.grid import Bound, Grid
from quorate.core.users.public_choices import KeyedUsers
from quorate.exceptions import ParameterError, SchemaError

if TYPE_CHECKING:
    from quorate.core.users.data import UserData

__all__ = [
    "Crowd",
    "Statistic",
    "UserMeans",
    "add_pieces",
    "adding_up",
    "arguments_of",
    "call_quietly",
    "check_statistic",
    "counts_up_to",
    "encode_users",
    "is_rows",
    "joined_rows",
    "silence",
    "sum_users",
    "told",
]

Integers = NDArray[np.int64]
Result = TypeVar("Result")


class _Silence(AbstractContextManager[None]):
    """Suppress warnings while at least one thread is inside.

    Warning filters belong to the process, and ``warnings.catch_warnings`` restores the filters that
    it found. If two threads leave in the order in which they entered, the process would keep the
    filters of the first thread. So the first thread to enter suppresses warnings, and the last one
    to leave restores them. The list of filters is replaced in between. Changing the present list
    would take several times as long in every step of a descent, and would make the process forget
    which warnings it has shown.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._found = warnings.filters

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._found = warnings.filters
                warnings.filters = [("ignore", None, Warning, None, 0)]
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                warnings.filters = self._found


_SILENCE = _Silence()


def silence() -> AbstractContextManager[None]:
    """Return the context in which no thread shows a warning.

    >>> with silence():
    ...     warnings.warn("31337 is no number", stacklevel=1)
    """
    return _SILENCE


def call_quietly(function: Callable[[], Result]) -> Result | None:
    """Return the result of ``function``; None if it raised.

    The caller raises its own error *after* this function returned, so that no exception context
    leads from that error to the records.

    >>> call_quietly(lambda: np.float64(1.0) / 0.0)
    np.float64(inf)
    >>> call_quietly(lambda: {}["31337"])
    """
    with silence(), np.errstate(all="ignore"):
        try:
            return function()
        except KeyboardInterrupt:
            pass
        except BaseException:
            return None
    raise KeyboardInterrupt


def told(
    work: Callable[[], Result], expected: str, fits: Callable[[Result], bool] = lambda _: True
) -> Result:
    """Return the result of ``work``, or raise an error that says only what was expected.

    >>> told(lambda: np.array(["31337"]), "numbers", lambda found: is_rows(found, 1))
    Traceback (most recent call last):
        ...
    quorate.exceptions.SchemaError: Expected numbers. What was found, or went wrong, is withheld
    because it may quote records; ask about made-up users to see it.
    """
    found = call_quietly(work)
    if found is None or not fits(found):
        raise SchemaError(
            f"Expected {expected}. What was found, or went wrong, is withheld because it may quote "
            "records; ask about made-up users to see it."
        )
    return found


def is_rows(found: NDArray[Any], size: int) -> bool:
    """Whether these are numbers in ``size`` rows.

    >>> is_rows(np.zeros((3, 2)), 3), is_rows(np.array(["a"]), 1)
    (True, False)
    """
    return found.shape[:1] == (size,) and found.dtype.kind in "fiub"


class Statistic(Protocol):
    """One bounded contribution per user.

    It may be called on parts of the data. A statistic that needs little memory and does not depend
    on the order of records sets ``batched = False``. It is then called once on all users of a part.
    """

    @property
    def bound(self) -> Bound:
        """The expected range of contributions; the bound of the grid is enforced."""

    def __call__(self, users: UserData) -> NDArray[Any]:
        """Return an array of shape (n_users, dimension): one row per user, in their order."""


@dataclass(frozen=True)
class UserMeans:
    """The mean record of each user.

    A user without records contributes the centre of the bound.

    Examples
    --------
    >>> from quorate.core.bounds.grid import Ball
    >>> from quorate.core.users import UserData
    >>> people = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
    >>> UserMeans(Ball(10.0, dimension=1))(people)
    array([[2.],
           [5.]])
    """

    bound: Bound
    batched: ClassVar[bool] = False

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        """Return the means, one row per user."""
        return users.user_means()


def sum_users(data: UserData, statistic: Statistic, grid: Grid) -> NDArray[np.int64]:
    """Return the exact sum of the clipped contributions of the users of one part, in two halves.

    The halves of several parts are added and handed to :meth:`~quorate.core.bounds.grid.Grid.join`.

    >>> from quorate.core.bounds.grid import Interval
    >>> from quorate.core.users import UserData
    >>> people = UserData.from_arrays([[1.0], [50.0]], users=["ann", "bob"])
    >>> grid = Grid(Interval(0.0, 4.0, centre=0.0), step=0.5)
    >>> halves = sum_users(people, UserMeans(grid.bound), grid)
    >>> grid.join(halves)
    array([10])
    """
    return grid.encode_halves(_contributions(data, statistic, grid))


def encode_users(data: UserData, statistic: Statistic, grid: Grid) -> NDArray[np.int64]:
    """Return the clipped contribution of each user of one part, in steps.

    >>> from quorate.core.bounds.grid import Interval
    >>> from quorate.core.users import UserData
    >>> people = UserData.from_arrays([[1.0], [50.0]], users=["ann", "bob"])
    >>> grid = Grid(Interval(0.0, 4.0, centre=0.0), step=0.5)
    >>> encode_users(people, UserMeans(grid.bound), grid)
    array([[2],
           [8]])
    """
    return grid.encode(_contributions(data, statistic, grid))


def check_statistic(statistic: Statistic, grid: Grid) -> None:
    """Refuse a statistic that does not fit, by public facts, before any record is read."""
    if not isinstance(grid, Grid):
        raise ParameterError(f"Expected a Grid, got {type(grid).__name__}; see choose_grid.")
    if statistic.bound.dimension != grid.bound.dimension:
        raise ParameterError(
            f"Expected a grid of the statistic's dimension {statistic.bound.dimension}, "
            f"got {grid.bound.dimension}."
        )


def _contributions(data: UserData, statistic: Statistic, grid: Grid) -> NDArray[Any]:
    """Call the statistic; suppress warnings and errors, which may quote records."""
    if data.n_users == 0:
        return np.empty((0, grid.bound.dimension))  # a part without users asks nobody
    shape = (data.n_users, grid.bound.dimension)
    name, width = type(statistic).__name__, grid.bound.dimension
    return told(
        lambda: np.asarray(statistic(data)),
        f"the statistic {name} to return numbers of shape (n_users, {width})",
        lambda found: found.shape == shape and is_rows(found, data.n_users),
    )


def arguments_of(each: Sequence[Any] | None, n_parts: int = 1) -> list[tuple[Any, ...]]:
    """Return the arguments that ``work`` gets in addition to each part.

    >>> arguments_of(None, 2), arguments_of([7, 8], 2)
    ([(), ()], [(7,), (8,)])
    """
    if each is None:
        return [()] * n_parts
    if len(each) != n_parts:
        raise ParameterError(f"Expected an argument for each of {n_parts} parts, got {len(each)}.")
    return [(argument,) for argument in each]


def joined_rows(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the rows of several parts, which have the same width.

    Different widths would reveal something about records.

    >>> joined_rows([np.zeros((0, 2)), np.ones((1, 2))])
    array([[1., 1.]])
    """
    if len({part.shape[1:] for part in parts}) > 1:
        raise SchemaError(
            "Expected rows whose length follows from public numbers, the same for nobody and for "
            "everybody; what was found is withheld."
        )
    return np.concatenate(parts)


def counts_up_to(values: ArrayLike, thresholds: NDArray[np.float64]) -> Integers:
    """Count the values that are at most each of the increasing ``thresholds``; NaN is above all.

    >>> counts_up_to([1.0, 5.0, np.nan], np.array([0.5, 1.0, 9.0]))
    array([0, 1, 2])
    """
    # Sorting is quicker than looking up each value, and puts NaN last.
    return np.searchsorted(np.sort(np.asarray(values)), thresholds, side="right").astype(np.int64)


def add_pieces(
    lines: Sequence[tuple[NDArray[np.uint64], Integers]],
) -> tuple[NDArray[np.uint64], Integers]:
    """Add up piecewise constant functions on a line; each starts at 0.

    >>> one = np.array([0, 5], dtype=np.uint64), np.array([2, 3])
    >>> other = np.array([0, 3, 5], dtype=np.uint64), np.array([1, 0, 1])
    >>> add_pieces([one, other])
    (array([0, 3, 5], dtype=uint64), array([3, 2, 4]))
    """
    starts = np.concatenate([start for start, _ in lines])
    changes = np.concatenate([np.diff(values, axis=0, prepend=0) for _, values in lines])
    order = np.argsort(starts, kind="stable")
    opens = np.flatnonzero(np.r_[True, np.diff(starts[order]) > 0])
    return starts[order][opens], np.cumsum(np.add.reduceat(changes[order], opens), axis=0)


def adding_up(
    work: Callable[[UserData], Integers], *, whole: bool
) -> Callable[[UserData], Integers]:
    """Return a function that adds up ``work`` over the users of one part.

    It can be pickled if ``work`` can.

    >>> from quorate.core.users import UserData
    >>> adding_up(UserData.record_counts, whole=True)(UserData([[1.0]], offsets=[0, 1]))
    array([1])
    """
    return _AddingUp(work, whole)


@dataclass(frozen=True)
class _AddingUp:
    work: Callable[[UserData], Integers]
    whole: bool

    def __call__(self, part: UserData) -> Integers:
        return part.add_up(self.work, whole=self.whole)


class Crowd(KeyedUsers):
    """The records of n users in parts of whole users.

    Engines implement the primitives :meth:`map`, :meth:`derive`, :meth:`keys`, :meth:`take` and
    :meth:`take_ranked`; all other queries are built on them.

    Privacy
    -------
    Nothing here is a release. Every result is a private number, that is, the input of a mechanism.
    """

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there are no users; public if the number of users is."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features; public."""

    @property
    @abstractmethod
    def has_target(self) -> bool:
        """Whether there are targets; public."""

    @property
    @abstractmethod
    def unit(self) -> str:
        """The word for the protected unit; it is part of the guarantee."""

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if the table had any; public."""

    @abstractmethod
    def map(self, work: Callable[..., Result], each: Sequence[Any] | None = None) -> list[Result]:
        """Return ``work(part)``, or ``work(part, argument)``, for every part, in order.

        ``each`` holds one argument for each part. ``work`` must be picklable and must not draw
        noise.
        """

    @abstractmethod
    def take(self, user_indices: ArrayLike) -> Self:
        """Return the users with these indices in the order of the crowd."""

    @abstractmethod
    def take_ranked(self, ranks: NDArray[np.int64]) -> Self:
        """Return the users with these indices in the order of their keys."""

    @abstractmethod
    def nobody(self) -> UserData:
        """Return an empty data set with the same description."""

    def add_up(self, work: Callable[[UserData], Integers], *, whole: bool = False) -> Integers:
        """Return the sum of the integers that ``work`` returns for whole users.

        The sum is exact if no partial sum exceeds 64 bits. A part may be divided further, unless
        ``whole``.

        >>> from quorate.core.users import UserData
        >>> people = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
        >>> people.add_up(lambda part: np.array([part.n_users]))
        array([2])
        """
        parts = self.map(adding_up(work, whole=whole))
        return sum(parts, start=work(self.nobody()))

    def along_a_line(
        self, work: Callable[[UserData], tuple[NDArray[np.uint64], Integers]]
    ) -> tuple[NDArray[np.uint64], Integers]:
        """Add up the parts' contributions on a line: (starts, values); the first start is 0."""
        return add_pieces(self.map(work))

    def gather(
        self, values: Callable[[UserData], NDArray[Any]], ranks: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Return the values of few users, numbered in the order of their keys.

        >>> from quorate.core.users import UserData
        >>> people = UserData.from_arrays([[1.0], [5.0]], users=["ann", "bob"])
        >>> sorted(people.gather(UserData.user_means, np.array([1, 0])).ravel().tolist())
        [1.0, 5.0]
        """
        order = np.argsort(ranks, kind="stable")
        parts = self.take_ranked(np.asarray(ranks, dtype=np.int64)[order]).map(values)
        found = joined_rows([values(self.nobody()), *parts])
        rows = np.empty_like(found)
        rows[order] = found
        return rows

    def together(self) -> UserData:
        """Return all users and records in this process, in the order of the keys; only if few.

        >>> from quorate.core.users import UserData
        >>> UserData.from_arrays([[1.0], [5.0]], users=["ann", "bob"]).together().n_users
        2
        """
        return self.nobody().joined(self.map(_itself))


def _itself(part: UserData) -> UserData:
    return part
