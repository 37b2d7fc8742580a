"""Data that are not read until they are needed.

Budget is charged first and data are touched afterwards. This order would be useless if a file had
to be read in order to call ``fit``: a request beyond the budget would already have read it. An
:class:`UnreadUsers` is a ``UserData`` that knows its unit and its columns and reads the rest at
first use; its creator makes the charge the first step of reading. So mistakes in the columns can be
refused before the charge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quorate.core.users import UserData

__all__ = ["UnreadUsers"]

_OWN = frozenset({"_read", "_unit", "_known", "_count", "_counted"})
_SET_BY_READING = frozenset({"_store", "_offsets", "_keys", "_names"})


class UnreadUsers(UserData):
    """Records that ``read`` loads when they are first needed.

    Parameters
    ----------
    read : callable
        Returns the ``UserData``; called at most once.
    unit : str, default="user"
        The word for the protected unit (such as patient), known without reading.
    names : sequence of str, optional
        The features, if they are known without reading.
    target : bool, default=False
        Whether there is a target, if the features are known.
    count : callable, optional
        Returns the number of users from the ids alone, if it is public.

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

    def __init__(
        self,
        read: Callable[[], UserData],
        *,
        unit: str = "user",
        names: Sequence[str] | None = None,
        target: bool = False,
        count: Callable[[], int] | None = None,
    ) -> None:
        self._read = read
        self._unit = unit
        self._known = None if names is None else (tuple(names), target)
        self._count = count
        self._counted: int | None = None

    @property
    def n_users(self) -> int:
        """Number of users; before the records are read it comes from ``count``, if given."""
        if "_keys" in self.__dict__ or self._count is None:
            return super().n_users
        if self._counted is None:
            self._counted = self._count()
        return self._counted

    @property
    def n_features(self) -> int:
        """Number of features."""
        return super().n_features if self._known is None else len(self._known[0])

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return super().feature_names if self._known is None else self._known[0]

    @property
    def has_target(self) -> bool:
        """Whether there are targets."""
        return super().has_target if self._known is None else self._known[1]

    def __getattr__(self, name: str) -> Any:
        # Called for what is not there. What ``UserData`` sets when it has data is private; any
        # other name does not exist, and asking for it must not read.
        if not name.startswith("_") or name.startswith("__") or name in _OWN:
            raise AttributeError(name)
        self.__dict__.update(vars(self._read()) | {"_unit": self._unit, "_read": _nothing_more})
        if name not in self.__dict__:
            raise AttributeError(name)
        return self.__dict__[name]

    def __repr__(self) -> str:
        return f"UnreadUsers(unit={self._unit!r})"


def _nothing_more() -> Any:
    raise AttributeError("these records were read already")
