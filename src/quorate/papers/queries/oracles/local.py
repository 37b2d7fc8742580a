r"""Users answer statistical queries themselves, with noise of their own (K7).

Each query goes to its own block of users, who answer only once, so the whole budget of a user
protects one answer. A value is reported as a bit by randomized response, which is better than
Laplace noise for every two-valued query, and up to epsilon = 2.3 for every other query.
Alternatively the queries of one round are answered *jointly*: every user of the round reports one
bit about a public random combination of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users import UserData
from quorate.core.users.crowd import Crowd
from quorate.exceptions import ParameterError, QueriesExhaustedError
from quorate.local.oracle import LocalOracle, Report
from quorate.local.randomizers.known_laws import BinaryResponse, LaplaceResponse, Randomizer
from quorate.papers.queries.statistical import QueryOracle, StatisticalQuery

__all__ = ["LocalQueryOracle", "published_users", "random_signs", "users_for_tolerance"]

_STREAM = np.uint64(0x9E3779B97F4A7C15)


def published_users(*, tolerance: float, epsilon: float, queries: int, beta: float) -> int:
    r"""Return the users for one query of range [0, 1] by Lemma 5.6, with corrected constants.

    It is :math:`\max(8 b^2 \ln(4t/\beta)/\tau^2,\ 64 b^2 \ln(4t/\beta)/(\varepsilon\tau)^2)` with b
    = 1/2.

    >>> published_users(tolerance=0.05, epsilon=1.0, queries=8, beta=0.05)
    41354
    """
    _check(tolerance, epsilon, queries, beta)
    logarithm = math.log(4 * queries / beta)
    sampling, noise = 2 / tolerance**2, 16 / (epsilon * tolerance) ** 2
    return math.ceil(max(sampling, noise) * logarithm)


def users_for_tolerance(*, tolerance: float, epsilon: float, queries: int, beta: float) -> int:
    r"""Return the users that one query of range [0, 1] needs with randomized response.

    The estimate is a mean of n independent numbers in an interval of width
    :math:`\coth(\varepsilon/2)`, so by Hoeffding it is within :math:`\tau` except with probability
    :math:`2 \exp(-2n\tau^2\tanh^2(\varepsilon/2))`.

    >>> users_for_tolerance(tolerance=0.05, epsilon=1.0, queries=8, beta=0.05)
    5403
    """
    _check(tolerance, epsilon, queries, beta)
    contrast = math.tanh(epsilon / 2)
    return math.ceil(math.log(2 * queries / beta) / (2 * (tolerance * contrast) ** 2))


def _check(tolerance: float, epsilon: float, queries: int, beta: float) -> None:
    _validate.positive(tolerance=tolerance, epsilon=epsilon)
    _validate.positive_integer(queries=queries)
    _validate.probability(beta=beta)


def random_signs(keys: NDArray[np.uint64], count: int, seed: np.uint64) -> NDArray[np.float64]:
    """Return ``count`` public random signs for each user, from the seed and the user's key.

    >>> keys = UserData.from_arrays([[1.0], [2.0]], users=["ann", "bob"]).keys()
    >>> signs = random_signs(keys, 100, np.uint64(7))
    >>> bool(np.array_equal(signs[1], random_signs(keys[1:], 100, np.uint64(7))[0]))
    True
    """
    from quorate.core.users.grouping import mix

    own = mix(keys + seed)
    words = mix(own[:, np.newaxis] + _STREAM * np.arange(1, -(-count // 64) + 1, dtype=np.uint64))
    bits = (words[:, :, np.newaxis] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    return 1.0 - 2.0 * bits.reshape(len(keys), -1)[:, :count].astype(np.float64)


@dataclass(frozen=True)
class Share:
    """The value of a query as a share of its range."""

    query: StatisticalQuery
    row_wise: ClassVar[bool] = True

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        return (self.query.on_users(users) - self.query.low) / self.query.width


@dataclass(frozen=True)
class Combination:
    """A signed sum of the values of several queries, as a share of [-``norm``, ``norm``]."""

    queries: tuple[StatisticalQuery, ...]
    norm: float
    seed: np.uint64
    row_wise: ClassVar[bool] = True

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        values = np.stack([query.on_users(users) for query in self.queries], axis=1)
        sizes = np.abs(values).sum(axis=1)
        values *= np.minimum(1.0, self.norm / np.maximum(sizes, self.norm))[:, np.newaxis]
        signs = random_signs(users.keys(), len(self.queries), self.seed)
        return np.asarray(0.5 + np.einsum("ij,ij->i", signs, values) / (2 * self.norm))


class LocalQueryOracle(QueryOracle):
    r"""Answer statistical queries by local randomizers, with a new block of users for each.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : replace all records of one user
    trust : local
    public : the queries, who is in which block, all parameters, the number of users
    numerics : exact
    proof : A :class:`~quorate.local.oracle.LocalOracle` collects the answers; blocks are disjoint,
        so each user answers once, at the cost of the whole budget.

    Parameters
    ----------
    users : UserData, or another crowd
    epsilon : float
    rounds : sequence of int
        The largest number of queries of each round; public. There is one block of users per query.
    shares : sequence of float, optional
        The part of the users for each round; by default in proportion to its queries.
    joint : sequence of float or None, optional
        For each round: the bound for answering its queries jointly, or None to answer them
        separately. It bounds the sum of the absolute values of one user over the round; larger sums
        are scaled down.
    published : bool, default=False
        Answer with Laplace noise, as in the paper, instead of randomized response.
    beta : float, default=0.05
        Failure probability at which ``weak`` lists queries with too few users.
    account : Account, optional
        The account to charge.
    random_state : public seed of the blocks and signs

    Attributes
    ----------
    weak : list of str
        The queries whose blocks are too small for their tolerance (with failure probability
        ``beta`` in total). They are answered nevertheless.

    References
    ----------
    .. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011, Lemma
       5.6 and Theorem 5.7.

    Examples
    --------
    >>> from quorate.papers.queries.algorithms import ConjunctionQueries
    >>> X = np.random.default_rng(0).integers(0, 2, size=(60_000, 3))
    >>> people = UserData.from_arrays(X, X[:, 0] & X[:, 2], users=range(60_000))
    >>> oracle = LocalQueryOracle(people, epsilon=1.0, rounds=(3,), random_state=0)
    >>> print(ConjunctionQueries(3, tolerance=0.06).run(oracle))
    Predict 1 if x0 and x2, else 0.
    >>> oracle.weak
    []
    """

    def __init__(
        self,
        users: Crowd,
        *,
        epsilon: float,
        rounds: Sequence[int],
        shares: Sequence[float] | None = None,
        joint: Sequence[float | None] | None = None,
        published: bool = False,
        beta: float = 0.05,
        account: Account | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(users.n_features)
        _validate.probability(beta=beta)
        bounds = (None,) * len(rounds) if joint is None else tuple(joint)
        if len(bounds) != len(rounds):
            raise ParameterError("Expected a number or None in joint= for each round.")
        for bound in bounds:
            if bound is not None:
                _validate.positive(joint=bound)
        self._oracle = LocalOracle(users, epsilon, account=account)
        self._users = users
        self._epsilon, self._joint, self._published = epsilon, bounds, published
        self._beta = beta
        self._rounds = tuple(rounds)
        generator = public_generator(random_state)
        order = np.argsort(users.public_draws(generator), kind="stable")
        self._blocks = _cut(order, self._rounds, shares)
        self._seed = generator.integers(0, 2**64, dtype=np.uint64)
        self.weak: list[str] = []

    @property
    def transcript(self) -> Any:
        """The queries, the users who were asked, and their answers."""
        return self._oracle.transcript

    @property
    def guarantee(self) -> Any:
        """The guarantee for every user."""
        return self._oracle.guarantee

    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> NDArray[np.float64]:
        turn = self.n_rounds
        if turn >= len(self._rounds) or len(queries) > self._rounds[turn]:
            allowed = self._rounds[turn] if turn < len(self._rounds) else 0
            raise QueriesExhaustedError(
                f"Expected at most {allowed} queries in round {turn + 1}, got {len(queries)}: "
                "nothing was asked."
            )
        block = self._blocks[turn]
        norm = self._joint[turn]
        if norm is not None and len(queries) > 1:
            return self._ask_jointly(queries, block, norm)
        parts = np.array_split(block, len(queries))
        return np.array(
            [self._ask(query, part) for query, part in zip(queries, parts, strict=True)]
        )

    def _ask(self, query: StatisticalQuery, block: NDArray[np.int64]) -> float:
        self._flag(query, len(block))
        if not len(block):
            return query.middle
        randomizer: Randomizer = (
            LaplaceResponse(self._epsilon) if self._published else BinaryResponse(self._epsilon)
        )
        answers = self._oracle.ask(block, Report(Share(query), randomizer, name=query.name))
        if isinstance(randomizer, BinaryResponse):
            share = randomizer.estimate(answers)
        else:
            share = float(np.mean(answers))
        return query.low + query.width * share

    def _ask_jointly(
        self, queries: tuple[StatisticalQuery, ...], block: NDArray[np.int64], norm: float
    ) -> NDArray[np.float64]:
        if not len(block):
            return np.array([query.middle for query in queries])
        response = BinaryResponse(self._epsilon)
        combination = Combination(queries, norm, self._seed + np.uint64(self.n_rounds))
        answers = self._oracle.ask(block, Report(combination, response, name="joint report"))
        signs = random_signs(self._users.keys()[block], len(queries), combination.seed)
        # Signs are independent, so each picks its own query out of the sum, without bias.
        picked = np.einsum("ij,i->j", signs, 2.0 * answers - 1.0)
        return np.asarray(picked * (norm / (response.contrast * len(block))))

    def _flag(self, query: StatisticalQuery, users: int) -> None:
        needed = (published_users if self._published else users_for_tolerance)(
            tolerance=query.tolerance / query.width,
            epsilon=float(self._epsilon),
            queries=sum(self._rounds),
            beta=self._beta,
        )
        if users < needed:
            self.weak.append(query.name)


def _cut(
    order: NDArray[np.int64], rounds: tuple[int, ...], shares: Sequence[float] | None
) -> list[NDArray[np.int64]]:
    """Divide the users into one block per round."""
    for queries in rounds:
        _validate.positive_integer(rounds=queries)
    parts = np.asarray(rounds if shares is None else shares, dtype=np.float64)
    if len(parts) != len(rounds) or not len(rounds) or not np.all(parts > 0):
        raise ParameterError("Expected a positive share for each of at least one round.")
    ends = np.round(np.cumsum(parts / parts.sum()) * len(order)).astype(np.int64)
    return np.split(order, ends[:-1])
