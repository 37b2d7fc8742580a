"""Public choices about users, by the key of each and a public seed alone.

Who is on which side of a split and which records a cap keeps may follow from a user's id, never
from what anybody holds: the choice for one user is the same whoever else is there, and two
neighbouring data sets stay neighbours for every seed, even one that the attacker knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.public_randomness import RandomState, public_generator
from quorate.users import grouping

if TYPE_CHECKING:
    from quorate.users.data import UserData

__all__ = ["KeyedUsers", "keep_smallest", "public_word"]


def public_word(random_state: RandomState) -> np.uint64:
    """Return the public 64-bit word that a seed stands for.

    >>> public_word(7) == public_word(7)
    np.True_
    """
    return np.uint64(public_generator(random_state).integers(0, 2**64, dtype=np.uint64))


def keep_smallest(
    numbers: NDArray[np.uint64], counts: NDArray[np.int64], records: int
) -> NDArray[np.bool_]:
    """Mark the ``records`` smallest numbers of each user; users lie one after the other.

    >>> keep_smallest(np.array([7, 5, 6, 1], dtype=np.uint64), np.array([3, 1]), 2)
    array([False,  True,  True,  True])
    """
    owners = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    ascending = np.argsort(numbers)
    by_owner = ascending[grouping.order_by_user(owners[ascending], len(counts))]
    first = np.cumsum(counts) - counts
    keep = np.empty(len(numbers), dtype=np.bool_)
    keep[by_owner] = np.arange(len(numbers)) - np.repeat(first, counts) < records
    return keep


class KeyedUsers(ABC):
    """Users under keys, wherever their records lie: what may be chosen about them in public."""

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
        """Return the crowd of ``change(part)``, which stays where the parts lie.

        ``change`` may choose users and keep, drop or transform what they hold; the users that are
        left stand in their old order, or take their keys along. With ``keep`` the result is stored
        beside the parts, which pays where it is much smaller and asked for often; without, it is
        made anew each time.
        """

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
        streams = grouping.mix(users.keys() + self.word)
        offsets, counts = users.offsets, users.record_counts()
        full = np.flatnonzero(counts > self.records)
        places = grouping.ranges(offsets[full], counts[full])
        ranks = places - np.repeat(offsets[full], counts[full])
        numbers = grouping.mix(np.repeat(streams[full], counts[full]) + ranks.astype(np.uint64))
        keep = np.ones(users.n_records, dtype=np.bool_)
        keep[places] = keep_smallest(numbers, counts[full], self.records)
        return users.with_records(np.flatnonzero(keep), np.minimum(counts, self.records))


@dataclass(frozen=True)
class _Side:
    word: np.uint64
    last: int
    left: bool

    def __call__(self, users: UserData) -> UserData:
        numbers = grouping.mix(users.keys() + self.word)
        low = numbers <= np.uint64(self.last) if self.last >= 0 else np.zeros(len(numbers), bool)
        return users.take(np.flatnonzero(low == self.left))
