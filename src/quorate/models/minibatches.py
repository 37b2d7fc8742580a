"""Minibatches of users: a secret sample each step, and what the secrecy saves.

Every user joins a step with the same small probability, decided by privacy randomness that is never
shown. The accountant prices the noise on the sample together with the sampling. It saves time on
large data; for a given budget full batches are at least as accurate.
"""

from __future__ import annotations

from fractions import Fraction

from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.releases.user_releases import NoisyMean, UserReleases, bounded_mean
from quorate.users.statistics import Statistic

__all__ = ["SETUP_SHARE", "check_public_steps", "sampled_mean"]

SETUP_SHARE = Fraction(3, 10)
"""Share of mu squared for radii and geometry, which see all users, in a run with minibatches."""


def check_public_steps(
    rate: float | None, *, steps: int | None, records: int | str, relation: Relation
) -> None:
    """Refuse minibatches whose number would follow from what was released.

    Each number of steps gets the noise that keeps the budget, but the prices of sampled chains
    cross: a length chosen by a released number is covered by the price of no single one of them.

    >>> check_public_steps(0.1, steps=None, records=20, relation=Relation.REPLACE)
    """
    planned_publicly = not isinstance(records, str) and relation is Relation.REPLACE
    if rate is not None and steps is None and not planned_publicly:
        raise ParameterError(
            "batch_rate= needs a public number of steps: give steps=, or records= as a number "
            "under Relation.REPLACE."
        )


def sampled_mean(run: UserReleases, statistic: Statistic) -> NoisyMean:
    """Release the mean of a bounded statistic, estimated from a fresh sample."""
    sample = run.sample
    if sample is None:
        raise ParameterError("Expected a run with minibatches, got one of full batches.")
    account = sample.draw(run.account)
    sampled = run.data.take_ranked(account.members(run.data.n_users))
    # For a user who comes or stays away the sensitivity is the radius; the accountant knows
    # what replacement adds.
    return bounded_mean(
        sampled,
        statistic,
        multiplier=sample.multiplier,
        account=account,
        n_users=sample.rate * run.n_users,
    )
