"""Answers from a sample, without privacy: for public data, and to measure the cost of privacy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.core.users import UserData
from quorate.papers.queries.statistical import QueryOracle, StatisticalQuery

__all__ = ["EmpiricalOracle"]


class EmpiricalOracle(QueryOracle):
    """Answer with the mean over the users of a sample: not private.

    >>> public = UserData.from_arrays([[1.0], [5.0], [3.0]], [0, 1, 1], users=["a", "b", "a"])
    >>> oracle = EmpiricalOracle(public)
    >>> oracle.ask(StatisticalQuery(function=lambda X, y: y, tolerance=0.1, boolean=True))
    0.75
    """

    def __init__(self, users: UserData) -> None:
        super().__init__(users.n_features)
        self._users = users

    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> NDArray[np.float64]:
        return np.array([query.on_users(self._users).mean() for query in queries])
