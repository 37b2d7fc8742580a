"""Where the users of a table are kept: in memory, in files, on Dask or on Spark.

On the command line the engine is a single word: ``local`` (memory), ``files`` (for tables larger
than memory), ``dask://host:port`` for a running scheduler, ``spark://host:port`` or ``local[2]``
for Spark. It is not chosen by the size of the table, because the size depends on the records, and
the number of readable rows is counted differently on different engines.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.core.users import UserData
from quorate.core.users.crowd import Crowd, Result
from quorate.data.engines.base import DescribedCrowd, Schema, needs
from quorate.data.files.table_files import Columns, TableFile
from quorate.exceptions import ParameterError

__all__ = ["Place", "UnreadCrowd"]

_PATTERNS = {
    "local": re.compile(r"local"),
    "files": re.compile(r"files"),
    "dask": re.compile(r"dask://[^/\s]+:\d+"),
    "spark": re.compile(r"spark://\S+|local\[(\d+|\*)\]"),
}
_MODULES = {"dask": "distributed", "spark": "pyspark"}


@dataclass(frozen=True)
class Place:
    """Where the data are processed; unknown or uninstalled engines are refused here.

    >>> [Place(name).kind for name in ("local", "files", "local[2]", "dask://127.0.0.1:8786")]
    ['local', 'files', 'spark', 'dask']
    """

    name: str

    def __post_init__(self) -> None:
        if self.kind in _MODULES:
            needs(_MODULES[self.kind], self.kind)

    @property
    def kind(self) -> str:
        """The engine: ``"local"``, ``"files"``, ``"dask"`` or ``"spark"``."""
        for kind, pattern in _PATTERNS.items():
            if isinstance(self.name, str) and pattern.fullmatch(self.name):
                return kind
        raise ParameterError(
            "Expected the engine 'local', 'files', 'dask://host:port', 'spark://host:port' or "
            f"'local[2]', got {self.name!r}."
        )

    @property
    def is_in_memory(self) -> bool:
        """Whether the table is read into memory."""
        return self.kind == "local"

    def check(self, table: TableFile) -> None:
        """Refuse a kind of table that this engine cannot read; no row is read."""
        if self.kind in _MODULES and table.separator is not None:
            raise ParameterError(
                f"The engine {self.name!r} reads Parquet files, got {str(table.path)!r}."
            )

    def connect(self) -> Any:
        """Return the Dask client or the Spark session, or None for this machine; read nothing.

        A probe task runs on the workers first: those that cannot run Quorate are refused.
        """
        if self.kind not in _MODULES:
            return None
        cluster = None
        with suppress(Exception):
            cluster = _client(self.name) if self.kind == "dask" else _session(self.name)
        if cluster is None:
            raise ParameterError(f"No answer at {self.name!r}: is the cluster running?")
        engine = importlib.import_module(f"quorate.data.engines.{self.kind}")
        engine.check_workers(cluster)
        return cluster

    def crowd(self, table: TableFile, columns: Columns, cluster: Any = None) -> Crowd:
        """Group the rows of a table by user on this engine; ``cluster`` is the connection to it."""
        if self.kind not in _MODULES:
            return table.group(columns)
        given = columns.given | {"features": columns.features}
        if self.kind == "dask":
            from quorate.data.engines.dask import DaskCrowd

            return DaskCrowd.from_parquet(table.path, client=cluster, **given)
        from quorate.data.engines.spark import SparkCrowd

        frame = cluster.read.parquet(os.fspath(table.path))
        return SparkCrowd.from_frame(frame, **given)


def _client(name: str) -> Any:
    from quorate.data.engines.dask import open_client

    return open_client(name.replace("dask://", "tcp://"))


def _session(name: str) -> Any:
    from quorate.data.engines.spark import open_session

    return open_session(name)


class UnreadCrowd(DescribedCrowd):
    """Users that ``read`` loads at first use; their public description is known before.

    >>> crowd = UnreadCrowd(lambda: UserData([[1.0]], offsets=[0, 1]), Schema(n_features=1))
    >>> crowd.unit, crowd.n_users
    ('user', 1)
    """

    def __init__(self, read: Callable[[], Crowd], schema: Schema) -> None:
        self._read, self._schema = read, schema
        self._crowd: Crowd | None = None

    def _now(self) -> Crowd:
        if self._crowd is None:
            self._crowd = self._read()
        return self._crowd

    @property
    def n_users(self) -> int:
        """Number of users; read when first used."""
        return self._now().n_users

    def map(self, work: Callable[..., Result], each: Sequence[Any] | None = None) -> list[Result]:
        """Run a function on every part."""
        return self._now().map(work, each)

    def derive(
        self,
        change: Callable[..., UserData],
        each: Sequence[Any] | None = None,
        *,
        keep: bool = False,
    ) -> Self:
        """Return the crowd of changed parts."""
        return self._now().derive(change, each, keep=keep)  # type: ignore[return-value]

    def add_up(
        self, work: Callable[[UserData], NDArray[np.int64]], *, whole: bool = False
    ) -> NDArray[np.int64]:
        """Add up the results of all parts."""
        return self._now().add_up(work, whole=whole)

    def keys(self) -> NDArray[np.uint64]:
        """Return the key of each user."""
        return self._now().keys()

    def take(self, user_indices: ArrayLike) -> Self:
        """Return the users with these indices."""
        return self._now().take(user_indices)  # type: ignore[return-value]

    def take_ranked(self, ranks: NDArray[np.int64]) -> Self:
        """Return the users with these indices in the order of their keys."""
        return self._now().take_ranked(ranks)  # type: ignore[return-value]

    def nobody(self) -> UserData:
        """Return an empty data set with the same description."""
        return self._schema.nobody()

    def __repr__(self) -> str:
        return f"UnreadCrowd(unit={self.unit!r})"
