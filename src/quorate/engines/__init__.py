"""Where sums over users are computed: engines know users and grids, not privacy."""

from quorate.engines.base import Engine, Statistic, UserMeans, encode_users, sum_users
from quorate.engines.local import LocalEngine

__all__ = ["Engine", "LocalEngine", "Statistic", "UserMeans", "encode_users", "sum_users"]
