r"""Users in batches of fixed public shapes, so that compiled programs leak nothing.

A compiled program (such as a network's gradient) may round a row depending on its position in the
batch. So a batch must not shift when somebody is added, removed or has other records. Here:

* the *place* of a user is the position in a batch. It is a public function of the user's id: the
  rank among public ids if ids are public and all users take part, otherwise a hash of the id.
  Adding or removing a user, in the data or in a secret sample, moves no other user to another
  place;
* users with the same place are put into different batches: the k-th of them into the k-th batch.
  Empty places have zeros, and the program's results for them are ignored. The batch of a user does
  not matter, because all batches run the same program on the same shape;
* the number of records of a batch is one of a few public *lengths*. A user is in the batches of the
  first length that has room for all the user's records, which depends on that user's records alone.
  A user with more records than the last length has that many of them chosen by public randomness.
  Shorter lists are padded with zeros that are marked as absent.

So the bits of a user's row are a function of this user's records, the place and public numbers, if
each row of the program is a function of its own inputs and its place. So no bit of it depends on
the records of another user. The rows are clipped and rounded by the grid and added up as integers,
whose order does not matter. So a sum over users changes by one user's row, as in
:meth:`~quorate.core.people.People.total`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.grid import Grid
from quorate.core.compiled import CompiledProgram
from quorate.core.users import grouping
from quorate.core.users.crowd import told
from quorate.core.users.data import UserData
from quorate.exceptions import ParameterError

__all__ = ["Batch", "PlacedSum", "Places", "Program", "made_up_batch", "slots_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]

_LOW = 2**32 - 1
_ONE_ROW = "the network to return one vector of floats for each place of a batch"
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
        Which entries are records; the others are zeros.
    """

    rows: Floats
    targets: Floats
    present: NDArray[np.bool_]


def made_up_batch(rows: NDArray[np.float64], present: NDArray[np.bool_]) -> Batch:
    """Return a batch of these rows, and labels 0 and 1, to try a program on.

    >>> made_up_batch(np.ones((1, 2, 3)), np.array([[True, False]])).targets.tolist()
    [[0.0, 0.0]]
    """
    targets = np.arange(present.size).reshape(present.shape) % 2 * present
    return Batch(rows.astype(np.float32), targets.astype(np.float32), present)


# From a batch to one vector for each of its places, or compiled together with the clip.
Program = Callable[[Batch], Any] | CompiledProgram


