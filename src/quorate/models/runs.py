"""How the account of a fit is divided before anything about people is released."""

from __future__ import annotations

import math

from quorate import _validate
from quorate.accounting.account import Account
from quorate.accounting.events import Gaussian
from quorate.exceptions import ParameterError
from quorate.mechanisms.user_sample import UserSample
from quorate.models.minibatches import SETUP_SHARE
from quorate.releases.user_releases import UserReleases
from quorate.users.crowd import Crowd

__all__ = ["check_budget", "open_run", "setup_mu"]


def check_budget(*, epsilon: float, delta: float, rate: float | None = None) -> None:
    """Refuse what no model can be fitted with.

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


def setup_mu(account: Account, *, rate: float | None) -> float:
    """Return the Gaussian parameter of what sees all users, before the run is opened.

    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> round(setup_mu(account, rate=None), 4), round(setup_mu(account, rate=0.1), 4)
    (0.2367, 0.1296)
    """
    return account.mu if rate is None else account.mu * math.sqrt(SETUP_SHARE)


def open_run(
    data: Crowd,
    account: Account,
    *,
    rate: float | None = None,
    steps: int | None = None,
) -> UserReleases:
    """Begin a run with the whole account, or with one that is set aside for minibatches.

    Minibatches are planned before anything is drawn, so their number must be public; what sees all
    users gets a fixed share of the square. See :meth:`~quorate.accounting.account.Account.plan`.
    >>> from quorate.users import UserData
    >>> people = UserData([[1.0], [3.0]], offsets=[0, 1, 2])
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> run = open_run(people, account, rate=0.1, steps=5)
    >>> run.sample.rate, round(account.mu, 3)
    (0.1, 0.13)
    """
    if rate is None:
        return UserReleases.start(data, account)
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
    account.plan(sample.total(setup, steps))
    return UserReleases.start(data, account, sample=sample)
