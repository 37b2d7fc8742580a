"""Join a table of people, one row per person, to a table of their records.

These are the public rules: a record gets the attributes of the row with the same id. People who are
not listed, or are listed more than once, have no attributes: all of them are missing. So the
attributes of a record depend only on rows of the same person, in both tables. Names and types alone
decide which columns are joined, and whether ids match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import is_frame
from quorate.data.by_group.reading import names_of
from quorate.data.columns import kinds
from quorate.data.columns.ids import distinct_ids
from quorate.data.frames import open_frame
from quorate.data.tables import without_rows
from quorate.exceptions import SchemaError

__all__ = ["joined", "joined_schema"]


def joined_schema(X: Any, users: Any, people: Any, columns: Sequence[str]) -> Any:
    """Return the schema of the joined table; refuse invalid names and types.

    >>> import pyarrow as pa
    >>> visits, people = pa.table({"who": [7], "wait": [3.0]}), pa.table({"who": [7], "age": [31]})
    >>> joined_schema(visits, "who", people, ["wait", "age"]).schema.names
    ['who', 'wait', 'age']
    """
    if not (is_frame(X) and isinstance(users, str) and is_frame(people)):
        raise SchemaError(
            "people= joins a table of people to a table of records: expected two tables with names "
            "of columns, and users= as the name of the column of ids in both."
        )
    twice = (set(names_of(X)) & set(names_of(people))) - {users}
    if twice & set(columns):
        raise SchemaError(f"Expected columns of one of the two tables, both have {sorted(twice)}.")
    empty = (without_rows(table) for table in (X, people))
    tables = (
        table if none is None else none for table, none in zip((X, people), empty, strict=True)
    )
    return joined(*tables, users=users, columns=columns)


def joined(X: Any, people: Any, *, users: str, columns: Sequence[str]) -> Any:
    """Return the ids and ``columns`` of the records, some of which are attributes of people.

    >>> import pyarrow as pa
    >>> visits = pa.table({"who": ["ann", "bob", "cid", None], "wait": [3.0, 4.0, 5.0, 6.0]})
    >>> people = pa.table({"who": ["bob", "ann", "ann"], "age": [31, 54, 55]})
    >>> joined(visits, people, users="who", columns=["wait", "age"])["age"].to_pylist()
    [None, 31, None, None]
    """
    import pyarrow as pa

    own = names_of(X)
    read = open_frame(X, [users, *(c for c in columns if c in own and c != users)])
    attributes = [c for c in columns if c not in own]
    listed = open_frame(people, [users, *attributes])
    places = _places(read.column(users), listed.column(users))
    rows = pa.array(places, mask=places < 0)
    for name in attributes:
        read = read.append_column(name, _long(listed.column(name)).take(rows))
    return read


def _places(ids: Any, listed: Any) -> NDArray[np.int64]:
    """Return the row of ``listed`` with each id, or -1 if there is none or several."""
    import pyarrow.compute as pc

    codes, distinct = distinct_ids(ids)
    rows, known = distinct_ids(listed)
    kind = _common(distinct.type, known.type)
    there = rows >= 0
    place = np.full(len(known) + 1, -1, dtype=np.int64)
    place[rows[there]] = np.flatnonzero(there)
    place[:-1][np.bincount(rows[there], minlength=len(known)) > 1] = -1
    found = pc.index_in(distinct.cast(kind), value_set=known.cast(kind))
    # The last place serves whom nobody lists, and records without an id.
    of_each = np.append(place[found.fill_null(-1).to_numpy()], -1)
    return np.asarray(of_each[codes])


def _common(one: Any, other: Any) -> Any:
    """Return a type for the ids of both tables, according to their declared types."""
    import pyarrow as pa

    integers = [pa.types.is_integer(each) for each in (one, other)]
    if not any(integers):
        return pa.large_binary()
    if all(integers) and pa.uint64() not in (one, other):
        return pa.int64()
    if one == other:
        return one
    raise SchemaError(
        "Expected ids of one type in both tables: one has others (integers, texts, or integers "
        "beyond 63 bits). Convert the column."
    )


def _long(column: Any) -> Any:
    """Return texts in a type for more than 2^31 bytes, because some may be repeated often."""
    import pyarrow as pa

    if not kinds.is_text(column.type):
        return column
    octets = pa.types.is_binary(column.type) or pa.types.is_binary_view(column.type)
    kind = pa.large_binary() if octets else pa.large_string()
    # A view says what octets are, and does not ask whether they are UTF-8.
    chunks = [kinds.as_octets(chunk).view(kind) for chunk in column.chunks]
    return pa.chunked_array(chunks, kind)
