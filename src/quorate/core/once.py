"""Things that may be spent once, by one process, and never by a copy.

An open budget is stored in memory. A fork copies memory, so parent and child could both spend the
same budget. A copy of the object, or an object that was saved and loaded again, could spend it once
more too. Every class that stores such a budget is :class:`OnceOnly`: it knows its process and
refuses to work in any other.

A snapshot of a running machine that is restored twice cannot be seen from inside; see
``docs/known-vulnerabilities.md``.
"""

from __future__ import annotations

import os
from typing import NoReturn, SupportsIndex

from quorate.exceptions import OtherProcessError

__all__ = ["OnceOnly", "this_process"]

_FORKS: list[None] = []  # containers number processes anew: a child may have its parent's number
if hasattr(os, "register_at_fork"):  # not on Windows, which forks nothing
    os.register_at_fork(after_in_child=lambda: _FORKS.append(None))


def this_process() -> tuple[int, int]:
    """Return a token that is different in every process, also after a fork or a snapshot.

    >>> this_process() == this_process()
    True
    """
    return len(_FORKS), os.getpid()


class OnceOnly:
    """An object that is spent by one process and cannot be copied.

    Threads share it: every change is made under a lock or atomically. A part of a whole belongs to
    the process of the whole, wherever the part is created.

    >>> class Ticket(OnceOnly):
    ...     def use(self):
    ...         self.refuse_elsewhere()
    >>> Ticket().use()
    >>> import copy
    >>> copy.copy(Ticket())
    Traceback (most recent call last):
        ...
    TypeError: A Ticket cannot be copied, saved or sent to another process: its budget would be
    there twice. Make it where it is used.
    """

    _process: tuple[int, int]

    def __init__(self, whole: OnceOnly | None = None) -> None:
        self._process = this_process() if whole is None else whole._process

    def refuse_elsewhere(self) -> None:
        """Refuse to work in a forked process, which has a copy of its parent's budget."""
        if self._process != this_process():
            raise OtherProcessError(
                f"This {type(self).__name__} was created by another process: after a fork both "
                f"processes could spend the same budget. Nothing was drawn. Fork or start "
                f"workers first, and create it in the process that uses it, with a budget of its "
                f"own."
            )

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"A {type(self).__name__} cannot be copied, saved or sent to another process: its "
            "budget would be there twice. Make it where it is used."
        )
