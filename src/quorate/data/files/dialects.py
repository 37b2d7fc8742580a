"""The format of a CSV file: its separator, its numbers, its encoding.

The caller states all of it. Nothing is guessed from rows, because one person's cell would then
decide how all cells are read. Settings that follow from the header line alone can be proposed
(:func:`proposed`), because the header is public.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from quorate.exceptions import ParameterError

__all__ = ["PLAIN", "SEPARATORS", "Dialect", "proposed"]

SEPARATORS = (",", ";", "\t", "|")
"""The separators of cells in the files of most programs."""

# Families with one octet a character; others could let one cell reach into the next.
_ENCODINGS = re.compile(r"iso8859-\d+|cp\d+|koi8-[rtu]|mac-[a-z]+")
_OCTETS = bytes(range(256))


@dataclass(frozen=True)
class Dialect:
    r"""The separator of a CSV file, and the form of its numbers and characters.

    Parameters
    ----------
    separator : str or None, default=None
        The character between cells, one ASCII character. By default it follows from the file name:
        a comma for ``.csv``, a tab for ``.tsv``.
    decimal : {".", ","}, default="."
    thousands : str or None, default=None
        The character between groups of three digits. A cell with digits grouped in another way is
        missing.
    encoding : str, default="utf-8"
        UTF-8, or an encoding with one byte per character, such as ``latin-1`` or ``cp1252``. Bytes
        that the encoding does not define become the replacement character.

    Examples
    --------
    >>> german = Dialect(separator=";", decimal=",", thousands=".", encoding="latin-1")
    >>> [german.plain_number(cell) for cell in (b"1.234,5", b"2,5", b"1.5")]
    [b'1234.5', b'2.5', None]
    >>> german.to_utf8(b"K\xf6ln").decode()
    'Köln'
    """

    separator: str | None = None
    decimal: str = "."
    thousands: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if self.separator is not None and not (
            isinstance(self.separator, str)
            and len(self.separator) == 1
            and self.separator.isascii()
            and not self.separator.isalnum()
            and self.separator not in '"\r\n\0.+-'
        ):
            raise ParameterError(
                "Expected the separator to be one character such as ',', ';', '|' or a tab, got "
                f"{self.separator!r}."
            )
        if self.decimal not in (".", ","):
            raise ParameterError(f"Expected the decimal mark '.' or ',', got {self.decimal!r}.")
        if self.thousands is not None and not (
            isinstance(self.thousands, str)
            and len(self.thousands) == 1
            and not self.thousands.isalnum()
            and self.thousands not in '"\r\n\0+-\t'
            and self.thousands != self.decimal
        ):
            raise ParameterError(
                "Expected the thousands mark to be one character other than the decimal mark, "
                f"such as ',', '.', ' ' or an apostrophe, got {self.thousands!r}."
            )
        if not self._is_utf8 and not _has_one_octet_a_character(self.encoding):
            raise ParameterError(
                "Expected the encoding utf-8, or one with one octet a character such as latin-1 or "
                f"cp1252, got {self.encoding!r}. Convert the file to UTF-8."
            )

    @property
    def _is_utf8(self) -> bool:
        return _codec(self.encoding) in ("utf-8", "utf-8-sig", "ascii")

    @property
    def has_plain_numbers(self) -> bool:
        """Whether numbers are written as 1234.5."""
        return self.decimal == "." and self.thousands is None

    def to_utf8(self, octets: bytes) -> bytes:
        """Return bytes of the file as UTF-8, converted byte by byte."""
        return octets if self._is_utf8 else octets.decode(self.encoding, "replace").encode()

    @cached_property
    def _grouped(self) -> str:
        """The pattern of a number with groups of three digits."""
        mark, point = re.escape(str(self.thousands)), re.escape(self.decimal)
        return rf"^[ \t]*[+-]?[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+(?:{point}[0-9]*)?[ \t]*$"

    @cached_property
    def _marked(self) -> str:
        """The pattern of a cell that contains the thousands separator."""
        return r"[^ \t] +[^ \t]" if self.thousands == " " else re.escape(str(self.thousands))

    def plain_number(self, cell: bytes) -> bytes | None:
        """Return a cell with its number written as 1234.5; None if it has another form."""
        if self.thousands is not None:
            if re.fullmatch(self._grouped.encode(), cell):
                cell = cell.replace(self.thousands.encode(), b"")
            elif re.search(self._marked.encode(), cell):
                return None
        if self.decimal != ".":
            if b"." in cell:
                return None
            cell = cell.replace(self.decimal.encode(), b".")
        return cell

    def plain_numbers(self, column: Any) -> Any:
        """Apply :meth:`plain_number` to each cell of an Arrow array of bytes."""
        import pyarrow as pa
        import pyarrow.compute as pc

        nothing = pa.scalar(None, column.type)
        if self.thousands is not None:
            grouped = pc.match_substring_regex(column, self._grouped)
            marked = pc.match_substring_regex(column, self._marked)
            joined = pc.replace_substring(column, self.thousands, "")
            column = pc.if_else(grouped, joined, pc.if_else(marked, nothing, column))
        if self.decimal != ".":
            pointed = pc.match_substring(column, ".")
            column = pc.if_else(pointed, nothing, pc.replace_substring(column, self.decimal, "."))
        return column


def proposed(header: bytes, given: str) -> tuple[str, str]:
    r"""Return a separator and an encoding that suit a header line.

    ``given`` is the usual separator, which is preferred.

    The header is public, so this says nothing about rows. If the names in it are plain ASCII, it
    does not determine the encoding of the rows, and UTF-8 is returned.

    >>> proposed(b"patient;K\xf6rper", ",")
    (';', 'cp1252')
    """
    counts = {mark: header.count(mark.encode()) for mark in (given, *SEPARATORS)}
    separator = given if counts[given] else max(counts, key=lambda mark: counts[mark])
    try:
        header.decode("utf-8")
    except UnicodeDecodeError:
        return separator, "cp1252"
    return separator, "utf-8"


def _codec(encoding: object) -> str:
    try:
        return codecs.lookup(str(encoding)).name
    except (LookupError, ValueError):
        raise ParameterError(
            f"Expected the name of an encoding such as utf-8 or latin-1, got {encoding!r}."
        ) from None


def _has_one_octet_a_character(encoding: str) -> bool:
    if not _ENCODINGS.fullmatch(_codec(encoding)):
        return False
    letters = _OCTETS.decode(encoding, "replace")
    return len(letters) == 256 and letters[:128] == _OCTETS[:128].decode("ascii")


PLAIN = Dialect()
"""The dialect of programs: UTF-8, decimal points, the separator by the name of the file."""
