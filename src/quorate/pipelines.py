"""The guarantee of a whole pipeline: the guarantees of all its fitted steps together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import get_tags

from quorate._validate import exact, float_up
from quorate.core.account.compose import price
from quorate.core.guarantees import Approximate, Event, Guarantee, compose_events
from quorate.estimators import UserEstimator
from quorate.exceptions import ParameterError, RelationMismatchError

__all__ = ["total_guarantee"]


def total_guarantee(estimator: Any) -> Guarantee:
    """Return the guarantee of a fitted pipeline as a whole.

    Steps of a ``Pipeline``, a ``FeatureUnion`` or a ``ColumnTransformer`` are examined one after
    the other, including nested ones. All of them used the data of the same users, so their costs
    add up: epsilons and deltas, or less if the accountant can prove less at the same delta.

    A step that learns from the data without privacy, such as ``StandardScaler``, holds exact
    numbers about people. Then there is no guarantee, and the returned one says so: its epsilon is
    infinite. Use :class:`~quorate.UserScaler` instead. Steps that learn nothing, such as
    ``FunctionTransformer``, cost nothing.

    Parameters
    ----------
    estimator : fitted estimator or pipeline

    Raises
    ------
    NotFittedError
        A private step is not fitted yet.
    RelationMismatchError
        Steps protect different units or hide different neighbours.
    ParameterError No step is private, so there is nothing to guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn import config_context
    >>> from sklearn.pipeline import make_pipeline
    >>> import quorate as qr
    >>> rng = np.random.default_rng(0)
    >>> X, people = rng.normal(size=(20_000, 2)), np.repeat(np.arange(2000), 10)
    >>> steps = make_pipeline(qr.UserScaler(epsilon=0.5, bounds=6.0), qr.UserMean(0.5, bounds=6.0))
    >>> with config_context(enable_metadata_routing=True):
    ...     steps = steps.fit(X, users=people)
    >>> total_guarantee(steps).epsilon
    1.0
    """
    steps = list(_steps(estimator))
    promises = [_promise(step) for step in steps if isinstance(step, UserEstimator)]
    if not promises:
        raise ParameterError(
            f"Expected a pipeline with private steps, got {type(estimator).__name__} without "
            f"any: there is nothing to guarantee."
        )
    first = promises[0]
    for other in promises[1:]:
        if (other.unit, other.relation) != (first.unit, first.relation):
            raise RelationMismatchError(
                f"One step protects a {first.unit} ({first.relation.value}), another a "
                f"{other.unit} ({other.relation.value}): their costs have no sum."
            )
    exposed = [type(step).__name__ for step in steps if not isinstance(step, UserEstimator)]
    if exposed:
        names = ", ".join(dict.fromkeys(exposed))
        said = f"{names} {'is' if len(set(exposed)) == 1 else 'are'} not private"
        return replace(first, epsilon=math.inf, events=(), caveat=said)
    if len(promises) == 1:
        return first
    epsilon = float_up(_sum(promise.epsilon for promise in promises))
    delta = min(float_up(_sum(promise.delta for promise in promises)), 1.0)
    events = tuple(event for promise in promises for event in _events(promise))
    numerics = first.numerics
    for other in promises[1:]:
        numerics = numerics.weakest(other.numerics)
    if delta < 1:
        proved = price(compose_events(events), delta=delta, relation=first.relation)
        epsilon = min(epsilon, proved)
    caveats = {promise.caveat for promise in promises if promise.caveat}
    return replace(
        first,
        epsilon=epsilon,
        delta=delta,
        numerics=numerics,
        events=events,
        caveat="; ".join(sorted(caveats)) or None,
    )


def _sum(values: Iterable[float]) -> Fraction:
    return sum((exact(value) for value in values), Fraction(0))


def _events(promise: Guarantee) -> list[Event]:
    """Return events that can be priced.

    A guarantee with any other event is returned as one event with its epsilon and delta.
    """
    events = [event for event in promise.events if isinstance(event, Event)]
    whole = len(events) == len(promise.events) > 0
    return events if whole else [Approximate(promise.epsilon, promise.delta)]


def _promise(step: Any) -> Guarantee:
    if not isinstance(getattr(step, "guarantee_", None), Guarantee):
        raise NotFittedError(f"This {type(step).__name__} is not fitted yet: call fit first.")
    promise: Guarantee = step.guarantee_
    return promise


def _steps(estimator: Any) -> Iterator[Any]:
    """Yield the private estimators inside, and all other steps that have learned from data."""
    if isinstance(estimator, UserEstimator):
        yield estimator
        return
    if getattr(estimator, "best_estimator_", None) is not None:
        raise ParameterError(
            f"{type(estimator).__name__} fitted more models than it shows: search with "
            "PrivateGridSearch, whose guarantee covers all of them."
        )
    # The names under which scikit-learn keeps what it has fitted.
    held = [getattr(estimator, name, None) for name in ("steps", "transformers_")]
    held.append(getattr(estimator, "transformer_list", None))
    inside = [step[1] for steps in held if steps is not None for step in steps]
    for step in inside:
        yield from _steps(step)
    if not inside and not _learns_nothing(estimator):
        yield estimator


def _learns_nothing(step: Any) -> bool:
    """Return whether a fitted step stores nothing about the data except the shape of a row."""
    if step is None or isinstance(step, str | PolynomialFeatures):  # "passthrough", "drop"
        return True
    return not get_tags(step).requires_fit
