"""What all linear models share: bounds, budget, geometry, descent, and rescaling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.accounting.account import Account
from quorate.accounting.ledger import Ledger
from quorate.core.people import People
from quorate.estimators import Route
from quorate.grid import Box
from quorate.guarantees import Guarantee, Relation
from quorate.models.calibration import Calibration, moved_intercept
from quorate.models.coefficients import error_of_constant
from quorate.models.constant_models import MayBeConstant
from quorate.models.coordinates.geometry import (
    WhitenedLoss,
    release_in_rounds,
    whitens_in_rounds,
)
from quorate.models.coordinates.one_round import release_in_one_round
from quorate.models.coordinates.preconditioned import PreconditionedLoss, inward
from quorate.models.first_constant import first_share, mean_of_both, release_first_constant
from quorate.models.last_look import LastLook, Reach, evidence_of, shortened_noise
from quorate.models.losses import LinearLoss
from quorate.models.optimization.descent import AveragedDescent, descend
from quorate.models.optimization.descent_noise import (
    are_doubtful,
    are_drowned,
    are_only_noise,
    coefficient_error,
    parameter_noise,
)
from quorate.models.optimization.few_users import few_user_descent, release_scale
from quorate.models.optimization.gradients import (
    ClippedGradients,
    Feasibility,
    check_budget,
    check_records,
    has_few_users,
    is_worth_measuring,
    model_feasibility,
    plan_steps,
)
from quorate.models.optimization.minibatches import check_public_steps, open_sampled_run, setup_mu
from quorate.models.public_inputs import (
    FeatureRange,
    counted_once,
    public_sizes,
    refuse_features,
    refuse_partial_fit,
    refuse_weights,
)
from quorate.public_randomness import RandomState
from quorate.ranges import declared_features, declared_limits
from quorate.releases.user_releases import UserReleases, typical_records
from quorate.users.store import settled_users
from quorate.users.tables import declared_names

__all__ = ["LinearModel"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class _LastFit:
    """The state of a warm start: released coefficients and their guarantee."""

    weights: Vector
    offsets: Vector
    guarantee: Guarantee


class LinearModel(MayBeConstant):
    """Base of the linear models: one private descent in released coordinates.

    The order of a fit: check parameters; refuse what public numbers call hopeless; charge; group
    the records; release (records per user, centre and spread of the features, radii, gradients);
    promise. Parameters are described by the subclasses.
    """

    # Largest derivative of the loss by a prediction, where there is one.
    _largest_slope: float | None = None
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
        """Refused: see the message."""
        refuse_partial_fit(type(self).__name__)

    def fit(self, X: Any, y: Any = None, *, users: Any = None, **refused: Any) -> LinearModel:
        """Fit on records with their users, or on a UserData or another crowd."""
        refuse_weights(type(self).__name__, refused)
        return self._fit(X, y, users)

    def record_marks(self, rows: Vector, targets: Vector) -> Vector:
        """Return how good the prediction of each record is, from 0 to 1."""
        raise NotImplementedError

    def _loss(self) -> LinearLoss:
        raise NotImplementedError

    def _scaled_targets(self, targets: Vector) -> Vector:
        return targets

    def _unit(self) -> float:
        """Return the scale of the target in the descent."""
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
        if self.batch_rate is not None:
            check_public_steps(steps=self.steps, records=self.records, relation=self.relation)
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
        """Raise if public numbers call a fit hopeless; under add/remove n is not public."""
        if self.hopeless == "refuse" and self.relation is Relation.REPLACE:
            self._feasibility(n_users, n_features).require()

    def refuse(self, X: Any, users: Any, *, halves: int = 1) -> Any:
        """Refuse what parameters, types and public numbers show to be wrong.

        ``halves`` is the number of parts into which the users will be split. Returned are the ids,
        grouped if somebody had to count them.
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
        """Fit as a step of something larger, which checked, charged and pays through ``account``.

        What is promised is what the larger thing promises. ``told`` is the table from which the
        users came, if its types say more about the bounds.
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
        inner = self._loss()
        dimension = inner.dimension(data.n_features)
        steps, rate = self.steps, self.batch_rate
        if rate is not None and steps is None:
            steps = plan_steps(
                n_users=data.n_users,
                mu=setup_mu(account),
                records=float(self.records),
                dimension=dimension,
            )
        if rate is None:
            run = UserReleases.start(data, account)
        else:
            run = open_sampled_run(data, account, rate=rate, steps=steps)
        if self._feasibility(round(run.n_users), data.n_features).hopeless:
            why = "too few users for coefficients, by public numbers alone."
            self._release_constant(run, inner, why)
            return
        records = cache(partial(typical_records, run, self.records))
        few = rate is None and has_few_users(
            n_users=run.n_users,
            mu=account.mu,
            dimension=dimension,
            relation=self.relation,
            records=records,
        )
        wanted = last is None and rate is None and inner.intercept
        # Whatever is asked later must not be paid from what is kept for the look.
        needed = self._largest_slope is None if few else steps is None
        held = records() if needed or records.cache_info().currsize else None
        whole, look, bought, kept = run, None, None, None
        if wanted and is_worth_measuring(
            n_users=run.n_users, mu=account.mu, dimension=dimension, relation=self.relation
        ):
            look = LastLook(run) if held is None else LastLook(run, records=held)
            run = look.descent()
        if few:
            geometry, people = release_scale(run, centred=inner.intercept), run.data
        elif inner.intercept and whitens_in_rounds(
            n_users=run.n_users, mu=run.account.mu, n_features=data.n_features
        ):
            geometry, people = release_in_rounds(run, by_count=not rate)
        else:
            geometry, people = release_in_one_round(run, centred=inner.intercept, by_count=not rate)
        initial, first = np.zeros(dimension), None
        if last is not None:
            scaled = last.weights, last.offsets
            if limits is not None:
                scaled = limits.rescaled(*scaled)
            initial = inward(geometry, self._warm(scaled, inner), inner)
        elif rate is None and inner.intercept and self._largest_slope is None:
            first = release_first_constant(run, reach=self._target_reach(), few=few)
            initial[-1] = first.value
        elif look is not None and not few:
            bought = self._bought_means(run, share=first_share(run))
            kept = Calibration.planned(whole, self._shares_of(bought), noise=bought.noise)
            run = run if kept is None else kept.before(run)
        noise_of = partial(
            parameter_noise,
            loss=inner,
            geometry=geometry,
            whitened=not few
            and whitens_in_rounds(n_users=run.n_users, mu=account.mu, n_features=data.n_features),
            sampled=rate is not None,
        )
        penalized = ~inner.unpenalized(data.n_features)
        asked, signal = None, None
        # Of few users a look tells more than their way: good ones were taken for noise.
        judged = not few or look is None
        if few and self._largest_slope is None:
            signal = run.n_users * account.mu * math.sqrt(records()) / dimension
        if last is None and inner.intercept:
            asked = partial(
                are_doubtful,
                noise_of=noise_of if judged else None,
                penalized=penalized,
                largest=self._largest_slope if rate is None else None,
                looked=look is not None,
            )
        descended = (PreconditionedLoss if few else WhitenedLoss)(inner, geometry)
        if few:
            minimum = few_user_descent(
                run,
                inner,
                geometry,
                initial,
                steps,
                bounded=self._largest_slope is not None,
                spread=None if first is None else first.spread,
                records=records,
                worth=self._worth(),
                doubtful=asked,
                penalty=float(self.penalty),
                progress=self.progress,
            )
        else:
            steps = steps or plan_steps(
                n_users=run.n_users, mu=account.mu, records=records(), dimension=dimension
            )
            minimum = descend(
                replace(run, data=people),
                descended,
                steps=steps,
                optimizer=AveragedDescent(),
                gradients=ClippedGradients(),
                initial=initial,
                curvature=inner.curvature,
                penalty=float(self.penalty),
                doubtful=asked,
                progress=self.progress,
            )
        if minimum.given_up:  # after a warm start this follows from what the last fit released
            self._release_constant(
                whole,
                inner,
                "noise exceeds all that coefficients could gain, by released numbers.",
                after=None if last is None else last.guarantee,
                first=first,
            )
            return
        theta = minimum.theta
        name, how = ("few", ", clips by lifts") if few else ("descent", "")
        reason = f"private descent on users' gradients, {len(minimum.trace)} steps{how}."
        noise = noise_of(minimum)
        drowned = are_drowned(minimum.trace[0].noise, dimension, largest=self._largest_slope)
        constant = np.where(penalized | drowned, initial, theta)
        if first is not None:
            unsure = math.inf if isinstance(noise, str) else math.sqrt(noise[-1, -1])
            constant[-1] = first.or_later(float(theta[-1]), error=unsure)
        elif bought is not None:
            constant[~penalized] = self._constant_offsets(bought)
        elif look is not None and not (drowned or isinstance(noise, str)):
            unsure = math.sqrt(float(np.diagonal(noise)[~penalized].mean()))
            constant[~penalized] = self._shown_offsets(theta[~penalized], error=unsure)
        doubt = partial(are_only_noise, minimum, noise, penalized=penalized)
        reach = Reach(1.0, 0.0)
        if drowned or (judged and doubt(looked=look is not None)):
            reach = Reach(0.0, 0.0)
            if look is not None and bought is not None:
                # What was kept buys a better constant.
                kept = None
                better = mean_of_both(bought, self._bought_means(whole))
                constant[~penalized] = self._constant_offsets(better)
        elif look is not None:
            if kept is not None:
                look = replace(look, run=kept.before(whole))
            reach = look.reach(
                descended,
                people,
                constant=constant,
                model=theta,
                radius=minimum.trace[-1].radius,
                steepest=None if self._largest_slope is None else inner.first_slope,
                shown=evidence_of(minimum, noise, penalized=penalized, signal=signal),
            )
            noise = shortened_noise(noise, theta - constant, reach)
        theta = constant + reach.part * (theta - constant)
        if kept is not None:
            misses = kept.misses(descended, people, theta)
            theta[-1], added = moved_intercept(inner, theta, misses)
            if not isinstance(noise, str):
                noise = noise + np.diag(np.where(penalized, 0.0, added**2))
        error = coefficient_error(noise, inner, geometry, limits, unit=self._unit())
        if reach.part == 0.0:
            error = error_of_constant(inner, data.n_features)
            name, reason = "constant", "released numbers do not show that coefficients help."
        elif reach.part < 1.0:
            reason = f"{reason[:-1]}, and {reach.part:.2g} of the way from a constant."
        rows = geometry.outward(theta, inner).reshape(inner.outputs, -1)
        weights = rows[:, : data.n_features]
        offsets = rows[:, data.n_features] if inner.intercept else np.zeros(inner.outputs)
        # The result carries what the last fit released, so it promises no more than both together.
        self.guarantee_ = self._promise(account, after=None if last is None else last.guarantee)
        self.trace_, self.error_ = minimum.trace, error
        self.algorithm_ = Route(name=name, reason=reason)
        if limits is not None:
            weights, offsets = limits.unscaled(weights, offsets)
        self._store(weights, offsets)

    def _last_fit(self) -> _LastFit:
        return _LastFit(*self._stored(), self.guarantee_)

    def _warm(self, last: tuple[Vector, Vector], loss: LinearLoss) -> Vector:
        """Return the parameters of the last fit, in scaled features and targets."""
        weights, offsets = last
        return (np.column_stack([weights, offsets]) if loss.intercept else weights).ravel()
