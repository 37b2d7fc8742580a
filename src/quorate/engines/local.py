"""The engine in this process: numpy, batches of whole users, optional threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.engines.base import Engine, check_request
from quorate.grid import Grid
from quorate.users import UserData
from quorate.users.statistics import Statistic, encode_users, sum_users

__all__ = ["LocalEngine"]

Part = Callable[[UserData, Statistic, Grid], NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True)
class LocalEngine(Engine):
    """Runs a statistic here, part by part.

    The result depends neither on ``threads`` nor on ``batch_records``, to the last bit.

    Parameters
    ----------
    threads : int, default=1
        How many parts are worked on at once; pays where numpy releases the lock.
    batch_records : int, default=2**20
        Records a part holds, which bounds the memory that a statistic needs beside the data. A
        user with more records is a part alone.

    Examples
    --------
    >>> from quorate.engines import UserMeans
    >>> from quorate.grid import Ball, choose_grid
    >>> people = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
    >>> bound = Ball(3.0, dimension=1)
    >>> grid = choose_grid(bound, n_users=people.n_users)
    >>> totals = LocalEngine().sum_over_users(people, UserMeans(bound), grid)
    >>> grid.decode(totals, count=people.n_users).round(6)
    array([5.])
    """

    threads: int = 1
    batch_records: int = 2**20

    def __post_init__(self) -> None:
        _validate.positive_integer(threads=self.threads, batch_records=self.batch_records)

    def sum_over_users(self, data: UserData, statistic: Statistic, grid: Grid) -> NDArray[np.int64]:
        """Return the sum, in steps of ``grid``, of the contributions of all users."""
        parts = self._map(sum_users, data, statistic, grid)
        return grid.join(sum(parts, start=np.zeros((2, grid.bound.dimension), dtype=np.int64)))

    def votes(self, data: UserData, statistic: Statistic, grid: Grid) -> NDArray[np.int64]:
        """Return the contribution of each user in steps of ``grid``: (n_users, dimension)."""
        parts = self._map(encode_users, data, statistic, grid)
        return np.concatenate([np.empty((0, grid.bound.dimension), np.int64), *parts])

    def _map(
        self, work: Part, data: UserData, statistic: Statistic, grid: Grid
    ) -> list[NDArray[np.int64]]:
        check_request(data, statistic, grid)
        if data.n_users == 0:
            return []
        if not getattr(statistic, "batched", True) or data.n_records <= self.batch_records:
            return [work(data, statistic, grid)]
        parts = data.batches(self.batch_records)
        if self.threads == 1:
            return [work(part, statistic, grid) for part in parts]
        with ThreadPoolExecutor(self.threads) as pool:
            # Each task sees the caller's context, as it would without threads.
            tasks = [pool.submit(copy_context().run, work, part, statistic, grid) for part in parts]
            return [task.result() for task in tasks]
