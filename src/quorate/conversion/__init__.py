"""Any item-level mechanism made user-level, and what that costs (F1 to F3).

Reference systems: they say what is possible for *every* mechanism. For a particular question the
estimators of the other rooms need far fewer users; ``docs/item-to-user.md`` compares.
"""

from quorate.conversion.enumerated import ItemToUser
from quorate.conversion.item_to_user import CertifiedItemToUser
from quorate.mechanisms.stable_release import Base, BaseKind

__all__ = ["Base", "BaseKind", "CertifiedItemToUser", "ItemToUser"]
