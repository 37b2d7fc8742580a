"""Quorate: learning with user-level differential privacy.

The names most people need; everything else stands under its folder. Heavy imports wait until a
name is asked for, so ``import quorate`` is fast.

>>> import quorate as qr
>>> qr.Relation.REPLACE.value
'replace all records of one user'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from quorate.guarantees import Guarantee, Relation

if TYPE_CHECKING:
    from quorate.accounting.ledger import Ledger
    from quorate.users import UserData

__version__ = "0.1.0"

_HOME = {
    "Ledger": "quorate.accounting.ledger",
    "UserData": "quorate.users",
}
_FOLDERS = ("accounting", "auditing", "engines", "mechanisms")

__all__ = ["Guarantee", "Ledger", "Relation", "UserData"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _FOLDERS:
        return importlib.import_module(f"quorate.{name}")
    raise AttributeError(f"module 'quorate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_FOLDERS, "__version__"])
