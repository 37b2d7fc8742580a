"""Whose record is it: user ids to small integers, without a loop over records.

Ids may be integers, text, bytes or dates, in one column or in several ("person x day"). The dtype
of a column is its schema and hence public: floats and truth values are refused by dtype. What
stands in a single row never raises. The public rules are:

* a record without an id (null, None, NaN, NaT) belongs to nobody and is dropped;
* ids in object arrays and lists are compared as text, so that ``1``, ``1.0`` and ``"1"`` are the
  same user: two people taken for one are protected together, one person taken for two would not
  be. What has no plain text (a fraction, a tuple) counts as no id. A list declares no type, so
  whole floats in it are read rather than refused: whether it has the dtype of floats would depend
  on single entries;
* a list of rows is a table like a 2-d array; rows of several lengths are a wrong shape.

Users are numbered in the order of their ids, whatever the order of the rows: the number of a user
depends on the set of ids, which is the same for two tables that differ in the records of one user.
(Numbers in the order of appearance would change for many when one user's first record moves.) Every
user also gets a 64-bit *key* that depends on nothing but the id. Public choices about a user (which
records to keep, which side of a split) are drawn from that key and a public seed, so that one
user's records have no influence on what is chosen for another.
"""

from __future__ import annotations

import datetime
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.exceptions import SchemaError

__all__ = [
    "Groups",
    "as_text",
    "count_keys",
    "group",
    "index_type",
    "is_array",
    "keys_of",
    "mix",
    "number_keys",
    "order_by_user",
    "plain_integers",
    "ranges",
    "row_keys",
]

_WHAT_TO_DO = (
    "Pass users=, an array with the id of the person behind each row (or a tuple of such arrays); "
    "rows are never taken for people."
)
_BLOCK = 2**16
# Integers within so many times their number are numbered by a table.
_SPAN = 4


@dataclass(frozen=True)
class Groups:
    """Which user each record belongs to.

    Attributes
    ----------
    codes : array of integers, one per record
        Numbers in the order of the ids; -1 means that there is no id.
    keys : array of uint64, one per user
    n_columns : int
        How many columns form an id.
    """

    codes: NDArray[np.int32] | NDArray[np.int64]
    keys: NDArray[np.uint64]
    n_columns: int = 1


