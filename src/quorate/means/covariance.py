"""How users differ from each other: private covariance and variances of user means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.grid import Ball, Box
from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.core.users import UserData
from quorate.data.tables import declared_names
from quorate.estimators import UserEstimator
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.means.vector_mean import private_mean
from quorate.means.weighted_users import PeopleVectors
from quorate.ranges import as_bound, declared_bound, for_squares

__all__ = ["MEAN_SHARE", "UserCovariance", "nearest_covariance", "outer_products"]

_SHAPES = ("full", "diagonal")
# Share of the squared budget that buys the mean; the rest buys the second moments.
MEAN_SHARE = Fraction(3, 10)


def outer_products(offsets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each row's outer product as a vector whose length is the squared length of the row.

    An entry off the diagonal stands for two entries of the matrix and is multiplied by the root of
    two.

    >>> outer_products(np.array([[3.0, 4.0]])).round(6)
    array([[ 9.      , 16.970563, 16.      ]])
    """
    rows, columns = np.triu_indices(offsets.shape[1])
    products = offsets[:, rows] * offsets[:, columns]
    products[:, rows != columns] *= math.sqrt(2.0)
    return np.asarray(products)


def nearest_covariance(vector: NDArray[np.float64], dimension: int) -> NDArray[np.float64]:
    """Return the positive semidefinite matrix nearest to the matrix that ``vector`` encodes.

    >>> nearest_covariance(np.array([1.0, 0.0, -0.5]), 2)
    array([[1., 0.],
           [0., 0.]])
    """
    rows, columns = np.triu_indices(dimension)
    matrix = np.zeros((dimension, dimension))
    matrix[rows, columns] = np.where(rows == columns, vector, vector / math.sqrt(2.0))
    matrix = matrix + np.triu(matrix, 1).T
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


class UserCovariance(UserEstimator):
    r"""Covariance between users of each user's mean record, hiding any one user's whole record.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the number of features; under ``Relation.REPLACE`` the number of
        users; released: ``mean_``, ``covariance_``, ``variance_``
    numerics : exact
    proof : Two private means share one Gaussian budget (see
        :class:`~quorate.means.user_mean.UserMean`): that of the users' vectors, and that of their
        outer products around the released mean. Each user contributes one bounded vector to each.
        The projection to a positive semidefinite matrix happens after the release.

    Utility
    -------
    ``error_.standard_error`` is the root mean square Frobenius norm of the noise of the second
    moments before projection. A full covariance of d features is a mean in d(d+1)/2 dimensions:
    good for d up to about 20 at 1000 users; ``shape="diagonal"`` for more.

    Complexity
    ----------
    Time and memory :math:`O(n d^2)`, :math:`O(n d)` for the diagonal.

    Parameters
    ----------
    epsilon : float
    delta : float, default=1e-6
        Must be positive: the noise is Gaussian. Well below one over the number of users.
    bounds : float, pair, dict or Bound
        As in :class:`~quorate.means.user_mean.UserMean`.
    categories : dict, optional
        Public values by column; each becomes a column of zeros and ones.
    shape : {"full", "diagonal"}, default="full"
    relation, ledger, data_name, random_state
        As in every estimator; no public randomness is used.

    Attributes
    ----------
    covariance_ : array of shape (d, d)
        Diagonal if ``shape="diagonal"``.
    variance_ : array of shape (d,)
    mean_ : array of shape (d,)
    error_ : MeanError
        Error of the second moments.
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Biswas, Dong, Kamath, Ullman. CoinPress: practical private mean and covariance
       estimation. NeurIPS 2020, arXiv:2006.06618.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(4000, 2)) * [1.0, 3.0]
    >>> spread = UserCovariance(epsilon=2.0, delta=1e-6, bounds=50.0).fit(X, users=range(4000))
    >>> bool(np.allclose(np.sqrt(spread.variance_), [1.0, 3.0], atol=0.5))
    True
    """

    _takes_crowds = True
    _codes_columns = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        shape: str = "full",
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.shape = shape
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> UserCovariance:
        """Release the covariance of ``X`` (records x features, with ``users``, or a crowd)."""
        _validate.one_of(_SHAPES, shape=self.shape)
        _validate.useful_epsilon(epsilon=self.epsilon)
        X = self._as_numbers(X)
        for_squares(declared_bound(self._public_bounds(X), X))
        _validate.delta(delta=self.delta)
        if self.delta == 0:
            raise ParameterError(
                "UserCovariance needs delta > 0: its noise is Gaussian. Pass delta= well below one "
                "over the number of users, such as delta=1e-6."
            )
        account = self._charge(X, None, users)
        people = self._population(X, None, users)
        bound = for_squares(as_bound(self._public_bounds(X), people.n_features, declared_names(X)))
        means = PeopleVectors.of(people, UserData.user_means, bound)
        reach, d = bound.l2_radius, people.n_features
        ball = Ball(reach, dimension=d)
        centre = private_mean(account, means, ball, share=MEAN_SHARE).mean
        centre = np.clip(centre, -reach, reach)
        # Everybody is within 2 * reach * sqrt(d) of the clipped centre.
        farthest = 4.0 * reach * reach * d
        if self.shape == "full":
            ball = Ball(farthest, dimension=d * (d + 1) // 2)
            moments = PeopleVectors.of(means.people, _Moments(centre, outer_products), ball)
            second = private_mean(account, moments, ball, share=1 - MEAN_SHARE)
            covariance = nearest_covariance(second.mean, d)
        else:
            box = Box(np.zeros(d), np.full(d, 4.0 * reach * reach))
            moments = PeopleVectors.of(means.people, _Moments(centre, np.square), box)
            second = private_mean(account, moments, box, share=1 - MEAN_SHARE)
            covariance = np.diag(np.maximum(second.mean + box.centre, 0.0))
        self.guarantee_ = self._promise(account)
        self.covariance_ = covariance
        self.variance_ = np.diag(covariance).copy()
        self.mean_ = centre + bound.centre
        self.error_ = second.error
        self.algorithm_ = second.route
        return self


@dataclass(frozen=True)
class _Moments:
    """All products of two coordinates of a user's offset from a centre; NaN for absent users."""

    centre: NDArray[np.float64]
    products: Callable[[NDArray[np.float64]], NDArray[np.float64]]

    def __call__(self, means: UserData) -> NDArray[np.float64]:
        return self.products(means.user_means() - self.centre)
