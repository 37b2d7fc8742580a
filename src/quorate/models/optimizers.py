"""First-order optimisers as small objects: query, update, aggregate (U5, Algorithm 7).

An optimiser sees noisy gradients and nothing else, so whatever it does with them is free of privacy
cost. The state is a value: :meth:`Optimizer.update` returns the next one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.public_randomness import RandomState, public_generator

__all__ = [
    "Adam",
    "AveragedDescent",
    "Optimizer",
    "OptimizerState",
    "RandomIterateDescent",
    "RestartedDescent",
]

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class OptimizerState:
    """Where an optimisation stands after ``step`` of ``steps`` updates.

    ``weight`` is the total weight of the iterates in ``average``; ``first`` and ``second`` hold
    whatever moments an optimiser keeps.

    >>> OptimizerState.start(np.zeros(2), steps=10).step
    0
    """

    theta: Vector
    average: Vector
    weight: float
    first: Vector
    second: Vector
    step: int
    steps: int

    @classmethod
    def start(cls, theta: Vector, *, steps: int) -> OptimizerState:
        """Return the state before the first step."""
        _validate.positive_integer(steps=steps)
        zeros = np.zeros_like(theta)
        return cls(
            theta=theta,
            average=theta,
            weight=0.0,
            first=zeros,
            second=zeros,
            step=0,
            steps=steps,
        )

    def moved(self, theta: Vector, *, weight: float) -> OptimizerState:
        """Return the state at ``theta``, which joins the average with ``weight``."""
        total = self.weight + weight
        average = self.average
        if weight > 0:
            average = average + (theta - average) * (weight / total)
        return replace(self, theta=theta, average=average, weight=total, step=self.step + 1)


class Optimizer(ABC):
    """Where to look next, how to move, what to return."""

    def query(self, state: OptimizerState) -> Vector:
        """Return the point at which the next gradient is asked for."""
        return state.theta

    @abstractmethod
    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Return the next state.

        ``curvature`` is an upper bound of the second derivative as far as it is known (1
        otherwise); ``precision`` is proportional to one over the variance of the noise in the
        gradient.
        """

    def aggregate(self, state: OptimizerState) -> Vector:
        """Return the final point."""
        return state.average if state.weight > 0 else state.theta


def _project(theta: Vector, radius: float | None) -> Vector:
    if radius is None:
        return theta
    norm = float(np.linalg.norm(theta))
    return theta if norm <= radius else theta * (radius / norm)


@dataclass(frozen=True, kw_only=True)
class AveragedDescent(Optimizer):
    """Projected gradient descent that returns an average of its later iterates (convex).

    Iterates are averaged by how precise their gradients were: on a quadratic the noise of the
    average is then that of one step with the whole budget.

    Parameters
    ----------
    step_size : float, default=1.2
        In units of one over the curvature.
    momentum : float, default=0.0
        Heavy ball.
    tail : float, default=0.5
        Share of the steps, counted from the end, that is averaged.
    radius : float, optional
        Parameters are kept in the ball of this radius.

    Examples
    --------
    >>> descent = AveragedDescent()
    >>> state = OptimizerState.start(np.array([4.0]), steps=8)
    >>> for _ in range(8):
    ...     gradient = descent.query(state) - 1.0
    ...     state = descent.update(state, gradient, curvature=1.0, precision=1.0)
    >>> bool(abs(descent.aggregate(state)[0] - 1.0) < 0.01)
    True
    """

    step_size: float = 1.2
    momentum: float = 0.0
    tail: float = 0.5
    radius: float | None = None

    def __post_init__(self) -> None:
        _validate.positive(step_size=self.step_size, tail=self.tail)
        _validate.delta(momentum=self.momentum)

    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Step against the gradient."""
        velocity = self.momentum * state.first - self.step_size / curvature * gradient
        theta = _project(state.theta + velocity, self.radius)
        averaged = state.step >= (1.0 - self.tail) * state.steps
        moved = state.moved(theta, weight=precision if averaged else 0.0)
        return replace(moved, first=velocity)


@dataclass(frozen=True, kw_only=True)
class RestartedDescent(Optimizer):
    """Projected descent for strongly convex losses: one restart with a falling step size.

    The first half of the steps averages with weights that grow linearly; the second half starts
    from that average and divides the step size by the number of steps since the restart, beyond the
    condition number (footnote 5 of the paper).

    Parameters
    ----------
    condition : float, default=10.0
        Curvature over strong convexity.
    step_size : float, default=1.0
        In units of one over the curvature.
    radius : float, optional

    Examples
    --------
    >>> descent = RestartedDescent(condition=2.0)
    >>> state = OptimizerState.start(np.array([4.0]), steps=20)
    >>> for _ in range(20):
    ...     state = descent.update(state, state.theta - 1.0, curvature=1.0, precision=1.0)
    >>> bool(abs(descent.aggregate(state)[0] - 1.0) < 0.01)
    True
    """

    condition: float = 10.0
    step_size: float = 1.0
    radius: float | None = None

    def __post_init__(self) -> None:
        _validate.positive(condition=self.condition, step_size=self.step_size)

    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Step against the gradient; restart from the average half way."""
        half = state.steps // 2
        since = state.step - half
        size = self.step_size / curvature
        if since > 0:
            size *= min(1.0, 2.0 * self.condition / (2.0 * self.condition + since))
        theta = _project(state.theta - size * gradient, self.radius)
        position = state.step + 1 if since < 0 else since + 1
        moved = state.moved(theta, weight=float(position))
        if state.step + 1 == half:
            return replace(moved, theta=moved.average, weight=0.0)
        return moved


