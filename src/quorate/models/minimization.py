"""Minimise a mean of user losses privately, by first-order steps (U5, Algorithm 3).

The split is the paper's: an optimiser says where to look, a release strategy gives a noisy mean of
user gradients there, the optimiser moves, and in the end aggregates. How many steps, how they share
the budget and how much to shrink is planned from public numbers and from what was released.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.accounting.account import Account
from quorate.accounting.events import Event
from quorate.exceptions import ParameterError, SchemaError
from quorate.guarantees import Guarantee, Relation
from quorate.models.descent_path import LEAST_CURVED, DescentStep, Gain, point_so_far
from quorate.models.geometry import PreconditionedLoss
from quorate.models.gradients import ClippedGradients, GradientRelease, ReleasedGradient
from quorate.models.losses import LinearLoss, Loss
from quorate.models.optimizers import Adam, AveragedDescent, Optimizer, OptimizerState
from quorate.models.runs import check_budget, check_public_steps, open_run, setup_mu
from quorate.releases.records import check_records, typical_records
from quorate.releases.user_releases import UserReleases
from quorate.users.crowd import Crowd

__all__ = [
    "Minimum",
    "TraceStep",
    "descend",
    "follow",
    "initial_point",
    "minimize",
    "plan_steps",
    "with_caveat",
]

Vector = NDArray[np.float64]

FEWEST_STEPS = 8
MOST_STEPS = 40
_STEPS_PER_SIGNAL = 0.6
# A curvature that exceeds its bound by so many standard deviations of the noise is believed.
_DOUBT = 2.0
# How much more is shrunk when noise costs a part of all that could be gained.
_WARY = 400.0
# A descent is given up when its noise costs this part of all that could be gained.
_HOPELESS = 0.11
# Where users agree, steps are at most so many times longer.
_FASTEST = 1.6
SHRINKAGE = 1.5
"""How strongly coefficients are shrunk, in noise over signal."""
# Shorter runs end before anybody wonders.
_SHORTEST = 5


@dataclass(frozen=True, kw_only=True)
class TraceStep:
    """What one step released: nothing else about it may leave the house.

    >>> TraceStep(step=0, radius=1.0, gradient_norm=0.5, noise=0.1, penalty=0.0).radius
    1.0
    """

    step: int
    radius: float
    gradient_norm: float
    noise: float
    penalty: float


@dataclass(frozen=True, kw_only=True)
class Minimum:
    """Where a minimisation ended.

    Attributes
    ----------
    theta : array
    event : Event
        What the run cost.
    trace : tuple of TraceStep
    guarantee : Guarantee or None
    gain, gain_error : float
        By how much the coefficients lower the loss against what they were at the start, as far as
        released gradients tell, and the standard deviation of that.
    path : tuple of DescentStep
    optimizer : Optimizer or None
        Who took the steps of ``path``.
    penalty : float
        Strength of the penalty that was asked for.
    given_up : bool
        Whether noise was seen to exceed all that could be gained; part of the budget is left.

    Examples
    --------
    >>> from quorate.accounting.events import Gaussian
    >>> Minimum(theta=np.zeros(2), event=Gaussian(4.0), trace=()).theta
    array([0., 0.])
    """

    theta: Vector
    event: Event
    trace: tuple[TraceStep, ...]
    guarantee: Guarantee | None = None
    gain: float = 0.0
    gain_error: float = 0.0
    path: tuple[DescentStep, ...] = field(default=(), repr=False)
    optimizer: Optimizer | None = None
    penalty: float = 0.0
    given_up: bool = False


def plan_steps(*, n_users: float, mu: float, records: float, dimension: int) -> int:
    """Return how many steps pay off: more with more signal per parameter.

    >>> plan_steps(n_users=1000, mu=0.2367, records=10, dimension=21)
    21
    """
    signal = n_users * mu * records**0.5 / dimension
    return int(np.clip(_STEPS_PER_SIGNAL * signal, FEWEST_STEPS, MOST_STEPS))


def descend(  # noqa: PLR0913 - what a descent may know beforehand
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
    longest: float = math.inf,
    worth: float = math.inf,
    agreed: float = 0.0,
    doubtful: Callable[[Minimum], bool] | None = None,
    progress: bool | None = None,
) -> Minimum:
    """Run an optimiser on released gradients.

    ``shrinkage`` adds a penalty of the size at which it removes more noise than signal: this times
    (variance of the noise) / (squared length of the first gradient). With very little signal this
    ends near ``initial`` = 0, the constant model. A ``curvature`` that released gradients show to
    be too low is raised on the way. ``longest`` is how long a mean gradient can be at the start, as
    far as it is known. ``worth`` is the largest gain that anybody hopes for: if after a quarter of
    the steps the noise of the whole run would cost a good part of it, the rest is not drawn, and
    ``Minimum.given_up`` says so; ``doubtful`` is asked the same after the first step and halfway,
    about what was released so far. Steps are longer where gradients are shorter than ``agreed``.

    Examples
    --------
    >>> from quorate.models.losses import SquaredLoss
    >>> from quorate.users import UserData
    >>> people = UserData(np.ones((5000, 1)), np.full(5000, 2.0), offsets=np.arange(5001))
    >>> account = Account.open(epsilon=8.0, delta=1e-6)
    >>> minimum = descend(
    ...     open_run(people, account),
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
    steep = _Steepness(curvature)
    falls = Gain(penalized, initial, steps=steps)
    trace: list[TraceStep] = []
    path: list[DescentStep] = []
    for step in follow(range(steps), label="private descent", show=progress):
        theta = optimizer.query(state)
        if doubtful is not None and step in (1, max(FEWEST_STEPS, (steps + 1) // 2)):
            so_far = Minimum(
                theta=theta if step == 1 else point_so_far(path, theta),
                event=run.account.event,
                trace=tuple(trace),
                path=tuple(path),
                optimizer=optimizer,
                penalty=penalty,
            )
            if doubtful(so_far):
                return replace(so_far, theta=initial, given_up=True)
        noisy = released.release(theta, step)
        if step == 0:
            square = float(noisy.value @ noisy.value) - theta.size * noisy.noise**2
            length = min(square, longest**2)
            signal = max(length, noisy.radius**2 / theta.size)
            state = replace(state, noise=noisy.noise * math.sqrt(theta.size))
        bound = steep.after(theta, noisy)
        falls.after(noisy, step)
        cost = theta.size * noisy.whole**2 / (2.0 * LEAST_CURVED * curvature)
        if step == steps // 4 and cost > _HOPELESS * worth:
            return Minimum(
                theta=initial, event=run.account.event, trace=tuple(trace), given_up=True
            )
        shrunk = shrinkage * curvature * theta.size * noisy.whole**2 / signal
        # The dearer the noise, the less is risked.
        shrunk *= 1.0 + _WARY * (cost / worth) ** 2
        pull, stiffness = _penalty(loss, theta, penalty)
        gradient = noisy.value + pull + shrunk * np.where(penalized, theta, 0.0)
        taken = (bound + stiffness + shrunk) / _pace(agreed, noisy.radius)
        precision = 1.0 / noisy.noise**2
        state = optimizer.update(state, gradient, curvature=taken, precision=precision)
        path.append(
            DescentStep(
                theta=theta,
                gradient=noisy.value,
                noise=noisy.noise,
                curvature=taken,
                shrinkage=shrunk,
            )
        )
        trace.append(
            TraceStep(
                step=step,
                radius=noisy.radius,
                gradient_norm=math.sqrt(noisy.value @ noisy.value),
                noise=noisy.noise,
                penalty=shrunk + penalty,
            )
        )
    theta = optimizer.aggregate(state)
    gain, error = falls.until(theta, curvature=curvature)
    return Minimum(
        theta=theta,
        event=run.account.event,
        trace=tuple(trace),
        gain=gain,
        gain_error=error,
        path=tuple(path),
        optimizer=optimizer,
        penalty=penalty,
    )


def _pace(agreed: float, radius: float) -> float:
    """Return how much longer a step is because users agree."""
    return min(_FASTEST, max(1.0, math.sqrt(agreed / radius)))


class _Steepness:
    """The bound of the curvature, raised where released gradients show that it is too low.

    Between two points a gradient changes by the curvature times their distance. If it changed by
    more, beyond the known noise of both gradients, steps as long as the bound allows would
    overshoot, each farther than the last. This costs nothing: it looks at released numbers only.
    """

    def __init__(self, bound: float) -> None:
        self.bound = bound
        self._last: tuple[Vector, ReleasedGradient] | None = None

    def after(self, theta: Vector, noisy: ReleasedGradient) -> float:
        """Return the bound after one more gradient."""
        if self._last is not None:
            before, other = self._last
            moved = theta - before
            length = math.sqrt(moved @ moved)
            if length > 0.0:
                seen = float(moved @ (noisy.value - other.value)) / length**2
                sure = seen - _DOUBT * math.hypot(noisy.noise, other.noise) / length
                if sure > self.bound:
                    self.bound = min(seen, 2.0 * self.bound)
        self._last = theta, noisy
        return self.bound


def follow(steps: range, *, label: str, show: bool | None = None) -> Iterator[int]:
    """Yield the steps; draw a bar on the error stream if it is a terminal: batch jobs stay quiet.

    Parameters
    ----------
    steps : range
        Their number is public, so the bar shows nothing about people.
    label : str
    show : bool, optional
        Overrules the look at the terminal.

    Examples
    --------
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


def _penalty(loss: Loss, theta: Vector, strength: float) -> tuple[Vector, float]:
    """Return the gradient and the curvature of strength / 2 times the squared coefficients."""
    if strength == 0:
        return np.zeros_like(theta), 0.0
    if isinstance(loss, PreconditionedLoss):
        return loss.penalty(theta, strength)
    features = theta.size if not isinstance(loss, LinearLoss) else theta.size // loss.outputs
    if isinstance(loss, LinearLoss):
        features -= loss.intercept
    return strength * np.where(loss.unpenalized(features), 0.0, theta), strength


def minimize(  # noqa: PLR0913 - the common keywords
    data: Crowd,
    loss: Loss,
    *,
    epsilon: float,
    delta: float,
    relation: Relation = Relation.REPLACE,
    optimizer: Optimizer | None = None,
    gradients: GradientRelease | None = None,
    steps: int | None = None,
    initial: ArrayLike | None = None,
    curvature: float | None = None,
    records: int | str = "auto",
    batch_rate: float | None = None,
    progress: bool | None = None,
) -> Minimum:
    r"""Minimise the mean over users of their losses, hiding any one user's whole record.

    Query, update, aggregate: Algorithm 7 of [1]_ on released gradients.

    Privacy
    -------
    guarantee : (``epsilon``, ``delta``)-DP, in ``Minimum.guarantee``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the loss, the number of features and, under ``Relation.REPLACE``, the
        number of users; released: the radii, the noisy gradients and what follows from them
    numerics : exact
    proof : Every step is a Gaussian mechanism on clipped user gradients, every radius a noisy
        search; each takes its part of one :class:`~quorate.accounting.account.Account`, and the
        squares never add up to more than the whole. With minibatches the steps are Poisson samples
        priced by the accountant; with :class:`~quorate.models.gradients.WinsorizedGradients` the
        steps are queries of one winsorized mean. Optimisers see released gradients only.

    Utility
    -------
    For n users whose gradients spread by :math:`\tau` the noise of the whole run is about
    :math:`2\tau\sqrt d/(n\mu)` in the gradient, :math:`\mu` = ``gdp_mu(epsilon, delta)``; with m
    records a user :math:`\tau` falls as :math:`1/\sqrt m`.

    Complexity
    ----------
    One pass over the records a step, two more for radii; memory for one gradient a user, in parts.

    Parameters
    ----------
    data : UserData or another crowd
    loss : Loss
        One of the caller is called for one user at a time; in
        :class:`~quorate.models.losses.Vectorized` with many, and the guarantee says so.
    epsilon, delta : float
    relation : Relation, default=Relation.REPLACE
    optimizer : Optimizer, default=Adam, or AveragedDescent if ``curvature`` is given
    gradients : GradientRelease, default=ClippedGradients()
    steps : int, optional
        By default planned from the users, the parameters and the records per user.
    initial : array, default=zeros
        Public, or released before.
    curvature : float, optional
        Upper bound of the second derivative of the loss in the parameters, if public.
    records : int or "auto", default="auto"
        Records of a typical user: a public number, or a rough estimate that is paid for. Only used
        to plan ``steps``.
    batch_rate : float, optional
        Probability with which a user takes part in a step; full batches by default. The chain of
        steps is priced as a whole before anything is drawn, with all that the setup may need: what
        the setup does not use is left over, so that the noise drawn costs less than is promised
        (four fifths of epsilon where the curvature is known).
    engine : Engine, default=LocalEngine()
    progress : bool, optional
        Whether to draw a bar; by default on a terminal only.

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845, Alg. 3.

    Examples
    --------
    >>> from quorate.models.losses import SquaredLoss
    >>> from quorate.users import UserData
    >>> rows = np.random.default_rng(0).normal(size=(8000, 2))
    >>> people = UserData(rows, rows @ [1.0, -1.0], offsets=np.arange(0, 8001, 2))
    >>> minimum = minimize(
    ...     people, SquaredLoss(), epsilon=4.0, delta=1e-6, curvature=1.0, records=2
    ... )
    >>> bool(np.abs(minimum.theta - [1.0, -1.0, 0.0]).max() < 0.3)
    True
    >>> minimum.guarantee.epsilon
    4.0
    """
    check_budget(epsilon=epsilon, delta=delta, rate=batch_rate)
    check_records(records)
    check_public_steps(batch_rate, steps=steps, records=records, relation=relation)
    if not isinstance(data, Crowd):
        raise SchemaError(f"Expected a UserData, got {type(data).__name__}.")
    dimension = loss.dimension(data.n_features)
    theta = initial_point(initial, dimension)
    if steps is not None:
        _validate.positive_integer(steps=steps)
    if curvature is not None:
        _validate.positive(curvature=curvature)
    account = Account.open(epsilon=epsilon, delta=delta, relation=relation, unit=data.unit)
    if batch_rate is not None and steps is None:
        steps = plan_steps(
            n_users=data.n_users,
            mu=setup_mu(account, rate=batch_rate),
            records=float(records),
            dimension=dimension,
        )
    run = open_run(data, account, rate=batch_rate, steps=steps)
    if steps is None:
        steps = plan_steps(
            n_users=run.n_users,
            mu=account.mu,
            records=typical_records(run, records),
            dimension=dimension,
        )
    if optimizer is None:
        optimizer = Adam() if curvature is None else AveragedDescent()
    minimum = descend(
        run,
        loss,
        steps=steps,
        optimizer=optimizer,
        gradients=ClippedGradients() if gradients is None else gradients,
        initial=theta,
        curvature=1.0 if curvature is None else curvature,
        shrinkage=0.0,
        progress=progress,
    )
    return Minimum(
        theta=minimum.theta,
        event=minimum.event,
        trace=minimum.trace,
        guarantee=with_caveat(account.guarantee(), loss),
    )


def with_caveat(guarantee: Guarantee, loss: Loss) -> Guarantee:
    """Return the promise, with what the loss makes of it."""
    return guarantee if loss.caveat is None else guarantee.idealized(loss.caveat)


def initial_point(initial: Any, dimension: int) -> Vector:
    """Return a checked starting point; zeros by default.

    >>> initial_point(None, 2)
    array([0., 0.])
    """
    if initial is None:
        return np.zeros(dimension)
    theta = np.array(initial, dtype=np.float64)
    if theta.shape != (dimension,) or not np.all(np.isfinite(theta)):
        raise ParameterError(
            f"Expected initial to be {dimension} finite numbers, got shape {theta.shape}."
        )
    return theta
