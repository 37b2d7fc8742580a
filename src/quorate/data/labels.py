"""Labels that are not listed in advance: how they are read, and each user's vote for one.

Text, whole numbers, booleans and dates are labels; everything else is missing, and so are text that
is not UTF-8 and dates that do not exist in the calendar. The label of a cell depends on the cell
and on the declared type of its column, never on other cells.

The set of different labels is private, and so is their number. Records store the *index* of their
label among all labels, which changes when somebody adds a new one. So choices by labels use their
words instead (:mod:`quorate.data.columns.keys`).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.columns import cells, kinds
from quorate.data.columns.keys import label_words
from quorate.exceptions import SchemaError

__all__ = ["Label", "PrivateLabels", "check_labelled", "label_of", "label_order"]

Floats = NDArray[np.float64]
Label = int | str

# Floats are whole numbers beyond this, whatever was meant.
_EXACT = 2**53
# Of decimals of fewer bits Arrow does not find the different ones.
_COMPARED = 128


def check_labelled(name: str, kind: Any) -> None:
    """Refuse a column whose declared type cannot represent labels.

    >>> import pyarrow as pa
    >>> check_labelled("city", pa.string())
    >>> check_labelled("city", pa.list_(pa.string()))
    Traceback (most recent call last):
        ...
    quorate.exceptions.SchemaError: Expected text, whole numbers or dates in the column 'city', got
    lists or records.
    """
    import pyarrow as pa

    types = pa.types
    held = kind.value_type if types.is_dictionary(kind) else kind
    dated = types.is_date(held) or types.is_timestamp(held) or types.is_time(held)
    if not (kinds.is_text(held) or kinds.is_numeric(held) or dated or types.is_null(held)):
        raise SchemaError(
            f"Expected text, whole numbers or dates in the column {name!r}, got "
            f"{kinds.kind_of(held)}."
        )


@dataclass(frozen=True, eq=False)
class PrivateLabels:
    """The distinct labels of a column, sorted, and the index of each record's label.

    >>> import pyarrow as pa
    >>> found = PrivateLabels.of_arrow(pa.chunked_array([["b", "a", None, "b"]]))
    >>> found.labels, found.numbers.tolist()
    (('a', 'b'), [1.0, 0.0, nan, 1.0])
    """

    labels: tuple[Label, ...]
    numbers: Floats

    @classmethod
    def of_arrow(cls, column: Any) -> PrivateLabels:
        """Return the labels of an Arrow column of any type that can represent labels."""
        import pyarrow as pa

        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        if pa.types.is_decimal(column.type) and column.type.bit_width < _COMPARED:
            return cls.of_cells([cell for chunk in chunks for cell in kinds.held(chunk)])
        plain = [_comparable(kinds.decoded(chunk)) for chunk in chunks]
        coded = pa.chunked_array(plain, plain[0].type if plain else pa.null()).combine_chunks()
        coded = coded.dictionary_encode()
        found = [label_of(cell) for cell in kinds.held(coded.dictionary)]
        at = coded.indices.fill_null(len(found)) if len(coded) else coded.indices
        return cls._numbered(found, at.to_numpy(zero_copy_only=False).astype(np.int64))

    @classmethod
    def of_cells(cls, column: Sequence[Any] | NDArray[Any]) -> PrivateLabels:
        r"""Return the labels of a list, or of an array of any type.

        >>> PrivateLabels.of_cells(["b", 2, 2.0, b"b", 2.5, b"\xff", ["b"]]).numbers.tolist()
        [1.0, 0.0, 0.0, 1.0, nan, nan, nan]
        """
        found = [label_of(cell) for cell in column]
        return cls._numbered(found, np.arange(len(found)))

    @classmethod
    def _numbered(cls, found: list[Label | None], at: NDArray[np.int64]) -> PrivateLabels:
        """Return the labels ``found`` and, for each record, the index of its label."""
        labels = sorted({label for label in found if label is not None}, key=label_order)
        places = {label: float(place) for place, label in enumerate(labels)}
        table = [math.nan if label is None else places[label] for label in found]
        return cls(tuple(labels), np.array([*table, math.nan])[at])

    @cached_property
    def _places(self) -> dict[Label, float]:
        return {label: float(place) for place, label in enumerate(self.labels)}

    def label(self, number: float) -> Label:
        """Return the label with this index."""
        return self.labels[int(number)]

    def number(self, label: Label) -> float:
        """Return the index of a label."""
        return self._places[label]

    def words(self) -> NDArray[np.uint64]:
        """Return the text of each label, which does not depend on other labels."""
        return label_words(self.labels)

    def places_of(self, chosen: tuple[Label, ...]) -> Floats:
        """Return for each record the index of its label among ``chosen``; their number for others.

        >>> PrivateLabels.of_cells(["b", "a", "c", None]).places_of(("c", "a")).tolist()
        [2.0, 1.0, 0.0, nan]
        """
        new = {label: float(place) for place, label in enumerate(chosen)}
        table = np.array([new.get(label, float(len(chosen))) for label in self.labels])
        known = ~np.isnan(self.numbers)
        places = np.full(len(known), np.nan)
        places[known] = table[self.numbers[known].astype(np.int64)]
        return places


def label_order(label: Label) -> tuple[bool, Label]:
    """Return the sort key of a label: numbers come before texts.

    >>> sorted(["b", 10, 9, "a"], key=label_order)
    [9, 10, 'a', 'b']
    """
    return isinstance(label, str), label


def label_of(cell: Any) -> Label | None:
    """Return a cell as a label; None for a missing one.

    >>> label_of("tea"), label_of(b"tea"), label_of(7.0), label_of(True), label_of(2.5)
    ('tea', 'tea', 7, 1, None)
    """
    kind = type(cell)
    if issubclass(kind, bool | np.bool_):
        return int(bool(cell))
    if issubclass(kind, int | float | np.integer | np.floating):
        digits = cells.text_of(cell)
        whole = None if digits is None else int(digits)
        exact = whole is not None and (issubclass(kind, int | np.integer) or abs(whole) < _EXACT)
        return whole if exact else None
    with suppress(Exception):
        if kind is Decimal:
            return cells.whole_decimal(cell)
        if issubclass(kind, datetime.date | datetime.time):
            cell = cells.moment_written(cell, "T")
        octets = cells.text_of(cell)
        return None if octets is None else octets.decode()
    return None


def _comparable(column: Any) -> Any:
    """Return an Arrow array in a type for which Arrow can find distinct values."""
    import pyarrow as pa

    if kinds.is_text(column.type):
        return kinds.as_octets(column)
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