@dataclass(frozen=True, kw_only=True)
class Places:
    """The public shapes of batches.

    Parameters
    ----------
    width : int
        Number of users in a batch.
    lengths : tuple of int
        Increasing numbers of records; nobody contributes more records than the last.

    Examples
    --------
    >>> Places(width=2, lengths=(4, 16)).lengths
    (4, 16)
    """

    width: int
    lengths: tuple[int, ...]
    _laid: WeakKeyDictionary[UserData, dict[Any, list[tuple[Integers, int, Batch | None]]]] = field(
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
        """Return the place of each user: the rank among public keys, or a hash of the key.

        >>> keys = np.array([30, 10, 20], dtype=np.uint64)
        >>> Places(width=2, lengths=(1,)).of(keys, np.sort(keys)).tolist()
        [0, 0, 1]
        """
        if ranks is None:
            return (grouping.mix(keys) % np.uint64(self.width)).astype(np.int64)
        return np.asarray(np.searchsorted(ranks, keys) % self.width, dtype=np.int64)

    def batches(
        self,
        users: UserData,
        ranks: NDArray[np.uint64] | None,
        word: int,
        *,
        together: Callable[..., int] | None = None,
    ) -> Iterator[tuple[Integers, Batch]]:
        """Yield the indices of the users of a batch (-1 for an empty place), and the batch.

        ``together(width=, length=, features=)`` says how many batches are combined into one, a
        function of public sizes; missing batches are filled with empty places. Batches are stored,
        if they fit into memory and no user has more records than the last length.
        """
        kept = self._laid.setdefault(users, {})
        key = ranks is None, together is None
        if key not in kept:
            kept[key] = [
                (numbers, length, None) for numbers, length in self._numbers(users, ranks, together)
            ]
        counts, room = users.record_counts(), _KEPT
        for place, (numbers, length, held) in enumerate(kept[key]):
            batch = _laid_out(users, numbers, length, word) if held is None else held
            room -= batch.rows.size
            if held is None and room > 0 and np.all(counts[numbers[numbers >= 0]] <= length):
                kept[key][place] = numbers, length, batch
            yield numbers, batch

    def _numbers(
        self,
        users: UserData,
        ranks: NDArray[np.uint64] | None,
        together: Callable[..., int] | None,
    ) -> Iterator[tuple[Integers, int]]:
        """Yield the users of each batch, and the number of records for which it has room."""
        places = self.of(users.keys(), ranks)
        tiers = np.searchsorted(self.lengths, users.record_counts())
        # Whoever has to choose among records is laid out anew each time, apart from the others.
        for tier, length in enumerate((*self.lengths, self.lengths[-1])):
            members = np.flatnonzero(tiers == tier)
            slots = slots_of(places[members], self.width)
            few = 1
            if together is not None:
                few = together(width=self.width, length=length, features=users.n_features)
            for start in range(0, len(slots), few):
                part = slots[start : start + few]
                numbers = np.full(few * self.width, -1)
                numbers[: part.size] = np.where(part >= 0, members[part], -1).ravel()
                yield numbers, length


def slots_of(places: Integers, width: int) -> Integers:
    """Return the users by place: one row per batch, -1 for an empty place.

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
    """Return the records of some users, padded; too many records are reduced by a public choice."""
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
    """Adds up the program's results for the users of a part, clipped by ``grid``, in halves.

    A vector has one column fewer than the grid if the bound computes the last one, as a lifted ball
    does.

    Parameters
    ----------
    program : callable
        Maps a :class:`Batch` to an array with one row per place.
    grid : Grid
    places : Places
    ranks : array of uint64, optional
        All public keys in order; without it hashes of keys decide the place.
    word : int
        Public randomness: which records are used of users who have more than the last length.
    """

    program: Program
    grid: Grid
    places: Places
    ranks: NDArray[np.uint64] | None
    word: int = 0

    def __call__(self, users: UserData) -> Integers:
        """Return the sum in two rows, as :meth:`~quorate.core.bounds.grid.Grid.encode_halves`."""
        program, width = self.program, self.grid.bound.dimension
        if isinstance(program, CompiledProgram):
            if program.sums.fits(self.grid, width=self.places.width):
                return self._compiled(users, program)
            program = program.rows
        halves = np.zeros((2, width), dtype=np.int64)
        held = np.zeros((self.places.width, width))
        before: tuple[Integers, Any] | None = None
        for numbers, batch in self.places.batches(users, self.ranks, self.word):
            # A program may still be at work when it returns: the next batch is begun meanwhile.
            begun = numbers, _begun(program, batch)
            if before is not None:
                halves += self._added(*before, held)
            before = begun
        return halves if before is None else halves + self._added(*before, held)

    def _compiled(self, users: UserData, program: CompiledProgram) -> Integers:
        """Add up inside of the compiled program, as many batches at once as there are processors.

        Integers are added up, so the order of the batches does not matter.
        """
        width = self.places.width

        def total(laid: tuple[Integers, Batch]) -> Integers:
            numbers, batch = laid
            here = numbers >= 0
            count = int(here.reshape(-1, width).any(axis=1).sum())
            found = told(
                lambda: program.total(batch, here, count, self.grid, width=width),
                _ONE_ROW,
                lambda sums: sums.shape == (self.grid.bound.dimension,),
            )
            return np.array([found >> 32, found & _LOW])

        laid = self.places.batches(users, self.ranks, self.word, together=program.sums.together)
        halves = np.zeros((2, self.grid.bound.dimension), dtype=np.int64)
        many = os.cpu_count() or 1
        with ThreadPoolExecutor(many) as pool:
            # A few wait for each processor, and the others are not laid out yet.
            while waiting := list(islice(laid, 4 * many)):
                halves += sum(pool.map(total, waiting))
        return halves

    def _added(self, numbers: Integers, found: Any, held: NDArray[np.float64]) -> Integers:
        size, width = len(numbers), held.shape[1]
        rows = told(
            lambda: np.asarray(found),
            _ONE_ROW,
            lambda r: r.dtype.kind == "f" and r.shape in ((size, width), (size, width - 1)),
        )
        own = numbers >= 0
        rows = rows if own.all() else rows[own]
        held[: len(rows), : rows.shape[1]] = rows
        held[: len(rows), rows.shape[1] :] = 0.0  # and nothing of those who were here before
        return self.grid.encode_halves(held[: len(rows)])


def _begun(program: Callable[[Batch], Any], batch: Batch) -> Any:
    return told(lambda: program(batch), _ONE_ROW)
