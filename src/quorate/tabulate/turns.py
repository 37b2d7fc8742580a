"""Work that is done beside other work where a table is long."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["beside"]

Made = TypeVar("Made")

# From so many rows on a second thread is worth its while.
_MANY_ROWS = 1 << 17


def beside(work: Callable[[], Made], *, rows: int) -> Callable[[], Made]:
    """Begin ``work`` in a thread of its own if there are many rows; return what waits for it.

    What it raises is raised to whoever waits. Nothing that ``work`` does may depend on what is done
    beside it: so the same comes out by one thread and by two.

    >>> found = beside(lambda: 1 + 1, rows=10)
    >>> found()
    2
    """
    if rows < _MANY_ROWS:
        made = work()
        return lambda: made
    thread = ThreadPoolExecutor(1)
    later = thread.submit(work)
    thread.shutdown(wait=False)
    return later.result
