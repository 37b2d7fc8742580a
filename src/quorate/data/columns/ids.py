"""Map user ids to small integers, without a loop over records.

Ids may be integers, text, bytes or dates, in one column or in several ("person x day"). The dtype
of a column is its schema and hence public: floats and booleans are refused by dtype. The contents
of a single row never raise an error. The public rules are:

* a record without an id (null, None, NaN, NaT) is dropped;
* ids in object arrays and lists are compared as text (:mod:`quorate.data.columns.cells`), so that
  ``1``, ``1.0`` and ``"1"`` are the same user. If two people are treated as one they are protected
  together, but one person treated as two would not be protected. A value without a plain text (a
  fraction, a tuple) is a missing id. A list declares no type, so whole floats in it are accepted,
  because otherwise single entries would decide whether it has the dtype of floats;
* a list of rows is a table like a 2-d array; a row of another width is a missing id.

Users are numbered in the order of their ids, whatever the order of the rows. So the number of a
user depends on the set of ids, which is the same for two tables that differ in the records of one
user. (If users were numbered in the order of appearance, many numbers would change when one user's
first record moves.) Every user also gets a 64-bit *key* that depends on the id alone. Public
choices about a user (which records to keep, which side of a split) are drawn from that key and a
public seed, so that one user's records do not influence the choice for another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.grouping import index_type, mix
from quorate.data.columns import cells, kinds
from quorate.data.columns.id_forms import WHAT_TO_DO, are_columns, arrow_columns
from quorate.exceptions import SchemaError

__all__ = ["Groups", "distinct_ids", "group", "id_columns", "numbered", "text_words"]

Words = NDArray[np.uint64]
_BLOCK = 2**16
# Integers within so many times their number are numbered by a table.
_SPAN = 4


@dataclass(frozen=True)
class Groups:
    """The user of each record.

    Attributes
    ----------
    codes : array of integers, one per record
        Numbers of the users in the order of the ids; -1 means that there is no id.
    keys : array of uint64, one per user
    n_columns : int
        Number of columns of an id.
    """

    codes: NDArray[np.int32] | NDArray[np.int64]
    keys: Words
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
    columns = [_encode(column) for column in id_columns(users)]
    if len({len(codes) for codes, _ in columns}) > 1:
        raise SchemaError("Expected id columns of one length, got several lengths.")
    codes, keys = columns[0]
    for more, their_keys in columns[1:]:
        # Both factors are at most the number of records, so the product fits into 64 bits.
        width = max(len(their_keys), 1)
        pairs = codes.astype(np.int64) * width + more
        codes, found = numbered(pa.array(pairs, mask=(codes < 0) | (more < 0)))
        distinct = found.to_numpy()
        keys = mix(mix(keys[distinct // width]) + their_keys[distinct % width])
    return Groups(codes, keys, len(columns))


def id_columns(users: Any) -> list[Any]:
    """Return the id columns as NumPy or Arrow arrays.

    >>> id_columns((np.array([7, 5]), np.array([1, 2])))
    [array([7, 5]), array([1, 2])]
    """
    if users is None:
        raise SchemaError(f"Expected the ids of the users, got users=None. {WHAT_TO_DO}")
    if are_columns(users):
        parts = [list(part) if isinstance(part, tuple) else part for part in users]
        return [column for part in parts for column in id_columns(part)]
    if cells.is_list(users):
        columns = cells.columns_of_rows(list(users))
        if not columns:
            raise SchemaError(f"Expected one id per row, got rows without any. {WHAT_TO_DO}")
        return columns
    if hasattr(users, "iloc") and users.ndim == 2:
        return [column for j in range(users.shape[1]) for column in id_columns(users.iloc[:, j])]
    # An object column of a frame library has no declared type either, whatever Arrow would infer.
    if not isinstance(users, np.ndarray) and getattr(users, "dtype", None) != "O":
        in_arrow = arrow_columns(users)
        if in_arrow is not None:
            return in_arrow
    array = np.asanyarray(users)
    if array.ndim == 2 and array.shape[1] > 0:
        return list(array.T)
    if array.ndim != 1:
        raise SchemaError(f"Expected one id per row, got {array.ndim} axes. {WHAT_TO_DO}")
    return [array]


def _encode(column: Any) -> tuple[NDArray[Any], Words]:
    """Return the codes of one column and the keys of its distinct ids."""
    codes, distinct = distinct_ids(column)
    return codes, _keys(distinct)


def distinct_ids(column: Any) -> tuple[NDArray[Any], Any]:
    """Return the codes of one id column and its distinct ids, as Arrow integers or bytes.

    >>> distinct_ids(np.array(["bob", "ann"]))[1].to_pylist()
    [b'ann', b'bob']
    """
    import pyarrow as pa

    values = _from_numpy(column) if isinstance(column, np.ndarray) else column
    if pa.types.is_null(values.type):
        return np.full(len(values), -1, dtype=np.int32), pa.array([], pa.int64())
    if isinstance(values, pa.ChunkedArray):
        # Chunk by chunk: together they may be longer than a short text can be addressed.
        chunks = [_plain(chunk) for chunk in values.chunks] or [_plain(values.combine_chunks())]
        plain = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    else:
        plain = _plain(values)
    return numbered(plain)


def _plain(values: Any) -> Any:
    """Return an Arrow array of ids as integers, text or bytes; refuse other types."""
    import pyarrow as pa

    kind, types = values.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(values.storage)
    if types.is_dictionary(kind):
        return kinds.taken(_plain(values.dictionary), values.indices)
    if types.is_integer(kind):
        return values
    if kinds.is_text(kind):
        return kinds.as_octets(values)
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
    return cells.texts(column.astype(object))


def numbered(values: Any) -> tuple[NDArray[Any], Any]:
    """Return the index of each Arrow value among the sorted distinct values, and these.

    Null has the index -1.

    >>> import pyarrow as pa
    >>> numbered(pa.array(["b", None, "a"]))[0]
    array([ 1, -1,  0], dtype=int32)
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(values.type) and values.null_count == 0:
        near = _near(values.to_numpy())
        if near is not None:
            return near[0], pa.array(near[1])
    encoded = values.dictionary_encode()
    codes, distinct = encoded.indices.fill_null(-1).to_numpy(), encoded.dictionary
    order = pc.sort_indices(distinct).to_numpy().astype(np.int64)
    places = np.full(len(order) + 1, -1, dtype=codes.dtype)  # the last place serves the code -1
    places[order] = np.arange(len(order))
    if not np.array_equal(order, np.arange(len(order))):
        codes, distinct = places[codes], distinct.take(order)
    return codes, distinct


