"""What all linear models share: bounds, budget, geometry, descent, and rescaling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Box
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.users.store import settled_users
from quorate.data.tables import declared_names
from quorate.estimators import Route
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.user_releases import UserReleases
from quorate.models.coefficients import coefficient_error
from quorate.models.constant_models import MayBeConstant
from quorate.models.coordinates.geometry import Geometry, WhitenedLoss, inward
from quorate.models.coordinates.released import release_coordinates
from quorate.models.losses import LinearLoss
from quorate.models.optimization.gradients import (
    Feasibility,
    check_budget,
    check_records,
    model_feasibility,
)
from quorate.models.optimization.minibatches import open_sampled_run
from quorate.models.optimization.training import STEPS, Start, Trained, train
from quorate.models.public_inputs import (
    FeatureRange,
    counted_once,
    public_sizes,
    refuse_features,
    refuse_partial_fit,
    refuse_weights,
)
from quorate.ranges import declared_features, declared_limits

__all__ = ["LinearModel"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class _LastFit:
    """What the last fit released: coefficients, the noise of their gradients, its guarantee."""

    weights: Vector
    offsets: Vector
    noise: float
    guarantee: Guarantee


class LinearModel(MayBeConstant):
    """Base of the linear models: one private gradient descent in released coordinates.

    A fit takes these steps in this order: check parameters; refuse what public numbers show to be
    hopeless; charge; group the records; release (records per user, centre and spread of the
    features, radii, gradients); state the guarantee. Parameters are described by the subclasses.
    """

    _takes_crowds = True
    _codes_columns = True

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
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
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.fit_intercept = fit_intercept
        self.penalty = penalty
        self.records = records
        self.steps = steps
        self.batch_rate = batch_rate
        self.warm_start = warm_start
        self.hopeless = hopeless
        self.progress = progress
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    @property
    def partial_fit(self) -> NoReturn:
        """Always refused; the message says why."""
        refuse_partial_fit(type(self).__name__)

    def fit(self, X: Any, y: Any = None, *, users: Any = None, **refused: Any) -> LinearModel:
        """Fit on records with their users, or on a UserData or another crowd."""
        refuse_weights(type(self).__name__, refused)
        return self._fit(X, y, users)

    def record_marks(self, rows: Vector, targets: Vector) -> Vector:
        """Return a score from 0 to 1 for the prediction of each record."""
        raise NotImplementedError

    def _loss(self) -> LinearLoss:
        raise NotImplementedError

    def _start(self, run: UserReleases, loss: LinearLoss) -> Start:
        """Release the constant model."""
        raise NotImplementedError

    def _scaled_targets(self, targets: Vector) -> Vector:
        return targets

    def _unit(self) -> float:
        """Return the scale of the target during training."""
        return 1.0

    def _check_parameters(self) -> None:
        _validate.non_negative(penalty=self.penalty)
        check_records(self.records)
        if self.steps is not None:
            _validate.positive_integer(steps=self.steps)
        _validate.one_of(("refuse", "constant"), hopeless=self.hopeless)
        _validate.one_of((None, False, True), progress=self.progress)
        _validate.boolean(fit_intercept=self.fit_intercept, warm_start=self.warm_start)
        _validate.delta(delta=self.delta)
        check_budget(epsilon=self.epsilon, delta=self.delta, rate=self.batch_rate)

    def _feasibility(self, n_users: int, n_features: int) -> Feasibility:
        return model_feasibility(
            n_users=n_users,
            dimension=self._loss().dimension(n_features),
            epsilon=self.epsilon,
            delta=self.delta,
            records=None if isinstance(self.records, str) else self.records,
            relation=self.relation,
        )

    def refuse_hopeless(self, n_users: int, n_features: int) -> None:
        """Raise if public numbers show that a fit is hopeless; under add/remove n is not public."""
        if self.hopeless == "refuse" and self.relation is Relation.REPLACE:
            self._feasibility(n_users, n_features).require()

    def refuse(self, X: Any, users: Any, *, halves: int = 1) -> Any:
        """Refuse wrong use, as far as parameters, types and public numbers show it.

        ``halves`` is the number of parts into which the users will be split. Return the ids,
        already grouped if the users had to be counted.
        """
        self._check_parameters()
        self._loss()
        X = self._as_numbers(X)
        if self.bounds is not None:
            Box(*declared_limits(self._public_bounds(X), X))
        if self.hopeless == "refuse" and self.relation is Relation.REPLACE:
            users = counted_once(X, users)
            if (sizes := public_sizes(X, users)) is not None:
                self.refuse_hopeless(sizes[0] // halves, sizes[1])
        return users

    def _fit(
        self, X: Any, y: Any, users: Any, *, classes: Sequence[Any] | None = None
    ) -> LinearModel:
        # Before the charge: a refusal costs nothing, as it follows from public knowledge.
        X = self._as_numbers(X)
        ids = self.refuse(X, users)
        # The charge forgets what the last fit released.
        last = self._last_fit() if self.warm_start and hasattr(self, "coef_") else None
        if last is not None:
            refuse_features(last.weights, declared_features(X))
        account = self._charge(X, y, users, target=True)
        data = self._population(X, y, ids, classes=classes)
        if self.relation is Relation.REPLACE:
            self.refuse_hopeless(data.n_users, data.n_features)
        bounds, limits = self._public_bounds(X), None
        if bounds is not None:
            limits = FeatureRange(bounds, data.n_features, declared_names(X))
        if last is not None:
            refuse_features(last.weights, data.n_features)
        return self._fit_within(data, account, limits, last)

    def _fit_within(
        self,
        data: People,
        account: Account,
        limits: FeatureRange | None,
        last: _LastFit | None = None,
    ) -> LinearModel:
        # A sample takes users by their numbers in the order of their keys: there they keep it.
        scaled = partial(
            settled_users,
            rows=None if limits is None else limits.scaled,
            targets=self._scaled_targets,
            by_count=self.batch_rate is None,
        )
        self._release(data.derive(scaled), account, limits, last)
        self._set_public()
        return self

    @property
    def _only_gaussian(self) -> bool:
        return self.batch_rate is None

    def fit_from(self, data: People, account: Account, *, told: Any = None) -> LinearModel:
        """Fit as a part of a larger fit, which has checked everything and pays from ``account``.

        The guarantee is stated by the larger fit. ``told`` is the table from which the users came,
        if its column types determine the bounds.
        """
        self._declared = account.declared
        people = self._population(data)
        bounds, limits = self._public_bounds(people if told is None else told), None
        if bounds is not None:
            limits = FeatureRange(bounds, people.n_features, people.feature_names)
        return self._fit_within(people, account, limits)

    def _set_public(self) -> None:
        """Set the fitted attributes that follow from parameters alone."""

    def _release(
        self,
        data: People,
        account: Account,
        limits: FeatureRange | None,
        last: _LastFit | None,
    ) -> None:
        inner, steps, rate = self._loss(), self.steps, self.batch_rate
        if rate is None:
            run = UserReleases.start(data, account)
        else:
            run = open_sampled_run(data, account, rate=rate, steps=steps or STEPS)
        if self._feasibility(round(run.n_users), data.n_features).hopeless:
            why = "too few users for coefficients, by public numbers alone."
            self._release_constant(run, inner, why)
            return
        geometry, people = release_coordinates(run, centred=inner.intercept, by_count=not rate)
        run = replace(run, data=people)
        before = None
        if last is not None and last.noise < math.inf:
            scaled = last.weights, last.offsets
            if limits is not None:
                scaled = limits.rescaled(*scaled)
            before = inward(geometry, self._warm(scaled, inner), inner), last.noise
        trained = train(
            run,
            WhitenedLoss(inner, geometry),
            self._start(run, inner),
            before=before,
            penalty=float(self.penalty),
            steps=steps,
            progress=self.progress,
        )
        # The result carries what the last fit released, so it promises no more than both together.
        self.guarantee_ = self._promise(account, after=None if last is None else last.guarantee)
        self._keep(trained, inner, geometry, limits)

    def _keep(
        self, trained: Trained, loss: LinearLoss, geometry: Geometry, limits: FeatureRange | None
    ) -> None:
        """Set the fitted attributes: coefficients for the original features, and their errors."""
        features = geometry.centre.size
        rows = geometry.outward(trained.theta, loss).reshape(loss.outputs, -1)
        weights = rows[:, :features]
        offsets = rows[:, features] if loss.intercept else np.zeros(loss.outputs)
        self.trace_ = trained.trace
        self.error_ = coefficient_error(
            trained.covariance, loss, geometry, limits, unit=self._unit()
        )
        reason = f"clipped mean gradients and their posterior, {len(trained.trace)} steps."
        self.algorithm_ = Route(name="descent", reason=reason)
        if limits is not None:
            weights, offsets = limits.unscaled(weights, offsets)
        self._store(weights, offsets)

    def _last_fit(self) -> _LastFit:
        # Of the mean of its gradients, weighed by how precise they were: none of a constant.
        precision = sum(step.noise**-2 for step in self.trace_)
        noise = 1.0 / math.sqrt(precision) if precision > 0.0 else math.inf
        return _LastFit(*self._stored(), noise, self.guarantee_)

    def _warm(self, last: tuple[Vector, Vector], loss: LinearLoss) -> Vector:
        """Return the parameters of the last fit, in scaled features and targets."""
        weights, offsets = last
        return (np.column_stack([weights, offsets]) if loss.intercept else weights).ravel()
