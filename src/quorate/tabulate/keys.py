"""Which groups a table has: a public list of keys, or those that many people share.

The groups of a table are an output like its cells. They are named beforehand (one list for each
column, of which all combinations are in the table, also those that nobody holds) or found privately
(:func:`popular_keys`); they are never read off the records. A record whose key is missing, or not
in the list, is in no group.
"""

from __future__ import annotations

import itertools
import json
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import described, float_down
from quorate.accounting.account import Account
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError
from quorate.mechanisms.choices.stable_choice import StableHistogram
from quorate.mechanisms.votes import count_votes
from quorate.public_randomness import RandomState
from quorate.tabulate.gathering.short_texts import ShortTexts
from quorate.users.crowd import Crowd
from quorate.users.data import UserData, ordered_users
from quorate.users.keys import LabelWords, label_words

__all__ = [
    "LabelNumbers",
    "NumberKeys",
    "PrivateLabels",
    "as_keys",
    "column_places",
    "key_rows",
    "popular_keys",
]

Floats = NDArray[np.float64]
Labels = tuple[Any, ...]
Row = tuple[Any, ...]

_MOST_GROUPS = 2**24


def as_keys(keys: Any, by: tuple[str, ...]) -> tuple[Labels, ...]:
    """Return the public labels of each column of ``by``.

    >>> as_keys(["a", "b"], ("city",))
    (('a', 'b'),)
    >>> as_keys({"year": range(2020, 2022), "city": ["a"]}, ("city", "year"))
    (('a',), (2020, 2021))
    """
    if keys is None:
        raise UnboundedContributionError(
            "A table needs keys=, the public list of its groups; it must not be taken from the "
            "data. With delta > 0 popular ones can be found privately: pass keys='popular'."
        )
    if isinstance(keys, Mapping):
        if set(keys) != set(by):
            raise ParameterError(
                f"Expected keys for the columns {', '.join(by)}, got keys for "
                f"{', '.join(sorted(map(str, keys)))}."
            )
        lists = [keys[name] for name in by]
    elif len(by) == 1:
        lists = [keys]
    else:
        raise ParameterError(
            f"Expected keys as a dictionary with one list for each of {', '.join(by)}, got "
            f"{described(keys)}."
        )
    found = tuple(_labels(labels) for labels in lists)
    if math.prod(map(len, found)) > _MOST_GROUPS:
        raise ParameterError(f"Expected at most {_MOST_GROUPS} groups; name fewer keys.")
    return found


def _labels(labels: Any) -> Labels:
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        labels = labels.tolist()
    if not isinstance(labels, list | tuple | range):
        raise ParameterError(f"Expected keys to be a list of labels, got {described(labels)}.")
    plain = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    strange = [label for label in plain if label is None or label != label]
    if not plain or len(set(plain)) < len(plain) or strange:
        raise ParameterError("Expected keys to be different labels, at least one, none missing.")
    return plain


def key_rows(labels: tuple[Labels, ...]) -> tuple[Row, ...]:
    """Return all combinations of labels, the last column running fastest.

    >>> key_rows((("a", "b"), (1, 2)))
    (('a', 1), ('a', 2), ('b', 1), ('b', 2))
    """
    return tuple(itertools.product(*labels))


