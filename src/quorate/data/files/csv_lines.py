"""CSV files line by line, so that one line has no influence on how another one is read.

In usual CSV parsers a cell can affect other people's rows: an opening quote swallows everything up
to the next quote, and a row with an additional cell stops the reading or vanishes. The rules here
are:

* one physical line (it ends with a line feed; a carriage return before that belongs to the line
  end) is always one row; a carriage return elsewhere is a character of its cell. A table with line
  feeds inside cells is not a CSV file in this sense: convert it, for example to Parquet;
* a cell may be enclosed in quotes, with quotes doubled inside, and may then contain separators.
  Quotes that are not closed within their line are ordinary characters;
* a line with too many or too few cells keeps the ids that it has, and all its other cells are
  missing;
* a blank line is not a row. A row without an id is dropped.

Ids are exactly the contents of the id cells. Lines without quotes or other special characters, and
lines whose quotes enclose whole cells, are read by Arrow, all others one by one; a test checks that
both ways agree. This is decided line by line, so no quote has an effect beyond its line.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from quorate.data.columns.cells import number_written
from quorate.data.files.dialects import PLAIN, Dialect
from quorate.exceptions import SchemaError

__all__ = [
    "cell_schema",
    "cell_tables",
    "count_lines",
    "header_line",
    "read_cells",
    "read_header",
    "split_line",
]

_BLOCK = 2**24
_LONGEST_HEADER = 2**24
# Arrow's reader works in blocks of 2^20 bytes and fails at a line that is longer than one.
_LONGEST_PLAIN = 2**16
# Cells that Arrow reads as Python does, and that no float is too small or too large for.
_SURE_NUMBER = r"^-?[0-9]{1,100}(\.[0-9]{0,100})?([eE][+-]?[0-9]{1,2})?$"
_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def split_line(line: bytes, separator: bytes) -> list[bytes]:
    r"""Return the cells of one line.

    >>> split_line(b'"Smith, John",5,"6 ""or"" 7"', b",")
    [b'Smith, John', b'5', b'6 "or" 7']
    >>> split_line(b'ann,"5', b",")
    [b'ann', b'"5']
    """
    return _quoted_cells(line, separator) or line.split(separator)


def read_header(path: Path, separator: str, dialect: Dialect = PLAIN) -> list[str]:
    """Return the names in the first line; the line is public, so errors may quote it."""
    if not path.is_file():
        raise SchemaError(f"Expected a CSV file, found none at {str(path)!r}.")
    line = dialect.to_utf8(header_line(path))
    if not line:
        raise SchemaError(f"Expected a header line with column names, {path.name!r} has none.")
    names: list[str] = []
    if len(line) <= _LONGEST_HEADER and b"\r" not in line and b"\0" not in line:
        try:
            names = [cell.decode() for cell in _quoted_cells(line, separator.encode()) or []]
        except UnicodeDecodeError:
            raise SchemaError(
                f"Expected a header line in UTF-8, that of {path.name!r} is not. State its "
                "encoding, such as encoding='cp1252' (--encoding cp1252)."
            ) from None
    if not any(names):
        raise SchemaError(
            f"Expected a CSV file with one header line of column names, got {path.name!r}: its "
            "first line is none. Is it a text file, and do its lines end with a line feed?"
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SchemaError(
            f"Expected different column names, the header of {path.name!r} repeats "
            f"{', '.join(map(repr, repeated))}: rename one of each."
        )
    return names


def header_line(path: Path) -> bytes:
    """Return the first line of a file without its byte order mark; no row is read."""
    line = None
    with suppress(OSError), path.open("rb") as file:
        line = _header_line(file)
    if line is None:
        raise SchemaError(f"Expected a CSV file, could not open {path.name!r}.")
    if line.startswith(_UTF16_MARKS):
        raise SchemaError(
            f"Expected UTF-8, one header line, got UTF-16 in {path.name!r}: save it as UTF-8."
        )
    return line


def read_cells(
    path: str | os.PathLike[str],
    separator: str,
    *,
    names: Sequence[str],
    numeric: Collection[str],
    ids: Collection[str] = (),
    dialect: Dialect = PLAIN,
    watch: Callable[[int], None] | None = None,
) -> Any:
    r"""Return an Arrow table of the columns ``names``: floats if in ``numeric``, otherwise bytes.

    Parameters
    ----------
    path, separator
        The file, and its cell separator.
    names, numeric, ids : collections of str
        The columns to read, the numeric ones among them, and those that are read even from a line
        with too many or too few cells.
    dialect : Dialect
        How numbers and characters are written.
    watch : callable, optional
        It is called with the number of bytes read so far, block by block.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "visits.csv"
    ...     _ = path.write_bytes(b'patient,age\nann,"30\nbob,40\ncy,50,60\n')
    ...     cells = read_cells(
    ...         path, ",", names=["patient", "age"], numeric={"age"}, ids={"patient"})
    >>> cells["age"].to_pylist()
    [None, 40.0, None]
    """
    import pyarrow as pa

    given: dict[str, Any] = {"names": names, "numeric": numeric, "ids": ids, "dialect": dialect}
    pieces = cell_tables(path, separator, watch=watch, **given)
    return pa.concat_tables([cell_schema(names, numeric).empty_table(), *pieces])


def cell_schema(names: Sequence[str], numeric: Collection[str]) -> Any:
    """Return the Arrow schema of cells: floats if in ``numeric``, otherwise bytes.

    >>> cell_schema(["patient", "age"], {"age"}).types
    [DataType(large_binary), DataType(double)]
    """
    import pyarrow as pa

    kinds = [pa.float64() if name in numeric else pa.large_binary() for name in names]
    return pa.schema(list(zip(names, kinds, strict=True)))


def cell_tables(
    path: str | os.PathLike[str],
    separator: str,
    *,
    names: Sequence[str],
    numeric: Collection[str],
    ids: Collection[str] = (),
    dialect: Dialect = PLAIN,
    watch: Callable[[int], None] | None = None,
) -> Iterator[Any]:
    """Yield the result of :func:`read_cells` as tables of a few megabytes, in order."""
    import pyarrow as pa

    header = read_header(Path(path), separator, dialect)
    places = [header.index(name) for name in names]
    lines = _Lines(separator.encode(), len(header), places, dialect)
    schema = cell_schema(names, numeric)
    kept = [name in ids for name in names]
    failed = False
    try:
        with Path(path).open("rb") as file:
            _header_line(file)
            for block in _blocks(file):
                found = lines.columns(dialect.to_utf8(block), schema.types, kept)
                columns = [
                    pa.chunked_array(chunks, kind)
                    for chunks, kind in zip(found, schema.types, strict=True)
                ]
                yield pa.table(columns, schema=schema)
                if watch is not None:
                    watch(len(block))
    except (pa.ArrowException, OSError):
        # Arrow's own message would quote the line that it stumbled over.
        failed = True
    if failed:
        raise SchemaError(f"Expected a CSV file, could not read {Path(path).name!r}.")


def count_lines(path: str | os.PathLike[str]) -> int:
    """Return the number of line feeds of a file, which is about its number of rows."""
    with Path(path).open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(_BLOCK), b""))


class _Lines:
    """How lines are divided into cells: the separator, the number of cells, the wanted columns."""

    def __init__(
        self, separator: bytes, width: int, places: list[int], dialect: Dialect = PLAIN
    ) -> None:
        self.separator = separator
        self.width = width
        self.places = places
        self.dialect = dialect

    def columns(self, block: bytes, kinds: list[Any], kept: list[bool]) -> list[list[Any]]:
        """Return the chunks of each wanted column, for lines that all end with a line feed."""
        import pyarrow as pa

        octets = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(octets == ord("\n"))
        starts = np.concatenate([[0], ends[:-1] + 1])
        regular, blank = self._sort_out(octets, starts, ends)
        found = self._regular_columns(_selected(block, starts, ends, regular), kinds)
        others = np.flatnonzero(~(regular | blank))
        if len(others) == 0:
            return found
        rows = [self._cells(block[starts[i] : ends[i]], kept) for i in others]
        order = pa.array(np.argsort(np.concatenate([np.flatnonzero(regular), others])))
        columns = []
        for chunks, kind, cells in zip(found, kinds, zip(*rows, strict=True), strict=True):
            if kind == pa.float64():
                values = [_number(cell, self.dialect) for cell in cells]
            else:
                values = [cell or None for cell in cells]
            both = pa.concat_arrays([*chunks, pa.array(values, kind)])
            columns.append([both.take(order)])
        return columns

    def _sort_out(
        self, octets: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which lines Arrow reads by the same rules, and which are blank."""
        separators = np.flatnonzero(octets == ord(self.separator))
        returns = np.flatnonzero(octets == ord("\r"))
        # At the first place of a block there is nothing before; the line feed itself will do.
        returned = octets[np.maximum(ends - 1, 0)] == ord("\r")
        blank = ends - returned == starts
        fits = ~blank & (_count(returns, ends) == returned) & (ends - starts < _LONGEST_PLAIN)
        quotes = np.flatnonzero(octets == ord('"'))
        if len(quotes) == 0:
            return fits & (_count(separators, ends) == self.width - 1), blank
        enclosing, outside = _quoted_lines(octets, quotes, separators, starts, ends)
        return fits & enclosing & (outside == self.width - 1), blank

    def _regular_columns(self, lines: bytes, kinds: list[Any]) -> list[list[Any]]:
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, ParseOptions, read_csv

        # A header of our own: Arrow drops a byte order mark at the beginning, which is a cell's.
        header = self.separator.join(b"%d" % j for j in range(self.width)) + b"\n"
        wanted = [str(place) for place in self.places]
        table = read_csv(
            pa.BufferReader(_owned_by_arrow([header, lines])),
            parse_options=ParseOptions(
                delimiter=self.separator.decode(),
                quote_char='"' if b'"' in lines else False,
                double_quote=False,
                escape_char=False,
            ),
            convert_options=ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.large_binary()),
                include_columns=list(dict.fromkeys(wanted)),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        return [
            [
                _numbers(chunk, self.dialect) if kind == pa.float64() else chunk
                for chunk in table[name].chunks
            ]
            for name, kind in zip(wanted, kinds, strict=True)
        ]

    def _cells(self, line: bytes, kept: list[bool]) -> list[bytes | None]:
        cells = split_line(line.removesuffix(b"\r"), self.separator)
        if len(cells) == self.width:
            return [cells[place] for place in self.places]
        return [
            cells[place] if keep and place < len(cells) else None
            for place, keep in zip(self.places, kept, strict=True)
        ]


