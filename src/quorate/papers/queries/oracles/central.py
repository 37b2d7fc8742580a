"""A curator answers all queries of an algorithm within one budget, hiding any one user."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Box, Grid
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.core.users.crowd import Crowd
from quorate.exceptions import QueriesExhaustedError
from quorate.mechanisms.laplace import CubeSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum, choose_grid
from quorate.papers.queries.statistical import QueryOracle, StatisticalQuery

__all__ = ["CentralOracle"]


def count_share(queries: int) -> Fraction:
    """Return the part of the budget for counting users, if their number is private.

    The noise of sums and of the count adds up to t / (1 - s) + 1 / s for values at an end of their
    range, which is smallest at s = 1 / (1 + sqrt(t)).

    >>> count_share(1), count_share(9)
    (Fraction(1, 2), Fraction(1, 4))
    """
    return Fraction(1, 1 + math.isqrt(queries))


@dataclass(frozen=True)
class QueryValues:
    """The values of one user under several queries, each scaled to [-1, 1]."""

    queries: tuple[StatisticalQuery, ...]

    @cached_property
    def bound(self) -> Box:
        """Every value lies between -1 and 1."""
        ones = np.ones(len(self.queries))
        return Box(-ones, ones)

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        """Return one row per user."""
        columns = [
            (query.on_users(users) - query.middle) / (query.width / 2) for query in self.queries
        ]
        return np.stack(columns, axis=1)


class CentralOracle(QueryOracle):
    r"""Answer at most ``max_queries`` statistical queries about users, with noise.

    Every user's records become one value in the range of the query; values are added up on a grid,
    get noise, and are divided by the number of users. Each query gets an equal part of the budget:
    of :math:`\mu^2` with Gaussian noise if the account has a delta, otherwise of
    :math:`\varepsilon`. In the second case queries of one round share joint noise for the largest
    answer. Further queries are refused.

    Privacy
    -------
    guarantee : that of the account: :math:`(\varepsilon, \delta)`-DP for all answers together
    neighbours : ``relation`` of the account: replace all records of one user, or add or remove all
        records of one user
    trust : central
    public : the queries and all parameters; under replacement the number of users
    numerics : exact
    proof : A user's row of values lies in a box, so the sum of a round is a
        :class:`~quorate.mechanisms.laplace.CubeSum` or
        :class:`~quorate.mechanisms.sums.GaussianSum`; parts of one account add up adaptively.

    Parameters
    ----------
    users : People, or a crowd
    max_queries : int
        The number of equal parts of the budget; public.
    account : Account
        The account to charge.
    tried : bool, default=True
        Whether a query is first tried on made-up records, so that errors in it are reported.

    Examples
    --------
    >>> from quorate.papers.queries.algorithms import ConjunctionQueries
    >>> X = np.random.default_rng(0).integers(0, 2, size=(20_000, 3))
    >>> people = UserData.from_arrays(X, X[:, 0] & X[:, 2], users=range(20_000))
    >>> algorithm = ConjunctionQueries(3)
    >>> oracle = CentralOracle(people, max_queries=3, account=Account.open(epsilon=1.0))
    >>> print(algorithm.run(oracle))
    Predict 1 if x0 and x2, else 0.
    """

    def __init__(
        self, users: People | Crowd, *, max_queries: int, account: Account, tried: bool = True
    ) -> None:
        super().__init__(users.n_features if tried else None)
        _validate.positive_integer(max_queries=max_queries)
        self.max_queries = max_queries
        self._people = people = (
            users if isinstance(users, People) else People(users, account.relation, among=account)
        )
        self._account = account
        self._share = Fraction(1, max_queries)
        self._counter: NoisyCount | GaussianSum | None = None
        if account.relation is Relation.ADD_REMOVE:
            self._share *= 1 - count_share(max_queries)
            self._count = self._noisy_count()
        else:
            self._count = float(people.n_users)
        self.standard_errors: list[float] = []
        self._sums: list[tuple[GaussianSum | CubeSum, float]] = []

    def _noisy_count(self) -> float:
        """Return a private estimate of the number of users, at least one."""
        part = self._account.part(count_share(self.max_queries))
        if self._account.square:
            grid = choose_grid(Box(np.zeros(1), np.ones(1), centre=np.zeros(1)), n_users=2**40)
            total = self._counter = self._gaussian(grid, part)
            steps = self._people.everybody() * round(1.0 / grid.step)
            return max(1.0, float(total.release(steps, count=0, account=part)[0]))
        counter = NoisyCount(epsilon=float_down(part.left), relation=self._account.relation)
        self._counter = counter
        return max(1.0, float(counter.release(self._people.everybody(), account=part)))

    def _gaussian(self, grid: Grid, part: Account) -> GaussianSum:
        multiplier = part.multiplier(part.square_left)
        return GaussianSum(grid=grid, noise_multiplier=multiplier, relation=self._account.relation)

    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> NDArray[np.float64]:
        if self.n_queries + len(queries) > self.max_queries:
            raise QueriesExhaustedError(
                f"Expected at most max_queries={self.max_queries} queries, got another "
                f"{len(queries)} after {self.n_queries}: nothing was asked."
            )
        part = self._account.part(self._share * len(queries))
        values = QueryValues(queries)
        public = self._account.relation is Relation.REPLACE
        # Offsets from the middle of each range: the number of users does not enter the sums.
        known = self._people.n_users if public else 2**40
        grid = choose_grid(values.bound, n_users=known, max_steps=2**20)
        total: GaussianSum | CubeSum
        if self._account.square:
            total = self._gaussian(grid, part)
        else:
            total = CubeSum(
                grid=grid, epsilon=float_down(part.left), relation=self._account.relation
            )
        sums = total.release(self._people.total(values, grid), count=0, account=part)
        means = np.clip(sums / max(self._count, 1.0), -1.0, 1.0)
        widths = np.array([query.width / 2 for query in queries])
        self.standard_errors += [
            float(total.standard_error / max(self._count, 1.0) * width) for width in widths
        ]
        self._sums += [(total, float(width)) for width in widths]
        return np.array([query.middle for query in queries]) + widths * means

    @property
    def weak(self) -> list[str]:
        """The queries whose noise may exceed their tolerance, with 5 % probability in total."""
        queries = [query for batch in self.asked for query in batch]
        share = 0.05 / max(1, len(queries))
        return [
            query.name
            for query, (total, width) in zip(queries, self._sums, strict=True)
            if total.error_bound(share) / max(self._count, 1.0) * width > query.tolerance
        ]

    def error_bound(self, beta: float) -> float:
        """Bound the noise in all answers so far, except with probability ``beta``.

        Under add or remove half of ``beta`` is for the noise of the count: an answer is a quotient,
        and the mean of values in [-1, 1] moves by at most the relative error of the count.
        """
        _validate.probability(beta=beta)
        if not self._sums:
            return 0.0
        counted = self._counter is not None
        each = beta / (2 if counted else 1) / len(self._sums)
        count = max(self._count, 1.0)
        # The value of a user is cut to a step of the grid, towards the middle of the range.
        relative = [
            (total.error_bound(each) / count + total.grid.step, width)
            for total, width in self._sums
        ]
        off = self._counter.error_bound(beta / 2) / count if self._counter is not None else 0.0
        return max((noise + off) * width for noise, width in relative)
