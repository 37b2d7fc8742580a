"""Where users lie: crowds of whole users in memory, in files and on other machines.

Engines know users and grids, not privacy: what comes out of them are exact integers, and noise is
drawn by whoever asked.
"""

from quorate.engines.base import Engine, PartedCrowd
from quorate.engines.local import LocalEngine
from quorate.engines.memory import MemoryCrowd
from quorate.users.statistics import Statistic, UserMeans, encode_users, sum_users

__all__ = [
    "Engine",
    "LocalEngine",
    "MemoryCrowd",
    "PartedCrowd",
    "Statistic",
    "UserMeans",
    "encode_users",
    "sum_users",
]
