"""Private medians and quantiles over users, on ranges of any size (the idea of L5).

Each user is reduced to one value per feature (the user's own median or mean) or to an interval (the
middle half of the user's records). The median of an even number of records is the midpoint of the
two middle ones. A user's value or interval lies below the answer, above it, or contains it. The
answer balances the users on both sides.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact
from quorate.core.bounds.grid import Bound
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.sealed import SealedRows
from quorate.core.users import UserData
from quorate.core.users.data import ordered_users
from quorate.core.users.store import offsets_of
from quorate.data.tables import declared_names
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.choices.noisy_rank import NoisyRank
from quorate.mechanisms.choices.quantiles import FloatQuantile
from quorate.mechanisms.choices.round_quantile import RoundQuantile
from quorate.mechanisms.stated_error import StatedError
from quorate.ranges import as_bound, declared_bound, half_widths

__all__ = ["PrivateMedian", "QuantileError", "UserQuantiles", "record_quantile"]

_REDUCTIONS = ("median", "mean", "middle half")
LOOK = Fraction(1, 5)
"""Share of the budget of a quantile that looks by how much it is off."""
_BETA = 0.05  # public: 95 % is the convention of stated errors
ROUTE = Route(
    name="exponential", reason="the wanted share of users lies below the point, up to the error."
)
"""The only way there is."""
_COVERS = (
    "Privacy noise, in users by which a rank may be off among the present users' own numbers (to "
    "12 digits, or the stated resolution); not the sampling of the people themselves."
)


@dataclass(frozen=True, kw_only=True)
class QuantileError(StatedError):
    """Bound on the rank error of a released quantile; valid for any data.

    Attributes
    ----------
    rank : float
        The number of users on either side of a released value exceeds the requested share by at
        most this many. It is zero if many users share the value.
    confidence : float
    coordinates : tuple of float
        The same for each quantile of each feature alone, in the order of ``quantiles_``.
    covers : str
    bound, worst : float
        The same as ``rank``, because no assumption is made about the users.

    Examples
    --------
    >>> error = QuantileError(rank=20.0, confidence=0.95)
    >>> error.rank, error.bound, error.worst
    (20.0, 20.0, 20.0)
    """

    rank: float
    confidence: float
    coordinates: tuple[float, ...] = ()
    covers: str = _COVERS

    @property
    def bound(self) -> float:
        """The largest error of a rank, in users."""
        return self.rank

    @property
    def worst(self) -> float:
        """The same as ``bound``: nothing is clipped and no assumption is made."""
        return self.rank


UserVectors = Callable[[UserData], NDArray[np.float64]]


def record_quantile(data: UserData, quantile: float) -> NDArray[np.float64]:
    """Return, for each user and feature, a quantile of the user's own records; NaN if none.

    The quantile is the record with ``quantile * m`` of the user's m records to its left, or the
    midpoint of two records if that falls between them. So the median of an even number of records
    is the midpoint of the two middle records, and the quantiles q and 1 - q are symmetric.

    >>> people = UserData.from_arrays([[1.0], [9.0], [2.0], [5.0], [6.0]], users=[0, 0, 0, 1, 1])
    >>> record_quantile(people, 0.5).ravel()
    array([2. , 5.5])
    """
    counts, starts = data.record_counts(), data.offsets[:-1]
    result = np.full((data.n_users, data.n_features), np.nan)
    # Users with as many records make one block, in which everybody is sorted alone.
    for m in np.unique(counts[counts > 0]).tolist():
        (owners,) = np.nonzero(counts == m)
        places = starts[owners, np.newaxis] + np.arange(m)
        share = quantile * m
        last = min(m - 1, int(share))
        first = last - 1 if last == share else last
        for feature in range(data.n_features):
            own = np.partition(data.X[places, feature], (max(first, 0), last), axis=1)
            result[owners, feature] = _midpoint(own[:, max(first, 0)], own[:, last])
    return result


def _midpoint(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the midpoint of two numbers without overflow or warning.

    >>> _midpoint(np.array([1e308, -np.inf]), np.array([1e308, np.inf])).tolist()
    [1e+308, 0.0]
    """
    largest = np.finfo(np.float64).max
    halves = np.clip(low, -largest, largest) / 2 + np.clip(high, -largest, largest) / 2
    return np.where(low == high, low, halves)


