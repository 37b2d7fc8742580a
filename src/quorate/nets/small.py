"""The default network: one hidden layer beside a linear path.

With few people a linear model is hard to beat, so the network contains one: outputs are a linear
function of the features plus a linear function of ``tanh`` units. The last layers begin at zero,
so that the first prediction is the same for everybody.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["feature_lengths", "small_network", "small_size"]


def small_size(*, features: int, outputs: int, hidden: int) -> int:
    """Return how many weights the default network has.

    >>> small_size(features=4, outputs=3, hidden=8)
    79
    """
    return features * outputs + outputs + (features + 1) * hidden + hidden * outputs


def feature_lengths(
    weights: NDArray[np.float64], *, features: int, hidden: int
) -> NDArray[np.float64]:
    """Return the length of all weights of the default network that leave each feature.

    >>> feature_lengths(np.ones(small_size(features=2, outputs=1, hidden=3)), features=2, hidden=3)
    array([2., 2.])
    """
    # Arrays lie in the order of their names: hidden, hidden_bias, linear, output, output_bias.
    outputs = (len(weights) - (features + 1) * hidden) // (features + 1 + hidden)
    inner = weights[: features * hidden].reshape(features, hidden)
    start = (features + 1) * hidden
    linear = weights[start : start + features * outputs].reshape(features, outputs)
    return np.asarray(np.sqrt((inner**2).sum(axis=1) + (linear**2).sum(axis=1)))


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
