"""Standardised features, with a private centre and a private scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from quorate import _validate
from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Bound, Box
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.users import UserData
from quorate.data.tables import declared_names
from quorate.estimators import Route, UserEstimator
from quorate.ledger.ledger import Ledger
from quorate.means.mean_error import MeanError
from quorate.means.median import OwnValues, QuantileError, RecordQuantile
from quorate.means.vector_mean import private_mean
from quorate.means.weighted_users import PeopleVectors
from quorate.mechanisms.choices.round_quantile import RoundQuantile
from quorate.ranges import as_bound, declared_bound, for_squares, half_widths

__all__ = ["CENTRE_SHARE", "QUARTILES_APART", "UserScaler", "scaler_route"]

CENTRE_SHARE = Fraction(2, 5)
# derived: distance of the quartiles of a normal distribution in standard deviations.
QUARTILES_APART = 1.349
# A scale below this part of the range is noise: the feature is left at the scale of its range.
_SMALLEST_SCALE = 2.0**-30
_Released = tuple[NDArray[np.float64], NDArray[np.float64], MeanError | QuantileError]
_MOMENTS = Route(name="moments", reason="delta > 0: two private means, of values and of squares.")
_QUARTILES = Route(name="quartiles", reason="delta = 0: three private quantiles of each feature.")


def scaler_route(delta: float) -> Route:
    """Return the method for a centre and a scale, from public numbers.

    >>> scaler_route(0.0).name, scaler_route(1e-6).name
    ('quartiles', 'moments')
    """
    return _MOMENTS if delta else _QUARTILES


class UserScaler(OneToOneFeatureMixin, TransformerMixin, UserEstimator):  # type: ignore[misc]
    r"""Subtract a private centre from each feature and divide by a private scale.

    It is fitted on users and applied to rows. Use it in a pipeline before a model. Its privacy cost
    adds to that of the model.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the number of features; under ``Relation.REPLACE`` the number of
        users; released: ``centre_``, ``scale_``
    numerics : exact
    proof : With ``delta`` > 0 two private means share one Gaussian budget (see
        :class:`~quorate.means.user_mean.UserMean`): that of the users' mean records, and that of
        each user's mean squared distance from the released centre, clipped to the range. With
        ``delta`` = 0 the centre is the median over users of their medians, and the scale is the
        difference of two such quantiles. Each has an equal part of ``epsilon``. Users without
        usable records are left out as in :class:`~quorate.means.median.UserQuantiles`.

    Utility
    -------
    The scale is the root of the mean over users of their mean squared distance, up to the error
    of a private mean; users far from the centre are clipped.

    Complexity
    ----------
    A few passes over the records.

    Parameters
    ----------
    epsilon : float
    delta : float, default=0.0
    bounds : float, pair, dict or Bound
        Public range of the features, as in :class:`~quorate.means.user_mean.UserMean`.
    categories : dict, optional
        Public values by column; each becomes a column of zeros and ones.
    relation, ledger, data_name, random_state
        As in every estimator; no public randomness is used.

    Attributes
    ----------
    centre_, scale_ : array of shape (features,)
    error_ : MeanError or QuantileError
        The error of the centre.
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(50.0, 4.0, size=(30_000, 1))
    >>> scaler = UserScaler(epsilon=1.0, delta=1e-6, bounds=1000.0)
    >>> scaled = scaler.fit(X, users=np.arange(30_000) // 10).transform(X)
    >>> abs(scaled.mean()) < 0.2 and 0.5 < scaled.std() < 2.0
    np.True_
    >>> np.allclose(scaler.inverse_transform(scaled), X)
    True
    """

    _takes_crowds = True
    _codes_columns = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> UserScaler:
        """Release centre and scale of ``X`` (records x features with ``users``, or a crowd)."""
        X = self._as_numbers(X)
        _validate.useful_epsilon(epsilon=self.epsilon)
        for_squares(declared_bound(self._public_bounds(X), X))
        _validate.delta(delta=self.delta)
        account = self._charge(X, None, users)
        people = self._population(X, None, users)
        bound = for_squares(as_bound(self._public_bounds(X), people.n_features, declared_names(X)))
        release = self._by_moments if self.delta else self._by_quantiles
        centre, scale, error = release(people, bound, account)
        widths = half_widths(bound)
        visible = scale > _SMALLEST_SCALE * widths
        self.guarantee_ = self._promise(account)
        self.algorithm_ = scaler_route(self.delta)
        self.error_ = error
        self.centre_ = centre
        self.scale_ = np.where(visible, np.minimum(scale, 2.0 * widths), widths)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the standardised columns; ``input_features`` is not needed."""
        del input_features
        return np.array(self.columns_, dtype=object)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the standardised rows."""
        return np.asarray((self._features(X) - self.centre_) / self.scale_)

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Return standardised rows in the original units."""
        return np.asarray(self._features(X) * self.scale_ + self.centre_)

    def _by_moments(self, people: People, bound: Bound, account: Account) -> _Released:
        means = PeopleVectors.of(people, UserData.user_means, bound)
        first = private_mean(account, means, bound, share=CENTRE_SHARE)
        centre = first.mean + bound.centre
        widths = half_widths(bound)
        box = Box(np.zeros_like(widths), 4.0 * widths**2)
        squares = PeopleVectors.of(people, _Squares(centre, widths), box)
        second = private_mean(account, squares, box, share=1 - CENTRE_SHARE)
        # A variance below its noise is only known to be so small.
        variances = np.maximum(second.mean + box.centre, second.parts.noise)
        return centre, np.sqrt(variances), first.error

    def _by_quantiles(self, people: People, bound: Bound, account: Account) -> _Released:
        widths = half_widths(bound)
        each = float_down(account.epsilon / (3 * people.n_features))
        levels = (0.25, 0.5, 0.75)
        own = [OwnValues.of(people, RecordQuantile(level)) for level in levels]
        found = np.empty((3, people.n_features))
        ranks = []
        for row, column in np.ndindex(*found.shape):
            middle, half = float(bound.centre[column]), float(widths[column])
            mechanism = RoundQuantile(
                lower=middle - half,
                upper=middle + half,
                epsilon=each,
                quantile=levels[row],
                relation=self.relation,
            )
            points = own[row].column(column).map(mechanism.encode)
            found[row, column] = mechanism.decode(mechanism.release(points, account=account))
            ranks.append(mechanism.error_bound(0.05))
        error = QuantileError(rank=max(ranks), confidence=0.95, coordinates=tuple(ranks))
        return found[1], np.abs(found[2] - found[0]) / QUARTILES_APART, error


@dataclass(frozen=True)
class _Squares:
    """Each user's mean squared distance from a centre, feature by feature; NaN without records."""

    centre: NDArray[np.float64]
    widths: NDArray[np.float64]

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        away = np.clip(users.X - self.centre, -2.0 * self.widths, 2.0 * self.widths)
        with np.errstate(all="ignore"):
            return users.user_sums(away**2) / users.record_counts()[:, None]
