"""Tables with labels, which are read only when a fit needs them.

Most tasks read numbers, grouped by user while they are read (:mod:`quorate.app.tasks.unread`). A
table by group also reads labels, so it gets the original columns and a column of ids. Names and
types are known before; reading the first row begins with the charge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.exceptions import ParameterError

__all__ = ["UnreadTable"]


class UnreadTable:
    """An Arrow table that ``read`` loads when its rows are first needed.

    Parameters
    ----------
    read : callable
        Returns the table; called once.
    schema : pyarrow.Schema
        Names and types of its columns, known without reading.

    Examples
    --------
    >>> import pyarrow as pa
    >>> whole = pa.table({"city": ["Bonn", "Ulm"]})
    >>> table = UnreadTable(lambda: print("reading") or whole, whole.schema)
    >>> table[:0].num_rows
    0
    >>> pa.table(table).num_rows, len(table)
    reading
    (2, 2)
    """

    def __init__(self, read: Callable[[], Any], schema: Any) -> None:
        self._read, self._schema = read, schema
        self._rows: Any = None

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self._schema.names)

    def __getitem__(self, rows: slice) -> Any:
        """Return the columns without any row; everything else requires reading."""
        if rows != slice(None, 0):
            raise ParameterError("Expected [:0]: a table that was not read has no rows to take.")
        return self._schema.empty_table()

    def __len__(self) -> int:
        return int(self._now().num_rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Read the table, and return it as an Arrow stream."""
        return self._now().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"UnreadTable({', '.join(self.column_names)})"

    def _now(self) -> Any:
        if self._rows is None:
            self._rows = self._read()
        return self._rows
