"""Background work for long tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["beside", "shared_out"]

Made = TypeVar("Made")
Item = TypeVar("Item")

# From so many rows on a second thread is worth its while.
_MANY_ROWS = 1 << 17


def beside(work: Callable[[], Made], *, rows: int) -> Callable[[], Made]:
    """Begin ``work`` in a thread of its own if there are many rows; return what waits for it.

    Its exceptions are raised in the waiting caller. Nothing that ``work`` does may depend on what
    is done beside it: so the same comes out by one thread and by two.

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


def shared_out(
    work: Callable[[Item], Made], items: Sequence[Item], *, rows: int
) -> Iterator[tuple[Item, Made]]:
    """Yield each item with what ``work`` makes of it, with the help of a thread if rows are many.

    The thread begins at once, with the first items. Whoever asks takes what it has made and, where
    nothing is ready, works on the last one. So items come in any order, and nothing that is made of
    all of them may depend on it.

    >>> sorted(shared_out(str, [1, 2], rows=10))
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
