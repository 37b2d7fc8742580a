"""Private classification: logistic regression, binary and multinomial, and a linear margin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.user_releases import ReleasedMean, UserReleases
from quorate.models.base import LinearModel
from quorate.models.class_losses import ClassWeighted, SmoothedHingeLoss, SoftmaxLoss
from quorate.models.first_constant import posterior_share
from quorate.models.losses import LinearLoss, LogisticLoss, sigmoid
from quorate.models.optimization.training import Start, constant_share
from quorate.models.public_inputs import public_weights, refuse_weights

__all__ = ["LinearSVC", "LogisticRegression"]

Vector = NDArray[np.float64]

# The most that shares of labels may cost: a quarter makes all other noise longer by a sixth.
_CONSTANT_SHARE = 0.25


class _LinearClassifier(ClassifierMixin, LinearModel):  # type: ignore[misc]
    """What all classifiers share: public classes, and the conversion of scores to labels."""

    classes: Sequence[Any]
    class_weight: Mapping[Any, float] | None

    def _check_classes(self) -> tuple[Any, ...]:
        plain = not isinstance(self.classes, str | bytes) and np.ndim(self.classes) == 1
        labels = tuple(np.asarray(self.classes).tolist()) if plain else ()
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise ParameterError(
                f"Expected at least two different public labels, got classes={self.classes!r}. "
                "They must not be taken from the data."
            )
        return labels

    def fit(self, X: Any, y: Any = None, *, users: Any = None, **refused: Any) -> _LinearClassifier:
        """Fit on records ``X``, labels ``y`` and the ids ``users``, or on a UserData.

        Records whose label is not among ``classes`` are left out. In a UserData the target is the
        index of the label (``UserData.from_frame(..., classes=...)``).

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
        labels = self._check_classes()
        self._fit(X, y, users, classes=labels)
        return self

    def _weighted(self, loss: LinearLoss) -> LinearLoss:
        """Return the loss with the public weights of the labels."""
        if self.class_weight is None:
            return loss
        shares = tuple(map(float, public_weights(self.class_weight, self._check_classes())))
        return ClassWeighted(intercept=loss.intercept, inner=loss, weights=shares)

    def _set_public(self) -> None:
        self.classes_ = np.asarray(self.classes)

    @overload
    def decision_function(self, X: Any, *, return_std: Literal[False] = False) -> Vector: ...

    @overload
    def decision_function(self, X: Any, *, return_std: Literal[True]) -> tuple[Vector, Vector]: ...

    def decision_function(
        self, X: Any, *, return_std: bool = False
    ) -> Vector | tuple[Vector, Vector]:
        """Return scores: (records,) for two classes, (records, classes) for more.

        Parameters
        ----------
        X : array or frame
        return_std : bool, default=False
            Also return the standard error of each score, computed from ``error_``. It is infinite
            where ``error_`` states nothing.
        """
        scores = _one_or_more(self._predictions(X))
        return (scores, _one_or_more(self._errors(X))) if return_std else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with the highest score.

        A row with a missing value has no label, because its probabilities are NaN. Its prediction
        is NaN if labels are numbers (the result is then an array of floats), otherwise None.
        """
        scores = self._predictions(X)
        labels = np.asarray(self.classes_[_best(scores)])
        unknown = np.isnan(scores).all(axis=1)
        if not unknown.any():
            return labels
        numbers = labels.dtype.kind in "iuf"
        labels = labels.astype(np.result_type(labels, np.float64) if numbers else object)
        labels[unknown] = np.nan if numbers else None
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of records that are predicted correctly.

        A record with a missing value counts as wrong.
        """
        labels = self.predict(X)
        known = np.array([label is not None and label == label for label in labels.tolist()])
        if known.all():
            return float(super().score(X, y, sample_weight=sample_weight))
        hits = known & (labels == np.asarray(y).ravel())
        return float(np.average(hits, weights=sample_weight))

    def _outputs(self) -> tuple[str, ...]:
        labels = tuple(str(label) for label in self.classes_)
        # Two classes share one row of coefficients, which speaks for the second.
        return labels if len(self.coef_) > 1 else labels[1:]

    def record_marks(self, rows: Vector, targets: Vector) -> Vector:
        """Return 1 for each correctly predicted record.

        A label is given by its index among the classes.
        """
        good = _best(self._stored_predictions(rows)) == targets
        return np.asarray(good, dtype=np.float64)

    def _constant_targets(self, targets: Vector) -> Vector:
        """Return one column per class except the first: 1 if a record has this label.

        With two classes the entries are 1/2 and -1/2, which halves the noise.
        """
        places = np.arange(1, len(self._check_classes()))
        held = np.asarray(targets[:, None] == places, dtype=np.float64)
        return held - 0.5 if len(places) == 1 else held

    def _constant_reach(self) -> float:
        return 0.5 if len(self.classes) == 2 else 1.0

    def _released_shares(self, means: ReleasedMean) -> tuple[Vector, float]:
        """Return the shares of the labels, and the variance of their log-odds."""
        found = means.value + 0.5 if len(self.classes) == 2 else means.value
        each = np.concatenate([[1.0 - found.sum()], found])
        # The first share has the noise of all others.
        noises = np.append(math.sqrt(found.size), np.ones(found.size)) * means.noise
        told = [posterior_share(float(s), float(n)) for s, n in zip(each, noises, strict=True)]
        shares = np.array([share for share, _ in told])
        return shares / shares.sum(), max(spread**2 for _, spread in told)

    def _constant_offsets(self, means: ReleasedMean) -> Vector:
        return self._offsets_of(self._released_shares(means)[0])

    def _offsets_of(self, shares: Vector) -> Vector:
        """Return the intercepts at which the classes have these shares."""
        scores = np.log(shares)
        if self.class_weight is not None:
            scores += np.log(public_weights(self.class_weight, self._check_classes()))
        return np.asarray(scores[1:] - scores[0] if scores.size == 2 else scores - scores.mean())

    def _start(self, run: UserReleases, loss: LinearLoss) -> Start:
        constant, variance = np.zeros(loss.outputs), 0.0
        shares = np.full(len(self.classes), 1.0 / len(self.classes))
        if loss.intercept:
            means = self._bought_means(run, share=constant_share(run, most=_CONSTANT_SHARE))
            shares, variance = self._released_shares(means)
            constant = self._offsets_of(shares)
        # Of the softmax: the difference of two probability vectors.
        slope = 1.0 if loss.outputs == 1 else math.sqrt(2.0)
        return Start(constant=constant, variance=variance, slope=slope, shares=shares)

    def _store(self, weights: Vector, offsets: Vector) -> None:
        self.coef_ = weights
        self.intercept_ = offsets

    def _stored(self) -> tuple[Vector, Vector]:
        return self.coef_, self.intercept_


