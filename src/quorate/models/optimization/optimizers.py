r"""Other first-order optimisers: for other losses, and as published (U5).

Proposition 3 of [1]_ has three descents:
:class:`~quorate.models.optimization.descent.AveragedDescent` and two of this module. With
``constants="published"`` they take its step sizes, for a loss of curvature H on a set of diameter R
and T gradients whose noise has a mean squared length of :math:`\nu^2`:

* convex (Theorem 6.3 of [2]_): :math:`1/(H + \nu\sqrt T/R)`, mean of all iterates, excess at most
  :math:`HR^2/(2T) + R\nu/\sqrt T`;
* :math:`\mu`-strongly convex ([3]_): :math:`1/H` for half of the steps, then, from their average,
  :math:`\min(1/H, 2/(\mu(k+2)))` at the k-th step; iterates enter the average with a share of
  :math:`\mu` times their step;
* otherwise: :math:`\min(1/H, R\sqrt{2/T}/\nu)` and an iterate at random; where the projection never
  acts its mean squared gradient is at most :math:`2H^2R^2/T + 2\nu HR\sqrt{2/T}`, because each step
  gains half its length times the squared gradient minus :math:`H\nu^2/2` times its square, and
  nothing more than :math:`\Delta \le HR^2` can be gained ([4]_).

References
----------
.. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845, appendix D.2.
.. [2] Bubeck. Convex optimization: algorithms and complexity. Foundations and Trends in Machine
   Learning 8, 2015.
.. [3] Kulunchakov, Mairal. Estimate sequences for stochastic composite optimization. JMLR 21, 2020.
.. [4] Ghadimi, Lan. Stochastic first- and zeroth-order methods for nonconvex stochastic
   programming. SIAM J. Optim. 23(4), 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.public_randomness import RandomState, public_generator
from quorate.models.optimization.descent import (
    Optimizer,
    OptimizerState,
    check_constants,
    projected,
)

__all__ = ["Adam", "RandomIterateDescent", "RestartedDescent"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RestartedDescent(Optimizer):
    """Projected descent for strongly convex losses: one restart with a falling step size.

    The first half of the steps averages with weights that grow linearly. The second half starts
    from that average and divides the step size by the number of steps since the restart, as soon as
    this exceeds the condition number (footnote 5 of [1]_, see the module).

    Parameters
    ----------
    condition : float, default=10.0
        The largest curvature divided by the smallest one (the strong convexity).
    step_size : float, default=1.0
        Step size in units of one over the curvature.
    radius : float, optional
    constants : {"calibrated", "published"}, default="calibrated"
        Published: the steps and averages of Proposition 3; ``step_size`` is ignored and a
        ``radius`` is needed. They are not the default: with fewer steps than the condition number
        they stay near the start, and with more steps they are not better.

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
    constants: str = "calibrated"

    def __post_init__(self) -> None:
        _validate.positive(condition=self.condition, step_size=self.step_size)
        check_constants(self.constants, self.radius)

    @property
    def keeps_curvature(self) -> bool:
        """Whether steps depend on the declared curvature only."""
        return self.constants == "published"

    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Step against the gradient; restart from the average half way."""
        half = state.steps // 2
        since = state.step - half
        if self.constants == "published":
            return self._published(state, gradient, curvature=curvature, since=since)
        size = self.step_size / curvature
        if since > 0:
            size *= min(1.0, 2.0 * self.condition / (2.0 * self.condition + since))
        theta = projected(state.theta - size * gradient, self.radius)
        position = state.step + 1 if since < 0 else since + 1
        moved = state.moved(theta, weight=float(position), size=size)
        if state.step + 1 == half:
            return replace(moved, theta=moved.average, weight=0.0)
        return moved

    def _published(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, since: int
    ) -> OptimizerState:
        falling = 1.0 if since < 0 else min(1.0, 2.0 * self.condition / (since + 3.0))
        theta = projected(state.theta - falling / curvature * gradient, self.radius)
        moved = state.blended(
            theta, share=min(1.0, falling / self.condition), size=falling / curvature
        )
        return replace(moved, theta=moved.average) if since == -1 else moved


@dataclass(frozen=True, kw_only=True)
class RandomIterateDescent(Optimizer):
    r"""Projected descent that returns one of its iterates at random (non-convex).

    Each of the T points at which a gradient was taken (including the start) is returned with
    probability 1/T, because the bound is about the mean of their squared gradients. The index of
    the returned iterate is drawn once, at the first step. With steps as long as the curvature
    allows, noise would dominate the result, however many steps there are. So steps shrink as
    :math:`1/\sqrt T`: by Proposition 3 (see the module) the best length is :math:`\min(1/H,
    \sqrt{2\Delta/(HT)}/\nu)`. The excess :math:`\Delta` at the start is not known. The published
    constant is :math:`HR^2`. The calibrated one is the gain of one step along the first released
    gradient, :math:`\|g\|^2/(2H)`.

    Parameters
    ----------
    step_size : float, default=1.0
        Factor of the calibrated length.
    radius : float, optional
        Parameters are kept in the ball of this radius.
    random_state : int, Generator or None
        Public randomness: which iterate is returned.
    constants : {"calibrated", "published"}, default="calibrated"
        Published needs a ``radius``.

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
    constants: str = "calibrated"

    def __post_init__(self) -> None:
        _validate.positive(step_size=self.step_size)
        check_constants(self.constants, self.radius)

    @property
    def keeps_curvature(self) -> bool:
        """Whether steps depend on the declared curvature only."""
        return self.constants == "published"

    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Step against the gradient; if this iterate is the chosen one, store it as the average."""
        if state.step == 0:
            state = replace(
                state,
                chosen=int(public_generator(self.random_state).integers(state.steps)),
                size=self._length(state, gradient, curvature=curvature),
            )
        theta = projected(state.theta - state.size * gradient, self.radius)
        moved = state.moved(theta, weight=0.0, size=state.size)
        if state.step == state.chosen:
            return replace(moved, average=state.theta, weight=1.0)
        return moved

    def _length(self, state: OptimizerState, gradient: Vector, *, curvature: float) -> float:
        noise = state.noise * math.sqrt(state.steps)
        if self.constants == "published" and self.radius is not None:
            reach = 2.0 * math.sqrt(2.0) * self.radius
            return 1.0 / curvature if noise == 0 else min(1.0 / curvature, reach / noise)
        reach = float(np.linalg.norm(gradient))
        return self.step_size / curvature * (1.0 if reach >= noise else reach / noise)


@dataclass(frozen=True, kw_only=True)
class Adam(Optimizer):
    """Adam [1]_: needs no curvature, the usual choice for neural networks.

    Step sizes decrease linearly to zero, so the last iterate averages the noise of the ones before
    it.

    Parameters
    ----------
    learning_rate : float, default=0.05
        Learning rate of the first step.
    momentum : float, default=0.9
    decay : float, default=0.99
        Decay of the average of squared gradients.

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
        size = self.learning_rate * (1.0 - state.step / state.steps)
        moved = state.moved(state.theta - size * corrected / scale, weight=0.0)
        return replace(moved, first=first, second=second)
