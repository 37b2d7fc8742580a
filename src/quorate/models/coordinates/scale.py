"""For few users: one scale for all features, and their centre if it can be estimated.

With few users a second moment has too many entries, and a search for a radius costs more than it
saves. Instead one number, the size of a typical record, is released by a few noisy comparisons with
a public guess that is doubled each time. If it can be estimated well enough, the mean of the
records is released too.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import Interval
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.core.users.store import row_lengths
from quorate.mechanisms.user_releases import BoundedVectors, UserReleases, bounded_mean
from quorate.models.coordinates.geometry import Geometry, Whitened
from quorate.models.optimization.gradients import signal_of

__all__ = ["release_scale"]

Vector = NDArray[np.float64]

# Noise of a look over the number of users, and what it may cost of the whole.
_LOOK, _DEAREST_LOOK, _CHEAPEST_LOOK = 1.0 / 5.0, 0.02, 0.0005
# Noise of the mean size over the size it is cut at, and what it may cost.
_SIZE, _DEAREST_SIZE, _CHEAPEST_SIZE = 0.1, 0.02, 0.002
# Noise of the centre over the size of records, as a length; if it costs more, there is none.
_CENTRE, _DEAREST_CENTRE, _CHEAPEST_CENTRE = 0.4, 0.04, 0.01
# Records are taken for a little longer than they look: steps that are too long cost more than short
# ones.
_ROOMY = 1.05


def release_scale(
    run: UserReleases, *, centred: bool, by_count: bool = False
) -> tuple[Geometry, People]:
    """Release the size of a typical record, and their mean if it can be estimated.

    Also return the users in these coordinates.

    Examples
    --------
    >>> from quorate.core.account.account import Account
    >>> from quorate.core.people import People
    >>> rows = np.random.default_rng(0).normal(3.0, 1.0, size=(4000, 2))
    >>> people = UserData(rows, offsets=np.arange(0, 4001, 4))
    >>> account = Account.open(epsilon=4.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> geometry, _ = release_scale(run, centred=True)
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
    scale = np.asarray(1.0 / (_ROOMY * math.sqrt(size / features)))
    # One number for all directions says as much about each as would noise of its own size.
    geometry = Geometry(centre, scale, np.ones(features))
    return geometry, run.data.derive(Whitened(centre, scale, by_count=by_count))


def _look(run: UserReleases) -> float:
    """Return the share of the budget that one comparison costs."""
    noise = _LOOK * run.n_users * run.account.mu
    return min(_DEAREST_LOOK, max(_CHEAPEST_LOOK, 1.0 / noise**2))


def _mean_squares(users: UserData) -> Vector:
    """Return each user's mean of the squared length of records."""
    with np.errstate(all="ignore"):
        squares = row_lengths(users.X) ** 2
    return users.user_sums(squares[:, None]) / np.maximum(users.record_counts(), 1)[:, None]


def _means(users: UserData) -> Vector:
    return np.nan_to_num(users.user_means())
