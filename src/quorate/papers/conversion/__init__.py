"""Conversion of any item-level mechanism to user level, and its cost (F1 to F3).

These are reference systems: they show what is possible for *every* mechanism. For a particular
statistic the estimators of other packages need far fewer users; ``docs/item-to-user.md`` compares
them.

* :mod:`quorate.papers.conversion.enumerated`: Algorithm 1 as published, for a handful of users.
* :mod:`quorate.papers.conversion.item_to_user`: sums of scores, with a fast certificate.
* :mod:`quorate.papers.conversion.alike`, :mod:`quorate.core.vertex_cover`: the parts of that
  certificate.
* :mod:`quorate.papers.conversion.translation`: the user-level guarantee that record-level privacy
  gives.
* :mod:`quorate.papers.conversion.perfect_generalisation`: the reason for it, measured in
  simulations.
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
