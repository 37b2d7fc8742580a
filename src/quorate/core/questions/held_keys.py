r"""Sets of keys that users have, from a universe that cannot be listed.

:class:`HeldKeys` answers queries for totals in several rounds. In each round every user divides one
length among those of the user's keys that are still *in play*, up to a largest number of keys.
Which keys a user chooses is a function of what the user holds, of a public seed, and of the noisy
totals of the round before.

**Proof of the sensitivity.** A user with m chosen keys adds the integer part of :math:`R / \sqrt m`
to each of them, so the squares of the contribution add up to at most :math:`R^2`. Nothing is
negative, so two users are at most :math:`\sqrt 2 R` apart. Keys are chosen in the order of their
noisy totals or of random words; ties are broken by the keys themselves. None of this depends on the
keys of other users: indices of keys do, but not the order of two keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.core.alone import refuse_company
from quorate.core.forgetting import forgetting
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.questions.votes import Key, count_votes
from quorate.core.sealed import _KEY, Closed
from quorate.core.users.crowd import told
from quorate.core.users.data import UserData
from quorate.core.users.grouping import mix, ranges
from quorate.core.users.public_choices import public_word
from quorate.exceptions import SchemaError

__all__ = ["Division", "HeldKeys", "KeysOf", "held_keys", "keys_by_hand"]

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


class KeysOf(Protocol):
    """Gives the keys of users, as numbers in the order of the keys.

    The number of a key may depend on the other keys, but not the order of two keys.
    """

    def __call__(self, part: UserData) -> tuple[Integers, Integers]:
        """Return the owner and the number of each key that somebody has."""

    def words(self, numbers: Integers) -> Words:
        """Return a random word for each of these keys, a function of the key alone."""

    def name(self, number: int) -> Any:
        """Return the key with this number."""


class HeldKeys(Closed["Division"]):
    """The keys that each user has."""

    __slots__ = ()
    _asked = "held_keys(people, ...)"
    _how = "Give it to SetUnion."

    def __repr__(self) -> str:
        return "HeldKeys(several a user)"


@dataclass(frozen=True, eq=False)
class Division:
    """The opened keys of all users; for a mechanism that has recorded their cost.

    Attributes
    ----------
    owners : array of integers
        The user of each pair of a user and a key, in order; no pair occurs twice.
    places : array of integers
        The index of its key in ``numbers``.
    words : array of uint64
        A public random word of each pair, from its user and key alone.
    numbers : array of integers
        The numbers of all keys that anybody has, in order.
    keys : KeysOf
    """

    owners: Integers
    places: Integers
    words: Words
    numbers: Integers
    keys: KeysOf

    @classmethod
    def of(
        cls, owners: Integers, numbers: Integers, own: Words, word: np.uint64, keys: KeysOf
    ) -> Division:
        """Return the division for keys given by numbers; ``own`` is the user's key of each pair."""
        every, places = np.unique(numbers, return_inverse=True)
        words = mix(keys.words(every)[places] + mix(own + word))
        return cls(owners, places.astype(np.int64), words, every, keys)

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self.numbers)

    def named(self, chosen: NDArray[np.bool_]) -> tuple[Any, ...]:
        """Return these keys, in their order."""
        return tuple(map(self.keys.name, self.numbers[chosen].tolist()))

    def totals(
        self, playing: NDArray[np.bool_], before: Integers | None, *, most: int, radius: int
    ) -> Integers:
        """Return what everybody together adds to each key.

        Parameters
        ----------
        playing : array of bool
            Which keys are in play.
        before : array of integers or None
            The noisy totals of the round before: who holds more than ``most`` keys in play takes
            those with the largest. Without them, random ones.
        most : int
        radius : int

        Examples
        --------
        >>> from quorate.core.sealed import opened
        >>> held = opened(keys_by_hand([["a", "b"], ["b"]], Relation.REPLACE))
        >>> held.totals(np.array([True, True]), None, most=9, radius=100)
        array([ 70, 170])
        >>> held.totals(np.array([True, True]), np.array([8, 7]), most=1, radius=100)
        array([100, 100])
        """
        inside = playing[self.places]
        owners, places = self.owners[inside], self.places[inside]
        number = np.bincount(owners, minlength=int(owners[-1]) + 1 if len(owners) else 0)
        if number.max(initial=0) > most:
            if before is None:
                order = np.lexsort((places, self.words[inside], owners))
            else:
                # Not negated: the smallest integer has no opposite.
                order = np.lexsort((places, ~before[places], owners))
            owners, places = owners[order], places[order]
            turns = ranges(np.zeros(len(number), np.int64), number)
            owners, places = owners[turns < most], places[turns < most]
            number = np.minimum(number, most)
        each = _shares(int(number.max(initial=1)), radius)[number[owners]]
        # Whole numbers, of which floats add up so many exactly.
        found = np.bincount(places, weights=each, minlength=self.size)
        return np.asarray(found, dtype=np.int64)


