"""Run code of the caller on records so that nothing comes out but its result.

A statistic or a loss may warn ("mean of empty slice") or raise ("cannot handle 31337"). Both would
be outputs about people that nobody paid for, so both are withheld here: warnings are not shown,
and of an exception nothing is kept, neither its message nor its traceback. That holds for
``SystemExit`` and whatever else is no ``Exception`` too: a record must not end the program. Only a
``KeyboardInterrupt`` passes, without a word about where it struck: it comes from a keyboard.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TypeVar

import numpy as np

__all__ = ["call_quietly", "is_of_caller", "silence"]

Result = TypeVar("Result")


class _Silence(AbstractContextManager[None]):
    """Suppress warnings while at least one thread is inside.

    Filters of warnings belong to the process, and ``warnings.catch_warnings`` restores those that
    it found: two threads that leave in the order in which they came would end with the filters of
    the first. So the first thread in silences, and the last one out restores.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._saved = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._saved = warnings.catch_warnings()
                self._saved.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._saved.__exit__(None, None, None)


_SILENCE = _Silence()


def silence() -> AbstractContextManager[None]:
    """Return the context in which no thread shows a warning.

    >>> with silence():
    ...     warnings.warn("31337 is no number", stacklevel=1)
    """
    return _SILENCE


def call_quietly(function: Callable[[], Result]) -> Result | None:
    """Return the result of ``function``; None if it raised.

    The caller raises its own error *after* this returned: no handler is active then, and no
    context leads from that error to the records.

    >>> call_quietly(lambda: np.float64(1.0) / 0.0)
    np.float64(inf)
    >>> call_quietly(lambda: {}["31337"])
    """
    with silence(), np.errstate(all="ignore"):
        try:
            return function()
        except KeyboardInterrupt:
            pass
        except BaseException:
            return None
    raise KeyboardInterrupt


def is_of_caller(thing: object) -> bool:
    """Whether an object's class was written outside this package: nobody here has looked at it.

    >>> is_of_caller(object()), is_of_caller(silence())
    (True, False)
    """
    return not type(thing).__module__.startswith("quorate.")
