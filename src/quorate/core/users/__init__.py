"""Who holds what: the records of many users, grouped by user.

``data`` the one type that data enter as · ``crowd`` the queries of all engines · ``store`` records
as they lie in memory · ``own_order`` which of a user's records comes first · ``grouping`` orders
and words. Ids and cells are read in :mod:`quorate.data.columns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorate.core.users.data import UserData

__all__ = ["UserData"]


def __getattr__(name: str) -> Any:
    """Load ``UserData`` when it is first asked for: readers import the modules beside it."""
    if name == "UserData":
        from quorate.core.users.data import UserData

        return UserData
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
