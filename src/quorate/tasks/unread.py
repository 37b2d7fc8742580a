"""Data that are not read before somebody needs them.

Budget is charged first and data are touched afterwards. That order is worth nothing if a file has
to be read in order to call ``fit``: an over-budget request would have read it. An
:class:`UnreadUsers` is a ``UserData`` that knows its unit and reads the rest at the first look; who
makes one lets the charge be the first thing that reading does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.users import UserData

__all__ = ["UnreadUsers"]

_SET_BY_READING = frozenset({"_store", "_offsets", "_keys", "_names"})


class UnreadUsers(UserData):
    """Records that ``read`` brings when they are first looked at.

    Parameters
    ----------
    read : callable
        Returns the ``UserData``; not called again once it did.
    unit : str, default="user"
        The word for what is protected, known without reading.

    Examples
    --------
    >>> def read():
    ...     print("reading")
    ...     return UserData.from_arrays([[1.0], [3.0]], users=["ann", "bob"])
    >>> people = UnreadUsers(read)
    >>> people.unit
    'user'
    >>> people.n_users
    reading
    2
    >>> people.n_users
    2
    """

    def __init__(self, read: Callable[[], UserData], *, unit: str = "user") -> None:
        self._read = read
        self._unit = unit

    def __getattr__(self, name: str) -> Any:
        # Called for what is not there. What ``UserData`` sets when it has data is private; any
        # other name does not exist, and asking for it must not read.
        if not name.startswith("_") or name.startswith("__") or name in ("_read", "_unit"):
            raise AttributeError(name)
        self.__dict__.update(vars(self._read()) | {"_unit": self._unit, "_read": _nothing_more})
        if name not in self.__dict__:
            raise AttributeError(name)
        return self.__dict__[name]

    def __repr__(self) -> str:
        return f"UnreadUsers(unit={self._unit!r})"


def _nothing_more() -> Any:
    raise AttributeError("these records were read already")
