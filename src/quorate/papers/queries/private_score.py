r"""Private scores of a model: a single score, or one for each fold of users.

Models are often evaluated on the same users that a private fit protects. A score is a statistic of
their records like any other, so it costs budget: each user's mean score is bounded, and the mean
over users gets noise. Folds are made of whole users.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from quorate import _validate
from quorate._validate import exact, float_down
from quorate.core.account.account import Account
from quorate.core.account.parts import disjoint_groups, fold_by_fold, prepay
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.users import UserData
from quorate.core.users.crowd import Crowd
from quorate.data.tables import declared_users
from quorate.estimators import UserEstimator
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.ledger.ledger import Ledger
from quorate.papers.queries.oracles.central import CentralOracle
from quorate.papers.queries.statistical import StatisticalQuery
from quorate.ranges import declared_features

__all__ = ["CrossValidation", "Metric", "PrivateScore", "private_cross_val_score", "private_score"]

Metric = str | Callable[[NDArray[Any], NDArray[Any]], Any]
"""A name, or a function of targets and predictions that returns one value per record."""

METRICS = ("accuracy", "absolute_error", "squared_error")


@dataclass(frozen=True, kw_only=True)
class PrivateScore:
    """A released score.

    Parameters
    ----------
    value : float
        The mean over users of each user's mean score.
    error : float
        Bound on the noise that fails with probability ``beta``. It is the distance to the mean over
        these users, not to that over a population.
    beta : float
    guarantee : Guarantee
    """

    value: float
    error: float
    beta: float
    guarantee: Guarantee

    def __str__(self) -> str:
        return f"{self.value:.4g} +- {self.error:.2g} (noise, {1 - self.beta:.0%})"


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """Released scores of all folds.

    Parameters
    ----------
    scores : array of float
        One for each fold.
    error : float
        A bound on the noise in all scores, which fails with probability ``beta``.
    beta : float
    guarantee : Guarantee
        The guarantee of all fits and all scores together.
    """

    scores: NDArray[np.float64]
    error: float
    beta: float
    guarantee: Guarantee

    @property
    def mean(self) -> float:
        """The mean over folds."""
        return float(np.mean(self.scores))


def private_score(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    users: Any = None,
    epsilon: float,
    delta: float = 0.0,
    metric: Metric = "accuracy",
    bound: tuple[float, float] = (0.0, 1.0),
    beta: float = 0.05,
    relation: Relation = Relation.REPLACE,
    ledger: Ledger | None = None,
    data_name: str | None = None,
) -> PrivateScore:
    r"""Release the score of a fitted model on users' records, hiding any one user.

    The model predicts for one user at a time. A user for whom it raises an error, or who has no
    records, counts as the middle of ``bound``. The model must be public, so score a model that was
    released.

    Parameters
    ----------
    model : object with ``predict``
        A model whose prediction for a user depends on that user's records alone.
    X, y, users
        Records, targets and user ids, or one :class:`~quorate.core.users.UserData`, whose targets
        are positions in ``classes_`` if the model has them.
    epsilon, delta : float
        The budget; Laplace noise if delta is 0, otherwise Gaussian noise.
    metric : {"accuracy", "absolute_error", "squared_error"} or callable, default="accuracy"
    bound : pair of float, default=(0.0, 1.0)
        Public range of the score of one record; values are clipped to it.
    beta : float, default=0.05
        Probability that the error exceeds the stated bound.
    relation, ledger, data_name
        As in every estimator.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> ages = np.tile([20, 30, 40, 50, 60, 70], 200)
    >>> rule = Thresholds(0, 120).concept(45)
    >>> score = private_score(
    ...     rule, ages.reshape(-1, 1), ages >= 55, users=np.arange(1200) // 6, epsilon=1.0
    ... )
    >>> abs(score.value - 5 / 6) <= 5 * score.error, score.guarantee.epsilon
    (True, 1.0)
    """
    scorer = _Scorer(
        model,
        epsilon,
        delta,
        metric,
        bound,
        beta,
        relation=relation,
        ledger=ledger,
        data_name=data_name,
    )
    return scorer.score_users(X, y, users)


def private_cross_val_score(  # noqa: PLR0913 - those of a score, and folds
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    users: Any = None,
    epsilon: float,
    delta: float = 0.0,
    folds: int = 5,
    score_share: float = 0.2,
    metric: Metric = "accuracy",
    bound: tuple[float, float] = (0.0, 1.0),
    beta: float = 0.05,
    relation: Relation = Relation.REPLACE,
    ledger: Ledger | None = None,
    data_name: str | None = None,
    random_state: RandomState = None,
) -> CrossValidation:
    r"""Release the cross-validated scores of a private estimator, with folds of users.

    Users are divided into folds by their ids and a public seed. Each fold is scored by an estimator
    fitted to all other folds. A user takes part in ``folds`` - 1 fits and in one score. So a fit
    gets :math:`(1-s)\varepsilon/(k-1)` and a score :math:`s\varepsilon`: scores of different folds
    are about different users, so all of them together cost as much as one.

    Parameters
    ----------
    estimator : an estimator of this library
        It is cloned; its ``epsilon``, ``delta``, ``relation`` and ``ledger`` are set by this
        function.
    X, y, users
        Records, targets and user ids, or one :class:`~quorate.core.users.UserData`.
    epsilon, delta : float
        The budget of all fits and scores together; fits share ``delta`` evenly.
    folds : int, default=5
    score_share : float, default=0.2
        Part s of the budget for the scores.
    metric, bound, beta, relation, ledger, data_name
        As for :func:`private_score`; ``beta`` is for all folds together.
    random_state : public seed of the folds

    Examples
    --------
    >>> from quorate import ConceptLearner
    >>> from quorate.learners.concepts import Thresholds
    >>> ages = np.tile([20, 30, 40, 50, 60, 70], 500)
    >>> result = private_cross_val_score(
    ...     ConceptLearner(Thresholds(0, 120)), ages.reshape(-1, 1), ages >= 45,
    ...     users=np.arange(3000) // 6, epsilon=8.0, random_state=0,
    ... )
    >>> bool(result.mean > 0.9), result.guarantee.epsilon
    (True, 8.0)
    """
    scorer = _Scorer(
        estimator,
        epsilon,
        delta,
        metric,
        bound,
        beta,
        relation=relation,
        ledger=ledger,
        data_name=data_name,
        random_state=random_state,
    )
    return scorer.cross_validate(X, y, users, folds=folds, share=score_share)


class _Scorer(UserEstimator):
    """The steps of a score: check parameters, charge, read the data, state the guarantee."""

    _takes_crowds = True

    def __init__(
        self,
        model: Any,
        epsilon: float,
        delta: float,
        metric: Metric,
        bound: tuple[float, float],
        beta: float,
        *,
        relation: Relation,
        ledger: Ledger | None,
        data_name: str | None,
        random_state: RandomState = None,
    ) -> None:
        self.model = model
        self.epsilon = epsilon
        self.delta = delta
        self.metric = metric
        self.bound = bound
        self.beta = beta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    @property
    def _labels(self) -> Sequence[Any] | None:
        """The labels of a fitted classifier, or the ``classes`` of an estimator."""
        classes = getattr(self.model, "classes_", getattr(self.model, "classes", None))
        return None if classes is None else list(classes)

    def _check(self) -> None:
        _validate.probability(beta=self.beta)
        if not callable(self.metric):
            _validate.one_of(METRICS, metric=self.metric)
        if not (isinstance(self.bound, tuple) and len(self.bound) == 2):
            raise ParameterError(f"Expected bound=(low, high), got bound={self.bound!r}.")
        _validate.ordered(*self.bound, name="bound")

    def score_users(self, X: Any, y: Any, users: Any) -> PrivateScore:
        self._check()
        if not callable(getattr(self.model, "predict", None)):
            raise ParameterError(f"Expected a fitted model, got {type(self.model).__name__}.")
        X = self._in_numbers(X)
        account = self._charge(X, y, users, target=True)
        people = self._population(X, y, users, classes=self._labels)
        value, error = self._score(self.model, people, account, self.beta)
        return PrivateScore(
            value=value, error=error, beta=self.beta, guarantee=self._promise(account)
        )

    def cross_validate(
        self, X: Any, y: Any, users: Any, *, folds: int, share: float
    ) -> CrossValidation:
        self._check()
        _validate.probability(score_share=share)
        _validate.positive(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        if not (_validate.is_integer(folds) and folds >= 2):
            raise ParameterError(f"Expected an integer folds >= 2, got folds={folds!r}.")
        estimator = self._fold_estimator(1.0, 0.0)
        X = self._in_numbers(X)
        if isinstance(X, Crowd) and not (estimator._takes_crowds or isinstance(X, UserData)):
            raise ParameterError(f"{type(estimator).__name__} takes a UserData only.")
        whole, part = exact(self.epsilon), exact(share)
        fit_epsilon = float_down((1 - part) * whole / (folds - 1))
        fit_delta = float_down(exact(self.delta) / (folds - 1))
        if self.relation is Relation.REPLACE:
            self._refuse_few(X, users, folds, self._fold_estimator(fit_epsilon, fit_delta))
        account = self._charge(X, y, users, target=True, reserve=self.delta)
        data = self._crowd(X, y, users, classes=self._labels)
        # A user is in all folds but one while models are fitted, and in one score.
        prepay(account, epsilon=fit_epsilon, delta=fit_delta, times=folds - 1)
        groups = disjoint_groups(account, folds)
        sides = fold_by_fold(data, self.relation, groups, random_state=self.random_state)
        scores, errors = [], []
        for (train, test), group in zip(sides, groups, strict=True):
            model = self._fold_estimator(fit_epsilon, fit_delta).fit(train)
            paying = group.part_of(epsilon=part * whole)
            value, error = self._score(model, test, paying, self.beta / folds)
            scores.append(value)
            errors.append(error)
        return CrossValidation(
            scores=np.array(scores),
            error=max(errors),
            beta=self.beta,
            guarantee=self._promise(account),
        )

    def _in_numbers(self, X: Any) -> Any:
        """Return ``X`` with categories and dates encoded as the model encodes them."""
        return self.model._as_numbers(X) if isinstance(self.model, UserEstimator) else X

    def _refuse_few(self, X: Any, users: Any, folds: int, model: UserEstimator) -> None:
        """Raise, before the charge, if a fold has no users or a fit is hopeless."""
        present, features = declared_users(X, users), declared_features(X)
        if present is None:
            return
        if present < folds:
            raise NotEnoughUsersError(
                f"Expected at least one user in each of {folds} folds, got {present} users."
            )
        if features is not None:
            model.refuse_hopeless(present - math.ceil(present / folds), features)

    def _fold_estimator(self, epsilon: float, delta: float) -> Any:
        if not isinstance(self.model, UserEstimator):
            raise ParameterError(
                f"Expected an estimator of this library, got {type(self.model).__name__}: only a "
                "private fit may see the other folds."
            )
        wanted = {"epsilon": epsilon, "delta": delta, "relation": self.relation, "ledger": None}
        model = clone(self.model)
        known = model.get_params(deep=False)
        if known.get("checkpoint") is not None:
            raise ParameterError(
                "Expected an estimator without checkpoint=: all folds would continue from the "
                "same file, and be scored by a model trained on them."
            )
        if delta and "delta" not in known:
            raise ParameterError(f"{type(model).__name__} takes no delta; use delta=0.")
        if "relation" not in known and self.relation is not model.relation:
            raise ParameterError(f"{type(model).__name__} knows {model.relation} only.")
        return model.set_params(**{name: wanted[name] for name in wanted if name in known})

    def _score(
        self, model: Any, people: People, account: Account, beta: float
    ) -> tuple[float, float]:
        low, high = self.bound
        query = StatisticalQuery(
            function=_RecordScores(model, self.metric),
            tolerance=(high - low) / 2,
            low=low,
            high=high,
            name="score",
        )
        oracle = CentralOracle(people, max_queries=1, account=account, tried=False)
        return oracle.ask(query), oracle.error_bound(beta)


@dataclass(frozen=True)
class _RecordScores:
    """The score of each record of one user; the model sees no other user's records."""

    model: Any
    metric: Metric

    def __call__(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Any:
        predicted = np.asarray(self.model.predict(X))
        if self.metric == "accuracy":
            classes = _classes(self.model)
            if classes is None:
                return predicted == y
            # Targets are places of labels, which may be words.
            matches = predicted[:, np.newaxis] == classes[np.newaxis, :]
            return np.where(matches.any(axis=1), matches.argmax(axis=1), -1) == y
        if callable(self.metric):
            return self.metric(y, predicted)
        distance = np.abs(predicted.astype(np.float64) - y)
        return distance if self.metric == "absolute_error" else distance**2


def _classes(model: Any) -> NDArray[Any] | None:
    """Return the labels of a classifier, which are public once it was released."""
    classes = getattr(model, "classes_", None)
    return None if classes is None else np.asarray(classes)