@dataclass(frozen=True)
class RecordQuantile:
    """:func:`record_quantile` as a function that can be sent to workers.

    >>> people = UserData.from_arrays([[1.0], [9.0], [2.0], [5.0]], users=[0, 0, 0, 1])
    >>> RecordQuantile(0.5)(people).ravel()
    array([2., 5.])
    """

    quantile: float

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        """Return one row per user; NaN for one without records."""
        return record_quantile(users, self.quantile)


@dataclass(frozen=True)
class OwnValues:
    """One value per user and feature, stored on the workers that hold the records.

    >>> people = UserData.from_arrays([[1.0], [9.0], [2.0], [5.0]], users=[0, 0, 0, 1])
    >>> OwnValues.of(People(people, Relation.REPLACE), RecordQuantile(0.5)).column(0)
    SealedRows(shape of a row=(), one row a user)
    """

    people: People

    @classmethod
    def of(cls, people: People, values: UserVectors) -> OwnValues:
        """Reduce each user to one value by the function ``values``."""
        return cls(people.derive(_OneRecord(values), keep=True))

    def column(self, feature: int) -> SealedRows:
        """Return one number for each present user."""
        return self.people.each(_Column(feature)).present()


@dataclass(frozen=True)
class _OneRecord:
    values: UserVectors

    def __call__(self, users: UserData) -> UserData:
        held = users.record_counts() > 0
        rows = np.ascontiguousarray(self.values(users)[held])
        return ordered_users(rows, None, offsets_of(held), users.keys(), users.unit, None)


@dataclass(frozen=True)
class _Column:
    feature: int

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        if users.n_records == users.n_users:
            return np.ascontiguousarray(users.X[:, self.feature])
        values = np.full(users.n_users, np.nan)
        values[users.record_counts() > 0] = users.X[:, self.feature]
        return values


_Looked = tuple[RoundQuantile | FloatQuantile, NoisyRank]


def looked_quantile(
    limits: tuple[float, float],
    *,
    epsilon: Fraction,
    quantile: float = 0.5,
    relation: Relation = Relation.REPLACE,
    resolution: float | None = None,
) -> _Looked:
    """Return the mechanism for one quantile and the mechanism that measures its rank error.

    >>> mechanism, look = looked_quantile((0.0, 125.0), epsilon=Fraction(1))
    >>> mechanism.epsilon + look.epsilon, mechanism.error_bound(0.05)
    (Fraction(1, 1), 85.0)
    """
    lower, upper = limits
    choice = (1 - LOOK) * epsilon
    mechanism: RoundQuantile | FloatQuantile
    if resolution is None:
        mechanism = RoundQuantile(
            lower=lower, upper=upper, epsilon=choice, quantile=quantile, relation=relation
        )
    else:
        mechanism = FloatQuantile(
            lower=lower,
            upper=upper,
            resolution=resolution,
            epsilon=choice,
            quantile=quantile,
            relation=relation,
        )
    looked = Fraction(str(quantile))
    return mechanism, NoisyRank(epsilon=LOOK * epsilon, quantile=looked, relation=relation)


