"""The records of many users, grouped by user.

``data`` the class of all data in memory · ``crowd`` the queries of all engines · ``store`` records
in memory · ``own_order`` the order of a user's records · ``grouping`` sorting and hashing. Ids and
cells are read in :mod:`quorate.data.columns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorate.core.users.data import UserData

__all__ = ["UserData"]


def __getattr__(name: str) -> Any:
    """Load ``UserData`` when it is first used, as data readers import this package."""
    if name == "UserData":
        from quorate.core.users.data import UserData

        return UserData
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
