"""Private model selection: candidates are fitted and compared on separate users.

Each half of the users fits every candidate, and the other half scores it. Each user gives every
candidate a score between 0 and 1. A candidate with a high total is chosen privately and fitted
again on all users. Scores are not released, so there is no ``cv_results_``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone

from quorate import _validate
from quorate._validate import exact, float_down
from quorate.core.account.account import Account
from quorate.core.account.costs import gdp_mu
from quorate.core.account.gaussian_dp import epsilon_bound
from quorate.core.account.parts import disjoint_groups, halved, sum_of_groups
from quorate.core.bounds.grid import Box, Grid
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.sealed import Sealed
from quorate.core.users import UserData
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.choices.choose import CONFIDENCE, ChoiceError, ChooseBest
from quorate.models.base import LinearModel
from quorate.ranges import dates_among

__all__ = ["PrivateGridSearch", "UserMarks"]

# A mark is counted in thousandths, nearly: integers add up exactly.
_MARK_STEP = 2.0**-10


@dataclass(frozen=True)
class UserMarks:
    """Each user's score for each model: the share of good predictions on the user's records.

    Examples
    --------
    >>> from quorate.models import LinearRegression
    >>> model = LinearRegression(target_bounds=(0.0, 4.0))
    >>> model.coef_, model.intercept_, model.n_features_in_ = np.array([1.0]), 0.0, 1
    >>> people = UserData([[1.0], [3.0]], [1.0, 1.0], offsets=[0, 1, 2])
    >>> UserMarks((model,))(people)
    array([[1.  ],
           [0.75]])
    """

    models: tuple[LinearModel, ...]

    @property
    def bound(self) -> Box:
        """Scores lie between 0 and 1; the centre of the bound is zero."""
        zeros = np.zeros(len(self.models))
        return Box(zeros, zeros + 1.0, centre=zeros)

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        """Return one row of scores per user; zeros for a user without records."""
        counts = np.maximum(users.record_counts(), 1)
        targets = np.zeros(users.n_records) if users.y is None else users.y
        marks = [model.record_marks(users.X, targets) for model in self.models]
        return users.user_sums(np.column_stack(marks)) / counts[:, None]


class PrivateGridSearch(MetaEstimatorMixin, UserEstimator):  # type: ignore[misc]
    r"""Choose among parameter settings of a linear model, hiding any one user's whole record.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP for candidates, choice and final fit
        together
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and, under ``Relation.REPLACE``, the number of users; which user is in
        which half (from the seed and the ids); released: ``best_params_``, ``best_estimator_``
    numerics : exact
    proof : A user is in one half, so takes part in one fit per candidate, gives one score between 0
        and 1 to each candidate that was fitted on the other half, and takes part in the final fit.
        The choice is :class:`~quorate.mechanisms.choices.choose.ChooseBest` on sums of scores. The
        events of one half's fits, the choice and the final fit are composed by the accountant; both
        halves cost the same.

    Utility
    -------
    The total score of the chosen setting is within ``ChooseBest.error_bound`` of the best.
    Candidates are fitted on half of the users with a part of the budget; differences seen there may
    be smaller in the final fit. With few users try few settings, or use the defaults.

    Complexity
    ----------
    Two fits on half of the users per candidate, and one on all.

    Parameters
    ----------
    estimator : LinearModel
        The search sets its epsilon, delta, relation and ledger.
    param_grid : mapping or sequence of mappings
        As in scikit-learn; public.
    epsilon, delta : float
    selection_share : float, default=0.1
        Share of epsilon for the choice.
    fit_share : float, default=0.4
        Share of the remaining (squared Gaussian) budget for all candidates together.
    relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    best_params_ : dict
    best_index_ : int
    best_estimator_ : LinearModel
    error_ : ChoiceError
        Bound on how much lower the score of the chosen setting may be than that of the best one.
    algorithm_ : Route
    classes_ : array of shape (classes,)
        Only for classifiers.
    guarantee_ : Guarantee

    References
    ----------
    .. [1] McKenna, Sheldon. Permute-and-Flip: a new mechanism for differentially private selection.
       arXiv:2010.12603.

    Examples
    --------
    >>> from quorate.models import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> people = np.repeat(np.arange(2000), 10)
    >>> search = PrivateGridSearch(
    ...     LogisticRegression(), {"penalty": [0.0, 100.0]}, epsilon=2.0, random_state=0
    ... )
    >>> search.fit(X, X[:, 0] > 0, users=people).best_params_
    {'penalty': 0.0}
    >>> search.guarantee_.epsilon
    2.0
    """

    _takes_crowds = True

    def __init__(
        self,
        estimator: LinearModel,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        selection_share: float = 0.1,
        fit_share: float = 0.4,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.selection_share = selection_share
        self.fit_share = fit_share
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> PrivateGridSearch:
        """Fit the candidates, choose one, and fit it on all users.

        Parameters
        ----------
        X : array, frame or UserData
        y : array of shape (records,)
        users : array of shape (records,) or str
            The user id of each row, or the name of the column of ``X`` with the ids.
        """
        settings = self._settings()
        X = self.estimator._as_numbers(X)
        # Before the charge, as it follows from public knowledge.
        for model in self._candidates(settings):
            model.refuse(X, users, halves=2)
        for_choice = exact(self.selection_share) * exact(self.epsilon)
        account = self._charge(X, y, users, target=True, aside=for_choice)
        classes = getattr(self.estimator, "classes", None)
        data = self._population(X, y, users, classes=classes)
        groups = disjoint_groups(account, 2)
        halves = halved(data, groups, random_state=self.random_state)
        # Everybody is in one half: both halves together cost what one of them costs.
        square = exact(self.fit_share) * account.square / len(settings)
        judged = [
            tuple(
                self._fitted(part, X, setting, group.part_of(square=square)) for setting in settings
            )
            for part, group in zip(halves, groups, strict=True)
        ]
        choice = ChooseBest(
            candidates=len(settings),
            epsilon=float_down(for_choice),
            sensitivity=round(1.0 / _MARK_STEP),
            relation=self.relation,
        )
        marks = sum_of_groups(
            [self._marks(halves[1], judged[0]), self._marks(halves[0], judged[1])]
        )
        chosen = choice.release(marks, account=account)
        best = self._fitted(data, X, settings[chosen], account.part_of(square=account.square_left))
        self.guarantee_ = self._promise(account)
        self.best_index_ = chosen
        self.best_params_ = dict(settings[chosen])
        self.best_estimator_ = best
        self.error_ = ChoiceError.of_people(
            choice.error_bound(1.0 - CONFIDENCE) / float(choice.sensitivity),
            counts="people's marks for the settings",
            n_users=data.n_users if self.relation is Relation.REPLACE else None,
        )
        self.algorithm_ = Route(
            name="permute_and_flip",
            reason=f"one of {len(settings)} settings by users' scores, then a fit on all users.",
        )
        if classes is not None:
            self.classes_ = np.asarray(classes)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict with the chosen model."""
        return np.asarray(self._best().predict(self._features(X)))

    def score(self, X: Any, y: Any) -> float:
        """Return the chosen model's score; it is not private on the records used for fitting."""
        return float(self._best().score(self._features(X), y))

    def _best(self) -> Any:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _coded_columns(self) -> dict[str, Any]:
        return self.estimator._coded_columns()

    @property
    def _labels(self) -> Sequence[Any] | None:
        return getattr(self.estimator, "classes", None)

    def _settings(self) -> list[dict[str, Any]]:
        from sklearn.model_selection import ParameterGrid

        if not isinstance(self.estimator, LinearModel):
            raise ParameterError(
                f"Expected estimator to be one of Quorate's linear models, got "
                f"{type(self.estimator).__name__}."
            )
        if getattr(self.estimator, "target_bounds", ()) is None:
            raise ParameterError(
                "Candidates of a regression are judged by their errors, whose scale must be "
                "public: give the estimator target_bounds=."
            )
        settings = list(ParameterGrid(self.param_grid))
        if not settings:
            raise ParameterError("Expected param_grid to hold at least one setting, got none.")
        unknown = {name for setting in settings for name in setting} - set(
            self.estimator.get_params()
        )
        if unknown:
            raise ParameterError(
                f"Expected settings of {type(self.estimator).__name__}, which has no "
                f"{', '.join(sorted(map(str, unknown)))}."
            )
        owned = {"epsilon", "delta", "relation", "ledger", "data_name", "classes"}
        if self.estimator.batch_rate is not None:
            raise ParameterError(
                "Expected an estimator with full batches: sampled chains cost differently, so "
                "which one is fitted last must not be a choice. Use batch_rate=None."
            )
        owned |= {"batch_rate", "categories"}
        if any(dates_among(setting.get("bounds")) for setting in settings):
            raise ParameterError(
                "Expected the dates among the bounds of the estimator: what a column means must "
                "not be a choice."
            )
        taken = owned & {name for setting in settings for name in setting}
        if taken:
            raise ParameterError(
                f"Expected settings of the model, got {sorted(taken)}: the search divides the "
                "budget itself; classes are the estimator's, and batches are full."
            )
        return settings

    def _fitted(
        self, data: People, X: Any, setting: Mapping[str, Any], account: Account
    ) -> LinearModel:
        return self._configured(setting, account.mu).fit_from(data, account, told=X)

    def refuse_hopeless(self, n_users: int, n_features: int) -> None:
        """Raise if half of this number of users is too small for some candidate."""
        for model in self._candidates(self._settings()):
            model.refuse_hopeless(n_users // 2, n_features)

    def _candidates(self, settings: list[dict[str, Any]]) -> list[LinearModel]:
        """Return the candidate models, not yet fitted, that will be fitted on halves."""
        _validate.probability(
            selection_share=self.selection_share, fit_share=self.fit_share, delta=self.delta
        )
        _validate.positive(epsilon=self.epsilon)
        for_choice = exact(self.selection_share) * exact(self.epsilon)
        mu = gdp_mu(float(exact(self.epsilon) - for_choice), float(self.delta))
        each = mu * math.sqrt(self.fit_share / len(settings))
        return [self._configured(setting, each) for setting in settings]

    def _configured(self, setting: Mapping[str, Any], mu: float) -> LinearModel:
        model: LinearModel = clone(self.estimator)
        # For what the model plans from; what it may draw is decided by its account.
        epsilon = epsilon_bound(self.delta, mu)
        model.set_params(
            **setting,
            epsilon=epsilon,
            delta=self.delta,
            relation=self.relation,
            ledger=None,
            data_name=None,
        )
        return model

    def _marks(self, data: People, models: tuple[LinearModel, ...]) -> Sealed:
        statistic = UserMarks(models)
        return data.total(statistic, Grid(statistic.bound, step=_MARK_STEP))
