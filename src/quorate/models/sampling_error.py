r"""Standard errors of coefficients that include sampling error, estimated privately.

``error_`` of a model states the effect of privacy noise alone, at no cost. Another sample of people
would also give other coefficients. How much they vary from sample to sample depends on the data, so
its estimate costs budget. Let :math:`g_u` be each user's mean gradient at the released
coefficients, and H the curvature of the mean loss. The sandwich estimate :math:`H^{-1} E[g_u
g_u^\top] H^{-1} / n` [1]_ is the covariance of the coefficients over samples of n users, even if
the records of one user are dependent.

References
----------
.. [1] Liang, Zeger. Longitudinal data analysis using generalized linear models. Biometrika 73(1),
   1986.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.grid import Ball
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.users import UserData
from quorate.estimators import UserEstimator
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.means.covariance import nearest_covariance, outer_products
from quorate.means.vector_mean import private_mean
from quorate.means.weighted_users import PeopleVectors
from quorate.models.classification import LogisticRegression
from quorate.models.coefficients import Coefficients
from quorate.models.losses import sigmoid
from quorate.models.public_inputs import target_range
from quorate.models.regression import LinearRegression

__all__ = ["SamplingError", "sampling_error"]

Vector = NDArray[np.float64]

_CURVATURE_SHARE = Fraction(1, 2)
# Residuals beyond so many half widths of the target's range are cut, and records that are longer
# than so many times the usual length.
_FARTHEST, _LONGEST = 2.0, 4.0
# A direction flatter than this part of the steepest one is taken for so flat.
_FLATTEST = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class SamplingError:
    """Standard errors of coefficients: by sampling alone, and by sampling and noise together.

    Attributes
    ----------
    standard_errors : array of shape (features + 1,)
        By sampling alone; that of the intercept is last.
    covariance : array of shape (features + 1, features + 1)
    coefficients : Coefficients
        The model's coefficients, with standard errors of sampling and, if the model states it, of
        noise.
    guarantee : Guarantee
    """

    standard_errors: Vector
    covariance: Vector
    coefficients: Coefficients
    guarantee: Guarantee

    def of_rows(self, rows: Any) -> Vector:
        """Return the sampling standard error of the linear predictor of each row."""
        held = np.column_stack([np.asarray(rows, dtype=np.float64), np.ones(len(rows))])
        squares = ((held @ self.covariance) * held).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def __str__(self) -> str:
        return str(self.coefficients)


def sampling_error(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    users: Any = None,
    epsilon: float,
    delta: float = 1e-6,
    ledger: Ledger | None = None,
    data_name: str | None = None,
) -> SamplingError:
    r"""Release how much the coefficients of a fitted model vary between samples of users.

    Privacy
    -------
    guarantee : (``epsilon``, ``delta``)-DP, beside what the fit cost
    neighbours : replace all records of one user
    trust : central
    public : the released model, the number of users and all parameters
    numerics : exact
    proof : Two private means share one Gaussian budget, as in
        :class:`~quorate.means.covariance.UserCovariance`: the mean of each user's mean curvature,
        and that of the outer product of each user's mean gradient. Both are taken at released
        coefficients, in released coordinates, and clipped to a public length. Everything else is
        computed from these two.

    Parameters
    ----------
    model : LinearRegression or LogisticRegression
        A fitted model with a stated ``error_``; a classifier must have two classes and no class
        weights.
    X, y, users
        The people it was fitted on (or others like them), as for ``fit``.
    epsilon, delta : float
    ledger, data_name
        As in every estimator.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y, people = X[:, 0] + rng.normal(size=20_000), np.repeat(np.arange(2000), 10)
    >>> model = LinearRegression(4.0, bounds=6.0, target_bounds=9.0).fit(X, y, users=people)
    >>> found = sampling_error(model, X, y, users=people, epsilon=4.0)
    >>> bool(np.all(found.standard_errors < 0.02)), found.guarantee.epsilon
    (True, 4.0)
    """
    asker = _Asker(model, epsilon, delta=delta, ledger=ledger, data_name=data_name)
    return asker.ask(X, y, users)


class _Asker(UserEstimator):
    """Checks, charges, reads and states the guarantee, in this order."""

    _takes_crowds = True

    def __init__(
        self,
        model: Any,
        epsilon: float,
        *,
        delta: float,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def ask(self, X: Any, y: Any, users: Any) -> SamplingError:
        """Release the sandwich covariance estimate."""
        is_label = isinstance(self.model, LogisticRegression)
        self._check(is_label=is_label)
        X = self.model._as_numbers(X)
        account = self._charge(X, y, users, target=True)
        classes = list(self.model.classes_) if is_label else None
        people = self._population(X, y, users, classes=classes)
        target = None if is_label else target_range(self.model.target_bounds)
        unit = 1.0 if target is None else float(target.half_width[0])
        told = _Told(
            weights=np.ravel(self.model.coef_),
            offset=float(np.ravel(self.model.intercept_)[0]),
            turn=_turn(self.model.error_.covariance[0]),
            unit=unit,
            is_label=is_label,
        )
        parameters = people.n_features + 1
        size = parameters * (parameters + 1) // 2
        longest = _LONGEST**2 * parameters
        steep = Ball(longest * (0.25 if is_label else 1.0), dimension=size)
        curvature = private_mean(
            account,
            PeopleVectors.of(people, _Curvatures(told), steep),
            steep,
            share=_CURVATURE_SHARE,
        )
        far = Ball(longest * (1.0 if is_label else _FARTHEST**2), dimension=size)
        spread = private_mean(
            account,
            PeopleVectors.of(people, _Scores(told), far),
            far,
            share=1 - _CURVATURE_SHARE,
        )
        inverse = _inverse(nearest_covariance(curvature.mean, parameters))
        middle = nearest_covariance(spread.mean, parameters)
        turned = unit * told.turn @ inverse
        covariance = np.asarray(turned @ middle @ turned.T / max(people.n_users, 1))
        errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return SamplingError(
            standard_errors=errors,
            covariance=covariance,
            coefficients=self._together(errors),
            guarantee=self._promise(account),
        )

    def _check(self, *, is_label: bool) -> None:
        _validate.useful_epsilon(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        if self.delta == 0:
            raise ParameterError("Expected delta > 0: the noise of a second moment is Gaussian.")
        if type(self.model) not in (LinearRegression, LogisticRegression):
            raise ParameterError(
                "Expected a LinearRegression or a LogisticRegression: sampling errors are only "
                "available for smooth losses without a penalty, got {type(self.model).__name__}."
            )
        if not hasattr(self.model, "coef_") or not self.model.fit_intercept:
            raise ParameterError("Expected a fitted model with a constant.")
        if not self.model.error_.stated:
            raise ParameterError(
                "Expected a model that states what noise did to it, from which people's records "
                "get their scale. Nothing was charged."
            )
        if is_label and (len(self.model.classes_) != 2 or self.model.class_weight is not None):
            raise ParameterError("Expected two classes without class weights.")

    def _together(self, errors: Vector) -> Coefficients:
        """Return the coefficients with standard errors of sampling and noise together."""
        table: Coefficients = self.model.coefficients_
        noise = 0.0 if table.errors is None else table.errors[:, 0]
        return replace(table, errors=np.hypot(errors, noise)[:, None])


@dataclass(frozen=True)
class _Told:
    """A released model, and the scaling of its rows; all of it is public."""

    weights: Vector
    offset: float
    turn: Vector
    unit: float
    is_label: bool

    def rows(self, users: UserData) -> tuple[Vector, Vector, Vector]:
        """Return transformed rows, the slope of each record's loss and its curvature."""
        # Row by row: a product of matrices may add up in another order for other neighbours.
        with np.errstate(all="ignore"):
            found = np.full(users.n_records, self.offset)
            turned = np.zeros((users.n_records, len(self.turn))) + self.turn[-1]
            for place, weight in enumerate(self.weights.tolist()):
                found += users.X[:, place] * weight
                turned += users.X[:, place, None] * self.turn[place]
            lengths = np.sqrt((turned**2).sum(axis=1))
            longest = _LONGEST * math.sqrt(len(self.turn))
            turned *= np.minimum(1.0, longest / np.maximum(lengths, 1e-300))[:, None]
            targets = np.zeros(users.n_records) if users.y is None else users.y
            if self.is_label:
                shares = sigmoid(found)
                return turned, shares - targets, shares * (1.0 - shares)
            slopes = np.clip((found - targets) / self.unit, -_FARTHEST, _FARTHEST)
            return turned, slopes, np.ones(len(found))


