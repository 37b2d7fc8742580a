"""Numbers about people that nobody outside the core can read.

A :class:`Sealed` is a vector of integers about all users together, with its sensitivity.
:class:`SealedRows` is one row of numbers for each user. Neither can be printed, compared, used as a
condition, converted to a number or an array, iterated, copied or pickled. So code outside the core
can neither leak one by accident nor claim another sensitivity for it. Only an account opens a
:class:`Sealed`, and it reads the sensitivity from it.

Sealed numbers support the few operations whose effect on the sensitivity is known. The proof of
each operation is one sentence, beside the code of the operation.

Python cannot hide data from code that looks for them: code that reads a private attribute can read
the numbers. The class prevents honest mistakes only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, NoReturn, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate._validate import is_integer
from quorate.core.bounds.grid import SUM_LIMIT, Grid
from quorate.core.guarantees import Relation
from quorate.core.moves import GridMoves, Moves
from quorate.exceptions import ParameterError, RelationMismatchError, SealedError

__all__ = [
    "Closed",
    "Sealed",
    "SealedRows",
    "check_one_row_each",
    "check_rows",
    "check_sealed",
    "opened",
    "seal",
    "seal_rows",
    "seal_total",
]

Integers = NDArray[np.int64]
Inside = TypeVar("Inside")

# What may be added to a number of 62 bits without leaving 64.
_ROOM = SUM_LIMIT - 1

# Whoever holds it is in the core. A test over the imports keeps it there.
_KEY = object()


class Closed(Generic[Inside]):
    """Holds a private number, and refuses whatever would show it.

    If the number is about a part of the users, ``among`` is the account of that part; otherwise
    None.
    """

    __slots__ = ("__inside", "among", "relation")
    _asked: ClassVar[str]
    _how: ClassVar[str]

    def __init__(
        self, key: object, inside: Inside, relation: Relation, among: object | None = None
    ) -> None:
        if key is not _KEY:
            raise SealedError(f"Only the core makes a {type(self).__name__}: ask {self._asked}.")
        self.__inside, self.relation, self.among = inside, relation, among

    def _open(self, key: object) -> Inside:
        if key is not _KEY:
            self._refuse()
        return self.__inside

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise SealedError(
            f"A {type(self).__name__} is a private number: it cannot be printed, compared, "
            f"iterated, branched on, converted, copied or saved. {self._how}"
        )

    __bool__ = __int__ = __float__ = __complex__ = __index__ = _refuse
    __iter__ = __contains__ = __len__ = __array__ = __array_ufunc__ = __array_function__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    __copy__ = __deepcopy__ = __getstate__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __pow__ = __abs__ = __round__ = _refuse

    def __dir__(self) -> list[str]:
        """List public names only, so that tools that show all attributes show no number."""
        return [name for name in object.__dir__(self) if not name.startswith("_")]

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, name):  # each is set once, when the seal is made
            raise SealedError(f"What a {type(self).__name__} says of itself cannot be changed.")
        object.__setattr__(self, name, value)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        self._refuse()

    def __format__(self, how: str) -> str:
        return repr(self)


class Sealed(Closed[Integers]):
    """Integers about people, with their sensitivity.

    It is created by a query (:class:`~quorate.core.People`) and opened by an account.

    Attributes
    ----------
    moves : Moves
    relation : Relation

    Examples
    --------
    >>> counts = seal(np.array([3, 8]), Moves.of_counts(2), Relation.REPLACE)
    >>> counts
    Sealed(shape=(2,), one user moves a coordinate by at most 1)
    >>> (10 * counts[0] - 5).moves.largest
    10
    >>> int(counts[0])
    Traceback (most recent call last):
        ...
    quorate.exceptions.SealedError: A Sealed is a private number: it cannot be printed, compared,
    iterated, branched on, converted, copied or saved. Release it through an account, with a
    mechanism such as LaplaceSum, NoisySearch or ChooseBest.
    """

    __slots__ = ("moves",)
    _asked = "people.total(...)"
    _how = (
        "Release it through an account, with a mechanism such as LaplaceSum, NoisySearch or "
        "ChooseBest."
    )

    def __init__(
        self,
        key: object,
        numbers: Integers,
        moves: Moves,
        relation: Relation,
        among: object | None = None,
    ) -> None:
        super().__init__(key, numbers, relation, among)
        self.moves = moves

    @property
    def __numbers(self) -> Integers:
        return self._open(_KEY)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the numbers; public."""
        return self.__numbers.shape

    def __repr__(self) -> str:
        return f"Sealed(shape={self.shape}, one user moves a coordinate by at most {self._reach})"

    @property
    def _reach(self) -> str:
        return f"{float(self.moves.largest):.6g}"

    # Operations whose effect on the sensitivity is known.

    def __add__(self, other: Any) -> Sealed:
        """Add public integers, or another seal about the same people.

        Public integers do not change the sensitivity.
        """
        if isinstance(other, Sealed):
            self._check_same(other)
            added = np.clip(other.__numbers, -_ROOM, _ROOM)
            moves = self.moves.plus(other.moves).cut()
            return self._with(_saturated(self.__numbers + added), moves)
        added = _public(other)
        if np.broadcast_shapes(added.shape, self.shape) != self.shape:
            raise ParameterError(
                f"Expected public integers of shape {self.shape} or one, got {added.shape}: "
                f"repeating a sealed number would increase its sensitivity."
            )
        return self._with(_saturated(self.__numbers + added), self.moves.cut())

    __radd__ = __add__

    def __neg__(self) -> Sealed:
        """Negate all coordinates: changes keep their lengths, and rises become falls."""
        moves = self.moves.times(-1) if self.moves.rising else self.moves
        return self._with(-self.__numbers, moves)

    def __sub__(self, other: Any) -> Sealed:
        """Subtract public integers or another seal about the same people."""
        return self.__add__(-other if isinstance(other, Sealed) else -_public(other))

    def __rsub__(self, other: Any) -> Sealed:
        return (-self).__add__(other)

    def __mul__(self, factor: int) -> Sealed:
        """Multiply all coordinates with one public integer."""
        if isinstance(factor, bool) or not isinstance(factor, int | np.integer):
            raise ParameterError(f"Expected an integer factor, got {type(factor).__name__}.")
        if factor in (0, 1):
            return self if factor else self._with(0 * self.__numbers, self.moves.times(0))
        most = SUM_LIMIT // abs(int(factor))
        inside = np.clip(self.__numbers, -most, most)
        return self._with(inside * int(factor), self.moves.cut().times(int(factor)))

    __rmul__ = __mul__

    def __getitem__(self, place: int | slice) -> Sealed:
        """Return one or several neighbouring coordinates; their sensitivity is no larger.

        Of several rows, one row is returned.
        """
        if self.__numbers.ndim == 2 and isinstance(place, int) and 0 <= place < self.shape[0]:
            return self._with(self.__numbers[place], self.moves.of_some(self.shape[1]))
        if not isinstance(place, int | np.integer | slice) or self.__numbers.ndim != 1:
            raise ParameterError("Expected one integer or a slice of a sealed vector.")
        chosen = self.__numbers[place if isinstance(place, slice) else slice(place, place + 1)]
        if not isinstance(place, slice) and not chosen.size:
            raise ParameterError(f"Expected a place below {self.shape[0]}, got {place}.")
        return self._with(chosen, self.moves.of_some(chosen.size))

    def sum(self) -> Sealed:
        """Return the sum of all coordinates; its sensitivity is at most the L1 sensitivity."""
        total = sum(self.__numbers.tolist())
        return self._one(max(-SUM_LIMIT, min(total, SUM_LIMIT)), self.moves.of_one(self.moves.l1))

    def max(self, axis: int | None = None) -> Sealed:
        """Return the largest coordinate, along an axis or of all; it is as sensitive as one."""
        return self._extremes(self.__numbers.max(axis=axis))

    def min(self, axis: int | None = None) -> Sealed:
        """Return the smallest coordinate, along an axis or of all; it is as sensitive as one."""
        return self._extremes(self.__numbers.min(axis=axis))

    def largest_of(self, choices: Iterable[NDArray[np.integer]], size: int) -> Sealed:
        """Return the largest coordinate of each of ``size`` public lists, as sensitive as one.

        ``choices`` yields one index of every list, into all coordinates, or -1 for a list without
        further entries. A list without entries gets the smallest possible number.
        """
        flat = self.__numbers.ravel()
        found = np.full(size, -SUM_LIMIT, dtype=np.int64)
        for places in choices:
            if places.shape != (size,) or places.dtype.kind != "i" or places.min(initial=0) < -1:
                raise ParameterError(f"Expected {size} places, or -1 where a list has no more.")
            np.maximum(found, flat[places], out=found, where=places >= 0)
        return self._with(found, self.moves.extremes(size))

    def above_least(self) -> Sealed:
        """Return each coordinate minus the smallest one, or the smallest one of its row."""
        # A difference of two numbers of 62 bits may be 2^63, which would wrap around.
        inside = np.maximum(self.__numbers, -_ROOM)
        found = _saturated(inside - inside.min(axis=-1, keepdims=True))
        rows = len(found) if found.ndim == 2 else 1
        return self._with(found, self.moves.cut().above_least(found.size, rows=rows))

    def maximum(self, other: Sealed) -> Sealed:
        """Return the larger of two vectors in each coordinate; it is as sensitive as one."""
        self._check_same(other)
        a, b = self.moves, other.moves
        largest, rising = max(a.largest, b.largest), a.rising and b.rising
        spread = largest if rising else 2 * largest
        moves = Moves(a.l1 + b.l1, a.l2_squared + b.l2_squared, largest, spread, rising)
        return self._with(np.maximum(self.__numbers, other.__numbers), moves)

    def beside(self, other: Sealed) -> Sealed:
        """Return the two vectors one after the other."""
        self._check_people(other)
        joined = np.concatenate([self.__numbers, other.__numbers])
        return self._with(joined, self.moves.beside(other.moves))

    def clip(self, low: int, high: int) -> Sealed:
        """Clip each coordinate to public limits, which never increases a change."""
        if not (is_integer(low) and is_integer(high) and low <= high):
            raise ParameterError("Expected two integers low <= high, the same for all coordinates.")
        low, high = (max(-SUM_LIMIT, min(int(limit), SUM_LIMIT)) for limit in (low, high))
        return self._with(np.clip(self.__numbers, low, high), self.moves.cut())

    def _extremes(self, found: Any) -> Sealed:
        numbers = np.atleast_1d(np.asarray(found, dtype=np.int64))
        return self._with(numbers, self.moves.extremes(numbers.size))

    def _one(self, number: Any, moves: Moves) -> Sealed:
        return self._with(np.array([number], dtype=np.int64), moves)

    def _with(self, numbers: Integers, moves: Moves) -> Sealed:
        return Sealed(_KEY, numbers, moves, self.relation, self.among)

    def _check_same(self, other: Sealed) -> None:
        self._check_people(other)
        if self.shape != other.shape:
            raise ParameterError(f"Expected two of one shape, got {self.shape}, {other.shape}.")

    def _check_people(self, other: Sealed) -> None:
        if self.relation is not other.relation or self.among is not other.among:
            raise RelationMismatchError(
                "Two sealed numbers about other people, or under another relation, cannot be "
                "combined: the sensitivity of the result would be unknown."
            )


