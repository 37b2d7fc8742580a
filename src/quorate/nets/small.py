"""The default network: one hidden layer and a direct linear path.

With few people a linear model is hard to beat, so the network contains one: outputs are a linear
function of the features plus a linear function of ``tanh`` units. The last layers start at zero, so
that the first prediction is the same for all records.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["feature_lengths", "folded", "linear_path", "said_of", "small_network", "small_size"]


def small_size(*, features: int, outputs: int, hidden: int) -> int:
    """Return the number of weights of the default network.

    >>> small_size(features=4, outputs=3, hidden=8)
    79
    """
    return features * outputs + outputs + (features + 1) * hidden + hidden * outputs


def feature_lengths(
    weights: NDArray[np.float64], *, features: int, hidden: int
) -> NDArray[np.float64]:
    """Return, for each feature, the length of all weights of the default network that use it.

    >>> feature_lengths(np.ones(small_size(features=2, outputs=1, hidden=3)), features=2, hidden=3)
    array([2., 2.])
    """
    inner, _, linear, _, _ = _parts(weights, features=features, hidden=hidden)
    return np.asarray(np.sqrt((inner**2).sum(axis=1) + (linear**2).sum(axis=1)))


def said_of(
    rows: NDArray[np.float64], weights: NDArray[np.float64], *, hidden: int
) -> NDArray[np.float64]:
    """Return the only output of the default network for each row.

    Numbers are added in one fixed order, so the output of a row does not depend, to the last bit,
    on its position among others.

    >>> said_of(np.ones((1, 2)), np.ones(small_size(features=2, outputs=1, hidden=1)), hidden=1)
    array([3.99505475])
    """
    inner, bias, linear, output, offset = _parts(weights, features=rows.shape[1], hidden=hidden)
    found = np.full(len(rows), offset[0])
    with np.errstate(all="ignore"):
        for column, weight in zip(rows.T, linear[:, 0], strict=True):
            found += weight * column
        for unit in range(hidden):
            before = np.full(len(rows), bias[unit])
            for column, weight in zip(rows.T, inner[:, unit], strict=True):
                before += weight * column
            found += output[unit, 0] * np.tanh(before)
    return found


def linear_path(
    weights: NDArray[np.float64], *, features: int, hidden: int
) -> tuple[NDArray[np.float64], float]:
    """Return the coefficients and the intercept of the linear path of a network with one output.

    >>> linear_path(np.arange(7.0), features=2, hidden=1)
    (array([3., 4.]), 6.0)
    """
    _, _, linear, _, offset = _parts(weights, features=features, hidden=hidden)
    return linear[:, 0].copy(), float(offset[0])


def folded(
    weights: NDArray[np.float64],
    *,
    features: NDArray[np.float64],
    outputs: float,
    offset: float,
    hidden: int,
) -> NDArray[np.float64]:
    """Return the weights of ``outputs`` x network + ``features`` @ row + ``offset``.

    >>> start = np.ones(small_size(features=2, outputs=1, hidden=1))
    >>> found = folded(start, features=np.ones(2), outputs=0.5, offset=1.0, hidden=1)
    >>> said_of(np.ones((1, 2)), found, hidden=1)
    array([4.99752738])
    """
    whole = weights.copy()
    _, _, linear, output, bias = _parts(whole, features=features.size, hidden=hidden)
    for part in (linear, output, bias):
        part *= outputs
    linear += features[:, None]
    bias += offset
    return whole


def _parts(
    weights: NDArray[np.float64], *, features: int, hidden: int
) -> tuple[NDArray[np.float64], ...]:
    """Return the index ranges of hidden, hidden_bias, linear, output and output_bias."""
    outputs = (len(weights) - (features + 1) * hidden) // (features + 1 + hidden)
    shapes = ((features, hidden), (hidden,), (features, outputs), (hidden, outputs), (outputs,))
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = np.split(weights, ends[:-1])
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))


def small_network(*, features: int, outputs: int, hidden: int) -> tuple[Any, Any]:
    """Return the functions ``init`` and ``apply`` of the default network."""

    def init(key: Any) -> dict[str, Any]:
        import jax
        import jax.numpy as jnp

        scale = 1.0 / math.sqrt(features)
        return {
            "hidden": scale * jax.random.normal(key, (features, hidden), dtype=jnp.float32),
            "hidden_bias": jnp.zeros(hidden, jnp.float32),
            "linear": jnp.zeros((features, outputs), jnp.float32),
            "output": jnp.zeros((hidden, outputs), jnp.float32),
            "output_bias": jnp.zeros(outputs, jnp.float32),
        }

    def apply(weights: dict[str, Any], rows: Any) -> Any:
        import jax.numpy as jnp

        units = jnp.tanh(rows @ weights["hidden"] + weights["hidden_bias"])
        return rows @ weights["linear"] + units @ weights["output"] + weights["output_bias"]

    return init, apply
