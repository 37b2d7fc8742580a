"""Finite covers of boxes and balls, for Lipschitz losses over continuous parameters (U7).

If a loss is G-Lipschitz, the best of a cover of radius r errs at most G r more than the best of all
(Corollary 4 of Levy et al.). Choosing among the cover costs its logarithm, of order d ln(1/r).
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.bounds.grid import Ball, Bound, Box, Interval
from quorate.exceptions import ParameterError

__all__ = ["MAX_CANDIDATES", "ball_cover", "box_cover", "cover_of", "published_radius"]

MAX_CANDIDATES = 1_000_000  # machine: time and memory
"""Larger covers are refused."""


def box_cover(lower: ArrayLike, upper: ArrayLike, *, radius: float) -> NDArray[np.float64]:
    """Return points such that every point of the box is within ``radius`` of one, in L2 norm.

    They are the centres of a grid of cells with a half diagonal of at most ``radius``.

    >>> box_cover([0.0], [1.0], radius=0.25).ravel()
    array([0.25, 0.75])
    >>> box_cover([0.0] * 2, [1.0] * 2, radius=0.2).shape
    (16, 2)
    """
    low, high = np.atleast_1d(np.asarray(lower, float)), np.atleast_1d(np.asarray(upper, float))
    _validate.positive(radius=radius)
    if low.ndim != 1 or low.shape != high.shape or low.size == 0:
        raise ParameterError("Expected lower and upper to be vectors of one length.")
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low < high)):
        raise ParameterError("Expected finite bounds with lower < upper in every coordinate.")
    side = 2 * radius / math.sqrt(low.size)
    cells = [max(1, math.ceil(width / side)) for width in (high - low).tolist()]
    size = math.prod(cells)
    if size > MAX_CANDIDATES:
        raise ParameterError(
            f"Expected at most {MAX_CANDIDATES} points in a cover, got {size}. Use a larger radius "
            "or a smaller box; beyond a few dimensions train a model instead (quorate.models)."
        )
    axes = [
        start + (np.arange(k) + 0.5) * (stop - start) / k
        for start, stop, k in zip(low, high, cells, strict=True)
    ]
    return np.array(list(product(*axes)), dtype=np.float64)


def ball_cover(centre: ArrayLike, size: float, *, radius: float) -> NDArray[np.float64]:
    """Return a cover of a ball of L2 radius ``size``.

    Each point of the ball is within ``radius`` of a point of the cover.

    They are the centres of the cells of :func:`box_cover` that intersect the ball. A centre outside
    of the ball is moved to the nearest point of the ball, which is closer to all points of the
    ball.

    >>> ball_cover([0.0, 0.0], 1.0, radius=0.5).shape
    (9, 2)
    >>> len(ball_cover([0.0] * 3, 1.0, radius=0.25))
    275
    """
    middle = np.atleast_1d(np.asarray(centre, float))
    _validate.positive(size=size)
    points = box_cover(middle - size, middle + size, radius=radius) - middle
    cells = max(1, math.ceil(2 * size / (2 * radius / math.sqrt(middle.size))))
    nearest = np.maximum(np.abs(points) - size / cells, 0.0)
    points = points[np.sqrt((nearest**2).sum(axis=1)) <= size]
    lengths = np.sqrt((points**2).sum(axis=1))
    return np.asarray(middle + points / np.maximum(lengths / size, 1.0)[:, None])


def cover_of(parameters: Bound, *, radius: float) -> NDArray[np.float64]:
    """Return a cover of a public set of parameters: a ball or a box.

    >>> cover_of(Ball(1.0, dimension=2), radius=0.5).shape
    (9, 2)
    """
    if isinstance(parameters, Ball):
        return ball_cover(parameters.centre, parameters.radius, radius=radius)
    if isinstance(parameters, Box | Interval):
        return box_cover(parameters.lower, parameters.upper, radius=radius)
    raise ParameterError(f"Expected a Ball, a Box or an Interval, got {parameters!r}.")


def published_radius(
    *, bound: float, lipschitz: float, dimension: int, n_users: int, records: int, epsilon: float
) -> float:
    """Return the radius of Remark 1: the one that balances cover, sampling and privacy.

    It is (B/G) (sqrt(d/(m n)) + d^1.5/(n epsilon sqrt(m))).

    >>> round(published_radius(
    ...     bound=1, lipschitz=1, dimension=2, n_users=300, records=100, epsilon=1.0), 4)
    0.0091
    """
    _validate.positive(bound=bound, lipschitz=lipschitz, epsilon=epsilon)
    _validate.positive_integer(dimension=dimension, n_users=n_users, records=records)
    sampling = math.sqrt(dimension / (records * n_users))
    privacy = dimension**1.5 / (n_users * epsilon * math.sqrt(records))
    return float(bound / lipschitz * (sampling + privacy))