def check_sealed(numbers: Any, kind: type) -> None:
    """Refuse numbers that are not sealed, and say what to do."""
    if not isinstance(numbers, kind):
        raise SealedError(
            f"Expected a {kind.__name__}, which carries its sensitivity, got "
            f"{type(numbers).__name__}. Make a query to People; numbers of your own are sealed "
            f"in quorate.core.by_hand."
        )


class SealedRows(Closed[NDArray[Any]]):
    """One row of numbers for each user, or for each of several pairs of users.

    A user owns at most one row (or half of the row of a pair), so replacing a user changes one row.
    Numbers computed from the rows are :class:`Sealed`.

    Examples
    --------
    >>> ages = seal_rows(np.array([31.0, 45.0, 28.0]), Relation.REPLACE)
    >>> ages
    SealedRows(shape of a row=(), one row a user)
    >>> ages.counts([30.0, 40.0])
    Sealed(shape=(2,), one user moves a coordinate by at most 1)
    """

    __slots__ = ("only_present", "paired")
    _asked = "people.each(...)"
    _how = (
        "Ask it for counts, a tally or a total, or give it to a mechanism such as PrivateQuantile."
    )

    def __init__(
        self,
        key: object,
        rows: NDArray[Any],
        relation: Relation,
        *,
        paired: bool = False,
        only_present: bool = False,
        among: object | None = None,
    ) -> None:
        super().__init__(key, rows, relation, among)
        self.paired = paired
        self.only_present = only_present

    @property
    def __rows(self) -> NDArray[Any]:
        return self._open(_KEY)

    def __repr__(self) -> str:
        whose = "pair of users" if self.paired else "user"
        return f"SealedRows(shape of a row={self.__rows.shape[1:]}, one row a {whose})"

    @property
    def dimension(self) -> int:
        """How many numbers a row has; public."""
        return 1 if self.__rows.ndim == 1 else int(self.__rows.shape[1])

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> SealedRows:
        """Return ``function`` of the rows, with as many rows.

        Each result must depend on its own row alone, as for every statistic.
        """
        from quorate.core.alone import refuse_other_rows
        from quorate.core.forgetting import forgetting
        from quorate.core.users.crowd import call_quietly, is_rows, told

        rows = self.__rows
        refuse_other_rows(function, rows.shape[1:])
        # How long a row is, is shown: it follows from public numbers, as it does of no rows at all.
        nothing = call_quietly(lambda: np.asarray(function(rows[:0])))

        def fits(found: NDArray[Any]) -> bool:
            alike = nothing is not None and found.shape[1:] == nothing.shape[1:]
            return alike and is_rows(found, len(rows))

        expected = "one row of numbers for each row, also for none"
        with forgetting(function):
            found = told(lambda: np.asarray(function(rows)), expected, fits)
        return self._with(found)

    def column(self, place: int) -> SealedRows:
        """Return one number of each row."""
        if self.__rows.ndim != 2 or not 0 <= place < self.__rows.shape[1]:
            raise ParameterError(f"Expected a column below {self.dimension}, got {place}.")
        return self._with(np.ascontiguousarray(self.__rows[:, place]))

    def present(self) -> SealedRows:
        """Return the rows without NaN; a user with NaN is absent, and owns no row.

        So the number of rows is private, even if the number of users is public.
        """
        rows = self.__rows
        unknown = np.isnan(rows) if rows.dtype.kind == "f" else np.zeros(rows.shape, np.bool_)
        kept = rows[~unknown.any(axis=tuple(range(1, rows.ndim)))]
        return self._with(kept, only_present=True)

    def counts(self, thresholds: ArrayLike) -> Sealed:
        """Count the rows at or below each of the increasing thresholds; NaN is above all of them.

        A row belongs to one user or to a pair, so replacing a user changes each count by at most 1.
        """
        from quorate.core.users.crowd import counts_up_to

        public = np.asarray(thresholds, dtype=np.float64)
        return self._sealed(counts_up_to(self._numbers, public), Moves.of_counts(public.size))

    def tally(self, size: int) -> Sealed:
        """Count the rows with each value 0, 1, ... below ``size``; other values are not counted."""
        rows = self._numbers
        inside = rows[(rows >= 0) & (rows < size)].astype(np.int64)
        return self._sealed(np.bincount(inside, minlength=size), Moves.of_tally(self._one_row))

    def total(self, grid: Grid) -> Sealed:
        """Add up the rows, clipped and rounded by ``grid``."""
        moves = GridMoves(grid, self._one_row)
        return Sealed(_KEY, grid.encode_sum(self.__rows), moves, self.relation, self.among)

    @property
    def _numbers(self) -> NDArray[Any]:
        """The rows of one number each; a row with several numbers would count several times."""
        if self.__rows.ndim != 1:
            raise ParameterError("Expected one number a row, got several: ask for a column.")
        return self.__rows

    @property
    def _one_row(self) -> Relation:
        """The moves if one user changes one row.

        Adding or removing a user may also change another user's partner.
        """
        return Relation.REPLACE if self.paired else self.relation

    def _sealed(self, numbers: Integers, moves: Moves) -> Sealed:
        return Sealed(_KEY, np.asarray(numbers, np.int64), moves, self.relation, self.among)

    def _with(self, rows: NDArray[Any], *, only_present: bool = False) -> SealedRows:
        return SealedRows(
            _KEY,
            rows,
            self.relation,
            paired=self.paired,
            only_present=only_present or self.only_present,
            among=self.among,
        )


