r"""The share of variance between users, and the number of records per user.

The means of two similar users differ only because each of them has few records. The size of this
effect follows from each user's own records: the mean of one half is compared with that of the other
half. The ratio of the two distances, for random pairs of users, is distributed like
:math:`F_{d,2d}/(1-\rho)`, where :math:`\rho` is the share of the variance of user means that lies
between users. A bounded function of the ratio is averaged privately and inverted through that law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.account.secret_pairs import secret_pairs
from quorate.core.bounds.grid import Bound, Interval
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.users import UserData
from quorate.core.users.public_choices import in_own_order
from quorate.data.tables import declared_names
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.stated_error import StatedError
from quorate.mechanisms.sums import choose_grid
from quorate.ranges import as_bound, declared_bound, half_widths

__all__ = [
    "ROUTE",
    "UserVariation",
    "VariationError",
    "expected_half_width",
    "expected_score",
    "share_from_score",
]

# Pairs of more users than this make no visible difference to a share.
_MOST_PAIRED = 2**16
# Shares of epsilon: the pairs' scores, how many pairs can be asked, and the inverse records.
_SCORES, _USABLE, _RECORDS = Fraction(13, 20), Fraction(1, 10), Fraction(1, 4)
ROUTE = Route(name="pairs", reason="pairs of users, compared with halves of their own records.")
# Half-widths of normal intervals that hold with 95 %.
_CONFIDENCE = 0.95  # public: the convention of stated errors
_NORMAL = 1.96  # derived: the quantile of the normal law for it
_COVERS = (
    "Privacy noise and the choice of pairs, if users are normal around their centres; not the "
    "sampling of the people themselves."
)
_POINTS = 400
# What unequal numbers of records and a law that is not quite normal may move the share by.
_LAW = 0.03
_TINY = 1e-300  # machine: floats
# No reading of noisy inverse records claims more records than this.
_MOST = 2.0**20


def _softness(dimension: int) -> float:
    """Return the slope of a pair's score; with one coordinate the slope is smaller."""
    return 1.0 if dimension == 1 else 0.6


@lru_cache(maxsize=64)
def _log_ratios(dimension: int) -> NDArray[np.float64]:
    """Return equally spaced quantiles of the logarithm of F(d, 2d)."""
    from scipy.special import fdtri

    middle = (np.arange(_POINTS) + 0.5) / _POINTS
    return np.asarray(np.log(fdtri(dimension, 2.0 * dimension, middle)))


def expected_score(share: float, dimension: int) -> float:
    """Return the expected score of a pair if this share of the variance lies between users.

    >>> expected_score(0.0, 1) < expected_score(0.5, 1) < expected_score(0.9, 1)
    True
    """
    ratios = _log_ratios(dimension) - math.log1p(-share)
    scores = 1.0 / (1.0 + np.exp(-(ratios - 1.0) / _softness(dimension)))
    return float(scores.mean())


def share_from_score(score: float, dimension: int) -> float:
    """Return the share between users at which the expected score is ``score``, within [0, 1].

    >>> round(share_from_score(expected_score(0.7, 3), 3), 6)
    0.7
    """
    low, high = 0.0, 1.0 - 2.0**-20
    if score <= expected_score(low, dimension):
        return 0.0
    if score >= expected_score(high, dimension):
        return 1.0
    for _ in range(50):
        middle = (low + high) / 2
        below = expected_score(middle, dimension) < score
        low, high = (middle, high) if below else (low, middle)
    return low


