"""Minibatches of users: a secret sample in each step, and the amplification that it gives.

Every user joins a step with the same small probability, decided by privacy randomness that is never
shown. The accountant prices the noise on the sample together with the sampling. Minibatches save
time on large data; for a given budget full batches are at least as accurate.
"""

from __future__ import annotations

import math
from fractions import Fraction

from quorate.core.account.account import Account
from quorate.core.guarantees import Gaussian, Relation
from quorate.core.people import People
from quorate.core.users.crowd import Statistic
from quorate.exceptions import ParameterError
from quorate.mechanisms.user_releases import ReleasedMean, UserReleases, bounded_mean
from quorate.mechanisms.user_sample import UserSample

__all__ = ["SETUP_SHARE", "check_public_steps", "open_sampled_run", "sampled_mean", "setup_mu"]

SETUP_SHARE = Fraction(3, 10)
"""Share of mu squared for radii and geometry, which see all users, in a run with minibatches."""


def setup_mu(account: Account) -> float:
    """Return the Gaussian parameter mu of the setup, which uses all users.

    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> round(account.mu, 4), round(setup_mu(account), 4)
    (0.2367, 0.1296)
    """
    return account.mu * math.sqrt(SETUP_SHARE)


def open_sampled_run(
    data: People,
    account: Account,
    *,
    rate: float,
    steps: int | None,
) -> UserReleases:
    """Begin a run with an account that is reserved for minibatches.

    Minibatches are planned before anything is drawn, so their number must be public. The setup,
    which uses all users, gets a fixed share of the squared budget. See
    :meth:`~quorate.core.account.account.Account.reserve_chain`.

    >>> from quorate.core.users import UserData
    >>> people = UserData([[1.0], [3.0]], offsets=[0, 1, 2])
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> asked = People(people, Relation.REPLACE)
    >>> run = open_sampled_run(asked, account, rate=0.1, steps=5)
    >>> run.sample.rate, round(account.mu, 3)
    (0.1, 0.13)
    """
    if steps is None:
        raise ParameterError("Expected a public number of steps for minibatches, got steps=None.")
    setup = Gaussian(account.multiplier(SETUP_SHARE * account.square))
    sample = UserSample.calibrated(
        rate=rate,
        steps=steps,
        epsilon=account.declared.epsilon,
        delta=account.declared.delta,
        relation=account.relation,
        setup=setup,
    )
    account.reserve_chain(sample.total(setup, steps))
    return UserReleases.start(data, account, sample=sample)


def check_public_steps(*, steps: int | None, records: int | str, relation: Relation) -> None:
    """Refuse minibatches whose number would depend on released numbers.

    For each number of steps the noise is chosen to fit the budget, but the privacy curves of such
    plans cross. So if a released number decides the number of steps, no single plan covers the
    cost.

    >>> check_public_steps(steps=None, records=20, relation=Relation.REPLACE)
    """
    planned_publicly = not isinstance(records, str) and relation is Relation.REPLACE
    if steps is None and not planned_publicly:
        raise ParameterError(
            "batch_rate= needs a public number of steps: give steps=, or records= as a number "
            "under Relation.REPLACE."
        )


def sampled_mean(run: UserReleases, statistic: Statistic) -> ReleasedMean:
    """Release the mean of a bounded statistic, estimated from a fresh sample."""
    sample = run.sample
    if sample is None:
        raise ParameterError("Expected a run with minibatches, got one of full batches.")
    account = sample.draw(run.account)
    sampled = account.people(run.data)
    # For a user who comes or stays away the sensitivity is the radius; the accountant knows
    # what replacement adds.
    return bounded_mean(
        sampled,
        statistic,
        multiplier=sample.multiplier,
        account=account,
        n_users=sample.rate * run.n_users,
    )