class UserQuantiles(UserEstimator):
    r"""Quantiles over users of one value per user, hiding any one user's whole record.

    Privacy
    -------
    guarantee : ``guarantee_``: ``epsilon``-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the number of features; under ``Relation.REPLACE`` the number of
        users; released: ``quantiles_``
    numerics : exact
    proof : A user is reduced to one value (or two limits) a feature by a function of that user's
        records; each feature and quantile has an equal part of ``epsilon``. Four fifths of that
        part pay for a :class:`~quorate.mechanisms.choices.round_quantile.RoundQuantile` (with a
        stated resolution a :class:`~quorate.mechanisms.choices.quantiles.FloatQuantile`). The rest
        pays for one :class:`~quorate.mechanisms.choices.noisy_rank.NoisyRank`, which measures the
        rank error of the released value. Users without readable records are left out, and n counts
        only the other users. Replacing a user by one without readable records removes a user, and
        the reverse adds one. Either changes the losses by at most max(a, b - a) for the quantile
        a/b, which is below b, the sensitivity to a replacement. Sorting the quantiles of a feature
        happens after the release.

    Utility
    -------
    ``error_.rank`` users. The rank error is measured privately; it is not derived from assumptions.
    It is about :math:`10 k d/\varepsilon` for k quantiles of d features, and zero if many users
    share a value. It is at most of order :math:`k d \log(w/r)/\varepsilon` for a range of width w
    and a resolution of r.

    Complexity
    ----------
    Time :math:`O(d (N \log N + k n \log n))`, whatever the range.

    Parameters
    ----------
    epsilon : float
    quantiles : sequence of float, default=(0.25, 0.5, 0.75)
    bounds : float, pair or dict
        Public range of the values, as in :class:`~quorate.means.user_mean.UserMean`.
    resolution : float, optional
        Distance between possible answers. By default they are round numbers on every scale, from
        the width of the range down to 12 digits below it, so values that many users share can be
        found exactly.
    each_user : {"median", "mean", "middle half"}, default="median"
        How a user's records are reduced. The median of an even number of records is the midpoint of
        the two middle ones. With ``"middle half"`` a user counts as below or above an answer only
        if it lies outside the middle half of their records.
    delta : 0.0
        Only pure differential privacy is supported; any other value is refused.
    relation, ledger, data_name, random_state
        As in every estimator; no public randomness is used.

    Attributes
    ----------
    quantiles_ : array of shape (quantiles, features)
    error_ : QuantileError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Li, Wang, Ye. Improved bounds for pure private agnostic learning: item-level and
       user-level privacy. ICML 2024, Lemma 5.1.

    Examples
    --------
    >>> ages = np.tile(np.arange(20.0, 60.0), 50)[:, None]
    >>> quartiles = UserQuantiles(epsilon=3.0, bounds=(0.0, 120.0)).fit(ages, users=range(2000))
    >>> np.abs(quartiles.quantiles_.ravel() - [30.0, 40.0, 50.0]).max() < 3
    np.True_
    >>> quartiles.guarantee_.delta
    0.0
    """

    _takes_crowds = True
    _codes_columns = True
    _uses_delta = False

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        quantiles: Any = (0.25, 0.5, 0.75),
        bounds: Any = None,
        resolution: float | None = None,
        each_user: str = "median",
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.quantiles = quantiles
        self.bounds = bounds
        self.resolution = resolution
        self.each_user = each_user
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> UserQuantiles:
        """Release the quantiles of ``X`` (records x features, with ``users``, or a crowd)."""
        X = self._as_numbers(X)
        quantiles = self._checked_quantiles()
        self._mechanisms(declared_bound(self._public_bounds(X), X), quantiles)
        account = self._charge(X, None, users)
        people = self._population(X, None, users)
        mechanisms = self._mechanisms(
            as_bound(self._public_bounds(X), people.n_features, declared_names(X)), quantiles
        )
        low, high = self._limits()
        lowest = OwnValues.of(people, low)
        highest = lowest if high is low else OwnValues.of(people, high)
        values = np.empty((len(quantiles), people.n_features))
        alone, together = np.empty(values.shape), np.empty(values.shape)
        for place, (mechanism, look) in zip(np.ndindex(*values.shape), mechanisms, strict=True):
            column = place[1]
            first = lowest.column(column).map(mechanism.encode)
            last = first if highest is lowest else highest.column(column).map(mechanism.encode)
            point = mechanism.release_between(first, last, account=account)
            values[place] = mechanism.decode(point)
            off = look.release(first, last, point=point, account=account)
            alone[place] = look.upper_bound(off, _BETA)
            together[place] = look.upper_bound(off, _BETA / values.size)
        self.guarantee_ = self._promise(account)
        self.quantiles_ = np.sort(values, axis=0)[np.argsort(np.argsort(quantiles))]
        self.error_ = QuantileError(
            rank=float(together.max()),
            confidence=1.0 - _BETA,
            coordinates=tuple(alone.ravel().tolist()),
        )
        self.algorithm_ = ROUTE
        return self

    def _mechanisms(self, ranges: Bound, quantiles: list[float]) -> list[_Looked]:
        """Return the mechanism for each quantile of each feature; refuse impossible parameters."""
        part = exact(self.epsilon) / (len(quantiles) * ranges.dimension)
        return [
            looked_quantile(
                (float(middle - half), float(middle + half)),
                epsilon=part,
                quantile=quantile,
                relation=self.relation,
                resolution=self.resolution,
            )
            for quantile, (middle, half) in itertools.product(
                quantiles, zip(ranges.centre, half_widths(ranges), strict=True)
            )
        ]

    def _checked_quantiles(self) -> list[float]:
        given = self.quantiles
        quantiles = [given] if isinstance(given, numbers.Real) else list(given)
        if not quantiles:
            raise ParameterError("Expected at least one quantile, got none.")
        for quantile in quantiles:
            _validate.probability(quantile=quantile)
        self._check_reduction()
        return [float(quantile) for quantile in quantiles]

    def _check_reduction(self) -> None:
        _validate.useful_epsilon(epsilon=self.epsilon)
        _validate.one_of(_REDUCTIONS, each_user=self.each_user)
        if self.resolution is not None:
            _validate.positive(resolution=self.resolution)

    def _limits(self) -> tuple[UserVectors, UserVectors]:
        """Return the lower and upper end of each user's interval."""
        if self.each_user == "middle half":
            return RecordQuantile(0.25), RecordQuantile(0.75)
        reduced: UserVectors = RecordQuantile(0.5)
        if self.each_user == "mean":
            reduced = UserData.user_means
        return reduced, reduced


