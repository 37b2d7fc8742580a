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
        # Called for attributes that are not there: those that ``UserData`` sets when it has data.
        if name.startswith("__") or name in ("_read", "_unit"):
            raise AttributeError(name)
        data = self._read()
        known = vars(data) | {"_unit": self._unit}
        if name not in known:
            raise AttributeError(name)
        self.__dict__.update(known)
        return known[name]

    def __repr__(self) -> str:
        return f"UnreadUsers(unit={self._unit!r})"
