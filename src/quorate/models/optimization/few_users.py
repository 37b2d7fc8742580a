"""The plan of a linear model for few users: one scale, no search, steps that carry their own clip.

A second moment has too many entries for few users, and a search for a radius costs more than it
saves. Instead one number is released, the size of a typical record, by a few noisy comparisons that
double a public guess. If it can be estimated well enough, the mean of the records is released too.
The clipping norm of the steps then follows from free lifts
(:mod:`quorate.models.optimization.lifted_gradients`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quorate.grid import Interval
from quorate.guarantees import Relation
from quorate.models.coordinates.geometry import Geometry
from quorate.models.coordinates.preconditioned import PreconditionedLoss
from quorate.models.losses import LinearLoss
from quorate.models.optimization.descent import (
    AveragedDescent,
    Minimum,
    descend,
)
from quorate.models.optimization.gradients import signal_of
from quorate.models.optimization.lifted_gradients import LiftedGradients, LocalSteps
from quorate.releases.user_releases import BoundedVectors, UserReleases, bounded_mean
from quorate.users import UserData
from quorate.users.store import row_lengths, row_products

__all__ = [
    "FEW_SHRINKAGE",
    "few_user_descent",
    "few_user_loss",
    "few_user_steps",
    "longest_start",
    "release_misfit",
    "release_scale",
]

Vector = NDArray[np.float64]

# Steps: some, and more with more signal.
_FEWEST_STEPS, _STEPS_PER_SIGNAL, _MOST_STEPS = 16, 0.2, 40
FEW_SHRINKAGE = 0.5
"""How strongly coefficients are shrunk: few steps end before they have followed the noise."""
# Noise of a look over the number of users, and what it may cost of the whole.
_LOOK, _DEAREST_LOOK, _CHEAPEST_LOOK = 1.0 / 5.0, 0.02, 0.0005
# Noise of the mean size over the size it is cut at, and what it may cost.
_SIZE, _DEAREST_SIZE, _CHEAPEST_SIZE = 0.1, 0.02, 0.002
# Noise of the centre over the size of records, as a length; if it costs more, there is none.
_CENTRE, _DEAREST_CENTRE, _CHEAPEST_CENTRE = 0.4, 0.04, 0.01
# Records are taken for a little longer than they look: steps that are too long cost more than short
# ones.
_ROOMY = 1.05
# Below this length users' gradients tell more of what all share than of their own few records: in
# slopes of a typical record at zero.
_AGREED = 0.8
# Records of a user are at most so many times farther from the constant than independent ones with
# their mean.
_FARTHER = 1.5
# The first clip, in longest gradients of a typical record; the lifts take it from there.
_FIRST_CLIP = 0.3


def few_user_steps(*, n_users: float, mu: float, dimension: int, relation: Relation) -> int:
    """Return how many steps few users pay for.

    >>> few_user_steps(n_users=300, mu=0.2367, dimension=21, relation=Relation.REPLACE)
    19
    """
    signal = signal_of(n_users=n_users, mu=mu, relation=relation) / math.sqrt(dimension)
    return min(_MOST_STEPS, round(_FEWEST_STEPS + _STEPS_PER_SIGNAL * signal))


def few_user_loss(loss: LinearLoss, geometry: Geometry, *, bounded: bool) -> PreconditionedLoss:
    """Return the loss that steps go along: with own steps if its slopes are ``bounded``."""
    return (LocalSteps if bounded else PreconditionedLoss)(loss, geometry)


def release_scale(run: UserReleases, *, centred: bool) -> Geometry:
    """Release the size of a typical record, and their mean as far as it can be seen.

    Examples
    --------
    >>> from quorate.accounting.account import Account
    >>> from quorate.core.people import People
    >>> rows = np.random.default_rng(0).normal(3.0, 1.0, size=(4000, 2))
    >>> people = UserData(rows, offsets=np.arange(0, 4001, 4))
    >>> account = Account.open(epsilon=4.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> geometry = release_scale(run, centred=True)
    >>> bool(np.abs(geometry.centre - 3.0).max() < 1.0), bool(0.2 < geometry.whitening < 5.0)
    (True, True)
    """
    features = run.data.n_features
    whole = float(run.account.square)
    signal = signal_of(n_users=run.n_users, mu=run.account.mu, relation=run.relation)
    rough = run.widen(_mean_squares, guess=2.0 * features, dimension=1, square=_look(run) * whole)
    cost = min(_DEAREST_SIZE, max(_CHEAPEST_SIZE, 1.0 / (_SIZE * signal) ** 2))
    noisy = bounded_mean(
        run.data,
        BoundedVectors(_mean_squares, Interval(0.0, rough, centre=0.0)),
        multiplier=run.account.multiplier(cost * whole),
        account=run.account,
        n_users=run.n_users,
    )
    size = min(max(float(noisy.value[0]), rough / 4.0), rough)
    centre = np.zeros(features)
    share = max(_CHEAPEST_CENTRE, (2.0 * math.sqrt(features) / (_CENTRE * signal)) ** 2)
    if centred and share <= _DEAREST_CENTRE:
        found = run.mean(
            _means, dimension=features, radius=1.2 * math.sqrt(size), square=share * whole
        )
        # A centre that is no longer than its noise is none.
        length = float(found.value @ found.value)
        kept = max(0.0, 1.0 - features * found.noise**2 / max(length, 1e-300))
        centre = kept * found.value
        around = size - kept * length
        size = max(around, features * found.noise**2 * kept, size / 100.0)
    return Geometry(centre, np.asarray(1.0 / (_ROOMY * math.sqrt(size / features))))


def release_misfit(
    run: UserReleases, inner: LinearLoss, geometry: Geometry, initial: Vector, *, guess: float
) -> float:
    """Release about how steep the loss is at records of a typical user, where it begins.

    For squares that is by how much predictions miss.

    >>> from quorate.accounting.account import Account
    >>> from quorate.core.people import People
    >>> from quorate.models.regression_losses import SquaredLoss
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(5.0, 3.0, 4000)
    >>> people = UserData(np.zeros((4000, 1)), y, offsets=np.arange(0, 4001, 4))
    >>> account = Account.open(epsilon=4.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> as_they_are = Geometry(np.zeros(1), np.ones(()))
    >>> at = np.array([0.0, 5.0])
    >>> 1.0 < release_misfit(run, SquaredLoss(), as_they_are, at, guess=1.0) < 9.0
    True
    """
    rows = geometry.outward(initial, inner).reshape(inner.outputs, -1)

    def sizes(users: UserData) -> Vector:
        targets = np.zeros(users.n_records) if users.y is None else users.y
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
            predictions = row_products(users.X, rows[:, : users.n_features])
            if inner.intercept:
                predictions = predictions + rows[:, -1]
            squares = row_lengths(inner.slopes(predictions, targets)) ** 2
        counts = np.maximum(users.record_counts(), 1)[:, None]
        return np.sqrt(users.user_sums(squares[:, None]) / counts)

    rough = run.widen(
        sizes, guess=guess, dimension=1, square=_look(run) * float(run.account.square)
    )
    # It holds half of the users, and a quarter of it does not.
    return rough / 2.0


def few_user_descent(
    run: UserReleases,
    inner: LinearLoss,
    geometry: Geometry,
    initial: Vector,
    steps: int | None,
    *,
    bounded: bool,
    spread: float | None,
    records: Callable[[], float],
    worth: float,
    doubtful: Callable[[Minimum], bool] | None,
    penalty: float,
    progress: bool | None,
) -> Minimum:
    """Descend with clips that follow from lifts.

    ``bounded`` says that the slopes of the loss are bounded. Otherwise their range is searched for,
    starting at the ``spread`` of users' mean targets, if it is known. With all the ``records`` of a
    user they cannot be much larger, and what coefficients may gain is at most what is missed now.
    """
    loss = few_user_loss(inner, geometry, bounded=bounded)
    steepest = inner.first_slope
    if not bounded:
        guess = 1.0 if spread is None else spread
        steepest = release_misfit(run, inner, geometry, initial, guess=guess)
        if spread is not None:
            steepest = min(steepest, _FARTHER * spread * math.sqrt(records()))
        worth = min(worth, 0.5 * steepest**2)
    planned = steps or few_user_steps(
        n_users=run.n_users, mu=run.account.mu, dimension=initial.size, relation=run.relation
    )
    return descend(
        run,
        loss,
        steps=planned,
        optimizer=AveragedDescent(step_size=1.0),
        gradients=LiftedGradients(
            radius=_FIRST_CLIP * math.sqrt(run.data.n_features + 1.0) * steepest
        ),
        initial=initial,
        curvature=inner.curvature,
        penalty=penalty,
        shrinkage=FEW_SHRINKAGE,
        longest=longest_start(inner) if bounded else math.inf,
        worth=worth,
        agreed=_AGREED * inner.first_slope if bounded else 0.0,
        falling=True,  # one scale for all directions says nothing about the steepest one
        doubtful=doubtful,
        progress=progress,
    )


def longest_start(loss: LinearLoss) -> float:
    """Return how long a mean gradient at zero can be, for features of unit spread.

    If one direction decided every label, E|z| slope = .8 slope would be reached; .6 is more than
    people show.

    >>> from quorate.models.losses import LogisticLoss
    >>> longest_start(LogisticLoss())
    0.3
    """
    return 0.6 * loss.first_slope


def _look(run: UserReleases) -> float:
    """Return the share of the budget that one comparison costs."""
    noise = _LOOK * run.n_users * run.account.mu
    return min(_DEAREST_LOOK, max(_CHEAPEST_LOOK, 1.0 / noise**2))


def _mean_squares(users: UserData) -> Vector:
    """Return each user's mean squared length of a record."""
    with np.errstate(all="ignore"):
        squares = row_lengths(users.X) ** 2
    return users.user_sums(squares[:, None]) / np.maximum(users.record_counts(), 1)[:, None]


def _means(users: UserData) -> Vector:
    return np.nan_to_num(users.user_means())