@dataclass(frozen=True, kw_only=True)
class RandomIterateDescent(Optimizer):
    """Projected descent that returns one of its iterates at random (non-convex).

    Parameters
    ----------
    step_size : float, default=1.0
        In units of one over the curvature.
    radius : float, optional
    random_state : int, Generator or None
        Public randomness: which iterate is returned.

    Examples
    --------
    >>> descent = RandomIterateDescent(random_state=0)
    >>> state = OptimizerState.start(np.array([4.0]), steps=3)
    >>> for _ in range(3):
    ...     state = descent.update(state, state.theta, curvature=1.0, precision=1.0)
    >>> descent.aggregate(state).shape
    (1,)
    """

    step_size: float = 1.0
    radius: float | None = None
    random_state: RandomState = 0

    def __post_init__(self) -> None:
        _validate.positive(step_size=self.step_size)

    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Step against the gradient; the chosen iterate is kept as the average."""
        chosen = int(public_generator(self.random_state).integers(state.steps))
        theta = _project(state.theta - self.step_size / curvature * gradient, self.radius)
        moved = state.moved(theta, weight=0.0)
        if state.step == chosen:
            return replace(moved, average=theta, weight=1.0)
        return moved


@dataclass(frozen=True, kw_only=True)
class Adam(Optimizer):
    """Adam [1]_: needs no curvature, the usual choice for neural networks.

    The last half of the iterates is averaged.

    Parameters
    ----------
    learning_rate : float, default=0.05
    momentum : float, default=0.9
    decay : float, default=0.99
        Of the average of squared gradients.

    References
    ----------
    .. [1] Kingma, Ba. Adam: a method for stochastic optimization. ICLR 2015, arXiv:1412.6980.

    Examples
    --------
    >>> adam = Adam(learning_rate=0.3)
    >>> state = OptimizerState.start(np.array([4.0]), steps=100)
    >>> for _ in range(100):
    ...     state = adam.update(state, state.theta - 1.0, curvature=1.0, precision=1.0)
    >>> bool(abs(adam.aggregate(state)[0] - 1.0) < 0.2)
    True
    """

    learning_rate: float = 0.05
    momentum: float = 0.9
    decay: float = 0.99

    def __post_init__(self) -> None:
        _validate.positive(learning_rate=self.learning_rate)
        _validate.delta(momentum=self.momentum, decay=self.decay)

    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Step against the averaged gradient, scaled by its recent size."""
        first = self.momentum * state.first + (1.0 - self.momentum) * gradient
        second = self.decay * state.second + (1.0 - self.decay) * gradient**2
        count = state.step + 1
        corrected = first / (1.0 - self.momentum**count)
        scale = np.sqrt(second / (1.0 - self.decay**count)) + 1e-12
        theta = state.theta - self.learning_rate * corrected / scale
        averaged = 2 * state.step >= state.steps
        moved = state.moved(theta, weight=precision if averaged else 0.0)
        return replace(moved, first=first, second=second)
