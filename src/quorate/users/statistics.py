"""One bounded contribution per user, clipped by our code and rounded to a public grid.

A *statistic* maps users to vectors, one per user. It runs on parts of the data (whole users), and
for each part :func:`sum_users` or :func:`encode_users` clips and rounds what came out through the
grid, so that a statistic that lies about its bound still cannot break privacy. Parts are merged by
integer addition: exact, associative, equal wherever the parts lie and however they were cut.

The duty of a statistic: the row of a user is, to the last bit, a function of this user's records
alone, and of public parameters. Whether it raises must not depend on records either. If it does
raise, its message and traceback are withheld, because they may quote records, and so are all
warnings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.bounds import Bound
from quorate.exceptions import ParameterError, SchemaError
from quorate.grid import Grid
from quorate.users.caller_code import call_quietly

if TYPE_CHECKING:
    from quorate.users.data import UserData

__all__ = ["Statistic", "UserMeans", "check_statistic", "encode_users", "sum_users"]


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
