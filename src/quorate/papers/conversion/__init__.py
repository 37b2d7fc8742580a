"""Any item-level mechanism made user-level, and what that costs (F1 to F3).

Reference systems: they say what is possible for *every* mechanism. For a particular question the
estimators of the other rooms need far fewer users; ``docs/item-to-user.md`` compares.

* :mod:`quorate.papers.conversion.enumerated`: Algorithm 1 as published, for a handful of users.
* :mod:`quorate.papers.conversion.item_to_user`: sums of scores, with a fast certificate.
* :mod:`quorate.papers.conversion.alike`, :mod:`quorate.core.vertex_cover`: that certificate.
* :mod:`quorate.papers.conversion.translation`: what record-level privacy is worth for users.
* :mod:`quorate.papers.conversion.perfect_generalisation`: why, and how much, measured.
"""

from __future__ import annotations

from quorate.mechanisms.wrappers.stable_release import Base, BaseKind
from quorate.mechanisms.wrappers.subsampled import SubsampledMechanism
from quorate.papers.conversion.enumerated import ItemToUser
from quorate.papers.conversion.item_to_user import CertifiedItemToUser
from quorate.papers.conversion.perfect_generalisation import PerfectGeneralisation

__all__ = [
    "Base",
    "BaseKind",
    "CertifiedItemToUser",
    "ItemToUser",
    "PerfectGeneralisation",
    "SubsampledMechanism",
]