def _user_means(users: UserData, rows: Vector) -> Vector:
    return np.asarray(users.user_sums(rows) / users.record_counts()[:, None])


@dataclass(frozen=True)
class _Curvatures:
    """Each user's mean curvature, as a vector; NaN for absent users."""

    told: _Told

    def __call__(self, users: UserData) -> Vector:
        rows, _, steep = self.told.rows(users)
        # A warning about an overflow would tell of a value.
        with np.errstate(all="ignore"):
            return _user_means(users, outer_products(rows) * steep[:, None])


@dataclass(frozen=True)
class _Scores:
    """The outer product of each user's mean gradient, as a vector; NaN for absent users."""

    told: _Told

    def __call__(self, users: UserData) -> Vector:
        rows, slopes, _ = self.told.rows(users)
        with np.errstate(all="ignore"):
            return outer_products(_user_means(users, rows * slopes[:, None]))


def _inverse(matrix: Vector) -> Vector:
    values, vectors = np.linalg.eigh(matrix)
    floor = max(_FLATTEST * float(values.max()), np.finfo(np.float64).tiny)
    return np.asarray((vectors / np.maximum(values, floor)) @ vectors.T)


def _turn(noise: Vector) -> Vector:
    """Return coordinates in which records have about the same length in all directions.

    Noise affects coefficients most in directions in which records are short. The median length of a
    record is 1.

    >>> _turn(np.diag([4.0, 1.0])).round(6)
    array([[2., 0.],
           [0., 1.]])
    """
    middle = float(np.linalg.pinv(noise)[-1, -1])
    return np.asarray(np.linalg.cholesky(noise * middle + 1e-12 * np.eye(len(noise))))
