"""From pieces of a table to records under their users' keys; the same on every engine.

A record in a part of a crowd is a key, a target and features, stored in consecutive bytes. Rows are
converted one by one, by the rules of :class:`~quorate.core.users.UserData`: a row without an id is
dropped; a row dropped for a missing value is kept as a record without numbers, so that its user
still exists. People whose ids have the same 64-bit key are treated as one person and protected
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import all_finite
from quorate.core.public_randomness import RandomState
from quorate.core.users.data import UserData, numbered_users
from quorate.core.users.public_choices import public_word
from quorate.data import frames, tables
from quorate.data.coding import Coding, coding_of
from quorate.data.columns.keys import number_keys, row_keys
from quorate.data.columns.marks import check_order, marks_of
from quorate.data.engines.base import Schema, part_numbers
from quorate.data.engines.capping import CappedRecords
from quorate.exceptions import ParameterError

__all__ = ["Layout", "split_records"]

Records = NDArray[np.void]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How each column of a table is used; all of it is public.

    Parameters
    ----------
    user, features : tuple of str
    target : str or None
    unit : str
    missing : "drop" or float
    classes : tuple or None
    coding : Coding or None
        How columns become numbers, if some of them are categories or dates.
    single : bool
        Whether 32-bit floats represent every feature exactly, according to the declared types.
    cap : int or None
        The largest number of records kept per user; see :mod:`~quorate.data.engines.capping`.
    word : int
        The public number, derived from the seed, that selects them.
    order : str or None
        The column that says which of a user's records come first.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"id": ["ann", "bob", "ann"], "age": [30.0, None, 32.0]})
    >>> layout = Layout.of(table.schema, user="id")
    >>> people = layout.users(layout.records(table.to_batches()[0]))
    >>> sorted(people.record_counts().tolist())
    [0, 2]
    """

    user: tuple[str, ...]
    features: tuple[str, ...]
    target: str | None = None
    unit: str = "user"
    missing: str | float = "drop"
    classes: tuple[Any, ...] | None = None
    coding: Coding | None = None
    single: bool = False
    cap: int | None = None
    word: int = 0
    order: str | None = None

    @classmethod
    def of(
        cls,
        schema: Any,
        *,
        user: str | Sequence[str],
        features: Sequence[str] | None = None,
        target: str | None = None,
        unit: str | None = None,
        missing: str | float = "drop",
        classes: Sequence[Any] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        dates: Mapping[str, tuple[Any, Any]] | None = None,
        cap: int | None = None,
        random_state: RandomState = None,
        order: str | None = None,
    ) -> Layout:
        """Return the layout for an Arrow schema; refuse columns that do not exist."""
        tables.check_missing(missing)
        if cap is not None:
            _validate.positive_integer(cap=cap)
        ids = (user,) if isinstance(user, str) else tuple(user)
        if not ids:
            raise ParameterError("Expected at least one column of ids in user=, got none.")
        others = [*ids, *(name for name in (target, order) if name is not None)]
        coding = coding_of(
            schema, features=features, others=others, categories=categories, dates=dates
        )
        if coding is None:
            names = frames.check_features(schema, features=features, others=others)
            coding = Coding.of(names, {})
        if order is not None:
            frames.check_columns([order], schema.names)
            check_order(order, schema.field(order).type)
        kinds = [schema.field(name).type for name in coding.sources]
        return cls(
            user=ids,
            features=coding.names,
            target=target,
            unit=unit or " x ".join(ids),
            missing=missing,
            classes=None if classes is None else tuple(classes),
            coding=None if coding.is_plain else coding,
            single=coding.is_plain
            and all(map(_fits_single, kinds))
            and (missing == "drop" or float(np.float32(missing)) == float(missing)),
            cap=cap,
            word=0 if cap is None else int(public_word(random_state)),
            order=order,
        )

    @property
    def schema(self) -> Schema:
        """Public facts about the crowd."""
        return Schema(len(self.features), self.target is not None, self.unit, self.features)

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once."""
        target = [name for name in (self.target, self.order) if name is not None]
        sources = self.features if self.coding is None else self.coding.sources
        return list(dict.fromkeys([*sources, *self.user, *target]))

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The dtype of a record in memory and on disk."""
        number = np.float32 if self.single else np.float64
        target = [] if self.target is None else [("y", np.float64)]
        order = [] if self.order is None else [("order", np.int64)]
        return np.dtype([("key", np.uint64), *order, *target, ("x", number, (len(self.features),))])

    def records(self, batch: Any, *, out: Records | None = None) -> Records:
        """Return the records of a piece of the table in its order, in ``out`` if they fit."""
        keys, keep = row_keys(tuple(batch.column(name) for name in self.user))
        records: Records = (
            np.empty(batch.num_rows, dtype=self.dtype) if out is None else out[: batch.num_rows]
        )
        records["key"] = keys
        whole = np.ones(batch.num_rows, dtype=np.bool_)
        for place, values in self._numbers(batch):
            if not all_finite(values):
                finite = np.isfinite(values)
                if self.missing == "drop":
                    whole &= finite if finite.ndim == 1 else finite.all(axis=1)
                else:
                    values = np.where(finite, values, values.dtype.type(self.missing))
            records["x"][:, place] = values
        if self.target is not None:
            targets = tables.as_targets(_chunked(batch.column(self.target)), self.classes)
            records["y"] = targets
            whole &= np.isfinite(records["y"])
        if self.order is not None:
            records["order"] = marks_of(batch.column(self.order))
        if not whole.all():
            records["x"][~whole] = np.nan
        return records if keep.all() else records[keep]

    def _numbers(self, batch: Any) -> Iterator[tuple[int | slice, NDArray[Any]]]:
        """Yield the positions of the numbers of each column, and the numbers."""
        if self.coding is not None:
            yield from self.coding.blocks(batch)
            return
        for j, name in enumerate(self.features):
            yield j, frames.floats(batch.column(name), single=self.single)

    def together(self, pieces: Iterable[Records]) -> UserData:
        """Return the users of one part from pieces, with the cap applied."""
        if self.cap is None:
            return self.users(np.concatenate([np.empty(0, self.dtype), *pieces]))
        kept = CappedRecords(self)
        for piece in pieces:
            kept.add(piece)
        return self.users(kept.with_places())

    def users(self, records: Records) -> UserData:
        """Return the users of one part, in the order of their keys."""
        codes, keys = number_keys(np.ascontiguousarray(records["key"]))
        if not all_finite(records["x"][:, 0]):
            held = ~np.isnan(records["x"][:, 0])
            records, codes = records[held], codes[held]
        # What is narrow is widened piece by piece, wherever it lies.
        rows = records["x"] if self.single else np.ascontiguousarray(records["x"])
        targets = None if self.target is None else np.ascontiguousarray(records["y"])
        marks = None if self.order is None else np.ascontiguousarray(records["order"])
        return numbered_users(rows, targets, codes, keys, self.unit, self.features, marks)


