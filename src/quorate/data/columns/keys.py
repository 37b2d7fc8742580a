"""Keys of users from their ids alone, without grouping the rows.

A key is a function of the id alone (:mod:`quorate.data.columns.ids`), so a table may be read piece
by piece, and two pieces give the same user the same key.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.grouping import mix
from quorate.data.columns.ids import group, id_columns, numbered, text_words
from quorate.exceptions import SchemaError

__all__ = [
    "LabelWords",
    "count_keys",
    "keys_of",
    "label_words",
    "number_keys",
    "plain_integers",
    "row_keys",
]


def plain_integers(users: Any) -> tuple[NDArray[Any] | None, Any]:
    """Return ids as an array if they are one integer column without nulls; also all columns.

    >>> plain_integers(np.array([7, 5]))[0], plain_integers([7, 5])[0] is None
    (array([7, 5]), True)
    """
    columns = id_columns(users)
    found = _plain_integers(columns[0]) if len(columns) == 1 else None
    if found is None or found.ndim != 1:
        return None, tuple(columns)
    return found.astype(found.dtype.newbyteorder("="), copy=False), (found,)


def row_keys(users: Any) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the key of each row's user, and whether the row has an id at all.

    A key is a function of the id alone, so a table may be read piece by piece.

    >>> keys, known = row_keys(["ann", None, "ann"])
    >>> bool(keys[0] == keys[2]), known
    (True, array([ True, False,  True]))
    """
    columns = id_columns(users)
    if len(columns) == 1:
        plain = _plain_integers(columns[0])
        if plain is not None:
            return mix(plain.astype(np.int64).view(np.uint64)), np.ones(len(plain), np.bool_)
    groups = group(tuple(columns))
    known = groups.codes >= 0
    keys = np.append(groups.keys, np.uint64(0))
    return keys[groups.codes], known


def number_keys(keys: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return the index of each key among the distinct keys, in order, and these.

    >>> number_keys(np.array([7, 5, 7], dtype=np.uint64))
    (array([1, 0, 1], dtype=int32), array([5, 7], dtype=uint64))
    """
    import pyarrow as pa

    codes, distinct = numbered(pa.array(keys))
    return codes, distinct.to_numpy()


def count_keys(keys: NDArray[np.uint64]) -> int:
    """Count the distinct keys.

    >>> count_keys(np.array([7, 5, 7], dtype=np.uint64))
    2
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    return int(pc.count_distinct(pa.array(keys)).as_py())


def keys_of(ids: Any, n_users: int) -> NDArray[np.uint64]:
    """Return the keys of ``n_users`` different ids, in their given order.

    >>> bool((keys_of([7, 5], 2) == group([5, 7]).keys[::-1]).all())
    True
    """
    groups = group(ids)
    if len(groups.codes) != n_users or len(groups.keys) != n_users or np.any(groups.codes < 0):
        raise SchemaError("Expected ids= with a different id for each user of offsets=.")
    return groups.keys[groups.codes]


def label_words(labels: Sequence[int | str]) -> NDArray[np.uint64]:
    """Return a word for each label, a function of the label alone.

    >>> one, other = label_words(["tea", 7]), label_words([7])
    >>> bool(one[1] == other[0])
    True
    """
    import pyarrow as pa

    # As they are written, so that 7 and "7" are two labels, and any text has plain letters.
    return text_words(pa.array([json.dumps(label) for label in labels], pa.large_string()))


@dataclass(frozen=True, eq=False)
class LabelWords:
    """64-bit words for labels that are stored as indices into the list of labels that occur.

    The index of a label depends on which other labels occur; its word does not.

    >>> words = LabelWords((label_words(["mate", "tea"]),))
    >>> other = LabelWords((label_words(["coffee", "mate", "tea"]),))
    >>> bool(words(np.array([[1.0]])) == other(np.array([[2.0]])))
    True
    """

    words: tuple[NDArray[np.uint64], ...]

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the words of the labels in each column."""
        columns = zip(self.words, rows.T, strict=True)
        return np.stack([words[places.astype(np.int64)] for words, places in columns], axis=1)


def _plain_integers(column: Any) -> NDArray[Any] | None:
    """Return a column of integers without nulls as an array; None for everything else."""
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        plain = column.dtype.kind in "iu" and not isinstance(column, np.ma.MaskedArray)
        return column if plain else None
    if pa.types.is_integer(column.type) and column.null_count == 0:
        return np.asarray(column)
    return None