def _near(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return indices among the distinct values, and these; None if the values are far apart."""
    if np.all(values[1:] >= values[:-1]):  # users one after the other need no table
        firsts = np.flatnonzero(np.append(len(values) > 0, values[1:] != values[:-1]))
        each = np.arange(len(firsts), dtype=index_type(len(firsts)))
        return np.repeat(each, np.diff(firsts, append=len(values))), values[firsts]
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
    # Every place is in the table, so nothing is clipped: it is the quickest way to look up.
    return np.take(numbers, places, mode="clip"), np.flatnonzero(seen).astype(values.dtype) + low


def _keys(distinct: Any) -> Words:
    """Return one key per distinct id, a function of that id alone."""
    import pyarrow as pa

    if pa.types.is_integer(distinct.type):
        return mix(distinct.to_numpy().astype(np.int64).view(np.uint64))
    return text_words(distinct)


def text_words(texts: Any) -> Words:
    """Return a word for each entry of an Arrow array of texts or bytes, from that entry alone.

    >>> import pyarrow as pa
    >>> one, other = text_words(pa.array(["ann", "bob"])), text_words(pa.array([b"bob"]))
    >>> bool(one[1] == other[0])
    True
    """
    import pyarrow as pa

    parts = [
        _hash(texts.slice(start, _BLOCK).cast(pa.large_binary()))
        for start in range(0, len(texts), _BLOCK)
    ]
    return np.concatenate([np.empty(0, dtype=np.uint64), *parts])


def _hash(texts: Any) -> Words:
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