def split_records(
    records: Records, n_parts: int, *, out: Records | None = None
) -> tuple[Records, NDArray[np.int64]]:
    """Return the records part by part, in their old order within each, and where parts begin.

    They are written to the beginning of ``out`` if it is given, otherwise to a new array.

    >>> records = np.zeros(3, dtype=[("key", "u8"), ("x", "f8")])
    >>> records["key"], records["x"] = [2**63, 0, 2**63], [1.0, 2.0, 3.0]
    >>> ordered, cuts = split_records(records, 2)
    >>> ordered["x"].tolist(), cuts.tolist()
    ([2.0, 1.0, 3.0], [0, 1, 3])
    """
    numbers = part_numbers(records["key"], n_parts).astype(np.uint16)
    counts = np.bincount(numbers, minlength=n_parts)
    cuts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    # numpy sorts 16-bit integers by radix, in linear time, and moves rows of words fastest.
    order = np.argsort(numbers, kind="stable")
    place = np.empty_like(records) if out is None else out[: len(records)]
    # The places are right, and clipping them spares a copy of the result.
    np.take(_words(records), order, axis=0, out=_words(place), mode="clip")
    return place, cuts


def _words(records: Records) -> NDArray[np.uint32]:
    return records.view(np.uint32).reshape(len(records), records.itemsize // 4)


def _fits_single(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    small = (types.is_int8, types.is_int16, types.is_uint8, types.is_uint16, types.is_boolean)
    return bool(
        types.is_float32(kind) or types.is_float16(kind) or any(test(kind) for test in small)
    )


def _chunked(column: Any) -> Any:
    import pyarrow as pa

    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
