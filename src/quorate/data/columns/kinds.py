"""The kind of a declared type in one word, without reading any value."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from quorate.exceptions import SchemaError

__all__ = [
    "as_octets",
    "check_numeric",
    "decoded",
    "held",
    "is_numeric",
    "is_text",
    "kind_of",
    "taken",
]

# public: a text of so many octets stands in its view, by the columnar format.
_IN_PLACE = 12
_EXTENSIONS = {"pandas.period": "periods", "pandas.interval": "intervals"}
# What to do with a column that holds no numbers, by the word for what it holds.
_REMEDIES = {
    "periods": "convert it to dates with .dt.start_time and state their public range in dates",
    "intervals": "convert it with .astype(str) and name its public values in categories=",
    "durations": "convert it to a number with .dt.total_seconds()",
    "times of day": "convert it to a number, such as the seconds since midnight",
    "lists or records": "make a column of numbers of each part that counts",
}


def is_numeric(kind: Any) -> bool:
    """Return whether an Arrow type is numeric; booleans are included.

    >>> import pyarrow as pa
    >>> is_numeric(pa.bool_()), is_numeric(pa.date32())
    (True, False)
    """
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def is_text(kind: Any) -> bool:
    """Tell whether an Arrow type holds text, or bytes that may be text.

    >>> import pyarrow as pa
    >>> is_text(pa.large_string()), is_text(pa.int64())
    (True, False)
    """
    import pyarrow as pa

    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    octets = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(test(kind) for test in (*texts, *octets))


def kind_of(kind: Any) -> str:
    """Return a word for a type that reveals nothing about values, such as the longest text.

    >>> kind_of(np.dtype("U12"))
    'text'
    """
    import pyarrow as pa

    if isinstance(kind, np.dtype):
        words = {"O": "objects of no declared type", "U": "text", "S": "text", "T": "text"}
        return words.get(kind.kind, f"dtype={kind}")
    if pa.types.is_dictionary(kind):
        return "categories"
    if isinstance(kind, pa.BaseExtensionType):
        return _EXTENSIONS.get(kind.extension_name, f"values of the type {kind.extension_name}")
    if is_text(kind):
        return "text"
    if pa.types.is_duration(kind):
        return "durations"
    if pa.types.is_time(kind):
        return "times of day"
    return "lists or records" if pa.types.is_nested(kind) else str(kind)


def check_numeric(name: str, kind: Any) -> None:
    """Refuse a column whose declared type is not numeric, and say what can be done.

    >>> import pyarrow as pa
    >>> check_numeric("age", pa.int8())
    """
    import pyarrow as pa

    if is_numeric(kind):
        return
    word = kind_of(kind)
    remedy = _REMEDIES.get(
        word, "convert it with .astype(float), or name its public values in categories="
    )
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        remedy = "state its public range in dates: bounds={..., " + repr(name)
        remedy += ": ('2020-01-01', '2024-12-31')}"
    raise SchemaError(f"Expected numbers in column {name!r}, got {word}; {remedy}.")


def as_octets(column: Any) -> Any:
    """Return an Arrow array of texts as bytes; texts are compared as bytes, UTF-8 or not.

    >>> import pyarrow as pa
    >>> as_octets(pa.array(["a"])).type
    DataType(large_binary)
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        column = _sound(column)
    if pa.types.is_string_view(kind) or pa.types.is_string(kind):
        column = column.cast(pa.large_string())
    return column.cast(pa.large_binary())


def _sound(views: Any) -> Any:
    """Return an Arrow array of views, with null for a view that points outside of its texts.

    A view of a long text is a pointer to another place, and Arrow would follow an invalid pointer
    of a single cell.

    >>> import pyarrow as pa
    >>> nowhere = np.array([100, 0, 7, 9], np.int32).tobytes()
    >>> buffers = [None, pa.py_buffer(nowhere)]
    >>> _sound(pa.Array.from_buffers(pa.string_view(), 1, buffers)).to_pylist()
    [None]
    """
    import pyarrow as pa

    _, own, *texts = views.buffers()
    if len(views) == 0 or own is None:
        return views
    held = np.frombuffer(own, np.int32).reshape(-1, 4)[views.offset : views.offset + len(views)]
    length, text, start = (held[:, place].astype(np.int64) for place in (0, 2, 3))
    sizes = np.array([*(0 if each is None else each.size for each in texts), 0])
    there = (text >= 0) & (text < len(texts)) & (start >= 0)
    there &= start + length <= sizes[np.where(there, text, -1)]
    sound = (length >= 0) & (there | (length <= _IN_PLACE))
    if sound.all():
        return views
    sound &= views.is_valid().to_numpy(zero_copy_only=False)
    kept = pa.py_buffer(np.where(sound[:, None], held, 0).astype(np.int32).tobytes())
    return pa.Array.from_buffers(
        views.type, len(views), [pa.array(sound).buffers()[1], kept, *texts]
    )


def decoded(column: Any) -> Any:
    """Return the values of an Arrow array of dictionary indices; texts become bytes.

    >>> import pyarrow as pa
    >>> decoded(pa.array(["a", "b", "a"]).dictionary_encode()).to_pylist()
    [b'a', b'b', b'a']
    """
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    return taken(as_octets(values) if is_text(values.type) else values, column.indices)


def held(column: Any) -> list[Any]:
    """Return the values of an Arrow array. A value that Python cannot represent is None.

    >>> import pyarrow as pa
    >>> held(pa.array([1, 2**30], pa.int32()).view(pa.date32()))
    [datetime.date(1970, 1, 2), None]
    """
    with suppress(Exception):  # of a text that is no UTF-8, or of a date beyond the year 9999
        return list(column.to_pylist())
    return list(map(_held, column))


def _held(scalar: Any) -> Any:
    with suppress(Exception):
        return scalar.as_py()
    return None


def taken(values: Any, indices: Any) -> Any:
    """Return the values at some positions; null for a position out of range.

    >>> import pyarrow as pa
    >>> taken(pa.array(["a", "b"]), pa.array([1, None, 7])).to_pylist()
    ['b', None, None]
    """
    import pyarrow as pa

    with suppress(pa.ArrowException):
        return values.take(indices)
    places = indices.cast(pa.int64(), safe=False).fill_null(-1).to_numpy()
    outside = (places < 0) | (places >= len(values))
    return values.take(pa.array(np.where(outside, 0, places), mask=outside))
