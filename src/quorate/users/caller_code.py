"""Run code of the caller on records so that nothing comes out but its result, which is bounded.

A statistic or a loss may warn ("mean of empty slice") or raise ("cannot handle 31337"). Both would
be outputs about people that nobody paid for, so both are withheld here: warnings are not shown,
and of an exception nothing is kept, neither its message nor its traceback. That holds for
``SystemExit`` and whatever else is no ``Exception`` too: a record must not end the program. Only a
``KeyboardInterrupt`` passes, without a word about where it struck: it comes from a keyboard.

A *statistic* maps users to vectors, one per user. It runs on parts of the data (whole users), and
for each part :func:`sum_users` or :func:`encode_users` clips and rounds what came out through the
grid, so that a statistic that lies about its bound still cannot break privacy. Parts are merged by
integer addition: exact, associative, equal wherever the parts lie and however they were cut.

The duty of a statistic: the row of a user is, to the last bit, a function of this user's records
alone, and of public parameters. Whether it raises must not depend on records either.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.bounds import Bound
from quorate.exceptions import ParameterError, SchemaError
from quorate.grid import Grid

if TYPE_CHECKING:
    from quorate.users.data import UserData

__all__ = [
    "Statistic",
    "UserMeans",
    "call_quietly",
    "check_statistic",
    "encode_users",
    "is_of_caller",
    "silence",
    "sum_users",
]

Result = TypeVar("Result")


class _Silence(AbstractContextManager[None]):
    """Suppress warnings while at least one thread is inside.

    Filters of warnings belong to the process, and ``warnings.catch_warnings`` restores those that
    it found: two threads that leave in the order in which they came would end with the filters of
    the first. So the first thread in silences, and the last one out restores.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._saved = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._saved = warnings.catch_warnings()
                self._saved.__enter__()
                warnings.simplefilter("ignore")
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
                self._saved.__exit__(None, None, None)


_SILENCE = _Silence()


def silence() -> AbstractContextManager[None]:
    """Return the context in which no thread shows a warning.

    >>> with silence():
    ...     warnings.warn("31337 is no number", stacklevel=1)
    """
    return _SILENCE


def call_quietly(function: Callable[[], Result]) -> Result | None:
    """Return the result of ``function``; None if it raised.

    The caller raises its own error *after* this returned: no handler is active then, and no
    context leads from that error to the records.

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


def is_of_caller(thing: object) -> bool:
    """Whether an object's class was written outside this package: nobody here has looked at it.

    >>> is_of_caller(object()), is_of_caller(silence())
    (True, False)
    """
    return not type(thing).__module__.startswith("quorate.")


class Statistic(Protocol):
    """One bounded contribution per user.

    It may be called on parts of the data. A statistic that needs little memory beside the records,
    and no order among them, says ``batched = False``; it is then called once on all users of a
    part.
    """

    @property
    def bound(self) -> Bound:
        """Where contributions should lie; what is enforced is the bound of the grid."""

    def __call__(self, users: UserData) -> NDArray[Any]:
        """Return an array of shape (n_users, dimension): one row per user, in their order."""


@dataclass(frozen=True)
class UserMeans:
    """The mean record of each user.

    A user without records contributes the centre of the bound.

    Examples
    --------
    >>> from quorate.grid import Ball
    >>> from quorate.users import UserData
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

    The halves of several parts are added and handed to :meth:`~quorate.grid.Grid.join`.

    >>> from quorate.grid import Interval
    >>> from quorate.users import UserData
    >>> people = UserData.from_arrays([[1.0], [50.0]], users=["ann", "bob"])
    >>> grid = Grid(Interval(0.0, 4.0, centre=0.0), step=0.5)
    >>> halves = sum_users(people, UserMeans(grid.bound), grid)
    >>> grid.join(halves)
    array([10])
    """
    return grid.encode_halves(_contributions(data, statistic, grid))


def encode_users(data: UserData, statistic: Statistic, grid: Grid) -> NDArray[np.int64]:
    """Return the clipped contribution of each user of one part, in steps.

    >>> from quorate.grid import Interval
    >>> from quorate.users import UserData
    >>> people = UserData.from_arrays([[1.0], [50.0]], users=["ann", "bob"])
    >>> grid = Grid(Interval(0.0, 4.0, centre=0.0), step=0.5)
    >>> encode_users(people, UserMeans(grid.bound), grid)
    array([[2],
           [8]])
    """
    return grid.encode(_contributions(data, statistic, grid))


def check_statistic(statistic: Statistic, grid: Grid) -> None:
    """Refuse from public facts, before any record is read."""
    if not isinstance(grid, Grid):
        raise ParameterError(f"Expected a Grid, got {type(grid).__name__}; see choose_grid.")
    if statistic.bound.dimension != grid.bound.dimension:
        raise ParameterError(
            f"Expected a grid of the statistic's dimension {statistic.bound.dimension}, "
            f"got {grid.bound.dimension}."
        )


def _contributions(data: UserData, statistic: Statistic, grid: Grid) -> NDArray[Any]:
    """Call the statistic; let neither its warnings nor its errors speak of records."""
    if data.n_users == 0:
        return np.empty((0, grid.bound.dimension))  # a part without users asks nobody
    values = call_quietly(lambda: np.asarray(statistic(data)))
    name = type(statistic).__name__
    if values is None:
        raise SchemaError(
            f"The statistic {name} raised an exception; its text is withheld because it may quote "
            "records. Call the statistic on made-up users to see it."
        )
    shape = (data.n_users, grid.bound.dimension)
    if values.shape != shape or values.dtype.kind not in "fiub":
        raise SchemaError(
            f"Expected the statistic {name} to return numbers of shape (n_users, "
            f"{grid.bound.dimension}), got another shape or dtype."
        )
    return values
