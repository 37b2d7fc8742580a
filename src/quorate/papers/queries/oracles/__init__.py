"""Oracles that answer statistical queries.

``known`` the distribution itself, exactly or as badly as the tolerance allows · ``empirical`` a
sample, without privacy · ``central`` a curator who adds noise, with one budget for all queries ·
``local`` users who add the noise themselves, one block of users per query.
"""

from __future__ import annotations

from quorate.papers.queries.oracles.central import CentralOracle
from quorate.papers.queries.oracles.empirical import EmpiricalOracle
from quorate.papers.queries.oracles.known import (
    ExactOracle,
    MovedOracle,
    RandomlyMovedOracle,
    against_all_signs,
)
from quorate.papers.queries.oracles.local import LocalQueryOracle

__all__ = [
    "CentralOracle",
    "EmpiricalOracle",
    "ExactOracle",
    "LocalQueryOracle",
    "MovedOracle",
    "RandomlyMovedOracle",
    "against_all_signs",
]