class PrivateMedian(UserQuantiles):
    r"""The median over users of one value per user, hiding any one user's whole record.

    Privacy
    -------
    guarantee : ``guarantee_``: ``epsilon``-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the number of features; under ``Relation.REPLACE`` the number of
        users; released: ``median_``
    numerics : exact
    proof : :class:`UserQuantiles` with the quantile 1/2.

    Utility
    -------
    The rank is off by at most ``error_.rank`` users, measured privately after the release as in
    :class:`UserQuantiles`. Up to half of the users may have any values without moving the median
    far.

    Complexity
    ----------
    Time :math:`O(d N \log N)`, whatever the range.

    Parameters
    ----------
    epsilon : float
    bounds, resolution, each_user, delta, relation, ledger, data_name, random_state
        As in :class:`UserQuantiles`.

    Attributes
    ----------
    median_ : array of shape (features,)
    quantiles_ : array of shape (1, features)
        The same, as in :class:`UserQuantiles`.
    error_ : QuantileError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Li, Wang, Ye. Improved bounds for pure private agnostic learning: item-level and
       user-level privacy. ICML 2024, Lemma 5.1.

    Examples
    --------
    >>> incomes = np.tile(np.linspace(2e4, 9e4, 100), 10)[:, None]
    >>> median = PrivateMedian(epsilon=1.0, bounds=(0.0, 1e9)).fit(incomes, users=range(1000))
    >>> abs(median.median_[0] - 5.5e4) < 1e4
    np.True_
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = None,
        resolution: float | None = None,
        each_user: str = "median",
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.resolution = resolution
        self.each_user = each_user
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> PrivateMedian:
        """Release the median of ``X`` (records x features, with ``users``, or a crowd)."""
        super().fit(X, users=users)
        self.median_ = self.quantiles_[0]
        return self

    def _checked_quantiles(self) -> list[float]:
        self._check_reduction()
        return [0.5]
