"""A list of fitted classifiers as a class, to choose the best of some models or settings."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.users.crowd import call_quietly
from quorate.core.users.own_order import without_signs_of_zero
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import (
    Concept,
    ConceptClass,
    LabelledRecords,
    as_features,
    check_enumerable,
)

__all__ = ["Classifier", "Classifiers"]

Truths = NDArray[np.bool_]

# Many models compute in 32 bits and raise beyond; an error would tell something about a record.
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class Classifier(Concept):
    """One of the models; two are equal only if model and name are the same.

    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier(strategy="constant", constant=1).fit([[0]], [1])
    >>> Classifier(model=model, name="always", n_features=1).predict([[3.0]])
    array([1])
    """

    model: Any
    name: str
    n_features: int

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict with the model; every prediction other than 1 counts as 0."""
        values = _finite(as_features(X, n_features=self.n_features))
        ones: NDArray[np.bool_] = np.asarray(self.model.predict(values)).ravel() == 1
        return ones.astype(np.int64)

    @property
    def keeps_users_apart(self) -> bool:
        """False, because the dependence of a prediction on other rows is unknown."""
        return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Classifier):
            return NotImplemented
        return self.model is other.model and self.name == other.name

    def __hash__(self) -> int:
        return hash((id(self.model), self.name))

    def __str__(self) -> str:
        return f"Predict as {self.name} does."


@dataclass(frozen=True, eq=False)
class Classifiers(ConceptClass):
    """Models with a ``predict`` method, fitted on public data or on other people.

    Each model is called for one user at a time, because predictions for several users at once may
    depend on each other: the rounding in a matrix product may depend on the other rows, and one
    invalid record may make a model fail for everybody. Any prediction other than 1 counts as 0.
    Infinite values are replaced by the largest 32-bit float first. If a model still raises an error
    for a user, or returns a wrong shape, all predictions for this user count as wrong.

    Both dimensions are bounded by log2 of the number of models.

    Parameters
    ----------
    models : sequence of objects with a ``predict`` method
        The candidates, chosen without looking at the data.
    features : int
        Number of columns of ``X``.
    names : sequence of str, optional
        One name per model; by default "model 0", "model 1", and so on.
    vectorized : bool, default=False
        Call each model once with the records of many users: much faster, but only private if every
        model treats every row independently, to the last bit. Guarantees are then labelled
        ``idealized``.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> models = [DummyClassifier(strategy="constant", constant=c).fit([[0]], [c]) for c in (0, 1)]
    >>> candidates = Classifiers(models, features=1, names=["never", "always"])
    >>> candidates.predict(1, [[3.0], [4.0]])
    array([1, 1])
    >>> print(candidates.concept(0))
    Predict as never does.
    """

    models: Sequence[Any]
    features: int = field(kw_only=True)
    names: Sequence[str] | None = field(default=None, kw_only=True)
    vectorized: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features)
        models = tuple(self.models)
        if not models or not all(callable(getattr(m, "predict", None)) for m in models):
            raise ParameterError("Expected at least one model, each with a predict method.")
        check_enumerable(len(models), name="this list", instead="Choose fewer models.")
        names = self.names
        if names is None:
            names = tuple(f"model {place}" for place in range(len(models)))
        if isinstance(names, str) or len(names) != len(models):
            raise ParameterError(f"Expected {len(models)} names, one a model, got names={names!r}.")
        if not isinstance(self.vectorized, bool):
            raise ParameterError(f"Expected vectorized=True or False, got {self.vectorized!r}.")
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "names", tuple(names))

    @property
    def size(self) -> int:
        """The number of models."""
        return len(self.models)

    @property
    def n_features(self) -> int:
        """The number of columns of ``X``."""
        return self.features

    @property
    def caveat(self) -> str | None:
        """Why models that get many users at once may mix their records."""
        if not self.vectorized:
            return None
        return "The models were called with the records of many users at once (vectorized=True)."

    def concept(self, index: int) -> Classifier:
        """Return model number ``index``."""
        place = self._check_index(index)
        name = f"model {place}" if self.names is None else self.names[place]
        return Classifier(model=self.models[place], name=name, n_features=self.features)

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        mistakes = np.zeros((records.n_users, self.size), dtype=np.int64)
        if len(records.X) == 0:
            return mistakes
        values = _finite(records.X)
        for place, model in enumerate(self.models):
            wrong = _wrong(model, values, records.y) if self.vectorized else None
            if wrong is None:
                wrong = _wrong_by_user(model, values, records)
            mistakes[:, place] = np.bincount(records.user[wrong], minlength=records.n_users)
        return mistakes


def _finite(X: NDArray[Any]) -> NDArray[np.float64]:
    return np.clip(X.astype(np.float64), -_LARGEST, _LARGEST)


def _wrong(model: Any, X: NDArray[np.float64], y: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Return where the model is wrong, or None if it raised or returned another shape."""
    predicted = call_quietly(lambda: np.asarray(model.predict(X)).ravel() == 1)
    if predicted is None or predicted.shape != y.shape:
        return None
    different: NDArray[np.bool_] = predicted != y
    return different


def _wrong_by_user(model: Any, X: NDArray[np.float64], records: LabelledRecords) -> Truths:
    """Return where the model is wrong if it is called user by user; everywhere if it raises."""
    wrong, order = np.ones(len(X), dtype=np.bool_), records.own_places()
    X, y = without_signs_of_zero(X[order]), records.y[order]
    # Records stand in the order of their users.
    starts = np.flatnonzero(np.r_[True, records.user[1:] != records.user[:-1]])
    for start, stop in itertools.pairwise([*starts.tolist(), len(X)]):
        alone = _wrong(model, X[start:stop], y[start:stop])
        if alone is not None:
            wrong[order[start:stop]] = alone
    return wrong
