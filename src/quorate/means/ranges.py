"""The public range of the values: what callers may write for it, refused before it costs anything.

Messages name types and shapes and quote single numbers only: whoever passes data by mistake finds
none of it in an error.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.bounds import Bound, Box, Interval
from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.users import UserData

__all__ = [
    "as_bound",
    "check_epsilon",
    "features_told",
    "for_squares",
    "half_widths",
    "told_bound",
]

_SMALLEST_EPSILON = 1e-9
# Balls from 2^-256 to 2^256 can be made, and routes make smaller and larger ones than the range.
_LARGEST, _SMALLEST = 2.0**240, 2.0**-200
_LARGEST_SQUARED, _SMALLEST_SQUARED = 2.0**110, 2.0**-90


def as_bound(bound: Any, dimension: int) -> Bound:
    """Return a public bound for vectors of ``dimension`` coordinates.

    A number b means that every coordinate lies in [-b, b]; a pair means lower and upper limits,
    each a number or one number a coordinate; a :class:`~quorate.bounds.Bound` stays itself.

    >>> as_bound(2.0, 2).l2_radius.__round__(6)
    2.828427
    >>> as_bound(([0.0, -1.0], 1.0), 2).centre
    array([0.5, 0. ])
    """
    if bound is None:
        raise UnboundedContributionError(
            "A private mean or quantile needs bound=, a loose public range of the values; it must "
            "not be taken from the data. Pass a number b for [-b, b], or a pair (lower, upper)."
        )
    if isinstance(bound, Bound):
        if bound.dimension != dimension:
            raise ParameterError(
                f"Expected a bound of {dimension} dimensions, one for each feature, got "
                f"{bound.dimension}."
            )
        return _of_usual_size(bound, _SMALLEST, _LARGEST)
    if isinstance(bound, tuple | list) and len(bound) == 2:
        lower, upper = (_limits(limit, dimension) for limit in bound)
    else:
        upper = _limits(bound, dimension) if _is_number(bound) else np.zeros(0)
        lower = -upper
    finite = np.all(np.isfinite(np.concatenate([lower, upper])))
    if not (lower.size and finite and np.all(lower < upper)):
        raise ParameterError(
            "Expected bound to be a finite number > 0, a pair (lower, upper) of finite limits with "
            f"lower < upper in every coordinate, or a Bound, got {_described(bound)}."
        )
    if not (np.all(upper - lower >= _SMALLEST) and np.all(np.maximum(upper, -lower) <= _LARGEST)):
        raise ParameterError(_unusual(_SMALLEST, _LARGEST))
    return _of_usual_size(Box(lower, upper), _SMALLEST, _LARGEST)


def for_squares(bound: Bound) -> Bound:
    """Return the bound if squares of what lies in it can be bounded too.

    >>> for_squares(Interval(-1.0, 1.0)).dimension
    1
    """
    return _of_usual_size(bound, _SMALLEST_SQUARED, _LARGEST_SQUARED)


def _of_usual_size(bound: Bound, smallest: float, largest: float) -> Bound:
    reach = max(bound.l2_radius, float(np.abs(bound.centre).max()))
    if not (smallest <= bound.l2_radius and reach <= largest):
        raise ParameterError(_unusual(smallest, largest))
    return bound


def _unusual(smallest: float, largest: float) -> str:
    return (
        f"Expected a bound between {smallest:.0e} and {largest:.0e} in size; use other units, such "
        "as thousands or thousandths."
    )


def _limits(limit: Any, dimension: int) -> NDArray[np.float64]:
    if _is_number(limit):
        return np.full(dimension, float(limit))
    is_vector = isinstance(limit, list | tuple) or (isinstance(limit, np.ndarray) and limit.ndim)
    if not (is_vector and len(limit) == dimension and all(map(_is_number, limit))):
        raise ParameterError(
            f"Expected limits of bound as numbers or vectors of length {dimension}, one number for "
            f"each feature, got {_described(limit)}."
        )
    return np.array([float(number) for number in limit])


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _described(value: Any) -> str:
    """Return what a message may say about a value that could be data."""
    if _is_number(value) or value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, list | tuple):
        parts = ", ".join(map(_described, value)) if len(value) == 2 else f"{len(value)} entries"
        return f"a {type(value).__name__} of {parts}"
    return f"a {type(value).__name__}"


def features_told(X: Any) -> int | None:
    """Return the number of features that the shape of ``X`` tells, or ``None``.

    >>> features_told(np.zeros((5, 2))), features_told([[1.0, 2.0]])
    (2, None)
    """
    if isinstance(X, UserData):
        return X.n_features
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) not in (1, 2):
        return None
    return 1 if len(shape) == 1 else int(shape[1])


def told_bound(bound: Any, X: Any) -> Bound:
    """Return the bound before the data are read; refuse what can be seen to be wrong.

    Where ``X`` does not tell its number of features, it is taken from the bound, or 1.

    >>> told_bound(([0.0, 1.0], 5.0), [[1.0, 2.0]]).dimension
    2
    """
    dimension = features_told(X)
    if dimension is None:
        dimension = bound.dimension if isinstance(bound, Bound) else 1
        if isinstance(bound, tuple | list) and len(bound) == 2:
            dimension = max([len(limit) for limit in bound if hasattr(limit, "__len__")] or [1])
    return as_bound(bound, dimension)


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that hides every answer, and whose noise may not fit into 64 bits.

    >>> check_epsilon(1e-12)
    Traceback (most recent call last):
        ...
    quorate.exceptions.ParameterError: Expected epsilon >= 1e-09, got epsilon=1e-12: ...
    """
    if not (_is_number(epsilon) and _SMALLEST_EPSILON <= epsilon < math.inf):
        raise ParameterError(
            f"Expected epsilon >= {_SMALLEST_EPSILON}, got epsilon={_described(epsilon)}: the "
            "noise of a smaller one hides every answer, and may not fit into sums of 64 bits."
        )


def half_widths(bound: Bound) -> NDArray[np.float64]:
    """Return how far an offset may reach in each coordinate.

    >>> half_widths(Interval(0.0, 4.0))
    array([2.])
    """
    if isinstance(bound, Box | Interval):
        lower, upper = np.atleast_1d(bound.lower), np.atleast_1d(bound.upper)
        return np.asarray(np.maximum(upper - bound.centre, bound.centre - lower))
    return np.full(bound.dimension, bound.largest_offset)
