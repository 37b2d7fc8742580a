"""A secret sample of the users, and the noise that its means need (U5, U6 with minibatches).

Every user joins a step with the same small probability, decided by privacy randomness that is never
shown. The accountant prices the noise on the sample together with the sampling. Sampling saves time
on large data; for a given budget full batches are at least as accurate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.account.parts import SampleAccount
from quorate.core.guarantees import Composed, Event, Gaussian, Relation, Repeated, Subsampled
from quorate.mechanisms.calibrate import calibrate, gaussian_multiplier

__all__ = ["UserSample"]

# Less noise than this is never asked for: its price takes long to compute.
_LEAST_NOISE = 0.5


@dataclass(frozen=True, kw_only=True)
class UserSample:
    r"""Release means over a secret Poisson sample of the users.

    Privacy
    -------
    guarantee : that of ``event``, priced under the relation of the run
    neighbours : replace all records of one user, or add or remove all records of one user
    trust : central
    public : ``rate``, ``multiplier``; which users were drawn is secret
    numerics : exact
    proof : Each user joins independently with a probability of at most ``rate``. On the sample one
        user's presence moves the sum by at most the radius C, and the noise is ``multiplier`` x C.
        So a step is ``Subsampled(Gaussian(multiplier), rate)``; see ``docs/proofs/composition.md``.

    Utility
    -------
    It is the sum over the sample divided by the *expected* size, an unbiased estimate of the
    clipped mean with noise of ``multiplier`` C / (rate n) and a sampling error of C / sqrt(rate n).

    Complexity
    ----------
    One random integer of 32 bits per user and step; time and memory for the sampled users only.

    Parameters
    ----------
    rate : float
        Probability with which a user joins a step.
    multiplier : float
        Standard deviation of the noise divided by the radius.

    References
    ----------
    .. [1] Abadi et al. Deep learning with differential privacy. CCS 2016, arXiv:1607.00133.

    Examples
    --------
    >>> sample = UserSample(rate=0.1, multiplier=2.0)
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> account.reserve_chain(sample.total(Gaussian(20.0), steps=3))
    >>> 50 < sample.draw(account).members(1000).size < 200
    True
    """

    rate: float
    multiplier: float

    def __post_init__(self) -> None:
        _validate.probability(rate=self.rate)
        _validate.positive(multiplier=self.multiplier)

    @classmethod
    def calibrated(
        cls,
        *,
        rate: float,
        steps: int,
        epsilon: float,
        delta: float,
        relation: Relation,
        setup: Event,
    ) -> UserSample:
        """Return the sample with the least noise for which ``setup`` and all steps fit the budget.

        >>> sample = UserSample.calibrated(
        ...     rate=0.05,
        ...     steps=10,
        ...     epsilon=1.0,
        ...     delta=1e-6,
        ...     relation=Relation.REPLACE,
        ...     setup=Gaussian(8.0),
        ... )
        >>> 0.5 < sample.multiplier < 5.0
        True
        """
        _validate.probability(rate=rate)
        multiplier = _least_multiplier(rate, steps, epsilon, delta, relation, setup)
        return cls(rate=rate, multiplier=multiplier)

    def total(self, setup: Event, steps: int) -> Event:
        """Return the joint cost of ``setup`` and ``steps`` means."""
        step = Subsampled(Gaussian(self.multiplier), self.rate)
        return Composed((setup, Repeated(step, steps)))

    def draw(self, account: Account) -> SampleAccount:
        """Return the account of a new sample: it knows the members and pays for their mean."""
        return SampleAccount(account, rate=self.rate)


@lru_cache(maxsize=256)
def _least_multiplier(
    rate: float, steps: int, epsilon: float, delta: float, relation: Relation, setup: Event
) -> float:
    """Return the smallest noise within the budget; this takes a second and no data."""

    def event(multiplier: float) -> Event:
        return UserSample(rate=rate, multiplier=multiplier).total(setup, steps)

    # Without sampling, under replacement, with a tenth of the budget: surely enough noise.
    most = 2.0 * gaussian_multiplier(epsilon / 3.0, delta / 3.0, count=steps) + 10.0
    return calibrate(
        event,
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        lower=_LEAST_NOISE,
        upper=most,
        tolerance=1e-2,
    )
