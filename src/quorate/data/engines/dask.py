"""A crowd on the workers of a Dask cluster (extra ``dask``).

Each piece of the source is divided by our own key on the worker that reads it. A part is assembled
from its share of every piece, and stays where it was assembled. A round sends the statistic to the
workers and gets back integers. If a worker dies, Dask computes its parts again from the source; as
no noise is drawn on workers, this changes nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.public_randomness import RandomState
from quorate.core.users.closed import closed
from quorate.core.users.crowd import Result, adding_up
from quorate.core.users.data import UserData
from quorate.data import frames
from quorate.data.engines.arithmetic import arithmetic_fingerprint
from quorate.data.engines.base import (
    Arguments,
    Outcome,
    PartedCrowd,
    PartWork,
    Schema,
    added_outcomes,
    guarded,
    needs,
    results_of,
)
from quorate.data.engines.capping import CappedRecords
from quorate.data.engines.layout import Layout, split_records
from quorate.data.engines.probing import check_reports, worker_probe
from quorate.exceptions import ParameterError

__all__ = ["DaskCrowd", "check_workers", "open_client"]

# Small parts on one worker share a task, since a task costs milliseconds: up to this many bytes.
_TASK_BYTES = 2**26
_FAN_IN = 8
# machine: seconds that a cluster without workers has to start one.
_PATIENCE = 60.0
_ADVICE = "Start the workers in an environment that has the same version of Quorate."


def open_client(address: str) -> Any:
    """Return a client of the scheduler at ``address``, such as ``tcp://host:8786``."""
    return needs("distributed", "dask").Client(address, set_as_default=False)


def check_workers(client: Any) -> None:
    """Run a probe task on every worker; refuse them if they cannot run Quorate."""
    reports = list(client.run(worker_probe()).values())
    if not reports:
        # A cluster that grows on demand starts a worker once there is a task.
        try:
            reports = [client.submit(worker_probe(), pure=False).result(timeout=_PATIENCE)]
        except TimeoutError:
            raise ParameterError(
                f"The Dask cluster has no workers: none took a task within {_PATIENCE:g} seconds. "
                "Nothing was charged."
            ) from None
    check_reports(reports, _ADVICE)