def _count(places: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of some positions are in each line.

    >>> _count(np.array([1, 2, 7]), np.array([4, 6, 9])).tolist()
    [2, 0, 1]
    """
    return np.diff(np.searchsorted(places, ends), prepend=0)


def _quoted_lines(
    octets: NDArray[np.uint8],
    quotes: NDArray[np.int64],
    separators: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    r"""Return for each line whether quotes enclose whole cells, and its separators.

    This is the case if every opening quote is at the beginning of a cell and every closing quote at
    the end of one. A line without quotes also satisfies this.

    >>> octets = np.frombuffer(b'"a,b",c\n"a"b,c\na,"b\na,b\n', np.uint8)
    >>> ends = np.flatnonzero(octets == ord("\n"))
    >>> starts = np.concatenate([[0], ends[:-1] + 1])
    >>> places = [np.flatnonzero(octets == ord(mark)) for mark in '",']
    >>> enclosing, outside = _quoted_lines(octets, *places, starts, ends)
    >>> enclosing.tolist(), outside[[0, 3]].tolist()
    ([True, False, False, True], [1, 1])
    """
    counts = _count(quotes, ends)
    before = np.cumsum(counts) - counts
    line = np.repeat(np.arange(len(ends)), counts)
    opens = (np.arange(len(quotes)) - before[line]) % 2 == 0
    held = np.zeros(len(octets) + 2, dtype=np.bool_)
    held[separators] = True
    # Where a cell may end: before a separator, a line feed, or the two octets of a line's end.
    final = held.copy()
    final[ends] = True
    final[ends[octets[ends - 1] == ord("\r")] - 1] = True
    fits = np.where(opens, held[quotes - 1] | (quotes == starts[line]), final[quotes + 1])
    enclosing = (counts % 2 == 0) & (np.bincount(line[~fits], minlength=len(ends)) == 0)
    # A separator is outside of quotes if an even number of its line's stands before it.
    there = np.searchsorted(ends, separators)
    is_outside = (np.searchsorted(quotes, separators) - before[there]) % 2 == 0
    return enclosing, np.bincount(there[is_outside], minlength=len(ends))


def _selected(
    block: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> bytes:
    """Return the chosen lines, including their line ends."""
    if chosen.all():
        return block
    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
    first, last = edges[::2], edges[1::2] - 1
    return b"".join(block[starts[i] : ends[j] + 1] for i, j in zip(first, last, strict=True))


def _owned_by_arrow(pieces: Sequence[bytes]) -> Any:
    """Return a copy of the pieces, one after the other, in memory that Arrow allocated.

    A worker thread of Arrow may be the last user of the data. It could free Python's bytes only
    through the interpreter, and if the interpreter is ending at that time the process is aborted.
    """
    import pyarrow as pa

    memory = pa.allocate_buffer(sum(map(len, pieces)))
    octets, start = np.frombuffer(memory, np.uint8), 0
    for piece in pieces:
        octets[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
        start += len(piece)
    return memory


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the rest of a file in pieces of whole lines, however long a line is."""
    rest: list[bytes] = []
    while piece := file.read(_BLOCK):
        cut = piece.rfind(b"\n") + 1
        if cut > 0:
            yield b"".join([*rest, piece[:cut]])
            rest = []
        rest.append(piece[cut:])
    last = b"".join(rest)
    if last:
        yield last + b"\n"


def _header_line(file: BinaryIO) -> bytes:
    line = file.readline(_LONGEST_HEADER + 1)
    return line.removeprefix(_MARK).removesuffix(b"\n").removesuffix(b"\r")


def _quoted_cells(line: bytes, separator: bytes) -> list[bytes] | None:
    """Return the cells of a line; None if a quote opens a cell and is not closed."""
    cells: list[bytes] = []
    place = 0
    while True:
        inside = b""
        if line.startswith(b'"', place):
            end = _closing_quote(line, place + 1)
            if end < 0:
                return None
            inside = line[place + 1 : end].replace(b'""', b'"')
            place = end + 1
        end = line.find(separator, place)
        if end < 0:
            return [*cells, inside + line[place:]]
        cells.append(inside + line[place:end])
        place = end + 1


def _closing_quote(line: bytes, place: int) -> int:
    """Return the position of the closing quote for one that opened before ``place``; -1 if none."""
    while True:
        place = line.find(b'"', place)
        if place < 0 or line[place + 1 : place + 2] != b'"':
            return place
        place += 2


def _numbers(column: Any, dialect: Dialect = PLAIN) -> Any:
    """Return cells as floats, null where a cell is not a number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = column if dialect.has_plain_numbers else dialect.plain_numbers(column)
    # Arrow accepts less than Python does, and nothing else: one cell does not change another.
    with suppress(pa.ArrowInvalid):
        return plain.cast(pa.large_string()).cast(pa.float64())
    sure = pc.match_substring_regex(plain, _SURE_NUMBER)
    nothing = pa.scalar(None, plain.type)
    values = pc.if_else(sure, plain, nothing).cast(pa.large_string()).cast(pa.float64())
    # The others are read one by one, each text once.
    rest = pc.if_else(sure, nothing, plain).dictionary_encode()
    found = [_number(cell, PLAIN) for cell in rest.dictionary.to_pylist()]
    return pc.coalesce(values, pa.array(found, pa.float64()).take(rest.indices))


def _number(cell: bytes | None, dialect: Dialect) -> float | None:
    plain = None if cell is None else dialect.plain_number(cell)
    number = math.nan if plain is None else number_written(plain)
    return None if math.isnan(number) else number
