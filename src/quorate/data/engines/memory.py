"""A crowd in the memory of this process, divided into parts: for threads, and for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Self

import numpy as np

from quorate import _validate
from quorate.core.users.data import UserData
from quorate.data.engines.base import (
    Arguments,
    Outcome,
    PartedCrowd,
    PartWork,
    Schema,
    part_numbers,
    results_of,
)

__all__ = ["MemoryCrowd"]


class MemoryCrowd(PartedCrowd):
    """Parts of whole users in this process.

    Parameters
    ----------
    data : UserData
    n_parts : int, default=1
        Number of parts; the result of a fit does not depend on it, to the last bit.
    threads : int, default=1
        How many parts are processed at once; this helps if numpy releases the interpreter lock.

    Examples
    --------
    >>> people = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
    >>> records = lambda part: part.record_counts().sum(keepdims=True)
    >>> MemoryCrowd(people, n_parts=4).add_up(records), people.add_up(records)
    (array([3]), array([3]))
    """

    def __init__(self, data: UserData, *, n_parts: int = 1, threads: int = 1) -> None:
        _validate.positive_integer(n_parts=n_parts, threads=threads)
        order = np.argsort(data.keys(), kind="stable")
        numbers = part_numbers(data.keys()[order], n_parts)
        cuts = np.searchsorted(numbers, np.arange(n_parts + 1))
        parts = [data.take(order[cuts[i] : cuts[i + 1]]) for i in range(n_parts)]
        super().__init__(Schema.of(data), n_parts)
        self._parts, self._threads = parts, threads

    def _run(self, task: PartWork, arguments: Sequence[Arguments]) -> list[Outcome]:
        if self._threads == 1:
            return [task(part, own) for part, own in zip(self._parts, arguments, strict=True)]
        with ThreadPoolExecutor(self._threads) as pool:
            # Each task sees the caller's context, as it would without threads.
            tasks = [
                pool.submit(copy_context().run, task, part, own)
                for part, own in zip(self._parts, arguments, strict=True)
            ]
            return [running.result() for running in tasks]

    def _stored(self, task: PartWork, arguments: Sequence[Arguments], schema: Schema) -> Self:
        made = self._changed(schema, (), ((),) * self.n_parts)
        made._parts = results_of(self._run(task, arguments))
        return made

    def _changed(
        self,
        schema: Schema,
        changes: tuple[Callable[..., UserData], ...],
        arguments: tuple[Arguments, ...],
    ) -> Self:
        made = type(self).__new__(type(self))
        PartedCrowd.__init__(made, schema, self.n_parts, changes, arguments)
        made._parts, made._threads = self._parts, self._threads
        return made