class DaskCrowd(PartedCrowd):
    """Users on the workers of a Dask cluster.

    Built by :meth:`from_frame` or :meth:`from_parquet`.

    Parameters
    ----------
    client : distributed.Client
    parts : sequence of Future
        Futures of outcomes whose values are the parts.
    schema : Schema
    """

    def __init__(
        self,
        client: Any,
        parts: Sequence[Any],
        schema: Schema,
        changes: tuple[Callable[..., UserData], ...] = (),
        arguments: tuple[Arguments, ...] | None = None,
    ) -> None:
        super().__init__(schema, len(parts), changes, arguments)
        self._client, self._parts = client, list(parts)
        self._groups: list[list[int]] = []
        self._was_asked = False

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
        client: Any = None,
        n_parts: int | None = None,
    ) -> DaskCrowd:
        """Group the rows of a Dask DataFrame by user; columns as in ``UserData.from_frame``.

        By default ``client`` is the current one, and ``n_parts`` is four per worker.
        """
        if not hasattr(frame, "to_delayed"):
            raise ParameterError(f"Expected a Dask DataFrame, got {type(frame).__name__}.")
        schema = frames.open_frame(frame._meta).schema
        layout = Layout.of(
            schema,
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
        client = _client(client)
        pieces = client.compute(frame[layout.columns].to_delayed(optimize_graph=True))
        read = partial(_frame_batches, declared=schema)
        return cls._grouped(client, read, pieces, layout, n_parts)

    @classmethod
    @closed
    def from_parquet(
        cls,
        path: str | os.PathLike[str],
        *,
        user: str | Sequence[str],
        client: Any = None,
        n_parts: int | None = None,
        **columns: Any,
    ) -> DaskCrowd:
        """Group the rows of Parquet files, which every worker can reach under ``path``, by user.

        Columns as in :meth:`from_frame`.
        """
        dataset = frames.open_parquet(path)
        layout = Layout.of(dataset.schema, user=user, **columns)
        groups = [
            (fragment.path, group.id)
            for fragment in dataset.get_fragments()
            for group in fragment.row_groups
        ]
        return cls._grouped(_client(client), _row_group, groups, layout, n_parts)

    @classmethod
    def _grouped(
        cls,
        client: Any,
        read: Callable[[Any, Layout], list[Any]],
        sources: Sequence[Any],
        layout: Layout,
        n_parts: int | None,
    ) -> DaskCrowd:
        check_workers(client)
        workers = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        n_parts = 4 * workers if n_parts is None else n_parts
        _validate.positive_integer(n_parts=n_parts)
        cut = [
            client.submit(_cut, read, source, layout, n_parts, pure=False, retries=3)
            for source in sources
        ]
        parts = []
        for number in range(n_parts):
            shares = [client.submit(_share, piece, number, pure=False) for piece in cut]
            parts.append(cls._part(client, shares, layout))
        return cls(client, parts, layout.schema)

    @staticmethod
    def _part(client: Any, shares: list[Any], layout: Layout) -> Any:
        """Return the users of one part; with a cap no worker has all shares in memory at once."""
        if layout.cap is not None:
            kept = None
            for share in shares:
                kept = client.submit(_capped, kept, share, layout, pure=False, retries=3)
            shares = [] if kept is None else [kept]
        return client.submit(_put_together, shares, layout, pure=False, retries=3)

    def map(self, work: Callable[..., Result], each: Sequence[Any] | None = None) -> list[Result]:
        """Return ``work(part)``, or ``work(part, argument)``, for every part, in order."""
        self._keep_changed_parts()
        return super().map(work, each)

    def _keep_changed_parts(self) -> None:
        """Keep the changed parts on the workers from the second round on.

        A descent uses the same changed parts in every round, and changing them takes longer than
        the round itself. Parts that are used only once are not worth the memory.
        """
        if self._changes and self._was_asked:
            self._parts = self._submitted(PartWork(self._changes, _as_it_is), self._own_arguments())
            self._changes, self._arguments = (), ((),) * self.n_parts
            self._groups = []
        self._was_asked = True

    def _own_arguments(self) -> list[Arguments]:
        """Return the arguments of the changes and none for the work, part by part."""
        return [(*own, ()) for own in self._arguments]

    def add_up(
        self, work: Callable[[UserData], NDArray[np.int64]], *, whole: bool = False
    ) -> NDArray[np.int64]:
        """Return the sum of the integers of all parts, first added up on the workers."""
        self._keep_changed_parts()
        task = PartWork(self._changes, adding_up(work, whole=whole))
        arguments = self._own_arguments()
        outcomes = [
            self._on_group(_added_on_parts, task, group, arguments) for group in self._together()
        ]
        while len(outcomes) > _FAN_IN:
            outcomes = [
                self._client.submit(added_outcomes, outcomes[i : i + _FAN_IN], pure=False)
                for i in range(0, len(outcomes), _FAN_IN)
            ]
        return sum(results_of(self._client.gather(outcomes)), start=work(self.nobody()))

    def _submitted(self, task: PartWork, arguments: Sequence[Arguments]) -> list[Any]:
        run = [task] * self.n_parts
        submitted: list[Any] = self._client.map(
            _on_part, run, self._parts, list(arguments), pure=False, retries=3
        )
        return submitted

    def _together(self) -> list[list[int]]:
        """Return which parts share a task: small ones that are stored on the same worker."""
        if not self._groups:
            for part in self._parts:
                part.exception()  # waits; what could not be made fails in the round itself
            sizes, places = self._client.nbytes(summary=False), self._client.who_has(self._parts)
            threads = self._client.nthreads()
            self._groups += grouped_parts(
                [next(iter(places.get(part.key, ())), "") for part in self._parts],
                [sizes.get(part.key, _TASK_BYTES) for part in self._parts],
                threads,
            )
        return self._groups

    def _on_group(
        self,
        work: Callable[..., Any],
        task: PartWork,
        group: Sequence[int],
        arguments: Sequence[Arguments],
    ) -> Any:
        parts, own = [self._parts[i] for i in group], [arguments[i] for i in group]
        return self._client.submit(work, task, parts, own, pure=False, retries=3)

    def _run(self, task: PartWork, arguments: Sequence[Arguments]) -> list[Outcome]:
        groups = self._together()
        found = self._client.gather(
            [self._on_group(_on_parts, task, group, arguments) for group in groups]
        )
        outcomes = {
            number: outcome
            for group, own in zip(groups, found, strict=True)
            for number, outcome in zip(group, own, strict=True)
        }
        return [outcomes[number] for number in range(self.n_parts)]

    def _stored(self, task: PartWork, arguments: Sequence[Arguments], schema: Schema) -> Self:
        return type(self)(self._client, self._submitted(task, arguments), schema)

    def _changed(
        self,
        schema: Schema,
        changes: tuple[Callable[..., UserData], ...],
        arguments: tuple[Arguments, ...],
    ) -> Self:
        made = type(self)(self._client, self._parts, schema, changes, arguments)
        made._groups = self._groups
        return made


def grouped_parts(
    places: Sequence[str], sizes: Sequence[int], threads: Mapping[str, int]
) -> list[list[int]]:
    """Group parts on the same worker, so that each of its threads has something to do.

    >>> grouped_parts(["a", "b", "a", "a", ""], [10, 10, 10, 2**26, 10], {"a": 1, "b": 1})
    [[0, 2], [3], [1], [4]]
    """
    groups: list[list[int]] = []
    for place in dict.fromkeys(places):
        here = [number for number, where in enumerate(places) if where == place]
        most = math.ceil(len(here) / max(1, threads.get(place, 1))) if place else 1
        held = _TASK_BYTES
        for number in here:
            if held + sizes[number] > _TASK_BYTES or len(groups[-1]) == most:
                groups.append([])
                held = 0
            groups[-1].append(number)
            held += sizes[number]
    return groups


def _as_it_is(part: UserData) -> UserData:
    return part


def _client(client: Any) -> Any:
    distributed = needs("distributed", "dask")
    if client is not None:
        return client
    try:
        return distributed.get_client()
    except ValueError:
        pass
    raise ParameterError("Expected client=, a distributed.Client, or one that is active; got none.")


def _frame_batches(frame: Any, layout: Layout, declared: Any) -> list[Any]:
    # A partition may have other types than the frame declares: one cell decides them in pandas.
    return list(frames.open_frame(frame, layout.columns, declared=declared).to_batches())


def _row_group(source: tuple[str, int], layout: Layout) -> list[Any]:
    import pyarrow.parquet as pq

    path, number = source
    return list(pq.ParquetFile(path).read_row_group(number, columns=layout.columns).to_batches())


def _cut(
    read: Callable[[Any, Layout], list[Any]], source: Any, layout: Layout, n_parts: int
) -> Outcome:
    """Return the records of one piece of the source, as one array per part."""

    def cut() -> list[Any]:
        records = [layout.records(batch) for batch in read(source, layout)]
        ordered, cuts = split_records(
            np.concatenate([np.empty(0, layout.dtype), *records]), n_parts
        )
        return [ordered[cuts[i] : cuts[i + 1]].copy() for i in range(n_parts)]

    return guarded(cut)


def _share(piece: Outcome, number: int) -> Outcome:
    return piece if piece.refusal is not None else Outcome(piece.value[number])


def _put_together(pieces: Sequence[Outcome], layout: Layout) -> Outcome:
    """Return the users of one part, from its share of every piece."""
    for piece in pieces:
        if piece.refusal is not None:
            return piece
    shares = [
        share.with_places() if isinstance(share, CappedRecords) else share
        for share in (piece.value for piece in pieces)
    ]
    together = np.concatenate([np.empty(0, layout.dtype), *shares])
    made = guarded(lambda: layout.users(together))
    return replace(made, fingerprint=arithmetic_fingerprint())


def _capped(kept: Outcome | None, share: Outcome, layout: Layout) -> Outcome:
    """Return the records that the cap keeps of the shares so far and of the next one."""
    for piece in (kept, share):
        if piece is not None and piece.refusal is not None:
            return piece

    def add() -> CappedRecords:
        records = CappedRecords(layout) if kept is None else copy(kept.value)
        records.add(share.value)
        return records

    return guarded(add)


def _on_parts(
    task: PartWork, parts: Sequence[Outcome], arguments: Sequence[Arguments]
) -> list[Outcome]:
    return [_on_part(task, part, own) for part, own in zip(parts, arguments, strict=True)]


def _added_on_parts(
    task: PartWork, parts: Sequence[Outcome], arguments: Sequence[Arguments]
) -> Outcome:
    return added_outcomes(_on_parts(task, parts, arguments))


def _on_part(task: PartWork, part: Outcome, arguments: Arguments) -> Outcome:
    if part.refusal is not None:
        return part
    outcome = task(part.value, arguments)
    if part.fingerprint not in ("", outcome.fingerprint):
        # What was computed on one kind of processor is used on another.
        return replace(outcome, fingerprint=f"{part.fingerprint}, {outcome.fingerprint}")
    return outcome