# What only the core may call. ``tests/core_border.py`` lists who imports these names.


def seal(numbers: Any, moves: Moves, relation: Relation, among: object | None = None) -> Sealed:
    """Seal integers whose sensitivity the caller has proved."""
    return Sealed(_KEY, _saturated(np.asarray(numbers, np.int64)), moves.cut(), relation, among)


def seal_total(
    totals: Integers, grid: Grid, relation: Relation, among: object | None = None
) -> Sealed:
    """Seal a sum of contributions that ``grid`` has encoded."""
    return Sealed(_KEY, totals, GridMoves(grid, relation), relation, among)


def seal_rows(
    rows: Any, relation: Relation, *, paired: bool = False, among: object | None = None
) -> SealedRows:
    """Seal rows; each user owns one of them, or half of one."""
    return SealedRows(_KEY, np.asarray(rows), relation, paired=paired, among=among)


def opened(closed: Closed[Inside]) -> Inside:
    """Return the private number.

    Only for an account that has recorded the cost, and for queries that bound their result.
    """
    return closed._open(_KEY)


def check_rows(rows: SealedRows, relation: Relation) -> None:
    """Refuse rows under a relation other than that of the mechanism."""
    if rows.relation is not relation:
        raise RelationMismatchError(
            f"These rows are about neighbours that {rows.relation.value}, the mechanism hides "
            f"those that {relation.value}."
        )


def check_one_row_each(rows: SealedRows) -> None:
    """Refuse rows whose number is private, because an error would reveal it."""
    if rows.paired or rows.only_present:
        raise SealedError("Expected one row for every user, also for those without a value.")


def _public(value: Any) -> Integers:
    """Return public integers, clipped so that a sum with a sealed one fits into 64 bits."""
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iub":
        raise ParameterError(f"Expected public integers, got dtype={numbers.dtype}.")
    return np.asarray(np.clip(numbers, -_ROOM, _ROOM), dtype=np.int64)


def _saturated(numbers: Integers) -> Integers:
    """Clip integers to 62 bits, which never increases a difference; nothing wraps around."""
    return np.asarray(np.clip(numbers, -SUM_LIMIT, SUM_LIMIT))
