"""Where the records of users are stored: in memory, in files and on other machines.

``memory`` parts in this process · ``files`` for more records than fit into memory · ``dask`` and
``spark`` clusters · ``sql`` rows of a query. Engines know users and grids, but nothing about
privacy. They return exact integers, and the caller adds the noise.
"""

from quorate.core.users.crowd import Statistic, UserMeans, encode_users, sum_users
from quorate.data.engines.base import PartedCrowd
from quorate.data.engines.memory import MemoryCrowd

__all__ = [
    "MemoryCrowd",
    "PartedCrowd",
    "Statistic",
    "UserMeans",
    "encode_users",
    "sum_users",
]
