"""The constant model of labels: their released shares, with shrinkage for the noise.

A user without records has no label. The share of such users is released together with the others,
at no extra cost. A noisy share is replaced by its posterior mean under a uniform prior on [0, 1].
So a constant model is never more certain than its noise allows, and log-odds are finite.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quorate.core.users import UserData
from quorate.mechanisms.user_releases import ReleasedMean, UserReleases

__all__ = ["mean_of_present", "posterior_share", "release_constant"]

Vector = NDArray[np.float64]

# derived: a share of absent people is believed from so many standard deviations on: the quantile of
# one in a thousand.
_SEEN = 3.0
# No share of absent people is taken for larger.
_MOST_ABSENT = 0.95
# Shares that are thought of: the middles of as many equal parts.
_SHARES = (np.arange(2**12) + 0.5) / 2**12


def release_constant(
    run: UserReleases,
    record_targets: Callable[[Vector], Vector],
    *,
    reach: float,
    share: float | None = None,
) -> ReleasedMean:
    """Release the mean over users of mean targets, for a share or the rest of the account.

    ``record_targets`` turns targets into rows of length at most ``reach``. A user without records
    votes in an extra column. This does not raise the sensitivity: such a vote, with zeros in all
    other columns, is no longer than a row of targets may be, and no farther from it than two such
    rows may be from each other.

    >>> from quorate.core.account.account import Account
    >>> from quorate.core.people import People
    >>> held = np.repeat(np.arange(901), 2)[1:]
    >>> people = UserData(np.zeros((900, 1)), np.ones(900), offsets=held)
    >>> account = Account.open(epsilon=2.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> found = release_constant(run, lambda targets: targets[:, None], reach=1.0)
    >>> people.n_users, bool(abs(found.value[0] - 1.0) < 0.1)
    (1800, True)
    """

    def targets(users: UserData) -> Vector:
        held = np.zeros(users.n_records) if users.y is None else users.y
        counts = users.record_counts()[:, None]
        means = users.user_sums(record_targets(held)) / np.maximum(counts, 1)
        return np.concatenate([means, np.where(counts > 0, 0.0, reach)], axis=1)

    size = record_targets(np.zeros(0)).shape[1]
    left = float(run.account.square_left)
    square = left if share is None else share * float(run.account.square)
    noisy = run.mean(targets, dimension=size + 1, radius=reach, square=square)
    return mean_of_present(noisy, reach=reach)


def posterior_share(share: float, noise: float) -> tuple[float, float]:
    """Return the posterior mean of a noisy share, and the standard deviation of its log-odds.

    >>> share, spread = posterior_share(0.3, 0.001)
    >>> round(share, 3), round(spread, 4)
    (0.3, 0.0048)
    >>> [round(posterior_share(share, 0.1)[0], 2) for share in (-0.2, 0.0, 0.5, 1.1)]
    [0.04, 0.08, 0.5, 0.95]
    """
    # What lies far outside of all shares was moved there by noise, wherever it began.
    share = min(max(share, -_SEEN * noise), 1.0 + _SEEN * noise)
    said = -0.5 * ((share - _SHARES) / noise) ** 2
    chances = np.exp(said - said.max())
    chances = chances / chances.sum()
    odds = np.log(_SHARES) - np.log1p(-_SHARES)
    mean = float(chances @ _SHARES)
    around = odds - np.log(mean / (1.0 - mean))
    return mean, float(np.sqrt(chances @ around**2))


def mean_of_present(noisy: ReleasedMean, *, reach: float) -> ReleasedMean:
    """Divide a mean by the share of users with records; the last column is the share without.

    >>> mean_of_present(ReleasedMean(np.array([0.3, 0.4]), noise=0.03), reach=1.0)
    ReleasedMean(value=array([0.5]), noise=0.05)
    >>> mean_of_present(ReleasedMean(np.array([0.3, 0.02]), noise=0.01), reach=1.0)
    ReleasedMean(value=array([0.3]), noise=0.01)
    """
    absent = float(noisy.value[-1])
    share = absent / reach if absent > _SEEN * noisy.noise else 0.0
    present = 1.0 - min(share, _MOST_ABSENT)
    return ReleasedMean(np.asarray(noisy.value[:-1] / present), noisy.noise / present)
