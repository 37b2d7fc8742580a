"""Private gradient descent: first-order steps on released gradients (U5, Algorithm 3).

As in the paper, an optimiser chooses the next point, a release strategy gives a noisy mean of user
gradients there (:mod:`quorate.models.optimization.gradients`), the optimiser moves, and at the end
it aggregates the iterates (Algorithm 7 of Levy et al.). An optimiser sees only noisy gradients, so
whatever it computes has no privacy cost. Its state is immutable: :meth:`Optimizer.update` returns
the next one. The budget of each step and the shrinkage depend on public and released numbers only.
Other optimisers are in :mod:`quorate.models.optimization.optimizers`.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.guarantees import Event, Guarantee
from quorate.exceptions import ParameterError
from quorate.mechanisms.user_releases import UserReleases
from quorate.models.losses import Loss
from quorate.models.optimization.gradients import (
    GradientRelease,
    ReleasedGradient,
    TraceStep,
)

__all__ = [
    "AveragedDescent",
    "Minimum",
    "Optimizer",
    "OptimizerState",
    "check_constants",
    "descend",
    "follow",
    "projected",
]

Vector = NDArray[np.float64]

# How often a whole run may take noise for a curvature above its bound.
_FALSE_ALARM = 0.05
SHRINKAGE = 1.5
"""How strongly coefficients are shrunk, in noise over signal."""
# Shorter runs end before anybody wonders.
_SHORTEST = 5


@dataclass(frozen=True, kw_only=True)
class OptimizerState:
    """The state of an optimisation after ``step`` of ``steps`` updates.

    ``weight`` is the total weight of the iterates in ``average``; ``first`` and ``second`` hold
    whatever moments an optimiser keeps. ``noise`` is the root mean square length of the noise in
    the first gradient, 0 if it is not known. ``size`` is the length of the last step divided by
    that of its gradient. ``chosen`` is the index of the iterate to be returned, if it is fixed
    beforehand.

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
    noise: float = 0.0
    size: float = 0.0
    chosen: int = 0

    @classmethod
    def start(cls, theta: Vector, *, steps: int, noise: float = 0.0) -> OptimizerState:
        """Return the state before the first step."""
        _validate.positive_integer(steps=steps)
        _validate.non_negative(noise=noise)
        zeros = np.zeros_like(theta)
        return cls(
            theta=theta,
            average=theta,
            weight=0.0,
            first=zeros,
            second=zeros,
            step=0,
            steps=steps,
            noise=noise,
        )

    def moved(
        self, theta: Vector, *, weight: float, size: float = 0.0, first: Vector | None = None
    ) -> OptimizerState:
        """Return the state at ``theta``, which enters the average with ``weight``."""
        total = self.weight + weight
        average = self.average
        if weight > 0:
            average = average + (theta - average) * (weight / total)
        return OptimizerState(  # field by field: ``replace`` takes twice the time
            theta=theta,
            average=average,
            weight=total,
            first=self.first if first is None else first,
            second=self.second,
            step=self.step + 1,
            steps=self.steps,
            noise=self.noise,
            size=size,
            chosen=self.chosen,
        )

    def blended(self, theta: Vector, *, share: float, size: float) -> OptimizerState:
        """Return the state at ``theta``, which gets this share of the average."""
        average = self.average + (theta - self.average) * share
        return replace(
            self, theta=theta, average=average, weight=1.0, step=self.step + 1, size=size
        )


