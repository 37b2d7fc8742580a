"""A crowd in a Spark cluster (extra ``spark``, pyspark 4).

The rows of a Spark DataFrame are divided by our own key where they are stored. Spark brings the
pieces of a part together in any order, and they are kept as one cached blob. A round is one
``mapInArrow`` job, to which the statistic is sent and which returns integers. If an executor or a
Python worker dies, Spark computes its parts again; as no noise is drawn there, this changes
nothing.
"""

from __future__ import annotations

import math
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, Self

import numpy as np

from quorate import _validate
from quorate.core.public_randomness import RandomState
from quorate.core.users.closed import closed
from quorate.core.users.data import UserData
from quorate.data.engines.base import (
    Arguments,
    Outcome,
    PartedCrowd,
    PartWork,
    Schema,
    guarded,
    needs,
)
from quorate.data.engines.layout import Layout, split_records
from quorate.data.engines.probing import check_reports, worker_probe
from quorate.exceptions import ParameterError

__all__ = ["SparkCrowd", "check_workers", "open_session"]

_PIECES = "part int, refused boolean, piece binary"
_BLOBS = "part int, blob binary"
_REPORTS = "interpreter string, version string, said string"
_ADVICE = (
    "Install the same version of Quorate for the Python of the workers, and name that Python in "
    "the environment variable PYSPARK_PYTHON before the session starts."
)
_PARTS = 8
# Small parts share a task, since a task costs a tenth of a second: up to this many bytes.
_TASK_BYTES = 2**26


def open_session(master: str) -> Any:
    """Return a session at ``master`` whose workers run the interpreter of this process.

    Spark would use whichever ``python3`` is first on the path, which in a virtual environment is
    often one without Quorate. The environment variable ``PYSPARK_PYTHON`` selects another one.
    Spark's own log is reduced to fatal errors: failures reach the caller as exceptions.
    """
    needs("pyspark", "spark")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return SparkSession.builder.master(master).config("spark.log.level", "FATAL").getOrCreate()


