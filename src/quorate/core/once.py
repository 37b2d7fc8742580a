"""What may be spent once: by the process that holds it, and not by a copy.

A budget that is open lives in memory. A fork copies memory, so parent and child could both spend
what was paid for once; so could a copy, or an object that was saved and read again. Whatever holds
such a budget is :class:`OnceOnly`: it knows its process and refuses everywhere else.

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
    """Return a token that differs in every process, also after a fork or a snapshot.

    >>> this_process() == this_process()
    True
    """
    return len(_FORKS), os.getpid()


class OnceOnly:
    """Something that is spent by one process, and of which there is no second.

    Threads share it: every change is made under a lock or atomically. A part that is cut from a
    whole belongs to the process of the whole, wherever it is cut.

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
        """Refuse in a forked process, which holds a copy of what its parent spends."""
        if self._process != this_process():
            raise OtherProcessError(
                f"This {type(self).__name__} belongs to the process that made it, and this is "
                "another one: a fork holds a copy, and both would spend what was paid for once. "
                "Nothing was drawn. Fork or start workers first, and make it in the one that uses "
                "it, with a budget of its own."
            )

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"A {type(self).__name__} cannot be copied, saved or sent to another process: its "
            "budget would be there twice. Make it where it is used."
        )