class Optimizer(ABC):
    """The rules of an optimiser: the next point, the step, and the final point."""

    @property
    def keeps_curvature(self) -> bool:
        """Whether steps depend on the declared curvature only, as in Proposition 3."""
        return False

    def query(self, state: OptimizerState) -> Vector:
        """Return the point at which the next gradient is released."""
        return state.theta

    @abstractmethod
    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Return the next state.

        ``curvature`` is an upper bound of the second derivative, as far as it is known (1
        otherwise). ``precision`` is proportional to one over the variance of the noise in the
        gradient.
        """

    def aggregate(self, state: OptimizerState) -> Vector:
        """Return the final point."""
        return state.average if state.weight > 0 else state.theta


def projected(theta: Vector, radius: float | None) -> Vector:
    """Return the nearest point of a ball around zero; the point itself without a ball.

    >>> projected(np.array([3.0, 4.0]), 1.0)
    array([0.6, 0.8])
    """
    if radius is None:
        return theta
    norm = float(np.linalg.norm(theta))
    return theta if norm <= radius else theta * (radius / norm)


def check_constants(constants: str, radius: float | None) -> None:
    """Refuse published step sizes without the ball that they need.

    >>> check_constants("published", 1.0)
    """
    _validate.one_of(("calibrated", "published"), constants=constants)
    if radius is not None:
        _validate.positive(radius=radius)
    elif constants == "published":
        raise ParameterError(
            "Expected a radius: the published step sizes depend on how large the set of parameters "
            "is, got radius=None."
        )


@dataclass(frozen=True, kw_only=True)
class AveragedDescent(Optimizer):
    """Projected gradient descent that returns an average of its later iterates (convex).

    Iterates are weighted by the precision of their gradients. On a quadratic loss the noise of the
    average is then that of one step with the whole budget.

    Parameters
    ----------
    step_size : float, default=1.2
        Step size in units of one over the curvature.
    momentum : float, default=0.0
        Heavy ball.
    tail : float, default=0.5
        Share of the steps, counted from the end, that is averaged.
    radius : float, optional
        Parameters are kept in a ball of this radius.
    constants : {"calibrated", "published"}, default="calibrated"
        Published: the step size of Proposition 3, every iterate projected to the ball, and the
        plain mean of all iterates. ``step_size``, ``momentum`` and ``tail`` are ignored, and a
        ``radius`` is needed.

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
    constants: str = "calibrated"

    def __post_init__(self) -> None:
        _validate.positive(step_size=self.step_size, tail=self.tail)
        _validate.delta(momentum=self.momentum)
        check_constants(self.constants, self.radius)

    @property
    def keeps_curvature(self) -> bool:
        """Whether steps depend on the declared curvature only."""
        return self.constants == "published"

    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Step against the gradient."""
        if self.constants == "published" and self.radius is not None:
            drag = state.noise * math.sqrt(state.steps) / (2.0 * self.radius)
            size = 1.0 / (curvature + drag)
            theta = projected(state.theta - size * gradient, self.radius)
            return state.moved(theta, weight=1.0, size=size)
        size = self.step_size / curvature
        velocity = self.momentum * state.first - size * gradient
        averaged = state.step >= (1.0 - self.tail) * state.steps
        weight = precision if averaged else 0.0
        return state.moved(state.theta + velocity, weight=weight, size=size, first=velocity)

    def aggregate(self, state: OptimizerState) -> Vector:
        """Return the average, projected to the ball.

        Calibrated iterates are not projected. Only their average is projected to the ball, which
        brings it nearer to every point inside. Projecting the iterates one by one would pull a
        noisy average towards the centre.
        """
        return projected(super().aggregate(state), self.radius)


@dataclass(frozen=True, kw_only=True)
class Minimum:
    """The result of a minimisation.

    Attributes
    ----------
    theta : array
    event : Event
        The cost of the run.
    trace : tuple of TraceStep
    guarantee : Guarantee or None

    Examples
    --------
    >>> from quorate.core.guarantees import Gaussian
    >>> Minimum(theta=np.zeros(2), event=Gaussian(4.0), trace=()).theta
    array([0., 0.])
    """

    theta: Vector
    event: Event
    trace: tuple[TraceStep, ...]
    guarantee: Guarantee | None = None


def descend(
    run: UserReleases,
    loss: Loss,
    *,
    steps: int,
    optimizer: Optimizer,
    gradients: GradientRelease,
    initial: Vector,
    curvature: float,
    penalty: float = 0.0,
    shrinkage: float = SHRINKAGE,
    progress: bool | None = None,
) -> Minimum:
    """Run an optimiser on released gradients.

    ``shrinkage`` adds a penalty that removes more noise than signal. Its strength is this number
    times (variance of the noise) / (squared length of the first gradient). With very little signal
    the result is near ``initial`` = 0. A ``curvature`` that released gradients show to be too low
    is raised during the run. This costs nothing, because it uses released numbers only.

    Examples
    --------
    >>> from quorate.core.account.account import Account
    >>> from quorate.core.people import People
    >>> from quorate.models.optimization.gradients import ClippedGradients
    >>> from quorate.models.regression_losses import SquaredLoss
    >>> from quorate.core.users import UserData
    >>> people = UserData(np.ones((5000, 1)), np.full(5000, 2.0), offsets=np.arange(5001))
    >>> account = Account.open(epsilon=8.0, delta=1e-6)
    >>> minimum = descend(
    ...     UserReleases.start(People(people, account.relation), account),
    ...     SquaredLoss(intercept=False),
    ...     steps=10,
    ...     optimizer=AveragedDescent(),
    ...     gradients=ClippedGradients(),
    ...     initial=np.zeros(1),
    ...     curvature=1.0,
    ... )
    >>> bool(abs(minimum.theta[0] - 2.0) < 0.1)
    True
    """
    released = gradients.start(run, loss, steps=steps)
    state = OptimizerState.start(initial, steps=steps)
    penalized = ~loss.unpenalized(run.data.n_features)
    signal = 0.0
    steep = _Steepness(curvature, steps=steps)
    trace: list[TraceStep] = []
    for step in follow(range(steps), label="private descent", show=progress):
        theta = optimizer.query(state)
        noisy = released.release(theta, step)
        if step == 0:
            square = float(noisy.value @ noisy.value) - theta.size * noisy.noise**2
            signal = max(square, noisy.radius**2 / theta.size)
            state = replace(state, noise=noisy.noise * math.sqrt(theta.size))
        bound = curvature
        if not optimizer.keeps_curvature:
            bound = steep.after(theta, noisy, size=state.size)
        shrunk = shrinkage * curvature * theta.size * noisy.whole**2 / signal
        gradient = noisy.value + (shrunk + penalty) * np.where(penalized, theta, 0.0)
        taken = bound + penalty + shrunk
        precision = 1.0 / noisy.noise**2
        state = optimizer.update(state, gradient, curvature=taken, precision=precision)
        trace.append(
            TraceStep(
                step=step,
                radius=noisy.radius,
                gradient_norm=math.sqrt(noisy.value @ noisy.value),
                noise=noisy.noise,
                penalty=shrunk + penalty,
            )
        )
    return Minimum(theta=optimizer.aggregate(state), event=run.account.event, trace=tuple(trace))


class _Steepness:
    """The bound of the curvature, raised if released gradients show that it is too low.

    Between two points a gradient changes by the curvature times their distance. If it changed by
    more, beyond the known noise of both gradients, steps as long as the bound allows would
    overshoot, each farther than the last. This costs nothing, because it uses
    released numbers only.

    The step between two points went along the noise n of the gradient at the first point, by
    ``size`` times n, and the change of the gradients contains -n. So their product is too large by
    ``size`` x |n|^2. The mean of this term is known and subtracted. The rest of it, together with
    the noise of the next gradient, has a standard deviation of at most the distance times the root
    of (own noise^2 + 2 x earlier noise^2), because the variance of |n|^2 is twice its squared mean
    over the dimension. In one run of twenty, noise is mistaken for curvature in one of the
    ``steps``.
    """

    def __init__(self, bound: float, *, steps: int) -> None:
        self.bound = bound
        self._doubt = NormalDist().inv_cdf(1.0 - _FALSE_ALARM / steps)
        self._last: tuple[Vector, ReleasedGradient] | None = None

    def after(self, theta: Vector, noisy: ReleasedGradient, *, size: float) -> float:
        """Return the bound after one more gradient, taken after a step of ``size``."""
        if self._last is not None:
            before, other = self._last
            moved = theta - before
            square = float(moved @ moved)
            if square > 0.0:
                along = float(moved @ (noisy.value - other.value))
                seen = (along - size * theta.size * other.noise**2) / square
                unsure = math.hypot(noisy.noise, math.sqrt(2.0) * other.noise) / math.sqrt(square)
                if seen - self._doubt * unsure > self.bound:
                    self.bound = seen
        self._last = theta, noisy
        return self.bound


def follow(steps: range, *, label: str, show: bool | None = None) -> Iterator[int]:
    """Yield the steps, with a progress bar on the error stream if it is a terminal.

    Their number is public, so the bar shows nothing about people. ``show`` overrides the check for
    a terminal.

    >>> list(follow(range(3), label="fit"))
    [0, 1, 2]
    """
    wanted = sys.stderr.isatty() and len(steps) >= _SHORTEST if show is None else show
    walked: Iterable[int] = steps
    if wanted:
        from rich.console import Console
        from rich.progress import track

        walked = track(steps, description=label, console=Console(stderr=True), transient=True)
    yield from walked