def held_keys(people: People, keys: KeysOf, *, random_state: RandomState = None) -> HeldKeys:
    """Query which keys users have; repetitions make no difference.

    >>> data = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> held_keys(People(data, Relation.REPLACE), _Listed(("tea", "mate")), random_state=0)
    HeldKeys(several a user)
    """
    users, found, word = 0, [np.empty((0, 3), np.uint64)], public_word(random_state)
    # In the order of users, so that the numbers of the keys alone say who holds which.
    numbers_of = partial(_numbers_of, keys)
    refuse_company(keys, numbers_of, people._held_crowd().nobody())
    with forgetting(keys):
        for part in people._held_crowd().map(_Holdings(keys)):
            part[:, 0] += np.uint64(users)
            users = 1 + int(part[:, 0].max(initial=users))
            found.append(part)
        owners, numbers, own = np.concatenate(found).T
        division = told(
            lambda: Division.of(owners.astype(np.int64), numbers.view(np.int64), own, word, keys),
            "a word for each key",
        )
    return HeldKeys(_KEY, division, people.relation, people.among)


def _numbers_of(keys: KeysOf, users: UserData) -> Integers:
    return _Holdings(keys)(users)[:, 1].view(np.int64)


@dataclass(frozen=True)
class _Holdings:
    """The different keys of the users of a part: the user, the key's number, the user's key."""

    keys: KeysOf

    def __call__(self, part: UserData) -> NDArray[np.uint64]:
        expected = "users and numbers of keys"
        owners, numbers = told(lambda: _distinct(*self.keys(part), part.n_users), expected)
        own = part.keys()[owners]
        return np.column_stack([owners.astype(np.uint64), numbers.view(np.uint64), own])


def _distinct(
    owners: NDArray[Any], numbers: NDArray[Any], n_users: int
) -> tuple[Integers, Integers]:
    if owners.shape != numbers.shape or owners.dtype.kind not in "iu":
        raise SchemaError("Expected as many users as keys.")
    inside = (owners >= 0) & (owners < n_users)
    owners, numbers = owners[inside].astype(np.int64), numbers[inside].astype(np.int64)
    order = np.lexsort((numbers, owners))
    owners, numbers = owners[order], numbers[order]
    new = np.ones(len(owners), dtype=np.bool_)
    new[1:] = (np.diff(owners) != 0) | (np.diff(numbers) != 0)
    return owners[new], np.ascontiguousarray(numbers[new])


def keys_by_hand(users: Sequence[Iterable[Any]], relation: Relation) -> HeldKeys:
    """Return the keys of made-up users, each given as a list, for trials and audits.

    >>> keys_by_hand([["a", "b"], []], Relation.REPLACE)
    HeldKeys(several a user)
    """
    # What is a key is said of each alone: 1.0 is none, though it equals the key 1 of somebody else.
    own_keys = [count_votes(iter(held)) for held in users]
    listed = _Listed(tuple(count_votes(key for held in own_keys for key in held)))
    place = {key: number for number, key in enumerate(listed.keys)}
    pairs = sorted((user, place[key]) for user, held in enumerate(own_keys) for key in held)
    owners, numbers = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    own = owners.astype(np.uint64)
    division = Division.of(owners.copy(), numbers, own, np.uint64(0), listed)
    return HeldKeys(_KEY, division, relation, None)


@dataclass(frozen=True)
class _Listed:
    """Keys of a list; the numbers in users' records are indices into it."""

    keys: tuple[Key, ...]

    def words(self, numbers: Integers) -> Words:
        """Return a random word for each key, from its text alone."""
        texts = [repr(self.keys[number]).encode() for number in numbers.tolist()]
        return mix(np.array([int.from_bytes(text[:8], "big") for text in texts], np.uint64))

    def name(self, number: int) -> Key:
        """Return the key with this number."""
        return self.keys[number]

    def __call__(self, part: UserData) -> tuple[Integers, Integers]:
        """Return the listed keys of the users."""
        return part.user_index().astype(np.int64), part.X[:, 0].astype(np.int64)


def _shares(most: int, radius: int) -> Integers:
    """Return the contribution to each key for 0, 1, 2, ... keys: the root of R^2 / m, rounded down.

    >>> _shares(4, 100).tolist()
    [0, 100, 70, 57, 50]
    """
    squares = radius**2 // np.maximum(np.arange(most + 1, dtype=np.int64), 1)
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots -= roots**2 > squares
    roots[0] = 0
    return np.asarray(roots, dtype=np.int64)
