"""Private regression: least squares, ridge, Huber."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.user_releases import ReleasedMean, UserReleases
from quorate.models.base import LinearModel
from quorate.models.losses import LinearLoss
from quorate.models.optimization.training import Start, constant_share, train_constant
from quorate.models.public_inputs import refuse_weights, target_range
from quorate.models.regression_losses import HuberLoss, SquaredLoss

__all__ = ["HuberRegression", "LinearRegression", "Ridge"]

Vector = NDArray[np.float64]

# The most that a mean target may cost: an eighth makes all other noise longer by a fifteenth.
_CONSTANT_SHARE = 0.125
# derived: a widening search looks at most this often.
_LOOKS = 9


def _usual_targets(users: UserData) -> Vector:
    """Return the root of each user's mean squared target."""
    targets = np.zeros(users.n_records) if users.y is None else users.y
    with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
        sums = users.user_sums(targets[:, None] ** 2)
        return np.asarray(np.sqrt(sums / np.maximum(users.record_counts(), 1)[:, None]))


class LinearRegression(RegressorMixin, LinearModel):  # type: ignore[misc]
    r"""Least squares over users, hiding any one user's whole record.

    The model minimises the mean over users of each user's mean squared error, so every user counts
    once. The error falls with the number of records per user, at a fixed number of users.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the number of features and, under ``Relation.REPLACE``, the number of
        users; released: ``coef_``, ``intercept_``, ``error_``, ``trace_``
    numerics : exact
    proof : The following are released: the centre and second moment of the features (with few users
        one scale), the mean target (four rounds of clipped means, and without ``target_bounds`` a
        search for their size), the mean log length of a gradient, ``steps`` clipped mean gradients
        with their lifts (:mod:`quorate.core.bounds.lifted_ball`), and one gradient of the intercept
        alone. Each is a Gaussian mechanism or a noisy search on one bounded contribution per user,
        and is paid from one :class:`~quorate.core.account.account.Account`. Everything else is
        post-processing.

    Utility
    -------
    Untuned. With :math:`\mu` = ``gdp_mu(epsilon, delta)``, n users of m records and d features the
    excess risk is about :math:`c\,d^2\sigma^2/(n^2 m\mu^2)` beyond the non-private one, for errors
    of variance :math:`\sigma^2`; with too little signal the posterior mean is a constant.

    Complexity
    ----------
    One pass over the records per step (20 by default) and a few more.

    Parameters
    ----------
    epsilon, delta : float
        ``delta`` > 0.
    bounds : None, float, pair, dict or Box, default=None
        Public limits of the features, for all of them or by column; values outside are clipped. A
        pair of dates converts a column of dates to days since the first date. Without bounds
        features are used without scaling, which works well if their scales are comparable.
    categories : dict, optional
        Public values by column, such as ``{"region": ["north", "south"]}``. Each value becomes a
        column of zeros and ones. A value that is not listed has zeros in all of them
        (:mod:`quorate.data.coding`).
    target_bounds : pair, default=None
        Public limits of the target.
    fit_intercept : bool, default=True
    penalty : float, default=0.0
        Strength of penalty / 2 x squared coefficients (of the scaled features if there are bounds).
    records : int or "auto", default="auto"
        Number of records of a typical user, if it is public. It allows a sharper rule for refusing
        hopeless fits.
    steps : int, optional
        Number of gradient steps; 20 by default.
    batch_rate : float, optional
        Probability with which a user takes part in a step; by default all users take part in all
        steps.
    warm_start : bool, default=False
        Begin near the last fit, whose coefficients count as one more released gradient; both are
        charged.
    hopeless : {"refuse", "constant"}, default="refuse"
        What to do if public numbers show that noise must hide every signal: raise an error, or
        release a constant model (zero without ``target_bounds`` or without an intercept).
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal only.
    relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
        The property ``coefficients_`` lists both with the column names.
    trace_ : tuple of TraceStep
        Radius, noise and length of each released gradient.
    algorithm_ : Route
    error_ : CoefficientError
        The standard errors of the coefficients from privacy noise, or why there are none.
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = X @ [2.0, -1.0] + 3.0
    >>> people = np.repeat(np.arange(2000), 10)
    >>> model = LinearRegression(epsilon=1.0, delta=1e-6).fit(X, y, users=people)
    >>> bool(np.abs(model.coef_ - [2.0, -1.0]).max() < 0.2), model.guarantee_.epsilon
    (True, 1.0)
    """

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        target_bounds: Any = None,
        fit_intercept: bool = True,
        penalty: float = 0.0,
        records: int | str = "auto",
        steps: int | None = None,
        batch_rate: float | None = None,
        warm_start: bool = False,
        hopeless: str = "refuse",
        progress: bool | None = None,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            bounds=bounds,
            categories=categories,
            fit_intercept=fit_intercept,
            penalty=penalty,
            records=records,
            steps=steps,
            batch_rate=batch_rate,
            warm_start=warm_start,
            hopeless=hopeless,
            progress=progress,
            relation=relation,
            ledger=ledger,
            data_name=data_name,
            random_state=random_state,
        )
        self.target_bounds = target_bounds

    def fit(self, X: Any, y: Any = None, *, users: Any = None, **refused: Any) -> LinearRegression:
        """Fit on records ``X``, ``y`` with the ids ``users``, or on a UserData.

        Parameters
        ----------
        X : array, frame or UserData
        y : array of shape (records,)
        users : array of shape (records,) or str
            The user id of each row, or the name of the column of ``X`` with the ids.
        refused : dict
            ``sample_weight`` is refused, with the reason.
        """
        if refused:
            refuse_weights(type(self).__name__, refused)
        target_range(self.target_bounds)
        self._fit(X, y, users)
        return self

    @overload
    def predict(self, X: Any, *, return_std: Literal[False] = False) -> Vector: ...

    @overload
    def predict(self, X: Any, *, return_std: Literal[True]) -> tuple[Vector, Vector]: ...

    def predict(self, X: Any, *, return_std: bool = False) -> Vector | tuple[Vector, Vector]:
        """Return predictions, clipped to the limits of the target if there are any.

        The prediction for a row with a missing value is NaN.

        Parameters
        ----------
        X : array or frame
        return_std : bool, default=False
            Also return the standard error of each prediction, computed from ``error_`` before
            predictions are clipped. It is infinite where ``error_`` states nothing.
        """
        predictions: Vector = self._predictions(X)[:, 0]
        if self.target_bounds is not None:
            limits = target_range(self.target_bounds)
            reach = limits.half_width[0]
            predictions = np.clip(predictions, limits.centre[0] - reach, limits.centre[0] + reach)
        return (predictions, self._errors(X)[:, 0]) if return_std else predictions

    def record_marks(self, rows: Vector, targets: Vector) -> Vector:
        """Return 1 minus the squared error over the squared range of the target, from 0 to 1."""
        limits = target_range(self.target_bounds)
        if not limits.bounded:
            raise ParameterError(
                "Marks for a regression need target_bounds=: the scale of an error must be public."
            )
        errors = (self._stored_predictions(rows)[:, 0] - targets) / (2.0 * limits.half_width[0])
        return np.asarray(np.clip(1.0 - errors**2, 0.0, 1.0))

    def _check_parameters(self) -> None:
        target_range(self.target_bounds)
        super()._check_parameters()

    def _loss(self) -> LinearLoss:
        return SquaredLoss(intercept=bool(self.fit_intercept))

    def _start(self, run: UserReleases, loss: LinearLoss) -> Start:
        share = constant_share(run, most=_CONSTANT_SHARE)
        if self.target_bounds is None:
            square = share * float(run.account.square) / _LOOKS
            reach = run.widen(_usual_targets, guess=1.0, dimension=1, square=square)
        else:
            limits = target_range(self.target_bounds)
            ends = limits.centre + limits.half_width * np.array([-1.0, 1.0])
            reach = float(np.abs(self._scaled_targets(ends)).max())
        constant, variance, slope = np.zeros(1), 0.0, reach
        if loss.intercept:
            found, lengths = train_constant(run, reach=reach, share=share)
            constant, variance = found.mean, float(found.variance[0])
            slope = math.exp(lengths.typical)
        return Start(constant=constant, variance=variance, slope=slope)

    def _scaled_targets(self, targets: Vector) -> Vector:
        limits = target_range(self.target_bounds)
        if not limits.bounded:
            return targets
        scaled = limits.scaled(targets[:, None])[:, 0]
        if self.fit_intercept:
            return scaled
        # Without an intercept zero must stay zero.
        return np.asarray(scaled + limits.centre[0] / limits.half_width[0])

    def _constant_targets(self, targets: Vector) -> Vector:
        if self.target_bounds is None or not self.fit_intercept:
            return np.zeros((len(targets), 1))
        return targets[:, None]

    def _constant_offsets(self, means: ReleasedMean) -> Vector:
        return np.clip(means.value, -1.0, 1.0)

    def _unit(self) -> float:
        return float(target_range(self.target_bounds).half_width[0])

    def _store(self, weights: Vector, offsets: Vector) -> None:
        limits = target_range(self.target_bounds)
        factor = limits.half_width[0]
        shift = limits.centre[0] if self.fit_intercept else 0.0
        self.coef_ = weights[0] * factor
        self.intercept_ = float(offsets[0] * factor + shift)

    def _stored(self) -> tuple[Vector, Vector]:
        return self.coef_[None, :], np.array([self.intercept_])

    def _warm(self, last: tuple[Vector, Vector], loss: LinearLoss) -> Vector:
        target = target_range(self.target_bounds)
        theta = super()._warm(last, loss)
        if loss.intercept:
            theta[-1] -= target.centre[0]
        return np.asarray(theta / target.half_width[0])


