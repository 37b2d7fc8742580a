"""Released gradients of a descent, and how many users they need at least (U5).

A descent spends its budget on clipped means of user gradients. :class:`ClippedGradients` clips each
user's gradient to a ball around zero. Its radius is found privately and reduced later, because
gradients become shorter near the optimum. Their mean tends to zero there, so another centre would
not help. The estimator of the paper is in :mod:`quorate.models.optimization.winsorized_gradients`.

Whether a fit can work at all depends on public numbers alone. A clipped mean of user gradients has
length at most its radius C, and its noise has length 2 C sqrt(d) / (n mu) under replacement. If n
mu < 2 sqrt(d), the noise of even a single step with the whole budget is longer than any possible
gradient. If the number of records per user is public there is a sharper rule. Users' gradients
spread by about sqrt(d / m) around their mean. If n mu sqrt(m) < d, the noise that hides this spread
is larger than the spread of the labels. Both are necessary conditions, not sufficient ones.

In addition, below n mu = 32 the noise of the comparisons that estimate the size of a record is not
safely smaller than the number of users. The size may then be far off, and all later results are
noise. Even if all three conditions hold, released gradients may contain no signal; the posterior
mean is then a constant model (:mod:`quorate.models.optimization.posterior`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.costs import gdp_mu
from quorate.core.bounds.grid import Ball
from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.mechanisms.sums import GaussianSum
from quorate.mechanisms.user_releases import (
    NARROW,
    WIDE,
    BoundedVectors,
    UserReleases,
    UserVectors,
    search_square,
)
from quorate.models.losses import Loss, by_user
from quorate.models.optimization.minibatches import sampled_mean

__all__ = [
    "FEWEST_STEPS",
    "ClippedGradients",
    "Feasibility",
    "GradientRelease",
    "GradientRun",
    "ReleasedGradient",
    "TraceStep",
    "check_budget",
    "check_records",
    "clip_length",
    "gradients_at",
    "growing_squares",
    "model_feasibility",
    "plan_steps",
    "signal_of",
]

Vector = NDArray[np.float64]

# Half of the users are then 2.5 standard deviations of the noise of a look that costs its largest
# share.
_SEARCHABLE = 32.0
FEWEST_STEPS = 8
MOST_STEPS = 40
_STEPS_PER_SIGNAL = 0.6
# Steps get budgets that grow by this factor: the last ones decide where the fit ends up.
_GROWTH = 1.05
# The quantile of the norms that was found, times this, is the radius; the last one is longer where
# there are many users for each parameter (:func:`clip_length`).
_TIGHTER, _LONGEST = 0.85, 4.0
# Users for each parameter, n mu^2 / p, from which on it grows, and how fast.
_MANY, _POWER = 16.5, 0.75
# With few users a second search costs more than a smaller radius saves.
_WORTH_MEASURING_AGAIN = 0.04
# After so many steps what users have in common is mostly gone. Up to so many users for each
# parameter the noise on the way lasts, and a search that costs no more than this pays for itself.
_SOON, _FEW_EACH, _WORTH_MEASURING_SOON = 2, 7.5, 0.015
# So many steps are worth drawing their noise at once.
_MANY_AHEAD = 3


def check_budget(*, epsilon: float, delta: float, rate: float | None = None) -> None:
    """Refuse a budget with which no model can be fitted.

    >>> check_budget(epsilon=1.0, delta=1e-6)
    """
    _validate.positive(epsilon=epsilon)
    if delta == 0:
        raise ParameterError(
            "Expected delta > 0, got delta=0.0: models use Gaussian noise, which has no pure "
            "guarantee. Choose delta well below one over the number of users, such as 1e-6."
        )
    _validate.probability(delta=delta)
    if rate is not None:
        _validate.probability(rate=rate)


@dataclass(frozen=True, kw_only=True)
class Feasibility:
    """Whether a fit is feasible, according to public numbers.

    Attributes
    ----------
    n_users, dimension : int
        Number of users, and number of parameters of the model.
    users_needed : int
        Below this many users the fit is hopeless.

    Examples
    --------
    >>> model_feasibility(n_users=29, dimension=650, epsilon=1.0, delta=1e-6).hopeless
    True
    >>> model_feasibility(n_users=300, dimension=21, epsilon=1.0, delta=1e-6).hopeless
    False
    """

    n_users: int
    dimension: int
    users_needed: int

    @property
    def hopeless(self) -> bool:
        """Whether noise must hide the signal, whatever the data."""
        return self.n_users < self.users_needed

    def require(self) -> None:
        """Raise :class:`~quorate.exceptions.NotEnoughUsersError` if the fit is hopeless."""
        if self.hopeless:
            raise NotEnoughUsersError(
                f"A model of {self.dimension} parameters needs at least {self.users_needed} users "
                f"at this budget, got {self.n_users}: the noise would exceed any gradient. Use "
                "fewer features or classes, a larger epsilon or more users; hopeless='constant' "
                "releases a constant."
            )


def model_feasibility(
    *,
    n_users: int,
    dimension: int,
    epsilon: float,
    delta: float,
    records: int | None = None,
    relation: Relation = Relation.REPLACE,
) -> Feasibility:
    """Return the smallest number of users with which a model of ``dimension`` parameters may work.

    Parameters
    ----------
    n_users, dimension : int
    epsilon, delta : float
    records : int, optional
        Number of records of a typical user, if it is public.
    relation : Relation, default=Relation.REPLACE
        Add/remove needs half the noise.

    Examples
    --------
    >>> model_feasibility(n_users=29, dimension=650, epsilon=1.0, delta=1e-6).users_needed
    216
    >>> model_feasibility(
    ...     n_users=29, dimension=650, epsilon=1.0, delta=1e-6, records=60
    ... ).users_needed
    355
    """
    _validate.positive_integer(dimension=dimension)
    _validate.non_negative_integer(n_users=n_users)
    mu = gdp_mu(epsilon, delta)
    factor = 1.0 if relation is Relation.REPLACE else 0.5
    needed = max(2.0 * factor * math.sqrt(dimension), _SEARCHABLE) / mu
    if records is not None:
        _validate.positive_integer(records=records)
        needed = max(needed, factor * dimension / (mu * math.sqrt(records)))
    return Feasibility(n_users=n_users, dimension=dimension, users_needed=math.ceil(needed))


def signal_of(*, n_users: float, mu: float, relation: Relation) -> float:
    """Return n mu; doubled under add/remove, which needs half the noise.

    >>> signal_of(n_users=100, mu=0.2, relation=Relation.ADD_REMOVE)
    40.0
    """
    return n_users * mu * (1.0 if relation is Relation.REPLACE else 2.0)


def check_records(records: Any) -> None:
    """Refuse a value that is neither a public number nor ``"auto"``.

    >>> check_records("auto")
    """
    if isinstance(records, str):
        if records != "auto":
            raise ParameterError(
                f"Expected records to be a public number or 'auto', got records={records!r}."
            )
    else:
        _validate.positive_integer(records=records)


def plan_steps(*, n_users: float, mu: float, records: float, dimension: int) -> int:
    """Return how many steps are worthwhile: more with more signal per parameter.

    >>> plan_steps(n_users=1000, mu=0.2367, records=10, dimension=21)
    21
    """
    signal = n_users * mu * records**0.5 / dimension
    return int(np.clip(_STEPS_PER_SIGNAL * signal, FEWEST_STEPS, MOST_STEPS))


@dataclass(frozen=True)
class ReleasedGradient:
    """A noisy mean gradient.

    ``noise`` is the standard deviation in each coordinate; ``whole`` is what it would be if this
    step had the whole budget of the descent.
    """

    value: Vector
    noise: float
    whole: float
    radius: float


@dataclass(frozen=True, kw_only=True)
class TraceStep:
    """Everything that one step released; nothing else about the step is public.

    >>> TraceStep(step=0, radius=1.0, gradient_norm=0.5, noise=0.1, penalty=0.0).radius
    1.0
    """

    step: int
    radius: float
    gradient_norm: float
    noise: float
    penalty: float


class GradientRun(ABC):
    """The gradients of one minimisation."""

    @abstractmethod
    def release(self, theta: Vector, step: int) -> ReleasedGradient:
        """Release the mean user gradient at ``theta``."""


class GradientRelease(ABC):
    """A release strategy; ``start`` binds it to data, a loss and a number of steps."""

    @abstractmethod
    def start(self, run: UserReleases, loss: Loss, *, steps: int) -> GradientRun:
        """Plan the budget of ``steps`` releases, without releasing anything."""


def growing_squares(whole: float, steps: int) -> Vector:
    """Divide a squared budget among steps; later steps get a little more.

    >>> growing_squares(1.0, 2).round(3)
    array([0.488, 0.512])
    """
    growth = _GROWTH ** np.arange(steps)
    return np.asarray(whole * growth / growth.sum())


def clip_length(*, n_users: float, mu: float, dimension: int) -> float:
    """Return the last radius divided by a quantile of the norms, from public numbers.

    With a radius of f typical norms the variance of the noise is 4 f^2 p / (n mu^2) times the
    sampling variance of the users. Clipping causes a bias if users differ, and more users do not
    reduce it. So the radius grows with the number of users, as long as noise stays below the
    sampling error.

    >>> clip_length(n_users=1000, mu=0.2367, dimension=21)
    0.85
    >>> round(clip_length(n_users=2000, mu=0.2367, dimension=2), 2)
    2.5
    """
    crowd = n_users * mu * mu / dimension
    return min(_LONGEST, max(_TIGHTER, math.pow(crowd / _MANY, _POWER)))


def gradients_at(loss: Loss, theta: Vector) -> Callable[[UserData], Vector]:
    """Return the function from users to their gradients at ``theta``, computed user by user."""
    return partial(_at, by_user(loss), theta)


def _at(loss: Loss, theta: Vector, users: UserData) -> Vector:
    return loss.user_gradients(users, theta)


@dataclass(frozen=True, kw_only=True)
class ClippedGradients(GradientRelease):
    """Clip user gradients to a ball around zero, and add Gaussian noise.

    Parameters
    ----------
    radius : float, optional
        Public radius of the ball. By default it is found privately before the first step and again
        after a third of the steps, each time for a few percent of the budget. If there are few
        users per parameter, it is also found after two steps.

    Examples
    --------
    >>> from quorate.core.account.account import Account
    >>> from quorate.core.people import People
    >>> from quorate.models.regression_losses import SquaredLoss
    >>> people = UserData(np.ones((4000, 1)), np.ones(4000), offsets=np.arange(4001))
    >>> account = Account.open(epsilon=4.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> gradients = ClippedGradients().start(run, SquaredLoss(), steps=4)
    >>> released = gradients.release(np.zeros(2), 0)
    >>> bool(np.all(released.value < -0.3)), released.radius < 2.0
    (True, True)
    """

    radius: float | None = None

    def __post_init__(self) -> None:
        if self.radius is not None:
            _validate.positive(radius=self.radius)

    def start(self, run: UserReleases, loss: Loss, *, steps: int) -> GradientRun:
        """Reserve the cost of the searches; the rest is for the steps."""
        mu = run.account.mu
        searches = {} if self.radius is not None else {0: WIDE}
        again = round(steps / 3)
        price = search_square(NARROW.size, n_users=run.n_users, mu=mu)
        if self.radius is None and again and price <= _WORTH_MEASURING_AGAIN * mu**2:
            searches[again] = NARROW
            crowd = run.n_users * mu**2 / loss.dimension(run.data.n_features)
            pays = crowd <= _FEW_EACH and price <= _WORTH_MEASURING_SOON * mu**2
            if pays and again > 2 * _SOON and run.sample is None:
                searches[_SOON] = NARROW
        reserved = sum(
            search_square(grid.size, n_users=run.n_users, mu=mu) for grid in searches.values()
        )
        left = float(run.account.square_left) - reserved
        return _ClippedRun(run, loss, self.radius, searches, growing_squares(left, steps))


class _ClippedRun(GradientRun):
    def __init__(
        self,
        run: UserReleases,
        loss: Loss,
        radius: float | None,
        searches: dict[int, Vector],
        squares: Vector,
    ) -> None:
        self._run, self._loss = run, by_user(loss)
        self._radius, self._searches, self._squares = radius, searches, squares
        self._whole = float(squares.sum())
        self._dimension = loss.dimension(run.data.n_features)
        self._last_length = clip_length(
            n_users=run.n_users, mu=run.account.mu, dimension=self._dimension
        )
        self._ahead: dict[int, GaussianSum] = {}

    def release(self, theta: Vector, step: int) -> ReleasedGradient:
        run = self._run
        gradients: UserVectors = partial(_at, self._loss, theta)
        if step in self._searches:
            if run.sample is None:
                run, gradients = run.once(gradients, dimension=self._dimension)
            found = run.radius(
                gradients,
                self._searches[step],
                dimension=self._dimension,
                unit=1.0 if self._radius is None else self._radius,
            )
            # Earlier radii are for gradients that are about to shrink.
            last = 0 < step == max(self._searches)
            self._radius = found * (self._last_length if last else _TIGHTER)
        radius = 1.0 if self._radius is None else self._radius
        if run.sample is not None:
            bound = Ball(radius, dimension=self._dimension)
            noisy = sampled_mean(run, BoundedVectors(gradients, bound))
            whole = noisy.noise / math.sqrt(len(self._squares))
            return ReleasedGradient(noisy.value, noisy.noise, whole, radius)
        if step == 0 or step in self._searches:
            self._draw_ahead(step, radius)
        square = float(self._squares[step])
        if step == len(self._squares) - 1:
            # Searches look less often than they may, so a little more than planned is left.
            square = float(run.account.square_left)
        mechanism = self._ahead.pop(step, None) or run.noisy_sum(
            dimension=self._dimension, radius=radius, square=square
        )
        noisy = run.mean_by(mechanism, gradients)
        whole = noisy.noise * math.sqrt(square / self._whole)
        return ReleasedGradient(noisy.value, noisy.noise, whole, radius)

    def _draw_ahead(self, step: int, radius: float) -> None:
        """Draw the noise of the steps up to the next search, except for the last step's.

        The cost of that step is not known yet.

        Drawing row by row would take longer; see :meth:`UserReleases.draw_ahead`.
        """
        later = [each for each in self._searches if each > step]
        until = min([*later, len(self._squares) - 1])
        self._ahead = {}
        if until - step >= _MANY_AHEAD:
            squares = self._squares[step:until].tolist()
            sums = self._run.draw_ahead(squares, dimension=self._dimension, radius=radius)
            self._ahead = dict(zip(range(step, until), sums, strict=True))