def column_places(column: Any, labels: Labels, *, name: str) -> NDArray[np.int64]:
    """Return the place of each entry of an Arrow column among ``labels``, or -1.

    Whether labels fit the type of the column is seen from both, never from an entry.

    >>> import pyarrow as pa
    >>> column_places(pa.array(["b", None, "z", "a"]), ("a", "b"), name="city").tolist()
    [1, -1, -1, 0]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string_view(column.type):
        short = ShortTexts.of(tuple(map(str, labels)))
        if short is not None:
            return short.places(column)
        column = column.cast(pa.large_string())
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    coded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if coded else column.type
    known = None
    try:
        known = pa.array(list(labels), None if _is_text(kind) else kind)
        known = pa.array(list(map(str, labels)), kind) if _is_text(kind) else known
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        known = None
    if known is None:
        raise SchemaError(
            f"Expected keys for the column {name!r} of its type {kind}; some of them are not."
        )
    found = [np.empty(0, np.int64)]
    for chunk in chunks:
        if not coded or len(chunk.dictionary) > len(chunk):
            texts = chunk.dictionary_decode() if coded else chunk
            found.append(_filled(pc.index_in(texts, value_set=known)))
            continue
        # A short dictionary holds each label once: look these up, and follow the indices.
        table = np.append(_filled(pc.index_in(chunk.dictionary, value_set=known)), -1)
        indices = chunk.indices.fill_null(len(table) - 1) if len(chunk) else chunk.indices
        found.append(table[indices.to_numpy(zero_copy_only=False).astype(np.int64)])
    return np.concatenate(found)


def _filled(places: Any) -> NDArray[np.int64]:
    filled: NDArray[np.int64] = places.fill_null(-1).to_numpy(zero_copy_only=False)
    return filled.astype(np.int64)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind))


@dataclass(frozen=True)
class NumberKeys:
    """Finds the group of each row of numbers: one label a column, looked up in a table.

    Parameters
    ----------
    columns : tuple of int
    labels : tuple of tuples of float
        Of each column.
    rows : tuple of tuples of float
        The groups in their order: one label of each column.
    others : bool, default=False
        Whether all other keys, which must be numbers, are one more group, the last.

    Examples
    --------
    >>> keys = NumberKeys((0, 1), ((3.0, 5.0), (1.0, 2.0)), ((3.0, 2.0), (5.0, 1.0)))
    >>> keys(np.array([[3.0, 2.0], [3.0, 1.0], [5.0, 1.0], [4.0, 1.0], [np.nan, 1.0]])).tolist()
    [0, -1, 1, -1, -1]
    """

    columns: tuple[int, ...]
    labels: tuple[tuple[float, ...], ...]
    rows: tuple[tuple[float, ...], ...]
    others: bool = False

    def __call__(self, rows: Floats) -> NDArray[np.int64]:
        """Return the number of the group of each row, or -1."""
        found = self._named(rows)
        if self.others:
            # Labels are whole numbers; all else is missing.
            keys = rows[:, self.columns]
            known = (np.isfinite(keys) & (np.rint(keys) == keys)).all(axis=1)
            found = np.where((found < 0) & known, len(self.rows), found)
        return found

    def _named(self, rows: Floats) -> NDArray[np.int64]:
        sizes = [len(labels) for labels in self.labels]
        table = np.full(sizes, -1, dtype=np.int64)
        places = [{label: i for i, label in enumerate(labels)} for labels in self.labels]
        for number, row in enumerate(self.rows):
            table[tuple(at[label] for at, label in zip(places, row, strict=True))] = number
        found, known = np.zeros(len(rows), np.int64), np.ones(len(rows), np.bool_)
        for column, labels in zip(self.columns, self.labels, strict=True):
            if not labels:
                return np.full(len(rows), -1, dtype=np.int64)
            order = np.argsort(labels, kind="stable")
            values = rows[:, column]
            at = np.minimum(np.searchsorted(np.array(labels)[order], values), len(labels) - 1)
            place = order[at]
            known &= np.array(labels)[place] == values
            found = found * len(labels) + place
        return np.where(known, table.ravel()[found], -1)


class LabelNumbers:
    """Labels that stand in a column as numbers: whole ones are labels, all others are none.

    >>> LabelNumbers().label(3.0), LabelNumbers().label(2.5)
    (3, None)
    """

    def label(self, number: float) -> Any:
        """Return what a number in the column stands for."""
        return int(number) if float(number).is_integer() and abs(number) < 2**53 else None

    def number(self, label: Any) -> float:
        """Return the number of a label."""
        return float(label)

    def words(self) -> NDArray[np.uint64] | None:
        """Return the word of each label that a number is a place of; None if numbers are labels."""
        return None


class PrivateLabels(LabelNumbers):
    """A column of labels of any kind as numbers; private, like the labels.

    Text, whole numbers, booleans and dates are labels; all else is missing.

    >>> import pyarrow as pa
    >>> codes = PrivateLabels(pa.chunked_array([["b", "a", None, "b"]]))
    >>> codes.numbers.tolist(), codes.label(1.0)
    ([1.0, 0.0, nan, 1.0], 'b')
    """

    def __init__(self, column: Any) -> None:
        import pyarrow as pa

        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        coded = whole.dictionary_encode()
        plain = [_plain(label) for label in coded.dictionary.to_pylist()]
        known = {label for label in plain if label is not None}
        self.labels = sorted(known, key=lambda label: (isinstance(label, str), label))
        self._places = {label: float(place) for place, label in enumerate(self.labels)}
        places = [math.nan if x is None else self._places[x] for x in plain]
        table = np.array([*places, math.nan], dtype=np.float64)
        indices = coded.indices.fill_null(len(plain)) if len(coded) else coded.indices
        self.numbers = table[indices.to_numpy(zero_copy_only=False).astype(np.int64)]

    def label(self, number: float) -> Any:
        """Return what a number in the column stands for."""
        return self.labels[int(number)]

    def number(self, label: Any) -> float:
        """Return the number of a label."""
        return self._places[label]

    def words(self) -> NDArray[np.uint64]:
        """Return the word of each label, which does not depend on the others."""
        return label_words(self.labels)


def _plain(label: Any) -> int | str | None:
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, numbers.Integral):
        return int(label)
    if isinstance(label, float):
        return int(label) if label.is_integer() and abs(label) < 2**53 else None
    return label.isoformat() if hasattr(label, "isoformat") else None


@dataclass(frozen=True)
class _Keys:
    """The same people with the numbers of their records' keys alone."""

    columns: tuple[int, ...]

    def __call__(self, part: UserData) -> UserData:
        rows, keys = np.ascontiguousarray(part.X[:, self.columns]), part.keys()
        return ordered_users(rows, None, part.offsets, keys, part.unit, None, part.marks)