class Ridge(LinearRegression):
    r"""Least squares over users with a penalty on the coefficients; see :class:`LinearRegression`.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the number of features and, under ``Relation.REPLACE``, the number of
        users; released: ``coef_``, ``intercept_``, ``error_``, ``trace_``
    numerics : exact
    proof : As for :class:`LinearRegression`; the penalty does not depend on the data.

    Utility
    -------
    As for :class:`LinearRegression`, for the penalised loss.

    Complexity
    ----------
    As for :class:`LinearRegression`.

    Parameters
    ----------
    epsilon, delta : float
    penalty : float, default=0.01
        Strength of penalty / 2 x squared coefficients, beside a *mean* squared error / 2. With
        ``bounds`` features are measured in half-widths, so wide bounds strengthen the penalty.
    bounds, categories, target_bounds, fit_intercept, records, steps, batch_rate, warm_start
        See :class:`LinearRegression`.
    hopeless, progress, relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    coef_, intercept_, trace_, algorithm_, error_, guarantee_
        See :class:`LinearRegression`.

    References
    ----------
    See :class:`LinearRegression`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> people = np.repeat(np.arange(2000), 10)
    >>> model = Ridge(epsilon=1.0, delta=1e-6, penalty=1.0).fit(X, 2.0 * X[:, 0], users=people)
    >>> bool(abs(model.coef_[0] - 1.0) < 0.2)
    True
    """

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        target_bounds: Any = None,
        fit_intercept: bool = True,
        penalty: float = 0.01,
        records: int | str = "auto",
        steps: int | None = None,
        batch_rate: float | None = None,
        warm_start: bool = False,
        hopeless: str = "refuse",
        progress: bool | None = None,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            bounds=bounds,
            categories=categories,
            target_bounds=target_bounds,
            fit_intercept=fit_intercept,
            penalty=penalty,
            records=records,
            steps=steps,
            batch_rate=batch_rate,
            warm_start=warm_start,
            hopeless=hopeless,
            progress=progress,
            relation=relation,
            ledger=ledger,
            data_name=data_name,
            random_state=random_state,
        )


