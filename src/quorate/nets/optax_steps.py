"""Optimizers of optax on released gradients; they are post-processing and cost no budget."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.engines.base import needs
from quorate.exceptions import ParameterError
from quorate.models.optimization.descent import Optimizer, OptimizerState

__all__ = ["OptaxSteps", "optimizer_of"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class OptaxSteps(Optimizer):
    """Steps of a ``GradientTransformation``; the last half of the iterates is averaged.

    Its state is stored in the vector :attr:`OptimizerState.first`, so that a checkpoint includes
    it. Numbers in 32 bits are stored exactly.

    Examples
    --------
    >>> import optax
    >>> steps = OptaxSteps(optax.sgd(0.5, momentum=0.5))
    >>> state = OptimizerState.start(np.array([4.0]), steps=40)
    >>> for _ in range(40):
    ...     state = steps.update(state, state.theta - 1.0, curvature=1.0, precision=1.0)
    >>> bool(abs(steps.aggregate(state)[0] - 1.0) < 0.05)
    True
    """

    transformation: Any = field(repr=False)

    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Take the step of the transformation."""
        jax = needs("jax", "jax")
        theta = state.theta.astype(np.float32)
        kept = self.transformation.init(theta)
        leaves, tree = jax.tree.flatten(kept)
        if state.step:
            kept = jax.tree.unflatten(tree, _unpacked(state.first, leaves))
        moves, kept = self.transformation.update(gradient.astype(np.float32), kept, theta)
        averaged = 2 * state.step >= state.steps
        moved = state.moved(
            state.theta + np.asarray(moves, np.float64), weight=precision if averaged else 0.0
        )
        return replace(moved, first=_packed(jax.tree.leaves(kept)))


def optimizer_of(given: Any) -> Optimizer:
    """Return an optimizer of this package unchanged, and one of optax as :class:`OptaxSteps`.

    >>> optimizer_of("adam")
    Traceback (most recent call last):
        ...
    quorate.exceptions.ParameterError: Expected an optimizer of optax, such as optax.sgd(0.1), or of
    quorate.models, got str.
    """
    if isinstance(given, Optimizer):
        return given
    if callable(getattr(given, "init", None)) and callable(getattr(given, "update", None)):
        _refuse_secrets(given)
        return OptaxSteps(given)
    raise ParameterError(
        "Expected an optimizer of optax, such as optax.sgd(0.1), or of quorate.models, got "
        f"{type(given).__name__}."
    )


def _refuse_secrets(transformation: Any) -> None:
    """Refuse a transformation whose state is not numbers, such as those that draw noise."""
    jax = needs("jax", "jax")
    leaves = jax.tree.leaves(transformation.init(np.zeros(2, np.float32)))
    kinds = [getattr(leaf, "dtype", np.dtype(float)) for leaf in leaves]
    if any(jax.numpy.issubdtype(kind, jax.dtypes.extended) for kind in kinds):
        raise ParameterError("Expected an optimizer of optax that keeps numbers only, no keys.")


def _packed(leaves: list[Any]) -> Vector:
    return np.concatenate([np.zeros(0), *(np.asarray(x, np.float64).ravel() for x in leaves)])


def _unpacked(held: Vector, leaves: list[Any]) -> list[Any]:
    parts = np.split(held, np.cumsum([np.size(leaf) for leaf in leaves])[:-1]) if leaves else []
    return [
        part.astype(np.asarray(leaf).dtype).reshape(np.shape(leaf))
        for part, leaf in zip(parts, leaves, strict=True)
    ]