def expected_half_width(share: float, *, users: int, epsilon: float, dimension: int) -> float:
    """Return the half-width of the stated interval if every user has at least two records.

    >>> expected_half_width(0.5, users=10_000, epsilon=1.0, dimension=2) < 0.1
    True
    """
    pairs, whole = max(users // 2, 1), Fraction(epsilon)
    scores, asked = (_laplace(pairs, each * whole) for each in (_SCORES, _USABLE))
    noise = math.hypot(scores.standard_error, asked.standard_error / 2) / pairs
    wide = math.hypot(noise, 0.5 / math.sqrt(pairs)) * _NORMAL
    middle = expected_score(min(share, 1.0 - 2.0**-20), dimension)
    low, high = (share_from_score(middle + side * wide, dimension) for side in (-1.0, 1.0))
    return (min(1.0, high + _LAW) - max(0.0, low - _LAW)) / 2


@dataclass(frozen=True, kw_only=True)
class VariationError(StatedError):
    """95 % confidence intervals for the true figures, with privacy noise and the choice of pairs.

    They assume that users are normal around their centres, with an allowance of 0.03 for unequal
    numbers of records. For very skewed data the share is up to 0.1 too low.

    >>> VariationError(share=(0.4, 0.6), between=(0.1, 0.2), records=(4.0, 6.0)).share
    (0.4, 0.6)
    """

    share: tuple[float, float]
    between: tuple[float, float]
    records: tuple[float, float]
    confidence: float = _CONFIDENCE
    covers: str = _COVERS

    @property
    def coordinates(self) -> tuple[float, ...]:
        """Half the widths of the three intervals."""
        return tuple((high - low) / 2.0 for low, high in (self.share, self.between, self.records))

    @property
    def bound(self) -> float:
        """Half the width of the interval of ``share_``."""
        return self.coordinates[0]

    @property
    def worst(self) -> float:
        """The same for users of any distribution: shares lie between 0 and 1.

        >>> VariationError(share=(0.0, 0.4), between=(0.0, 0.2), records=(3.0, 9.0)).worst
        3.0
        """
        return max(1.0, *self.coordinates)


class UserVariation(UserEstimator):
    r"""How much users differ from each other, and how many records they have.

    Release it with a small epsilon before planning: forecasts need ``between_`` and ``records_``,
    which are hard to guess.

    Privacy
    -------
    guarantee : ``guarantee_``: ``epsilon``-DP
    neighbours : replace all records of one user
    trust : central
    public : all parameters, the number of features and the number of users; released: ``share_``,
         ``between_``, ``records_``
    numerics : exact
    proof : Three sums with Laplace noise that share epsilon. Pairs are disjoint and drawn from a
        secret order, uniformly, so a replaced user is in one pair (see
        :mod:`quorate.core.account.secret_pairs`); a pair's score, whether the pair can be scored,
        and one over a user's number of records all lie in [0, 1], so each sum moves by at most 1. A
        pair that cannot be scored counts as 1/2.

    Utility
    -------
    At epsilon = 1 and 1000 users ``share_`` has a standard error of 0.02 to 0.14 in one dimension
    and below 0.05 in twenty; with 300 users and one dimension up to 0.3. ``error_`` states the
    error of this run.

    Complexity
    ----------
    Time and memory :math:`O(Nd)`; the means of at most 2^16 users are gathered.

    Parameters
    ----------
    epsilon : float
    bounds : float, pair, dict or Bound
        Public limits of the features, as in :class:`~quorate.means.user_mean.UserMean`; features
        are compared in units of their widths.
    delta : 0.0
        Only pure differential privacy is supported; any other value is refused.
    relation : Relation, default=Relation.REPLACE
        Must be ``Relation.REPLACE``: if a user joined, all pairs might change.
    ledger, data_name, random_state
        As in every estimator; no public randomness is used.

    Attributes
    ----------
    share_ : float
        Share of the variance of *user means* that lies between users.
    between_ : float
        Share of the variance of *single records* that lies between users (the intraclass
        correlation), from ``share_`` and ``records_``.
    records_ : float
        Harmonic mean of the number of records, over users who have any.
    error_ : VariationError
    algorithm_ : Route
    guarantee_ : Guarantee

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = np.repeat(np.arange(3000), 10)
    >>> level = rng.normal(size=(3000, 2))[people]
    >>> X = level + rng.normal(size=(30_000, 2))
    >>> variation = UserVariation(epsilon=4.0, bounds=6.0).fit(X, users=people)
    >>> abs(variation.between_ - 0.5) < 0.2, abs(variation.records_ - 10) < 3
    (True, True)
    """

    _takes_crowds = True
    _codes_columns = True
    _uses_delta = False

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = None,
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> UserVariation:
        """Release how the users of ``X`` differ (records x features with ``users``, or a crowd)."""
        X = self._as_numbers(X)
        declared_bound(self._public_bounds(X), X)
        _validate.useful_epsilon(epsilon=self.epsilon)
        if self.relation is not Relation.REPLACE:
            raise ParameterError(
                "UserVariation compares pairs of users and needs Relation.REPLACE: when somebody "
                "joins, everybody may get another partner."
            )
        account = self._charge(X, None, users)
        people = self._population(X, None, users)
        bound = as_bound(self._public_bounds(X), people.n_features, declared_names(X))
        dimension = people.n_features
        score, noise, usable = _release_scores(people, bound, account)
        records, present, each = _release_records(people, account)
        self.guarantee_ = self._promise(account)
        wide = math.hypot(noise, 0.5 / math.sqrt(max(usable, 1.0))) * _NORMAL
        shares = [share_from_score(s, dimension) for s in (score - wide, score, score + wide)]
        shares[0], shares[2] = max(0.0, shares[0] - _LAW), min(1.0, shares[2] + _LAW)
        sums = (records + each, records, records - each)
        held = [max(1.0, present / max(found, present / _MOST)) for found in sums]
        self.share_, self.records_ = shares[1], held[1]
        self.between_ = _between(shares[1], held[1])
        self.error_ = VariationError(
            share=(shares[0], shares[2]),
            between=(_between(shares[0], held[2]), _between(shares[2], held[0])),
            records=(held[0], held[2]),
        )
        self.algorithm_ = ROUTE
        return self


def _between(share: float, records: float) -> float:
    """Convert a share of the variance of means into one of the variance of single records."""
    return share / (share + records * (1.0 - share)) if share > 0 else 0.0


def _release_scores(people: People, bound: Bound, account: Account) -> tuple[float, float, float]:
    """Return the mean score of pairs that can be scored, its noise, and their number."""
    pairs = min(people.n_users, _MOST_PAIRED) // 2
    rows = secret_pairs(people, _Halves(bound), account=account, most=_MOST_PAIRED)
    found = rows.map(_pair_scores)
    total = _laplace(pairs, _SCORES * account.epsilon)
    count = _laplace(pairs, _USABLE * account.epsilon)
    # A pair that cannot be asked scores 1/2, which is taken out again by their noisy number.
    scores, asked = (
        float(each.release(found.column(place).total(each.grid), count=pairs, account=account)[0])
        for place, each in enumerate((total, count))
    )
    usable = min(asked, pairs)
    sums = scores - (pairs - usable) / 2
    usable = max(usable, 1.0)
    noise = math.hypot(total.standard_error, count.standard_error / 2) / usable
    return min(max(sums / usable, 0.0), 1.0), noise, usable


def _pair_scores(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each pair's score in [0, 1], and whether both users have two records or more."""
    means, within = rows[:, :, :-1], rows[:, :, -1]
    apart = np.einsum("pd,pd->p", *2 * [means[:, 0] - means[:, 1]]) / 2
    own = within.mean(axis=1)
    asked = ~np.isnan(own) & ~np.isnan(apart)
    ratio = np.full(len(rows), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.subtract(np.log(apart), np.log(own), out=ratio, where=asked)
    # Equal records within both users say nothing about noise: whoever differs, differs.
    ratio = np.where(np.isnan(ratio), -np.inf, ratio)
    scores = 1.0 / (1.0 + np.exp(np.clip(-(ratio - 1.0) / _softness(means.shape[2]), -700, 700)))
    return np.column_stack([np.where(asked, scores, 0.5), asked])


def _release_records(people: People, account: Account) -> tuple[float, float, float]:
    """Return the sum of 1 / records, the number of present users, and that sum's half-width."""
    total = _laplace(people.n_users, _RECORDS / 2 * account.epsilon)
    here = _laplace(people.n_users, _RECORDS / 2 * account.epsilon)
    inverse = people.total(_Inverse(), total.grid)
    held = people.total(_Present(), here.grid)
    sums = float(total.release(inverse, count=people.n_users, account=account)[0])
    present = float(here.release(held, count=people.n_users, account=account)[0])
    return sums, min(max(present, 1.0), people.n_users), total.error_bound(1.0 - _CONFIDENCE)


def _laplace(count: int, epsilon: Fraction) -> LaplaceSum:
    grid = choose_grid(Interval(0.0, 1.0), n_users=max(count, 1), noise_scale=1.0 / float(epsilon))
    return LaplaceSum(grid=grid, epsilon=epsilon)


@dataclass(frozen=True)
class _Halves:
    """One row per user: the mean in units of the widths, and its variance by two halves.

    Records are assigned to the two halves alternately, in an order that depends on this user's
    records only. The row is NaN for a user with fewer than two records.
    """

    bound: Bound

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        users = in_own_order(users, by_key=True)
        rows = self.bound.clip(users.X) / np.maximum(half_widths(self.bound), _TINY)
        turn = np.arange(users.n_records) - np.repeat(users.offsets[:-1], users.record_counts())
        fine = ~np.isnan(users.X).any(axis=1)
        first, second = fine & (turn % 2 == 0), fine & (turn % 2 == 1)
        sums = [users.user_sums(rows, weights=half.astype(np.float64)) for half in (first, second)]
        dealt = np.column_stack([first, second]).astype(np.float64)
        counts = users.user_sums(dealt).T
        with np.errstate(divide="ignore", invalid="ignore"):
            a, b = (total / count[:, None] for total, count in zip(sums, counts, strict=True))
            held = counts[0] + counts[1]
            mean = (sums[0] + sums[1]) / held[:, None]
            scale = held * (1.0 / counts[0] + 1.0 / counts[1])
            own = np.einsum("ij,ij->i", a - b, a - b) / scale
        return np.column_stack([mean, np.where(np.isinf(own), np.nan, own)])


@dataclass(frozen=True)
class _Inverse:
    """1 divided by a user's number of records; 0 for a user without records."""

    bound: ClassVar[Bound] = Interval(0.0, 1.0)
    batched: ClassVar[bool] = False

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        counts = users.record_counts()
        return np.where(counts > 0, 1.0 / np.maximum(counts, 1), 0.0)[:, None]


@dataclass(frozen=True)
class _Present:
    """Whether a user has a record."""

    bound: ClassVar[Bound] = Interval(0.0, 1.0)
    batched: ClassVar[bool] = False

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        return (users.record_counts() > 0).astype(np.float64)[:, None]
