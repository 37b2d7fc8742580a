r"""Users in batches of fixed public shapes: how compiled programs see them, without a leak.

A compiled program (a network's gradient) rounds a row by where it lies in its batch, so a batch
must not shift when somebody comes, goes or holds other records. Here:

* the *place* of a user in a batch is a public function of the user's id: the rank among public
  ids where ids are public and everybody is asked, and a hash of the id otherwise. Who comes or
  goes, in the data or in a secret sample, moves nobody to another place;
* users with the same place queue up: the k-th of them is in the k-th batch. Places that nobody
  fills hold zeros, and what the program returns for them is thrown away. Which batch a user is in
  does not matter, since all batches run the same program on the same shape;
* the number of records of a batch is one of a few public *lengths*. A user is in the batches of
  the first length that holds all their records (at most the last length of them, chosen by public
  randomness), which follows from that user's records alone; shorter ones are padded with zeros and
  marked as absent.

So the bits of a user's row are a function of this user's records, the place and public numbers, if
each row of the program is a function of its own inputs and its place: what one user holds moves no
bit of anybody else. The rows are clipped and rounded by the grid and added up as integers, which
know no order: a sum over users moves by what one user adds, as in
:meth:`~quorate.core.people.People.total`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import ParameterError, SchemaError
from quorate.grid import Grid
from quorate.users import grouping
from quorate.users.crowd import call_quietly
from quorate.users.data import UserData

__all__ = ["Batch", "PlacedSum", "Places", "Program", "slots_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]

# Numbers of all batches that are kept rather than laid out again: 256 megabytes.
_KEPT = 2**26


@dataclass(frozen=True)
class Batch:
    """Records of some users in a public shape, for a program.

    Attributes
    ----------
    rows : float32 array of shape (users, records, features)
    targets : float32 array of shape (users, records)
    present : bool array of shape (users, records)
        Which of them are records; the others are zeros.
    """

    rows: Floats
    targets: Floats
    present: NDArray[np.bool_]


# From a batch to one vector for each of its places.
Program = Callable[[Batch], Any]


@dataclass(frozen=True, kw_only=True)
class Places:
    """The public shapes of batches.

    Parameters
    ----------
    width : int
        Users of a batch.
    lengths : tuple of int
        Increasing numbers of records; nobody adds more records than the last.

    Examples
    --------
    >>> Places(width=2, lengths=(4, 16)).lengths
    (4, 16)
    """

    width: int
    lengths: tuple[int, ...]
    _laid: WeakKeyDictionary[UserData, dict[bool, list[tuple[Integers, Batch]]]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        _validate.positive_integer(width=self.width)
        if not self.lengths or list(self.lengths) != sorted(set(self.lengths)):
            raise ParameterError(f"Expected increasing lengths, got {self.lengths!r}.")
        _validate.positive_integer(length=self.lengths[0])

    def __reduce__(self) -> tuple[Any, ...]:
        # What is laid out stays where it lies; another process lays out its own part.
        return partial(Places, width=self.width, lengths=self.lengths), ()

    def of(self, keys: NDArray[np.uint64], ranks: NDArray[np.uint64] | None) -> Integers:
        """Return the place of each user: by rank among public keys, or by a hash of the own key.

        >>> keys = np.array([30, 10, 20], dtype=np.uint64)
        >>> Places(width=2, lengths=(1,)).of(keys, np.sort(keys)).tolist()
        [0, 0, 1]
        """
        if ranks is None:
            return (grouping.mix(keys) % np.uint64(self.width)).astype(np.int64)
        return np.asarray(np.searchsorted(ranks, keys) % self.width, dtype=np.int64)

    def batches(
        self, users: UserData, ranks: NDArray[np.uint64] | None, word: int
    ) -> Iterator[tuple[Integers, Batch]]:
        """Yield the numbers of the users of a batch (-1 where there is nobody), and the batch.

        They are laid out once, if nobody has to choose among records and all of them fit.
        """
        counts = users.record_counts()
        hashed = ranks is None
        held = self._laid.get(users, {}).get(hashed)
        if held is not None:
            yield from held
            return
        size = users.n_features * self.lengths[-1] * users.n_users
        keep = bool(size <= _KEPT and np.all(counts <= self.lengths[-1]))
        laid = []
        places = self.of(users.keys(), ranks)
        tiers = np.searchsorted(self.lengths, np.minimum(counts, self.lengths[-1]))
        for tier, length in enumerate(self.lengths):
            members = np.flatnonzero(tiers == tier)
            for slots in slots_of(places[members], self.width):
                numbers = np.where(slots >= 0, members[slots], -1)
                batch = _laid_out(users, numbers, length, word)
                if keep:
                    laid.append((numbers, batch))
                yield numbers, batch
        if keep:
            self._laid.setdefault(users, {})[hashed] = laid


def slots_of(places: Integers, width: int) -> Integers:
    """Return who is where: one row a batch, -1 where there is nobody.

    >>> slots_of(np.array([0, 1, 0]), 2).tolist()
    [[0, 1], [2, -1]]
    """
    order = np.argsort(places, kind="stable")
    queued = places[order]
    first = np.searchsorted(queued, np.arange(width))
    turns = np.arange(len(order)) - first[queued]
    table = np.full((int(turns.max(initial=-1)) + 1, width), -1, dtype=np.int64)
    table[turns, queued] = order
    return table


def _laid_out(users: UserData, numbers: Integers, length: int, word: int) -> Batch:
    """Return the records of these users, padded; of many records a public choice."""
    shape = (len(numbers), length)
    own = np.flatnonzero(numbers >= 0)
    who = numbers[own]
    counts = users.record_counts()[who]
    taken = np.minimum(counts, length)
    # Whoever holds more turns their own order, by the key and a public word, and begins there.
    turned = grouping.mix(users.keys()[who] ^ np.uint64(word)) % np.maximum(counts, 1).astype(
        np.uint64
    )
    start = np.where(counts > length, turned.astype(np.int64), 0)
    slots = np.arange(length)
    present = np.zeros(shape, dtype=np.bool_)
    present[own] = slots < taken[:, None]
    places = (start[:, None] + slots) % np.maximum(counts, 1)[:, None]
    found = (users.offsets[who][:, None] + places)[present[own]]
    rows = np.zeros((*shape, users.n_features), dtype=np.float32)
    targets = np.zeros(shape, dtype=np.float32)
    with np.errstate(all="ignore"):  # a word about an overflow would tell of a value
        rows[present] = users.X[found]
        if users.y is not None:
            targets[present] = users.y[found]
    # A record that 32 bits do not hold, or whose label nobody listed, counts as absent.
    odd = ~(np.isfinite(rows).all(axis=2) & np.isfinite(targets))
    rows[odd], targets[odd], present[odd] = 0.0, 0.0, False
    return Batch(rows, targets, present)


@dataclass(frozen=True)
class PlacedSum:
    """Adds up what a program returns for the users of a part, bounded by ``grid``, in halves.

    A vector has one column fewer than the grid where the bound fills the last one by itself, as
    a lifted ball does.

    Parameters
    ----------
    program : callable
        From a :class:`Batch` to an array of one row for each place.
    grid : Grid
    places : Places
    ranks : array of uint64, optional
        All public keys in their order; hashes of keys decide without it.
    word : int
        Public randomness: which records are taken of users who hold more than the last length.
    """

    program: Program
    grid: Grid
    places: Places
    ranks: NDArray[np.uint64] | None
    word: int = 0

    def __call__(self, users: UserData) -> Integers:
        """Return the sum in two rows, as :meth:`~quorate.grid.Grid.encode_halves`."""
        width = self.grid.bound.dimension
        halves = np.zeros((2, width), dtype=np.int64)
        held = np.zeros((self.places.width, width))
        before: tuple[Integers, Any] | None = None
        for numbers, batch in self.places.batches(users, self.ranks, self.word):
            # A program may still be at work when it returns: the next batch is begun meanwhile.
            begun = numbers, self._begun(batch)
            if before is not None:
                halves += self._added(*before, held)
            before = begun
        return halves if before is None else halves + self._added(*before, held)

    def _begun(self, batch: Batch) -> Any:
        found = call_quietly(lambda: self.program(batch))
        if found is None:
            raise SchemaError(
                "The network raised an exception; its text is withheld because it may quote "
                "records. Call it on made-up records to see it."
            )
        return found

    def _added(self, numbers: Integers, found: Any, held: NDArray[np.float64]) -> Integers:
        rows = call_quietly(lambda: np.asarray(found))
        width = held.shape[1]
        if (
            rows is None
            or rows.dtype.kind != "f"
            or rows.shape
            not in (
                (len(numbers), width),
                (len(numbers), width - 1),
            )
        ):
            raise SchemaError(
                f"Expected one vector of {width - 1} numbers for each place of a batch; what was "
                "found is withheld."
            )
        own = numbers >= 0
        rows = rows if own.all() else rows[own]
        held[: len(rows), : rows.shape[1]] = rows
        return self.grid.encode_halves(held[: len(rows)])