def group(users: Any) -> Groups:
    """Give every user of a table a number and a key.

    Parameters
    ----------
    users : array-like, tuple of array-likes, 2-d array, or any Arrow array or frame
        One id per record; several columns together form one id.

    Examples
    --------
    >>> group(np.array([7, 5, 7])).codes
    array([1, 0, 1], dtype=int32)
    >>> group((["ann", "ann", "bob"], np.array([1, 2, 1]))).codes
    array([0, 1, 2], dtype=int32)
    >>> group(["1", None, 1]).codes
    array([ 0, -1,  0], dtype=int32)
    """
    import pyarrow as pa

    if isinstance(users, Groups):
        return users  # it has been done before
    columns = [_encode(column) for column in _columns(users)]
    if len({len(codes) for codes, _ in columns}) > 1:
        raise SchemaError("Expected id columns of one length, got several lengths.")
    codes, keys = columns[0]
    for more, their_keys in columns[1:]:
        # Both factors are at most the number of records, so the product fits into 64 bits.
        width = max(len(their_keys), 1)
        pairs = codes.astype(np.int64) * width + more
        codes, found = _number(pa.array(pairs, mask=(codes < 0) | (more < 0)))
        distinct = found.to_numpy()
        keys = mix(mix(keys[distinct // width]) + their_keys[distinct % width])
    return Groups(codes, keys, len(columns))


def plain_integers(users: Any) -> tuple[NDArray[Any] | None, Any]:
    """Return ids as an array if they are one column of integers without nulls; and all columns.

    >>> plain_integers(np.array([7, 5]))[0], plain_integers([7, 5])[0] is None
    (array([7, 5]), True)
    """
    columns = _columns(users)
    found = _plain_integers(columns[0]) if len(columns) == 1 else None
    if found is None or found.ndim != 1:
        return None, tuple(columns)
    return found.astype(found.dtype.newbyteorder("="), copy=False), (found,)


def row_keys(users: Any) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the key of the user behind each row, and whether the row has an id at all.

    A key is a function of the id alone, so a table may be read piece by piece.

    >>> keys, known = row_keys(["ann", None, "ann"])
    >>> bool(keys[0] == keys[2]), known
    (True, array([ True, False,  True]))
    """
    columns = _columns(users)
    if len(columns) == 1:
        plain = _plain_integers(columns[0])
        if plain is not None:
            return mix(plain.astype(np.int64).view(np.uint64)), np.ones(len(plain), np.bool_)
    groups = group(tuple(columns))
    known = groups.codes >= 0
    keys = np.append(groups.keys, np.uint64(0))
    return keys[groups.codes], known


def number_keys(keys: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return the place of each key among the different ones, in their order, and these.

    >>> number_keys(np.array([7, 5, 7], dtype=np.uint64))
    (array([1, 0, 1], dtype=int32), array([5, 7], dtype=uint64))
    """
    import pyarrow as pa

    codes, distinct = _number(pa.array(keys))
    return codes, distinct.to_numpy()


def count_keys(keys: NDArray[np.uint64]) -> int:
    """Count the different keys.

    >>> count_keys(np.array([7, 5, 7], dtype=np.uint64))
    2
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    return int(pc.count_distinct(pa.array(keys)).as_py())


def keys_of(ids: Any, n_users: int) -> NDArray[np.uint64]:
    """Return the keys of ``n_users`` different ids, in the order in which they stand.

    >>> bool((keys_of([7, 5], 2) == group([5, 7]).keys[::-1]).all())
    True
    """
    groups = group(ids)
    if len(groups.codes) != n_users or len(groups.keys) != n_users or np.any(groups.codes < 0):
        raise SchemaError("Expected ids= with a different id for each user of offsets=.")
    return groups.keys[groups.codes]


def mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit words: a bijection with well spread outputs, for public choices only.

    It is the finalizer of SplitMix64 (Steele, Lea, Flood. Fast splittable pseudorandom number
    generators. OOPSLA 2014).

    >>> len(set(mix(np.arange(1000, dtype=np.uint64)).tolist()))
    1000
    """
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def order_by_user(codes: NDArray[Any], n_users: int) -> NDArray[Any]:
    """Return the row numbers sorted by user, in their old order within each user.

    A counting sort: transposing a sparse matrix with one entry per row does it in one pass.

    >>> order_by_user(np.array([1, 0, 1, 0], dtype=np.int32), 2)
    array([1, 3, 0, 2], dtype=int32)
    """
    from scipy import sparse

    entries = (
        np.ones(len(codes), np.int8),
        codes,
        np.arange(len(codes) + 1, dtype=index_type(len(codes) + 1)),
    )
    order: NDArray[Any] = sparse.csr_array(entries, shape=(len(codes), n_users)).tocsc().indices
    return order


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``counts[i]`` consecutive numbers from each ``starts[i]``, in one array.

    >>> ranges(np.array([10, 0]), np.array([2, 3]))
    array([10, 11,  0,  1,  2])
    """
    shifts = starts - (np.cumsum(counts) - counts)
    return np.repeat(shifts, counts) + np.arange(int(counts.sum()))


def index_type(size: int) -> type[np.signedinteger[Any]]:
    """Return the narrowest type of the places of so many things.

    >>> index_type(7).__name__, index_type(2**31).__name__
    ('int32', 'int64')
    """
    return np.int32 if size < 2**31 else np.int64


def _columns(users: Any) -> list[Any]:
    """Return the id columns as numpy or Arrow arrays."""
    if users is None:
        raise SchemaError(f"Expected the ids of the users, got users=None. {_WHAT_TO_DO}")
    if isinstance(users, tuple) or (isinstance(users, list) and users and is_array(users[0])):
        if not users:
            raise SchemaError(f"Expected at least one id column, got none. {_WHAT_TO_DO}")
        return [column for part in users for column in _columns(_as_list(part))]
    if isinstance(users, list):
        # A list declares no type: reading it as objects keeps one odd entry from changing the rest.
        return [_objects(column) for column in _rows_to_columns(users)]
    if hasattr(users, "iloc") and users.ndim == 2:
        return [column for j in range(users.shape[1]) for column in _columns(users.iloc[:, j])]
    # An object column of a frame library has no declared type either, whatever Arrow would infer.
    if not isinstance(users, np.ndarray) and getattr(users, "dtype", None) != "O":
        columns = _arrow_columns(users)
        if columns is not None:
            return columns
    array = np.asanyarray(users)
    if array.ndim == 2 and array.shape[1] > 0:
        return list(array.T)
    if array.ndim != 1:
        raise SchemaError(f"Expected one id per row, got {array.ndim} axes. {_WHAT_TO_DO}")
    return [array]


def _rows_to_columns(users: list[Any]) -> list[Any]:
    """Return a list of ids as one column, a list of rows as its columns."""
    if not (users and isinstance(users[0], list | tuple)):
        return [users]
    width = len(users[0])
    if width == 0 or not all(isinstance(row, list | tuple) and len(row) == width for row in users):
        raise SchemaError(f"Expected one id per row, got rows of several lengths. {_WHAT_TO_DO}")
    return list(zip(*users, strict=True))


def _objects(column: Any) -> NDArray[Any]:
    return np.fromiter(column, dtype=object, count=len(column))


def is_array(value: Any) -> bool:
    """Tell whether ``value`` is a column of its own rather than an id.

    >>> is_array(np.zeros(3)), is_array("ann")
    (True, False)
    """
    names = ("__array__", "__arrow_c_stream__", "__arrow_c_array__")
    return getattr(value, "ndim", 1) > 0 and any(hasattr(value, name) for name in names)


def _as_list(part: Any) -> Any:
    return list(part) if isinstance(part, tuple) else part


def _arrow_columns(users: Any) -> list[Any] | None:
    """Return the columns of anything that speaks Arrow; None if it does not, or cannot."""
    import pyarrow as pa

    if isinstance(users, pa.ChunkedArray):
        whole = users
    elif hasattr(users, "__arrow_c_stream__") or hasattr(users, "__arrow_c_array__"):
        try:
            whole = pa.chunked_array(
                users if hasattr(users, "__arrow_c_stream__") else [pa.array(users)]
            )
        except (pa.ArrowException, TypeError, ValueError):
            return None
    else:
        return None
    if pa.types.is_struct(whole.type):
        return list(whole.flatten())
    return [whole]


def _encode(column: Any) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return the codes of one column and the keys of its distinct ids."""
    import pyarrow as pa

    values = _from_numpy(column) if isinstance(column, np.ndarray) else column
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    if pa.types.is_null(values.type):
        return np.full(len(values), -1, dtype=np.int32), np.empty(0, dtype=np.uint64)
    codes, distinct = _number(_plain(values))
    return codes, _keys(distinct)


def _plain_integers(column: Any) -> NDArray[Any] | None:
    """Return a column of integers without nulls as an array; None for everything else."""
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        plain = column.dtype.kind in "iu" and not isinstance(column, np.ma.MaskedArray)
        return column if plain else None
    if pa.types.is_integer(column.type) and column.null_count == 0:
        return np.asarray(column)
    return None


def _plain(values: Any) -> Any:
    """Return an Arrow array of ids as integers, text or bytes; refuse other types."""
    import pyarrow as pa

    kind, types = values.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(values.storage)
    if types.is_dictionary(kind):
        return _plain(values.dictionary).take(values.indices)
    if types.is_integer(kind):
        return values
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return values.cast(pa.large_string())
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return values.cast(pa.large_binary())
    if types.is_date(kind) or types.is_timestamp(kind):
        return values.view(pa.int32() if types.is_date32(kind) else pa.int64())
    raise SchemaError(
        f"Expected user ids to be integers, text or dates, got {kind}; convert the column first."
    )


def _from_numpy(column: NDArray[Any]) -> Any:
    """Return a numpy column as an Arrow array; missing ids become null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.dtype.kind
    if isinstance(column, np.ma.MaskedArray):
        values = _from_numpy(column.data)
        return pc.if_else(
            pa.array(np.ma.getmaskarray(column)), pa.scalar(None, values.type), values
        )
    if kind in "iu":
        return pa.array(np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("=")))
    if kind == "M":
        return pa.array(
            column.astype(column.dtype.newbyteorder("=")).view(np.int64), mask=np.isnat(column)
        )
    if kind not in "USTO":
        raise SchemaError(
            f"Expected user ids to be integers, text or dates, got dtype={column.dtype}; "
            "convert the column first."
        )
    return as_text(column.astype(object))


def as_text(objects: NDArray[Any]) -> Any:
    """Return an Arrow array of the texts by which objects of unknown type are compared.

    >>> as_text(np.array(["1", 1, None], dtype=object)).null_count
    1
    """
    import pyarrow as pa

    # Arrow takes more for text than _text does (bytes, members of an Enum). Which of the two reads
    # an id must not depend on the ids of others, so Arrow gets only what both read alike.
    if set(map(type, objects)) <= {str, float, type(None)}:
        with suppress(pa.ArrowException, TypeError, ValueError):
            return pa.array(objects, type=pa.large_string(), from_pandas=True)
    return pa.array([_text(value) for value in objects], type=pa.large_binary())


def _text(value: object) -> bytes | None:
    """Return the bytes of a plain value, or None for everything else."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, str):
        value = str.__str__(value)  # of an Enum its value, not its name
    if isinstance(value, float | np.floating) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | np.integer | uuid.UUID | datetime.date) or value != value:
        return None
    try:
        return str(value).encode("utf-8", "surrogatepass")
    except ValueError:  # Python refuses to print integers of thousands of digits
        return None


def _number(values: Any) -> tuple[NDArray[Any], Any]:
    """Return the place of each value among the sorted distinct ones (-1 for null), and these."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(values.type) and values.null_count == 0:
        near = _near(values.to_numpy())
        if near is not None:
            # Every place is in the table, so nothing is clipped: it is the quickest way to look up.
            return np.take(near[1], near[0], mode="clip"), pa.array(near[2])
    encoded = values.dictionary_encode()
    codes, distinct = encoded.indices.fill_null(-1).to_numpy(), encoded.dictionary
    order = pc.sort_indices(distinct).to_numpy().astype(np.int64)
    places = np.full(len(order) + 1, -1, dtype=codes.dtype)  # the last place serves the code -1
    places[order] = np.arange(len(order))
    if not np.array_equal(order, np.arange(len(order))):
        codes, distinct = places[codes], distinct.take(order)
    return codes, distinct


def _near(
    values: NDArray[Any],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]] | None:
    """Return places in a table, the numbers that stand there, and the distinct values."""
    if not len(values):
        return np.empty(0, np.int64), np.empty(0, np.int32), values
    low, high = values.min(), values.max()
    span = int(high) - int(low) + 1
    if span > min(_SPAN * len(values), 2**31):
        return None
    # Differences wrap around like the integers themselves: as unsigned numbers they are right.
    steps = values if low == 0 else values - low
    places = steps.view(f"u{values.itemsize}").astype(np.int64, copy=False)
    seen = np.zeros(span, dtype=np.bool_)
    seen[places] = True
    numbers = np.cumsum(seen, dtype=np.int32)
    numbers -= 1
    return places, numbers, np.flatnonzero(seen).astype(values.dtype) + low


def _keys(distinct: Any) -> NDArray[np.uint64]:
    """Return one key per distinct id, a function of that id alone."""
    import pyarrow as pa

    if pa.types.is_integer(distinct.type):
        return mix(distinct.to_numpy().astype(np.int64).view(np.uint64))
    parts = [
        _hash(distinct.slice(start, _BLOCK).cast(pa.large_binary()))
        for start in range(0, len(distinct), _BLOCK)
    ]
    return np.concatenate([np.empty(0, dtype=np.uint64), *parts])


def _hash(texts: Any) -> NDArray[np.uint64]:
    """Hash byte strings: add up scrambled pairs of position and byte, modulo 2^64."""
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(offsets)
    octets = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
    starts = offsets[:-1] - offsets[0]
    places = np.arange(len(octets)) - np.repeat(starts, lengths)
    scrambled = mix(places.astype(np.uint64) * np.uint64(256) + octets)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(scrambled, dtype=np.uint64)])
    return mix(sums[starts + lengths] - sums[starts] + lengths.astype(np.uint64))