def check_workers(session: Any) -> None:
    """Run a probe task on the workers; refuse them if they cannot run Quorate."""
    cores = 1
    with suppress(Exception):  # a session over Spark Connect does not tell
        cores = session.sparkContext.defaultParallelism
    probe = worker_probe()

    def report(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for _ in batches:
            columns = [pa.array([text]) for text in probe()]
            yield pa.RecordBatch.from_arrays(columns, names=["interpreter", "version", "said"])

    try:
        found = _mapped(session.range(0, cores, 1, cores), report, _REPORTS).collect()
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ParameterError(
            f'The workers could not run a probe task: "{said[0]}". Nothing was charged. {_ADVICE}'
        ) from None
    check_reports([tuple(row) for row in found], _ADVICE)


class SparkCrowd(PartedCrowd):
    """Users in a Spark cluster; built by :meth:`from_frame`.

    Parameters
    ----------
    blobs : pyspark.sql.DataFrame
        One cached row per part: its number and its pickled outcome.
    n_parts : int
    schema : Schema
    """

    def __init__(
        self,
        blobs: Any,
        n_parts: int,
        schema: Schema,
        changes: tuple[Callable[..., UserData], ...] = (),
        arguments: tuple[Arguments, ...] | None = None,
    ) -> None:
        super().__init__(schema, n_parts, changes, arguments)
        self._blobs, self._stored_schema = blobs, schema
        self._shared: list[Any] = []

    @classmethod
    @closed
    def from_frame(  # noqa: PLR0913 - one keyword for each column
        cls,
        frame: Any,
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
        n_parts: int = _PARTS,
    ) -> SparkCrowd:
        """Group the rows of a Spark DataFrame by user; columns as in ``UserData.from_frame``.

        ``cap`` and ``random_state`` keep at most this many records of each user, the same as
        :meth:`cap`, and no executor ever has more of a giant user in memory.
        """
        needs("pyspark", "spark")
        if not hasattr(frame, "mapInArrow"):
            raise ParameterError(f"Expected a Spark DataFrame, got {type(frame).__name__}.")
        _validate.positive_integer(n_parts=n_parts)
        from pyspark.sql.pandas.types import to_arrow_schema

        layout = Layout.of(
            to_arrow_schema(frame.schema),
            user=user,
            features=features,
            target=target,
            unit=unit,
            missing=missing,
            classes=classes,
            categories=categories,
            dates=dates,
            cap=cap,
            random_state=random_state,
            order=order,
        )
        check_workers(frame.sparkSession)
        from pyspark.sql import functions

        asked = frame.select(*[functions.col(f"`{name}`") for name in layout.columns])
        brought = _by_part(_mapped(asked, _Cut(layout, n_parts), _PIECES), n_parts)
        if layout.cap is not None:
            # Spark sorts on disk what does not fit, so that one part passes after the other.
            brought = brought.sortWithinPartitions("part")
        together = _mapped(brought, _PutTogether(layout), _BLOBS)
        return cls(_kept(together), n_parts, layout.schema)

    def _run(self, task: PartWork, arguments: Sequence[Arguments]) -> list[Outcome]:
        found = _mapped(self._together(), _OnParts(task, tuple(arguments)), _BLOBS).collect()
        outcomes = {row["part"]: pickle.loads(row["blob"]) for row in found}
        return [
            outcomes[number] if number in outcomes else self._of_nobody(task, own, outcomes)
            for number, own in enumerate(arguments)
        ]

    def _of_nobody(
        self, task: PartWork, arguments: Arguments, others: Mapping[int, Outcome]
    ) -> Outcome:
        """Return the outcome of a part without users, computed in this process.

        It contains no numbers of users, so the arithmetic of this process does not matter: Spark
        gives its workers one thread, and a product may have other last bits there.
        """
        found = task(self._stored_schema.nobody(), arguments)
        kinds = [outcome.fingerprint for outcome in others.values()]
        return replace(found, fingerprint=kinds[0]) if kinds else found

    def _together(self) -> Any:
        """Return the blobs in as many partitions as are efficient; small parts share a task."""
        if not self._shared:
            sizes = [row[0] for row in self._blobs.selectExpr("octet_length(blob)").collect()]
            tasks = math.ceil(self.n_parts / max(1, _TASK_BYTES // max([1, *sizes])))
            cores = self.n_parts
            with suppress(Exception):  # a session over Spark Connect does not tell
                cores = self._blobs.sparkSession.sparkContext.defaultParallelism
            few = max(tasks, cores)
            self._shared += [self._blobs.coalesce(few) if few < self.n_parts else self._blobs]
        return self._shared[0]

    def _stored(self, task: PartWork, arguments: Sequence[Arguments], schema: Schema) -> Self:
        blobs = _kept(_mapped(self._blobs, _OnParts(task, tuple(arguments)), _BLOBS))
        return type(self)(blobs, self.n_parts, schema)

    def _changed(
        self,
        schema: Schema,
        changes: tuple[Callable[..., UserData], ...],
        arguments: tuple[Arguments, ...],
    ) -> Self:
        made = type(self)(self._blobs, self.n_parts, schema, changes, arguments)
        made._stored_schema, made._shared = self._stored_schema, self._shared
        return made


def _mapped(frame: Any, function: Callable[[Iterable[Any]], Iterator[Any]], schema: str) -> Any:
    """Return ``frame.mapInArrow``, without warnings about versions of pandas, which is not used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frame.mapInArrow(function, schema)


def _by_part(pieces: Any, n_parts: int) -> Any:
    """Bring the pieces of a part together, each part in a partition of its own if possible."""
    if hasattr(pieces, "repartitionById"):
        return pieces.repartitionById(n_parts, "part")
    return pieces.repartition(n_parts, "part")


def _kept(blobs: Any) -> Any:
    from pyspark import StorageLevel

    return blobs.persist(StorageLevel.MEMORY_AND_DISK)


@dataclass(frozen=True)
class _Cut:
    """Converts rows to pieces: records of one part, or a refusal in their place."""

    layout: Layout
    n_parts: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            outcome = guarded(partial(self._pieces, batch))
            # A refusal is a piece of every part, so that whoever asks first is told.
            refused = [(n, True, pickle.dumps(outcome)) for n in range(self.n_parts)]
            yield _batch(outcome.value if outcome.refusal is None else refused, _Piece._fields)

    def _pieces(self, batch: Any) -> list[tuple[int, bool, bytes]]:
        ordered, ends = split_records(self.layout.records(batch), self.n_parts)
        return [
            (number, False, ordered[ends[number] : ends[number + 1]].tobytes())
            for number in range(self.n_parts)
            if ends[number] < ends[number + 1]
        ]


class _Piece(NamedTuple):
    """Some records of one part, or a refusal."""

    part: int
    refused: bool
    piece: bytes


def _pieces(batches: Iterable[Any]) -> Iterator[_Piece]:
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in _Piece._fields)
        yield from map(_Piece, *columns)


@dataclass(frozen=True)
class _PutTogether:
    """Converts the pieces of parts to their users."""

    layout: Layout

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        pieces: Iterable[_Piece] = _pieces(batches)
        if self.layout.cap is None:
            pieces = sorted(pieces, key=lambda piece: piece.part)
        for number, found in groupby(pieces, key=lambda piece: piece.part):
            outcome = self._outcome(found)
            yield _batch([(number, pickle.dumps(outcome))], ("part", "blob"))

    def _outcome(self, found: Iterable[_Piece]) -> Outcome:
        """Return the users of one part, or the refusal that replaces a piece."""
        refusals = []

        def records() -> Iterator[Any]:
            for piece in found:
                if piece.refused:
                    refusals.append(piece.piece)
                else:
                    yield np.frombuffer(piece.piece, self.layout.dtype)

        made = guarded(lambda: self.layout.together(records()))
        return pickle.loads(refusals[0]) if refusals else made


@dataclass(frozen=True)
class _OnParts:
    """Runs a task on the parts of a partition."""

    task: PartWork
    arguments: tuple[Arguments, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number, blob in zip(*(column.to_pylist() for column in batch), strict=True):
                part: Outcome = pickle.loads(blob)
                if part.refusal is None:
                    part = self.task(part.value, self.arguments[number])
                yield _batch([(number, pickle.dumps(part))], ("part", "blob"))


def _batch(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> Any:
    """Return rows as an Arrow batch: part numbers, whether they are refusals, and bytes."""
    import pyarrow as pa

    types = {"part": pa.int32(), "refused": pa.bool_()}
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [
        pa.array(column, types.get(name, pa.binary()))
        for name, column in zip(names, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))
