"""Public choices about users, from each user's key, own records, and a public seed.

The side of a user in a split depends on the user's id. The records kept under a cap depend on the
id and on the user's records. Neither depends on other users or on the order of the rows. Two
neighbouring data sets stay neighbours for every seed, even if the attacker knows it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users import grouping, own_order
from quorate.exceptions import ParameterError

if TYPE_CHECKING:
    from quorate.core.users.data import UserData

__all__ = ["KeyedUsers", "chosen_words", "in_own_order", "public_word"]


def public_word(random_state: RandomState) -> np.uint64:
    """Return the public 64-bit word for a seed.

    >>> public_word(7) == public_word(7)
    np.True_
    """
    return np.uint64(public_generator(random_state).integers(0, 2**64, dtype=np.uint64))


class KeyedUsers(ABC):
    """Users with keys, wherever they are stored, and public choices: caps, samples, splits."""

    @property
    @abstractmethod
    def n_users(self) -> int:
        """Number of users; public under ``Relation.REPLACE``, private under add/remove."""

    @abstractmethod
    def keys(self) -> NDArray[np.uint64]:
        """Return the key of each user, in the order of the crowd."""

    @abstractmethod
    def derive(
        self,
        change: Callable[..., UserData],
        each: Sequence[Any] | None = None,
        *,
        keep: bool = False,
    ) -> Self:
        """Return the crowd whose parts are ``change(part)``; the parts stay where they are stored.

        ``change`` may choose users and keep, drop or transform their records; the remaining users
        keep their order, or their keys. With ``keep`` the result is stored next to the parts, which
        is useful if it is much smaller and used often. Without it, it is computed again each time.
        """

    def public_draws(self, random_state: RandomState = None) -> NDArray[np.float64]:
        """Return a public random number in [0, 1) per user, from the seed and the id alone.

        Use it for public choices about users. Unlike numbers drawn in the order of the users, it
        does not change for other users when somebody joins or leaves.

        >>> from quorate.core.users import UserData
        >>> people = UserData.from_arrays([[1.0], [5.0]], users=[4, 9])
        >>> bool(people.public_draws(0)[1] == people.take([1]).public_draws(0)[0])
        True
        """
        numbers = grouping.mix(self.keys() + public_word(random_state))
        return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def cap(
        self,
        records: int,
        *,
        random_state: RandomState = None,
        words_of: Callable[[NDArray[Any]], NDArray[np.uint64]] | None = None,
    ) -> Self:
        """Keep at most ``records`` random records of each user, or the first ones of an ``order=``.

        A record gets a random number computed from the public seed, its user's id, its values, and
        how many equal records precede it (:mod:`quorate.core.users.own_order`). The records with
        the smallest numbers are kept. With an ``order=`` the first records are kept, and the
        numbers decide among those of one rank. So which records of a user are kept depends neither
        on other users' records nor on the order of the rows. Two neighbouring data sets stay
        neighbours *for every seed*, even one that the attacker knows.

        Parameters
        ----------
        records : int
        random_state : int, generator or None
        words_of : callable, optional
            Returns the values of numeric codes, if codes depend on the data of all users.

        Examples
        --------
        >>> from quorate.core.users import UserData
        >>> UserData.from_arrays([[1.0], [5.0], [3.0]], users=[4, 9, 4]).cap(1).record_counts()
        array([1, 1])
        """
        _validate.positive_integer(records=records)
        return self.derive(_Cap(int(records), public_word(random_state), words_of), keep=True)

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
        ids and n are public there, so the sides are public too. Under ``ADD_REMOVE`` each user goes
        to the left if the number is below ``fraction``. Then the sizes vary, but adding one user
        moves no other user.

        Examples
        --------
        >>> from quorate.core.users import UserData
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


def in_own_order(users: UserData, *, word: int | np.uint64 = 0, by_key: bool = False) -> UserData:
    """Return users whose records are in an order of their own.

    Statistics that depend on an order use it.

    This is their ``order=``, if there is one, and then a random order that depends on the user's
    records and a public word, never the order in which records arrived. With ``by_key`` it also
    depends on the user's key, so that users with equal records get different orders. Zeros have no
    sign, so that equal records cannot be distinguished.

    >>> from quorate.core.users import UserData
    >>> one = UserData.from_arrays([[1.0], [2.0], [3.0]], users=["ann"] * 3)
    >>> other = UserData.from_arrays([[3.0], [1.0], [2.0]], users=["ann"] * 3)
    >>> bool((in_own_order(one).X == in_own_order(other).X).all())
    True
    """
    keys = users.keys() if by_key else None
    places = own_order.random_places(
        users.X, users.y, users.offsets, word=word, keys=keys, marks=users.marks
    )
    return users.with_records(places, users.record_counts()).with_plain_zeros()


@dataclass(frozen=True)
class _Cap:
    records: int
    word: np.uint64
    words_of: Callable[[NDArray[Any]], NDArray[np.uint64]] | None = None

    def __call__(self, users: UserData) -> UserData:
        offsets, counts = users.offsets, users.record_counts()
        # Who holds no more keeps everything: a choice that follows from the own records, too.
        full = np.flatnonzero(counts > self.records)
        kept = np.minimum(counts, self.records)
        places = grouping.ranges(offsets[:-1], kept)
        if full.size:
            own = grouping.ranges((np.cumsum(kept) - kept)[full], kept[full])
            places[own] = self._chosen(users, full)
        return users.with_records(places, kept)

    def _chosen(self, users: UserData, full: NDArray[np.int64]) -> NDArray[Any]:
        """Return the positions of the records that are kept, for users with too many records."""
        counts, marks = users.record_counts()[full], users.marks
        held = grouping.ranges(users.offsets[full], counts)
        words = chosen_words(
            users.X, users.y, held, np.repeat(users.keys()[full], counts), self.word, self.words_of
        )
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        own = None if marks is None else marks[held]
        found = own_order.contents_of(users.X, users.y, held, offsets, words, marks=own)
        return found.remembered(self.records).placed(self.records)


def chosen_words(
    rows: NDArray[Any],
    targets: NDArray[np.float64] | None,
    held: NDArray[Any],
    keys: NDArray[np.uint64],
    word: np.uint64,
    words_of: Callable[[NDArray[Any]], NDArray[np.uint64]] | None = None,
) -> NDArray[np.uint64]:
    """Return the random word of each record under a cap, from its numbers, its user and the seed.

    >>> rows, keys = np.array([[1.0], [1.0]]), np.array([7, 8], np.uint64)
    >>> words = chosen_words(rows, None, np.arange(2), keys, np.uint64(0))
    >>> bool(words[0] != words[1])
    True
    """
    words = own_order.content_words(rows, targets, held, word=word, of=words_of)
    return grouping.mix(words + grouping.mix(keys + word))


@dataclass(frozen=True)
class _Side:
    word: np.uint64
    last: int
    left: bool

    def __call__(self, users: UserData) -> UserData:
        numbers = grouping.mix(users.keys() + self.word)
        low = numbers <= np.uint64(self.last) if self.last >= 0 else np.zeros(len(numbers), bool)
        return users.take(np.flatnonzero(low == self.left))
