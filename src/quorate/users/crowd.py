"""Whole users, wherever they lie: what an estimator may ask of a crowd.

A crowd is n users in parts; a part holds whole users, each with their records in the order of the
source. The parts may lie in this process, in files, or on other machines. What leaves a part are
integers and numbers under public names: exact totals of a statistic on a grid, counts at public
thresholds, tallies, changes along a line, and vectors of a bounded number of users. Noise is drawn
by the caller, from totals, so a part that is computed twice, or again after a crash, changes
nothing.

:class:`~quorate.users.UserData` is the crowd of one part. Everything here gives the same integers
for the same records, however they are cut into parts: sums of integers do not know an order, public
choices about a user follow from the user's key, and where users have to be numbered (secret
samples, pairs) they stand in the order of their keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.exceptions import ParameterError, SchemaError
from quorate.grid import Grid
from quorate.guarantees import Relation
from quorate.public_randomness import RandomState, public_generator
from quorate.users import grouping
from quorate.users.caller_code import (
    Statistic,
    call_quietly,
    check_statistic,
    encode_users,
    sum_users,
)

if TYPE_CHECKING:
    from quorate.users.data import UserData

__all__ = ["Crowd", "add_pieces", "adding_up", "arguments_of", "counts_up_to", "public_word"]

Integers = NDArray[np.int64]
Result = TypeVar("Result")


def public_word(random_state: RandomState) -> np.uint64:
    """Return the public 64-bit word that a seed stands for.

    >>> public_word(7) == public_word(7)
    np.True_
    """
    return np.uint64(public_generator(random_state).integers(0, 2**64, dtype=np.uint64))


def arguments_of(each: Sequence[Any] | None, n_parts: int = 1) -> list[tuple[Any, ...]]:
    """Return the arguments that ``work`` gets beside each part.

    >>> arguments_of(None, 2), arguments_of([7, 8], 2)
    ([(), ()], [(7,), (8,)])
    """
    if each is None:
        return [()] * n_parts
    if len(each) != n_parts:
        raise ParameterError(f"Expected an argument for each of {n_parts} parts, got {len(each)}.")
    return [(argument,) for argument in each]


def counts_up_to(values: ArrayLike, thresholds: NDArray[np.float64]) -> Integers:
    """Count the values that are at most each of the increasing ``thresholds``; NaN is beyond all.

    >>> counts_up_to([1.0, 5.0, np.nan], np.array([0.5, 1.0, 9.0]))
    array([0, 1, 2])
    """
    # Sorting is quicker than looking up each value, and puts NaN last.
    return np.searchsorted(np.sort(np.asarray(values)), thresholds, side="right").astype(np.int64)


def add_pieces(
    lines: Sequence[tuple[NDArray[np.uint64], Integers]],
) -> tuple[NDArray[np.uint64], Integers]:
    """Add up functions on a line that are constant between their starts; each starts at 0.

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
    """Return what adds up ``work`` over the users of one part; it can be pickled if ``work`` can.

    >>> from quorate.users import UserData
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


class Crowd(ABC):
    """The records of n users in parts of whole users.

    Engines give the primitives :meth:`map`, :meth:`derive`, :meth:`keys`, :meth:`take` and
    :meth:`take_ranked`; everything an estimator asks follows from them.

    Privacy
    -------
    Nothing here is a release. Every result is a private number: an input of a mechanism.
    """

    @property
    @abstractmethod
    def n_users(self) -> int:
        """Number of users; public under ``Relation.REPLACE``, private under add/remove."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no users; as public as their number, and often known without it.

        >>> from quorate.users import UserData
        >>> UserData([[1.0]], offsets=[0, 1]).is_empty
        False
        """
        return self.n_users == 0

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
        """The word for what is protected; it goes into the guarantee."""

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if the table had any; public."""

    @abstractmethod
    def map(self, work: Callable[..., Result], each: Sequence[Any] | None = None) -> list[Result]:
        """Return ``work(part)``, or ``work(part, argument)``, of every part, in their order.

        ``each`` holds one argument for each part. ``work`` can be pickled and draws no noise.
        """

    @abstractmethod
    def derive(
        self,
        change: Callable[..., UserData],
        each: Sequence[Any] | None = None,
        *,
        keep: bool = False,
    ) -> Self:
        """Return the crowd of ``change(part)``, which stays where the parts lie.

        ``change`` may choose users and keep, drop or transform what they hold; the users that are
        left stand in their old order, or take their keys along. With ``keep`` the result is stored
        beside the parts, which pays where it is much smaller and asked for often; without, it is
        made anew each time.
        """

    @abstractmethod
    def keys(self) -> NDArray[np.uint64]:
        """Return the key of each user, in the order of the crowd."""

    @abstractmethod
    def take(self, user_indices: ArrayLike) -> Self:
        """Return the users with these numbers in the order of the crowd."""

    @abstractmethod
    def take_ranked(self, ranks: NDArray[np.int64]) -> Self:
        """Return the users with these numbers in the order of their keys."""

    @abstractmethod
    def nobody(self) -> UserData:
        """Return a data set of the same description without users."""

    def add_up(self, work: Callable[[UserData], Integers], *, whole: bool = False) -> Integers:
        """Return the sum of the integers that ``work`` returns for whole users.

        Exact if no partial sum leaves 64 bits. A part may be cut further, unless ``whole``.

        >>> from quorate.users import UserData
        >>> people = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
        >>> people.add_up(lambda part: np.array([part.n_users]))
        array([2])
        """
        parts = self.map(adding_up(work, whole=whole))
        return sum(parts, start=work(self.nobody()))

    def total(self, statistic: Statistic, grid: Grid) -> Integers:
        """Return the sum, in steps of ``grid``, of the contributions of all users.

        Exact up to 2^62, where it saturates; :func:`~quorate.grid.choose_grid` leaves room.

        >>> from quorate.grid import Interval
        >>> from quorate.users import UserData
        >>> from quorate.users.caller_code import UserMeans
        >>> people = UserData.from_arrays([[1.0], [50.0]], users=["ann", "bob"])
        >>> grid = Grid(Interval(0.0, 4.0, centre=0.0), step=0.5)
        >>> people.total(UserMeans(grid.bound), grid)
        array([10])
        """
        check_statistic(statistic, grid)
        work = partial(sum_users, statistic=statistic, grid=grid)
        return grid.join(self.add_up(work, whole=not getattr(statistic, "batched", True)))

    def votes(self, statistic: Statistic, grid: Grid) -> Integers:
        """Return the contribution of each user in steps of ``grid``: (n_users, dimension)."""
        check_statistic(statistic, grid)
        parts = self.map(partial(encode_users, statistic=statistic, grid=grid))
        return np.concatenate([np.empty((0, grid.bound.dimension), np.int64), *parts])

    def counts(
        self, values: Callable[[UserData], NDArray[Any]], thresholds: NDArray[np.float64]
    ) -> Integers:
        """Count the users whose value is at most each public threshold, all in one pass.

        >>> from quorate.users import UserData
        >>> people = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
        >>> people.counts(UserData.record_counts, np.array([1.0, 2.0]))
        array([1, 2])
        """
        return self.add_up(partial(_counted, values=values, thresholds=thresholds))

    def along_a_line(
        self, work: Callable[[UserData], tuple[NDArray[np.uint64], Integers]]
    ) -> tuple[NDArray[np.uint64], Integers]:
        """Add up what each part says along a line: (starts, values), the first start is 0."""
        return add_pieces(self.map(work))

    def gather(
        self, values: Callable[[UserData], NDArray[Any]], ranks: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Return the values of few users, numbered in the order of their keys.

        >>> from quorate.users import UserData
        >>> people = UserData.from_arrays([[1.0], [5.0]], users=["ann", "bob"])
        >>> sorted(people.gather(UserData.user_means, np.array([1, 0])).ravel().tolist())
        [1.0, 5.0]
        """
        order = np.argsort(ranks, kind="stable")
        parts = self.take_ranked(np.asarray(ranks, dtype=np.int64)[order]).map(values)
        found = np.concatenate([values(self.nobody()), *parts])
        rows = np.empty_like(found)
        rows[order] = found
        return rows

    def together(self) -> UserData:
        """Return all users and records here, in the order of the keys; for few of them only.

        >>> from quorate.users import UserData
        >>> UserData.from_arrays([[1.0], [5.0]], users=["ann", "bob"]).together().n_users
        2
        """
        from quorate.users.assembly import joined_users

        return joined_users(self.map(_itself), self.nobody())

    def public_draws(self, random_state: RandomState = None) -> NDArray[np.float64]:
        """Return a public random number in [0, 1) per user, from the seed and the id alone.

        Use it for public choices about users: unlike numbers drawn in the order of the users, it
        does not change for the others when somebody joins or leaves.

        >>> from quorate.users import UserData
        >>> people = UserData.from_arrays([[1.0], [5.0]], users=[4, 9])
        >>> bool(people.public_draws(0)[1] == people.take([1]).public_draws(0)[0])
        True
        """
        numbers = grouping.mix(self.keys() + public_word(random_state))
        return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def cap(self, records: int, *, random_state: RandomState = None) -> Self:
        """Keep at most ``records`` random records of each user, in their old order.

        A user's j-th record gets the random number mix(mix(key + seed) + j): a function of the
        public seed, of the user's own id and of j. The smallest numbers stay. What is kept of one
        user therefore does not depend on any other user's records, and two neighbouring data sets
        stay neighbours *for every seed*, even one that the attacker knows. (Numbers drawn row by
        row would shift all later users when one user's records change.) The numbers of one user
        differ, since mix is a bijection: no tie is broken by what lies around it.

        Both parameters are public.

        Examples
        --------
        >>> from quorate.users import UserData
        >>> UserData.from_arrays([[1.0], [5.0], [3.0]], users=[4, 9, 4]).cap(1).record_counts()
        array([1, 1])
        """
        _validate.positive_integer(records=records)
        return self.derive(_Cap(int(records), public_word(random_state)), keep=True)

    def split(
        self,
        fraction: float,
        *,
        relation: Relation = Relation.REPLACE,
        random_state: RandomState = None,
    ) -> tuple[Self, Self]:
        """Split the users, each with all their records, into two data sets.

        Every user gets a random number that depends on the public seed and on the user's id only.
        Under ``REPLACE`` the round(fraction x n) users with the smallest numbers go to the left;
        ids and n are public there, so the sides are. Under ``ADD_REMOVE`` each user goes to the
        left if the number is below ``fraction``: the sizes vary, but the arrival of one user moves
        nobody else.

        Examples
        --------
        >>> from quorate.users import UserData
        >>> people = UserData.from_arrays(np.arange(8.0), users=np.arange(8))
        >>> [side.n_users for side in people.split(0.25, random_state=0)]
        [2, 6]
        """
        _validate.probability(fraction=fraction)
        word = public_word(random_state)
        if relation is Relation.REPLACE:
            size = round(fraction * self.n_users)
            numbers = np.sort(grouping.mix(self.keys() + word))
            # By value and not by place: two ids with one key, if there are any, stay together.
            last = int(numbers[size - 1]) if size else -1
        elif relation is Relation.ADD_REMOVE:
            last = int(fraction * 2.0**64) - 1
        else:
            raise ParameterError(f"Expected relation to be a Relation, got relation={relation!r}.")
        left, right = (self.derive(_Side(word, last, left=side)) for side in (True, False))
        return left, right


@dataclass(frozen=True)
class _Cap:
    records: int
    word: np.uint64

    def __call__(self, users: UserData) -> UserData:
        return users.capped(self.records, self.word)


@dataclass(frozen=True)
class _Side:
    word: np.uint64
    last: int
    left: bool

    def __call__(self, users: UserData) -> UserData:
        numbers = grouping.mix(users.keys() + self.word)
        low = numbers <= np.uint64(self.last) if self.last >= 0 else np.zeros(len(numbers), bool)
        return users.take(np.flatnonzero(low == self.left))


def _itself(part: UserData) -> UserData:
    return part


def _counted(
    part: UserData,
    values: Callable[[UserData], NDArray[Any]],
    thresholds: NDArray[np.float64],
) -> Integers:
    if part.n_users == 0:
        return np.zeros(len(thresholds), dtype=np.int64)
    found = call_quietly(lambda: np.asarray(values(part), dtype=np.float64))
    if found is None or found.shape != (part.n_users,):
        raise SchemaError("Expected one number a user; what was found is withheld.")
    return counts_up_to(found, thresholds)
