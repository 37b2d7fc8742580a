"""Who holds what: the records of many users, grouped by user.

``data`` the one type that data enter as · ``grouping`` from ids to users · ``own_order`` which of
a user's records comes first · ``id_forms`` and ``keys`` ids in other forms, and in pieces of a
table · ``tables`` from arrays to columns · ``sources`` and ``frames`` from frames, files and
databases · ``store`` records as they lie in memory.
"""

from __future__ import annotations

from quorate.users.data import UserData

__all__ = ["UserData"]