class HuberRegression(LinearRegression):
    r"""Regression with a loss that is robust to large errors; see :class:`LinearRegression`.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the number of features and, under ``Relation.REPLACE``, the number of
        users; released: ``coef_``, ``intercept_``, ``error_``, ``trace_``
    numerics : exact
    proof : As for :class:`LinearRegression`, with another loss.

    Utility
    -------
    As for :class:`LinearRegression`; errors beyond ``width`` count linearly.

    Complexity
    ----------
    As for :class:`LinearRegression`.

    Parameters
    ----------
    epsilon, delta : float
    width : float, default=1.0
        Error, in units of the target, at which the loss turns from squared to linear.
    bounds, categories, target_bounds, fit_intercept, penalty, records, steps, batch_rate
        See :class:`LinearRegression`.
    warm_start, hopeless, progress, relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    coef_, intercept_, trace_, algorithm_, error_, guarantee_
        See :class:`LinearRegression`.

    References
    ----------
    See :class:`LinearRegression`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 1))
    >>> y = X[:, 0] + 50.0 * (rng.random(20_000) < 0.02)
    >>> people = np.repeat(np.arange(2000), 10)
    >>> model = HuberRegression(epsilon=1.0, delta=1e-6).fit(X, y, users=people)
    >>> bool(abs(model.coef_[0] - 1.0) < 0.2), bool(abs(model.intercept_) < 0.3)
    (True, True)
    """

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        width: float = 1.0,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        target_bounds: Any = None,
        fit_intercept: bool = True,
        penalty: float = 0.0,
        records: int | str = "auto",
        steps: int | None = None,
        batch_rate: float | None = None,
        warm_start: bool = False,
        hopeless: str = "refuse",
        progress: bool | None = None,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            bounds=bounds,
            categories=categories,
            target_bounds=target_bounds,
            fit_intercept=fit_intercept,
            penalty=penalty,
            records=records,
            steps=steps,
            batch_rate=batch_rate,
            warm_start=warm_start,
            hopeless=hopeless,
            progress=progress,
            relation=relation,
            ledger=ledger,
            data_name=data_name,
            random_state=random_state,
        )
        self.width = width

    def _loss(self) -> LinearLoss:
        _validate.positive(width=self.width)
        scale = target_range(self.target_bounds).half_width[0]
        return HuberLoss(intercept=bool(self.fit_intercept), width=float(self.width / scale))
