"""How the account of a fit is divided before anything is released, and for what it can suffice.

Also in minibatches of users: a secret sample each step, and what the secrecy saves. Every user
joins a step with the same small probability, decided by privacy randomness that is never shown. The
accountant prices the noise on the sample together with the sampling. It saves time on large data;
for a given budget full batches are at least as accurate.

Whether a fit can work at all follows from public numbers alone. A clipped mean of user gradients
has length at most its radius C, and its noise has length 2 C sqrt(d) / (n mu) under replacement:
when n mu < 2 sqrt(d) the noise of even one step that got the whole budget exceeds any gradient
there could be, whatever the data. If the records per user are public there is a sharper rule:
users' gradients spread by about sqrt(d / m) around their mean, and when n mu sqrt(m) < d the noise
that hides this spread exceeds the spread of the labels themselves. Both are necessary conditions,
not sufficient ones.

Below n mu = 32, further, the looks for the size of a record see the users through noise that is not
safely smaller than their number, and everything after a wild size is noise. Above all three a fit
may still find out, from released numbers, that noise costs more than coefficients could gain; it
then releases a constant (:mod:`quorate.models.minimization`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from quorate import _validate
from quorate.accounting.account import Account
from quorate.accounting.costs import gdp_mu
from quorate.accounting.events import Gaussian
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.guarantees import Relation
from quorate.mechanisms.user_sample import UserSample
from quorate.releases.user_releases import NoisyMean, UserReleases, bounded_mean
from quorate.users.caller_code import Statistic
from quorate.users.crowd import Crowd

__all__ = [
    "SETUP_SHARE",
    "Feasibility",
    "check_budget",
    "check_public_steps",
    "has_few_users",
    "model_feasibility",
    "open_run",
    "sampled_mean",
    "setup_mu",
    "signal_of",
]

SETUP_SHARE = Fraction(3, 10)
"""Share of mu squared for radii and geometry, which see all users, in a run with minibatches."""
# Below this many users, n mu over the root of the parameters, whitening costs more than it saves;
# below so many, n mu, its searches do, however few the parameters.
_FEW, _FEWEST_SEARCHED = 35.0, 88.0
# From here on, n mu, a search for a radius is safe, and it is taken if users have fewer records.
_SAFELY_SEARCHED, _FEW_RECORDS = 65.0, 4.0
# Half of the users are then 2.5 standard deviations of the noise of a look that costs its largest
# share.
_SEARCHABLE = 32.0


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


@dataclass(frozen=True, kw_only=True)
class Feasibility:
    """What public numbers say about a fit.

    Attributes
    ----------
    n_users, dimension : int
        Users, and parameters of the model.
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
        """Whether noise must exceed whatever the data say."""
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
    """Return how many users a model of ``dimension`` parameters needs at the very least.

    Parameters
    ----------
    n_users, dimension : int
    epsilon, delta : float
    records : int, optional
        Records of a typical user, if they are public.
    relation : Relation, default=Relation.REPLACE
        Under add/remove half the noise is needed.

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
    """Return n mu, doubled under add/remove, where half of the noise is needed.

    >>> signal_of(n_users=100, mu=0.2, relation=Relation.ADD_REMOVE)
    40.0
    """
    return n_users * mu * (1.0 if relation is Relation.REPLACE else 2.0)


def has_few_users(
    *,
    n_users: float,
    mu: float,
    dimension: int,
    relation: Relation,
    records: Callable[[], float],
) -> bool:
    """Tell from public or released numbers whether the plan of few users is taken.

    See :mod:`quorate.models.few_users`. Where the other plan could be taken too, users need a few
    records each: with one or two the noise is such that a search and strong shrinkage are the safer
    way. ``records`` is asked only then.

    >>> known = dict(mu=0.2367, dimension=21, relation=Relation.REPLACE)
    >>> has_few_users(n_users=500, records=lambda: 10.0, **known)
    True
    >>> has_few_users(n_users=500, records=lambda: 1.0, **known)
    False
    >>> has_few_users(n_users=1000, records=lambda: 10.0, **known)
    False
    >>> known = dict(mu=0.2367, dimension=2, relation=Relation.REPLACE, records=lambda: 10.0)
    >>> has_few_users(n_users=350, **known), has_few_users(n_users=400, **known)
    (True, False)
    """
    signal = signal_of(n_users=n_users, mu=mu, relation=relation)
    if signal >= max(_FEW * math.sqrt(dimension), _FEWEST_SEARCHED):
        return False
    return n_users * mu < _SAFELY_SEARCHED or records() >= _FEW_RECORDS
