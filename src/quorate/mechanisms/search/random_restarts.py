"""Algorithm 5 of Levy et al. as published: random restarts of winsorized losses (U7).

Draw a candidate uniformly, release its winsorized mean loss, stop with a small probability, repeat;
at the end keep the smallest value. If every release costs epsilon/3, the whole costs epsilon,
however many releases there were [1]_. Three details of the paper are corrected here. The theorem
omits the division by three. Its stopping probability 1/K is too large for its utility claim; we use
alpha/(5 K), as in its proof. The radius of its Lemma 1 lacks a factor of the square root of 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from quorate import _validate
from quorate._validate import exact
from quorate.core.account.account import Account, smallest_of_visits
from quorate.core.guarantees import Relation
from quorate.core.sealed import SealedRows, check_sealed
from quorate.mechanisms.means.winsorized import WinsorizedMean
from quorate.mechanisms.pure import PureMechanism

__all__ = ["RandomRestarts"]


@dataclass(frozen=True, kw_only=True)
class RandomRestarts(PureMechanism):
    r"""Choose one of K candidates by random restarts of winsorized mean losses.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : replace all records of one user
    trust : central
    public : number of candidates and users, ``records``, bounds
    numerics : exact
    proof : Each visit is a uniform candidate and a release that costs :math:`\varepsilon/3`, so a
        visit is :math:`\varepsilon/3`-DP. Releasing the best of a geometric number of visits (which
        stays secret) costs three times as much as one visit (Theorem 3.2 of [1]_; Theorem 2 of [2]_
        with :math:`\eta = 1`). Stopping is a draw of an integer, exact.

    Utility
    -------
    Theorem 7 of [3]_ with :math:`\varepsilon/3` instead of :math:`\varepsilon`: with probability
    :math:`1 - \alpha` the chosen mean loss exceeds the smallest by :math:`O(\frac{B}{n\sqrt
    m\varepsilon} \log^{3/2})`, if all user losses are concentrated and n is large enough to find
    ranges; ``error_bound`` bounds the effect of the noise alone.

    Complexity
    ----------
    :math:`5 K/\alpha` visits on average, each :math:`O(n \log n)`.

    Parameters
    ----------
    lower, upper : float
        Bounds of the losses.
    epsilon : float
    n_users : int
    records : int
        Records per user, on which the concentration radius depends.
    failure : float, default=0.1
        Desired probability of failure.

    References
    ----------
    .. [1] Liu, Talwar. Private selection from private candidates. STOC 2019, arXiv:1811.07971.
    .. [2] Papernot, Steinke. Hyperparameter tuning with Rényi differential privacy. ICLR 2022,
       arXiv:2110.03620.
    .. [3] Levy et al. Learning with user-level privacy. NeurIPS 2021, Algorithm 5 and Theorem 7.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.core.by_hand import rows_by_hand
    >>> table = rows_by_hand(np.tile([0.9, 0.1], (400, 1)))
    >>> restarts = RandomRestarts(lower=0, upper=1, epsilon=3.0, n_users=400, records=400)
    >>> restarts.release(table)[0]
    1
    """

    lower: float
    upper: float
    epsilon: float | Fraction
    n_users: int
    records: int
    failure: float = 0.1

    def __post_init__(self) -> None:
        _validate.ordered(self.lower, self.upper, name="bounds")
        _validate.positive(epsilon=self.epsilon)
        _validate.positive_integer(n_users=self.n_users, records=self.records)
        _validate.probability(failure=self.failure)

    @property
    def relation(self) -> Relation:  # type: ignore[override]
        """The neighbours of the guarantee."""
        return Relation.REPLACE

    def mean(self, candidates: int) -> WinsorizedMean:
        """Return the mechanism of each visit."""
        return WinsorizedMean(
            lower=self.lower,
            upper=self.upper,
            radius=self.radius(candidates),
            epsilon=exact(self.epsilon) / 3,
            n_users=self.n_users,
            constants="published",
        )

    def radius(self, candidates: int) -> float:
        """Return the concentration radius of Theorem 7, with the factor sqrt(2) that Lemma 1 omits.

        A mean of m losses in [0, B] is sub-Gaussian with parameter B / (2 sqrt m), so it is farther
        than x from its mean with probability at most 2 exp(-2 m x^2 / B^2). For K candidates and n
        users this is alpha / 5 in all at x = (B/2) sqrt(2 ln(10 K n / alpha) / m).
        """
        half = (self.upper - self.lower) / 2
        log = math.log(candidates * self.n_users) + math.log(10 / self.failure)
        return min(half, half * math.sqrt(2 * log / self.records))

    def expected_visits(self, candidates: int) -> float:
        """Return 1 / (stopping probability) = 5 K / alpha."""
        return 5 * candidates / self.failure

    def release(self, table: SealedRows, *, account: Account | None = None) -> tuple[int, float]:
        """Return a candidate (column) with a small mean loss over users (rows), and its value."""
        check_sealed(table, SealedRows)
        paying = Account.of_release(account, self)
        paying.check_seal(table)
        candidates = table.dimension
        mean = self.mean(candidates)
        visits = math.ceil(self.expected_visits(candidates))
        return smallest_of_visits(
            paying,
            lambda candidate, own: mean.release(table.column(candidate), account=own),
            loss=exact(self.epsilon) / 3,
            candidates=candidates,
            visits=visits,
        )

    def error_bound(self, candidates: int, beta: float) -> float:
        """Bound how far noise puts the chosen mean above the best one that was visited.

        It fails with probability ``beta``: half of it for more than ln(2/beta) times the expected
        number of visits, half for the noise of one of them. ``failure`` includes the events that
        the range of a visit misses a user, or that the best candidate is never visited.
        """
        _validate.positive_integer(candidates=candidates)
        _validate.probability(beta=beta)
        visits = math.ceil(self.expected_visits(candidates) * math.log(2 / beta))
        return 2 * self.mean(candidates).noise_scale * math.log(2 * visits / beta)