def _one_or_more(columns: Vector) -> Vector:
    return np.asarray(columns[:, 0]) if columns.shape[1] == 1 else columns


def _best(scores: Vector) -> NDArray[np.intp]:
    """Return the index of the class with the highest score."""
    if scores.shape[1] == 1:
        return np.asarray(scores[:, 0] > 0, dtype=np.intp)
    return np.asarray(scores.argmax(axis=1))


class LogisticRegression(_LinearClassifier):
    r"""Logistic regression over users, hiding any one user's whole record.

    Two classes, or several at once (multinomial). The model minimises the mean over users of each
    user's mean log-loss, so every user counts once. The error falls with the number of records per
    user, at a fixed number of users.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters (the classes among them), the number of features and, under
        ``Relation.REPLACE``, the number of users; released: ``coef_``, ``intercept_``,
        ``error_``, ``trace_``
    numerics : exact
    proof : The following are released: the centre and second moment of the features (with few users
        one scale), the shares of the labels, the mean log length of a gradient, ``steps`` clipped
        mean gradients with their lifts (:mod:`quorate.core.bounds.lifted_ball`), and the mean of
        (prediction minus label). Each is a Gaussian mechanism or a noisy search on one bounded
        contribution per user, and is paid from one :class:`~quorate.core.account.account.Account`.
        Everything else is post-processing.

    Utility
    -------
    Without tuning, at epsilon = 1, delta = 1e-6 and 20 features of condition number 10, the excess
    risk is about 0.006 for 1000 users of 10 records and 0.0005 for 100 records. Tuned group privacy
    has 0.04. Coefficients are a posterior mean. With too little signal it is the constant
    (intercept-only) model.

    Complexity
    ----------
    One pass over the records per step (20 by default) and a few more.

    Parameters
    ----------
    epsilon, delta : float
        ``delta`` > 0.
    classes : sequence, default=(0, 1)
        Public labels, compared as numbers if all are numbers and as text otherwise; records with
        another label are dropped. In a ``UserData`` the targets are indices of labels (0, 1, ...)
        already.
    bounds : None, float, pair, dict or Box, default=None
        Public limits of the features, for all of them or by column; values outside are clipped. A
        pair of dates converts a column of dates to days since the first date. Without bounds
        features are used without scaling, which works well if their scales are comparable.
    categories : dict, optional
        Public values by column, such as ``{"region": ["north", "south"]}``. Each value becomes a
        column of zeros and ones. A value that is not listed has zeros in all of them
        (:mod:`quorate.data.coding`).
    class_weight : dict, optional
        Public weights of labels, such as ``{0: 1, 1: 9}``; 1 for a label without one. They are
        divided by the largest one, so no record counts more than once.
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
        release a constant model.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal only.
    relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    classes_ : array
    coef_ : array of shape (1, d) for two classes, (classes, d) for more
    intercept_ : array
        The property ``coefficients_`` lists both with the column names.
    trace_ : tuple of TraceStep
        Radius, noise and length of each released gradient.
    algorithm_ : Route
    error_ : CoefficientError
        How far the coefficients are from those without privacy, or the reason why this is unknown.
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = (X[:, 0] + 0.3 * rng.normal(size=20_000) > 0).astype(int)
    >>> people = np.repeat(np.arange(2000), 10)
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6).fit(X, y, users=people)
    >>> bool(model.score(X, y) > 0.85), model.guarantee_.epsilon
    (True, 1.0)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    """

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        classes: Sequence[Any] = (0, 1),
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        class_weight: Mapping[Any, float] | None = None,
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
        self.classes = classes
        self.class_weight = class_weight

    def _loss(self) -> LinearLoss:
        labels = self._check_classes()
        intercept = bool(self.fit_intercept)
        if len(labels) == 2:
            return self._weighted(LogisticLoss(intercept=intercept))
        return self._weighted(SoftmaxLoss(intercept=intercept, classes=len(labels)))

    def predict_proba(self, X: Any) -> Vector:
        """Return the probability of each class: (records, classes)."""
        scores = self._predictions(X)
        if scores.shape[1] == 1:
            chance = sigmoid(scores[:, 0])
            return np.column_stack([1.0 - chance, chance])
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Vector:
        """Return the logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


class LinearSVC(_LinearClassifier):
    r"""A linear margin between two classes (smoothed hinge loss), hiding any one user.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters (the classes among them), the number of features and, under
        ``Relation.REPLACE``, the number of users; released: ``coef_``, ``intercept_``,
        ``error_``, ``trace_``
    numerics : exact
    proof : As for :class:`LogisticRegression`, with another loss.

    Utility
    -------
    As for :class:`LogisticRegression`.

    Complexity
    ----------
    As for :class:`LogisticRegression`.

    Parameters
    ----------
    epsilon, delta : float
    classes : sequence of two, default=(0, 1)
        Public labels; records with another label are dropped. For more classes use
        :class:`LogisticRegression`.
    width : float, default=0.5
        Width over which the corner of the hinge is rounded.
    penalty : float, default=0.001
        Strength of penalty / 2 x squared coefficients. With ``bounds`` features are measured in
        half-widths, so wide bounds strengthen the penalty.
    bounds, categories, class_weight, fit_intercept, records, steps, batch_rate, warm_start
        See :class:`LogisticRegression`.
    hopeless, progress, relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    classes_, coef_, intercept_, trace_, algorithm_, error_, guarantee_
        See :class:`LogisticRegression`.

    References
    ----------
    See :class:`LogisticRegression`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> people = np.repeat(np.arange(2000), 10)
    >>> model = LinearSVC(epsilon=1.0, delta=1e-6).fit(X, X[:, 0] > 0, users=people)
    >>> bool(model.score(X, X[:, 0] > 0) > 0.9)
    True
    """

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        classes: Sequence[Any] = (0, 1),
        width: float = 0.5,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        class_weight: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        penalty: float = 0.001,
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
        self.classes = classes
        self.class_weight = class_weight
        self.width = width

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _offsets_of(self, shares: Vector) -> Vector:
        """Return intercepts, clipped to margins of at most one."""
        return np.clip(super()._offsets_of(shares), -1.0, 1.0)

    def _loss(self) -> LinearLoss:
        labels = self._check_classes()
        if len(labels) != 2:
            raise ParameterError(
                f"Only binary classification is supported by LinearSVC: expected two classes, got "
                f"{len(labels)}. Use LogisticRegression for more."
            )
        _validate.positive(width=self.width)
        intercept, width = bool(self.fit_intercept), float(self.width)
        return self._weighted(SmoothedHingeLoss(intercept=intercept, width=width))