def _rows_of(part: UserData) -> Floats:
    return part.X


def popular_keys(
    crowd: Crowd,
    columns: tuple[int, ...],
    labels: Sequence[LabelNumbers],
    *,
    epsilon: float | Fraction,
    delta: float | Fraction,
    account: Account,
    random_state: RandomState,
) -> tuple[tuple[Row, ...], int]:
    """Release the keys that many people hold, in the order of keys.

    Every person votes for the key of one record, drawn by a public seed, the person's own id and
    the keys that this person holds (or the first one of an ``order=``); what is released is a
    :class:`~quorate.mechanisms.choices.stable_choice.StableHistogram` without its counts. Beside
    the keys comes how many votes a key needs to be found for certain, which is public.

    Parameters
    ----------
    crowd : Crowd
        Of records.
    columns : tuple of int
        Where the numbers of the key stand.
    labels : sequence of LabelNumbers
        What the numbers of each column mean.
    epsilon, delta : float
    account : Account
    random_state : int, generator or None

    Examples
    --------
    >>> people = UserData(np.repeat([3.0, 8.0], [400, 2])[:, None], offsets=range(403))
    >>> account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-6)
    >>> popular_keys(
    ...     people,
    ...     (0,),
    ...     [LabelNumbers()],
    ...     epsilon=0.1,
    ...     delta=1e-6,
    ...     account=account,
    ...     random_state=0,
    ... )
    (((3,),), 435)
    """
    # A place among labels depends on who else holds what, so votes are drawn by the labels' words.
    words = [of.words() for of in labels]
    known = tuple(each for each in words if each is not None)
    drawn = crowd.derive(_Keys(columns)).cap(
        1,
        random_state=random_state,
        words_of=LabelWords(known) if len(known) == len(columns) else None,
    )
    rows = np.concatenate([np.empty((0, len(columns))), *drawn.map(_rows_of)])
    votes = []
    for row in rows.tolist():
        key = [of.label(number) for of, number in zip(labels, row, strict=True)]
        votes.append(None if None in key else json.dumps(key))
    mechanism = StableHistogram(
        epsilon=float_down(epsilon), delta=float_down(delta), relation=account.relation
    )
    found = mechanism.release(count_votes(v for v in votes if v is not None), account=account)
    keys = [tuple(json.loads(key)) for key in found]
    order = [[(isinstance(label, str), label) for label in key] for key in keys]
    places = sorted(range(len(keys)), key=order.__getitem__)
    return tuple(keys[place] for place in places), 2 * mechanism.reach + 1
