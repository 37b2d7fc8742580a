"""Background work for long tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_background", "with_a_thread"]

Made = TypeVar("Made")
Item = TypeVar("Item")

# From this many rows on a second thread is worth its while.
_MANY_ROWS = 1 << 17


def in_background(work: Callable[[], Made], *, rows: int) -> Callable[[], Made]:
    """Start ``work`` in a thread if rows are many; return a function that waits for its result.

    Its exceptions are raised in the waiting caller. ``work`` must not depend on anything that runs
    at the same time, so one thread and two give the same result.

    >>> found = in_background(lambda: 1 + 1, rows=10)
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


def with_a_thread(
    work: Callable[[Item], Made], items: Sequence[Item], *, rows: int
) -> Iterator[tuple[Item, Made]]:
    """Yield each item with the result of ``work``, helped by a thread if there are many rows.

    The thread starts immediately with the first items. The consumer takes finished items and, if
    none is ready, works on the last one itself. Items come in any order, so a result that combines
    them must not depend on their order.

    >>> sorted(with_a_thread(str, [1, 2], rows=10))
    [(1, '1'), (2, '2')]
    """
    if rows < _MANY_ROWS:
        return ((item, work(item)) for item in items)
    thread = ThreadPoolExecutor(1)
    begun = deque((item, thread.submit(work, item)) for item in items)
    return _taken(begun, work, thread)


def _taken(
    waiting: deque[tuple[Item, Future[Made]]],
    work: Callable[[Item], Made],
    thread: ThreadPoolExecutor,
) -> Iterator[tuple[Item, Made]]:
    try:
        while waiting:
            if not waiting[0][1].done() and waiting[-1][1].cancel():
                item = waiting.pop()[0]
                yield item, work(item)
            else:
                item, made = waiting.popleft()
                yield item, made.result()
    finally:
        # If something went wrong nobody waits for what is left.
        thread.shutdown(wait=False, cancel_futures=True)
