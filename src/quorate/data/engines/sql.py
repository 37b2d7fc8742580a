"""Rows of a query in any database, as a stream of Arrow batches.

A connection with an Arrow interface (duckdb, the ADBC drivers) declares the types of its columns.
PostgreSQL's NUMERIC has no Arrow type and arrives as digits: as a feature it is read as a number,
as an id as a whole number. A plain DBAPI cursor declares no types, and guessing them from rows
would make the schema depend on one person's value. So features are read as numbers, values that are
not numbers are missing, and ids are compared as text.

The message of a database when a query fails may quote a row, so it is withheld.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from quorate.core.users.closed import closed
from quorate.core.users.crowd import Crowd, silence
from quorate.core.users.data import UserData
from quorate.data import tables
from quorate.data.coding import coded_columns
from quorate.data.columns import cells, kinds
from quorate.data.engines.files import FileCrowd
from quorate.data.engines.layout import Layout
from quorate.data.sources import Spooled, spool_folder
from quorate.exceptions import ParameterError, SchemaError

__all__ = ["from_sql", "query_batches"]

Result = TypeVar("Result")

_ROWS = 2**16


@closed
def from_sql(
    connection: Any,
    query: str,
    *,
    user: str | Sequence[str],
    features: Sequence[str] | None = None,
    target: str | None = None,
    unit: str | None = None,
    missing: str | float = "drop",
    classes: Sequence[Any] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    dates: Mapping[str, tuple[Any, Any]] | None = None,
    order: str | None = None,
    spool: Spooled = False,
) -> Crowd:
    """Group the rows of a query by user; see :meth:`quorate.UserData.from_sql`.

    >>> import sqlite3
    >>> base = sqlite3.connect(":memory:")
    >>> _ = base.execute("create table visits (patient, age)")
    >>> _ = base.execute("insert into visits values ('ann', 30), ('bob', 61), ('ann', 32)")
    >>> from_sql(base, "select * from visits", user="patient", features=["age"])
    UserData(n_features=1, target=False, unit='patient')
    >>> base.close()
    """
    import pyarrow as pa

    if not isinstance(query, str):
        raise ParameterError(f"Expected a query as text, got {type(query).__name__}.")
    options: dict[str, Any] = {
        "user": user,
        "features": features,
        "target": target,
        "unit": unit,
        "missing": missing,
        "classes": classes,
        "categories": categories,
        "dates": dates,
        "order": order,
    }
    coded = coded_columns(categories, dates)
    with _cursor(connection) as cursor:
        schema, batches = query_batches(
            cursor,
            query,
            user=user,
            features=features,
            target=target,
            classes=classes,
            order=order,
            texts=[name for name, column in coded.items() if column.is_text],
        )
        layout = Layout.of(schema, **options)
        if spool:
            return FileCrowd.from_batches(batches, layout, spool=spool_folder(spool))
        table = pa.Table.from_batches(batches, schema)
    return UserData.from_frame(table.select(layout.columns), **options)


def query_batches(
    cursor: Any,
    query: str,
    *,
    user: str | Sequence[str],
    features: Sequence[str] | None = None,
    target: str | None = None,
    classes: Sequence[Any] | None = None,
    order: str | None = None,
    texts: Sequence[str] = (),
) -> tuple[Any, Iterator[Any]]:
    """Run a query; return the Arrow schema of its rows and an iterator over their batches.

    ``texts`` are features that are read as text if the cursor declares no types.
    """
    _refuse_guesses(getattr(cursor, "connection", None))
    _quietly(lambda: cursor.execute(query))
    if (stream := _stream(cursor)) is not None:
        reader = _quietly(stream)
        labels = target is not None and classes is not None and not tables.are_numbers(classes)
        as_text = [*texts, *_as_list(user), *([target] if labels and target else [])]
        numeric = _Numeric.of(reader.schema, as_text)
        return numeric.schema, _all(lambda: numeric.plain(next(reader, None)))
    numbers = [name for name in _as_list(features) if name not in texts]
    if not _as_list(features):
        raise SchemaError(
            "Expected the names of the feature columns: this cursor declares no types, and they "
            "must not be guessed from the rows. Or use an ADBC driver: pip install 'quorate[sql]'."
        )
    texts = [*texts, *(name for name in _as_list(user) if name not in texts)]
    if target is not None:
        labels = classes is not None and not tables.are_numbers(classes)
        (texts if labels else numbers).append(target)
    if order is not None and order not in numbers:
        numbers.append(order)
    names = [column[0] for column in cursor.description or ()]
    for name in (*numbers, *texts):
        if name not in names:
            raise SchemaError(f"Expected a column {name!r}, the query has {sorted(names)}.")
    return _declared(numbers, texts), _all(lambda: _fetched(cursor, names, numbers, texts))


@contextmanager
def _cursor(connection: Any) -> Iterator[Any]:
    """Yield an object that runs queries.

    It is a cursor of the connection, closed at the end, or the argument itself.
    """
    speaks = hasattr(connection, "execute") and _stream(connection) is not None
    if not speaks and hasattr(connection, "cursor"):
        with closing(connection.cursor()) as cursor, _octets(connection):
            yield cursor
    elif hasattr(connection, "execute") and hasattr(connection, "fetchmany"):
        with _octets(getattr(connection, "connection", None)):
            yield connection
    else:
        raise ParameterError(
            "Expected a database connection or cursor (duckdb, ADBC or DBAPI), got "
            f"{type(connection).__name__}."
        )


def _stream(cursor: Any) -> Callable[[], Any] | None:
    """Return a reader of the rows of a query as Arrow batches, for ADBC and duckdb >= 2.0."""
    names = ("fetch_record_batch", "to_arrow_reader")
    return next((getattr(cursor, name) for name in names if hasattr(cursor, name)), None)


@dataclass(frozen=True)
class _Numeric:
    """Which columns of a stream are PostgreSQL NUMERIC, and how they are read."""

    schema: Any
    columns: tuple[tuple[int, bool], ...]

    @classmethod
    def of(cls, schema: Any, as_text: Sequence[str]) -> _Numeric:
        """Return the schema with plain types; columns in ``as_text`` are labels and ids."""
        import pyarrow as pa

        found = []
        for place, field in enumerate(schema):
            if (field.metadata or {}).get(b"ADBC:postgresql:typname") == b"numeric":
                is_text = field.name in as_text
                kind = pa.large_binary() if is_text else pa.float64()
                schema = schema.set(place, pa.field(field.name, kind))
                found.append((place, is_text))
        return cls(schema, tuple(found))

    def plain(self, batch: Any) -> Any:
        """Return a batch with plain types, converted cell by cell; null for other values."""
        import pyarrow as pa

        if batch is None or not self.columns:
            return batch
        arrays = list(batch.columns)
        for place, is_text in self.columns:
            column = arrays[place]
            is_opaque = isinstance(column.type, pa.BaseExtensionType)
            written = kinds.held(column.storage if is_opaque else column)
            if is_text:
                decimals = cells.objects([_decimal(each) for each in written])
                arrays[place] = kinds.as_octets(cells.texts(decimals))
            else:
                arrays[place] = pa.array(cells.numbers(cells.objects(written)))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _decimal(written: Any) -> Decimal | None:
    with suppress(ArithmeticError, TypeError, ValueError):
        return Decimal(written)
    return None


def _refuse_guesses(connection: Any) -> None:
    """Refuse the ADBC driver that guesses the types of columns from the first rows."""
    if not hasattr(connection, "adbc_get_info"):
        return
    if _quietly(connection.adbc_get_info).get("vendor_name") == "SQLite":
        raise ParameterError(
            "SQLite declares no types, and its ADBC driver guesses them from the rows, which one "
            "person's value would decide. Pass sqlite3.connect(...) and name the features."
        )


@contextmanager
def _octets(connection: Any) -> Iterator[None]:
    """Make SQLite return text as bytes.

    Otherwise rows with text that is not UTF-8 would be lost.
    """
    before = getattr(connection, "text_factory", None)
    if before is None:
        yield
        return
    connection.text_factory = bytes
    try:
        yield
    finally:
        connection.text_factory = before


def _declared(numbers: Sequence[str], texts: Sequence[str]) -> Any:
    import pyarrow as pa

    kinds = {name: pa.float64() for name in numbers} | {name: pa.large_binary() for name in texts}
    return pa.schema(list(kinds.items()))


def _fetched(cursor: Any, names: list[str], numbers: list[str], texts: list[str]) -> Any:
    """Return the next rows of a DBAPI cursor as a batch, or None at the end."""
    import pyarrow as pa

    rows = cursor.fetchmany(_ROWS)
    if not rows:
        return None
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    arrays = [pa.array(cells.numbers(columns[name])) for name in numbers]
    for name in texts:
        arrays.append(kinds.as_octets(cells.texts(cells.objects(columns[name]))))
    return pa.RecordBatch.from_arrays(arrays, schema=_declared(numbers, texts))


def _all(fetch: Callable[[], Any]) -> Iterator[Any]:
    while (batch := _quietly(lambda: (fetch(),))[0]) is not None:
        yield batch


def _quietly(work: Callable[[], Result]) -> Result:
    with silence(), suppress(Exception):
        return work()
    raise SchemaError(
        "The query failed; the message of the database is withheld because it may quote records. "
        "Run the query in the shell of the database to see it."
    )


def _as_list(names: str | Sequence[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)
