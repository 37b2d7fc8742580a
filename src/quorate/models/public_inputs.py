"""Public inputs of a model: limits of its features and weights of its classes.

Features are clipped to their limits and scaled by them; coefficients are converted back. The weight
of a record is the public weight of its label. It is at most 1, so no record counts more than
without weights, and no other bound has to change. Only the ratios of weights matter: weights 2 and
1 are used as 1 and 1/2.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from quorate._validate import described
from quorate.core.bounds.grid import Box
from quorate.core.users.crowd import Crowd
from quorate.data.columns.ids import group
from quorate.data.tables import declared_users
from quorate.exceptions import ParameterError, UnknownArgumentError
from quorate.ranges import as_limits

__all__ = [
    "FeatureRange",
    "counted_once",
    "public_sizes",
    "public_weights",
    "refuse_features",
    "refuse_partial_fit",
    "refuse_weights",
    "target_range",
]

Vector = NDArray[np.float64]


class FeatureRange:
    """Public limits of the features, which are clipped to them and scaled to [-1, 1].

    Parameters
    ----------
    bounds : None, float, pair, dict, Interval or Box
        ``None`` leaves features unchanged; for the rest see :mod:`quorate.ranges`.
    n_features : int
    names : sequence of str, optional
        Names of the features, for limits by name.

    Examples
    --------
    >>> limits = FeatureRange((0.0, [10.0, 2.0]), 2)
    >>> limits.scaled(np.array([[5.0, 9.0]]))
    array([[0., 1.]])
    """

    def __init__(self, bounds: Any, n_features: int, names: Sequence[str] | None = None) -> None:
        self.bounded = bounds is not None
        lower, upper = np.full(n_features, -1.0), np.full(n_features, 1.0)
        if self.bounded:
            lower, upper = as_limits(bounds, n_features, names)
            Box(lower, upper)
        self.centre = (lower + upper) / 2.0
        self.half_width = (upper - lower) / 2.0

    def scaled(self, rows: Vector, out: Vector | None = None) -> Vector:
        """Return the rows, clipped and scaled; written to ``out`` if it is given."""
        if not self.bounded:
            return rows
        # A warning about an overflow would tell of a value.
        with np.errstate(all="ignore"):
            scaled: Vector = np.subtract(rows, self.centre, out=out)
            scaled /= self.half_width
            np.clip(scaled, -1.0, 1.0, out=scaled)
        return scaled

    def unscaled(self, weights: Vector, offsets: Vector) -> tuple[Vector, Vector]:
        """Return weights and intercepts that act on the original features."""
        if not self.bounded:
            return weights, offsets
        outer = weights / self.half_width
        return outer, offsets - outer @ self.centre

    def rescaled(self, weights: Vector, offsets: Vector) -> tuple[Vector, Vector]:
        """Undo :meth:`unscaled`."""
        if not self.bounded:
            return weights, offsets
        return weights * self.half_width, offsets + weights @ self.centre


def target_range(bounds: Any) -> FeatureRange:
    """Return the limits of the target. The result is cached, because a fit needs it many times.

    >>> target_range((0.0, 8.0)).half_width
    array([4.])
    """
    plain = isinstance(bounds, tuple) and all(type(limit) is float for limit in bounds)
    return _remembered(bounds) if plain else FeatureRange(bounds, 1)


@lru_cache
def _remembered(bounds: tuple[float, ...]) -> FeatureRange:
    return FeatureRange(bounds, 1)


def public_weights(class_weight: Any, labels: Sequence[Any]) -> Vector:
    """Return a weight from 0 to 1 for each label.

    >>> public_weights({"ill": 3.0}, ("well", "ill"))
    array([0.33333333, 1.        ])
    """
    if isinstance(class_weight, str):
        raise ParameterError(
            f"Expected class_weight as a dictionary from labels to public weights, got "
            f"{class_weight!r}. Class frequencies are private: weights computed from the data "
            "would reveal them. State weights from public knowledge, such as {0: 1, 1: 9} "
            "for a class of one tenth, or release them first with DiscreteDistribution."
        )
    if not isinstance(class_weight, Mapping):
        raise ParameterError(
            f"Expected class_weight as a dictionary from labels to public weights, got "
            f"{described(class_weight)}."
        )
    strange = [label for label in class_weight if label not in labels]
    if strange:
        raise ParameterError(
            f"Expected weights for labels among {list(labels)}, got some for {strange}."
        )
    weights = [class_weight.get(label, 1.0) for label in labels]
    numeric = all(isinstance(w, numbers.Real) and not isinstance(w, bool) for w in weights)
    if not (numeric and all(0 < float(w) < math.inf for w in weights)):
        raise ParameterError(
            f"Expected positive, finite weights of classes, got {described(list(weights))}."
        )
    shares = np.array([float(w) for w in weights])
    return np.asarray(shares / shares.max())


def refuse_features(weights: Vector, n_features: int | None) -> None:
    """Refuse to continue from a model with another number of features, if the number is known.

    >>> refuse_features(np.zeros((1, 3)), 3)
    """
    if n_features is not None and weights.shape[1] != n_features:
        raise ParameterError(
            f"warm_start=True needs a model of {n_features} features, got one of "
            f"{weights.shape[1]}; use a fresh model."
        )


def refuse_partial_fit(name: str) -> NoReturn:
    """Refuse ``partial_fit``, with the reason."""
    raise AttributeError(
        f"{name} has no partial_fit: every call would be another release about the same users and "
        "would be charged again, without a bound on the sum. Fit once on all records, or use "
        "warm_start=True with a ledger that adds up the fits."
    )


def refuse_weights(name: str, given: Mapping[str, Any]) -> None:
    """Refuse ``sample_weight`` with the reason, and unknown keywords as Python does.

    >>> refuse_weights("LogisticRegression", {})
    """
    if given.get("sample_weight") is not None:
        raise ParameterError(
            f"{name} takes no sample_weight: everybody counts once, whatever their records weigh, "
            "and weights that follow from the data would be one more thing to hide. Weigh labels "
            "with class_weight=, which is public, or leave records out before the fit."
        )
    strange = [key for key in given if key != "sample_weight"]
    if strange:
        raise UnknownArgumentError(
            f"{name}.fit() got an unexpected keyword argument {strange[0]!r}"
        )


def public_sizes(X: Any, users: Any) -> tuple[int, int] | None:
    """Return the numbers of users and features, if they are known without reading a record.

    >>> public_sizes(np.zeros((3, 2)), [7, 7, 9])
    (2, 2)
    """
    if (
        not (isinstance(X, Crowd) or _has_columns(X))
        or (n_users := declared_users(X, users)) is None
    ):
        return None
    return n_users, X.n_features if isinstance(X, Crowd) else int(X.shape[1])


def counted_once(X: Any, users: Any) -> Any:
    """Return ids that need not be grouped again, if the number of users is known.

    >>> counted_once([[1.0]], None) is None
    True
    """
    told = not isinstance(X, Crowd) and users is not None and _has_columns(X)
    return group(users) if told else users


def _has_columns(X: Any) -> bool:
    shape = getattr(X, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2
