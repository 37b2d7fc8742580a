"""Votes for keys of a universe that cannot be listed: one key per user, or none.

:class:`Ballots` are the votes of the users; :class:`SealedVotes` is the number of votes for each
key. One user changes the votes like a tally of labels: by one vote, or by two if replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.guarantees import Relation
from quorate.core.moves import Moves
from quorate.core.questions.votes import Key, count_votes, plain, sorted_votes
from quorate.core.sealed import _KEY, Closed, Sealed, opened, seal
from quorate.core.users.crowd import told
from quorate.core.users.data import UserData
from quorate.exceptions import ParameterError, RelationMismatchError

__all__ = [
    "Ballots",
    "SealedVotes",
    "VotesOf",
    "ballots_of",
]


class Ballots(Closed[NDArray[Any]]):
    """One key for each user; a value that is not a key of the universe is no vote."""

    __slots__ = ()
    _asked = "people.ballots(...)"
    _how = "Count the votes, or give it to a protocol of reports."

    def __repr__(self) -> str:
        return "Ballots(one key a user)"

    def votes(self, size: int | None = None) -> SealedVotes:
        """Count the votes for each key; keys are integers below ``size``, or anything hashable."""
        counts = count_votes(opened(self), size=size)
        return SealedVotes(_KEY, counts, Moves.of_tally(self.relation), self.relation, self.among)

    def of_key(self, key: Key | None) -> Sealed:
        """Count the votes for one public key; None has no votes."""
        keys = opened(self)
        if key is None:
            votes = 0
        elif np.ndim(key):  # it would be compared with every voter more than once
            raise ParameterError("Expected one key, got several.")
        elif keys.dtype.kind == "O":  # what is no key may refuse to be compared
            votes = count_votes(keys).get(key, 0)
        else:
            votes = int(np.count_nonzero(keys == key))
        moves = Moves.of_tally(self.relation).of_some(1)
        return seal([votes], moves.of_one(moves.largest), self.relation, self.among)


class SealedVotes(Closed[Mapping[Key, int]]):
    """The number of votes for each key; which keys have votes is also private."""

    __slots__ = ("moves",)
    _asked = "people.ballots(...).votes()"
    _how = "Give it to ChooseKey, StableChoice or StableHistogram."

    def __init__(
        self,
        key: object,
        counts: Mapping[Key, int],
        moves: Moves,
        relation: Relation,
        among: object | None,
    ) -> None:
        super().__init__(key, counts, relation, among)
        self.moves = moves

    def __repr__(self) -> str:
        return f"SealedVotes(one user moves {self.moves.l1} votes)"

    def beside(self, other: SealedVotes, *, shift: int) -> SealedVotes:
        """Return votes for keys below ``shift``, followed by other votes, shifted by ``shift``.

        Two votes of one user for one key would move it twice, and text cannot be shifted. So a key
        that is not an integer, or not below ``shift``, is no vote.
        """
        if self.relation is not other.relation or self.among is not other.among:
            raise RelationMismatchError("Expected votes of the same people.")
        counts = sorted_votes(opened(self), size=shift)
        behind = {key: n for key, n in opened(other).items() if type(key) is int and key >= 0}
        counts |= {shift + int(key): count for key, count in behind.items()}
        return SealedVotes(_KEY, counts, self.moves.beside(other.moves), self.relation, self.among)


@dataclass(frozen=True)
class VotesOf:
    """Gets the keys of some users; runs where they are stored."""

    choice: Callable[[UserData], NDArray[Any]]

    def __call__(self, part: UserData) -> NDArray[Any]:
        """Return one key per user."""
        alone = (part.n_users,)
        keys = told(
            lambda: _kept_apart(self.choice(part)), "one key a user", lambda k: k.shape == alone
        )
        return keys

    def named(self, part: UserData) -> NDArray[Any]:
        """Return the keys as Python objects; values that are not keys become None."""
        return _kept_apart([plain(key) for key in self(part).tolist()])


def ballots_of(
    cast: list[NDArray[Any]], order: NDArray[np.intp], relation: Relation, among: object | None
) -> Ballots:
    """Seal one key per user, from several parts."""
    if len({part.dtype.kind for part in cast}) > 1:
        cast = [part.astype(object) for part in cast]
    return Ballots(_KEY, np.concatenate(cast)[order], relation, among)


def _kept_apart(keys: Any) -> NDArray[Any]:
    """Return a list unchanged; as an array, one user's text would turn all numbers into text.

    >>> _kept_apart([5, "a"])
    array([5, 'a'], dtype=object)
    """
    if isinstance(keys, np.ndarray):
        return keys
    found = np.empty(len(keys), dtype=object)
    for place, key in enumerate(keys):
        found[place] = key
    return found
