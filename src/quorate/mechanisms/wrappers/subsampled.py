r"""Run any mechanism on a secret sample of a fixed number of users (F2).

The mechanism runs on fewer users, so it costs less: amplification by sampling without replacement,
Theorem 7 of [1]_ (Theorem 9 of [2]_).

References
----------
.. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
   examples per user. NeurIPS 2023.
.. [2] Balle, Barthe, Gaboardi. Privacy amplification by subsampling: tight analyses via couplings
   and divergences. NeurIPS 2018, arXiv:1807.01647v2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.core.account.account import Account, noise_for
from quorate.core.account.parts import OwnRowsAccount
from quorate.core.guarantees import Approximate, Guarantee, Pure, Relation
from quorate.core.noise import NoiseSource, ambient_noise
from quorate.core.sealed import (
    SealedRows,
    check_one_row_each,
    check_rows,
    check_sealed,
    opened,
    seal_rows,
)
from quorate.core.users.crowd import call_quietly
from quorate.exceptions import ParameterError, QuorateError, SchemaError

__all__ = ["SubsampledMechanism", "amplified_epsilon", "draw_without_replacement"]

# machine: beyond it exponentials leave the range of floats.
_LARGEST = 700.0


@dataclass(frozen=True)
class _Outcome:
    """The result of a run, or the error that Quorate raised inside of it."""

    value: Any = None
    refusal: QuorateError | None = None


@dataclass(frozen=True, kw_only=True)
class SubsampledMechanism:
    r"""Draw ``sample`` of ``population`` users in secret, and run a mechanism on them.

    Privacy
    -------
    guarantee : :math:`(\ln(1+\eta(e^\varepsilon-1)), \eta\delta)`-DP for a mechanism that is
        :math:`(\varepsilon, \delta)`-DP on its sample, with :math:`\eta` = sample / population
    neighbours : replace all records of one user
    trust : central
    public : both numbers and all parameters; who was drawn is secret
    numerics : exact
    proof : Theorem 9 of Balle, Barthe and Gaboardi (2018): the differing user is in the sample with
        probability :math:`\eta`; given the rest of the sample, exchanging that user for another one
        who was not drawn also gives a neighbour. The draws of ``run`` are charged to an account for
        ``inner``, so it cannot spend more than that.

    Utility
    -------
    As for ``run`` on ``sample`` users drawn at random.

    Complexity
    ----------
    One uniform integer for each user drawn, and one run.

    Parameters
    ----------
    run : callable
        Takes the sampled rows (sealed) and an account, and returns a result; all draws go through
        the account. It must be as private as ``inner`` states, so it must not raise an error for
        some rows only; of an exception only its occurrence is reported.
    inner : Pure or Approximate
        The cost of ``run`` on its sample.
    sample, population : int

    References
    ----------
    .. [1] Balle, Barthe, Gaboardi. Privacy amplification by subsampling: tight analyses via
       couplings and divergences. NeurIPS 2018, arXiv:1807.01647v2.

    Examples
    --------
    >>> from quorate.core.by_hand import rows_by_hand
    >>> from quorate.mechanisms import ChooseBest
    >>> best = ChooseBest(candidates=2, epsilon=1.0)
    >>> def majority(votes, account):
    ...     return best.release(votes.tally(2), account=account)
    >>> poll = SubsampledMechanism(run=majority, inner=Pure(1.0), sample=10, population=100)
    >>> round(poll.event.epsilon, 4)
    0.1586
    >>> poll.release(rows_by_hand(np.ones(100, dtype=np.int64))) in (0, 1)
    True
    """

    run: Callable[[SealedRows, Account], Any] = field(repr=False)
    inner: Pure | Approximate
    sample: int
    population: int

    relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive_integer(sample=self.sample, population=self.population)
        if not callable(self.run):
            raise ParameterError("Expected run to be a function of rows and an account.")
        if not isinstance(self.inner, Pure | Approximate):
            raise ParameterError(
                f"Expected inner to be Pure or Approximate, got {type(self.inner).__name__}."
            )
        if self.sample > self.population:
            raise ParameterError(
                f"Expected a sample of at most {self.population}, got sample={self.sample}."
            )

    @property
    def rate(self) -> Fraction:
        """The share of the users who are drawn."""
        return Fraction(self.sample, self.population)

    @property
    def event(self) -> Pure | Approximate:
        """The event for the accountant."""
        # Without replacement, replacing a user costs what coming or going costs in a Poisson
        # sample of this rate.
        epsilon = amplified_epsilon(self.inner.epsilon, rate=float_up(self.rate))
        if isinstance(self.inner, Pure):
            return Pure(epsilon)
        return Approximate(epsilon, float_up(self.rate * exact(self.inner.delta)))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release."""
        event = self.event
        return Guarantee(
            epsilon=event.epsilon,
            delta=event.delta if isinstance(event, Approximate) else 0.0,
            relation=self.relation,
            numerics=ambient_noise().numerics,
            events=(event,),
        )

    def release(self, rows: SealedRows, *, account: Account | None = None) -> Any:
        """Return the result of ``run`` on a secret sample of the rows, one row per user."""
        check_sealed(rows, SealedRows)
        check_rows(rows, self.relation)
        check_one_row_each(rows)
        whole = opened(rows)
        if len(whole) != self.population:
            raise SchemaError(f"Expected one row for each of {self.population} users.")
        paying = Account.of_release(account, self)
        paying.check_seal(rows)
        noise = noise_for(paying, self.event)
        chosen = draw_without_replacement(noise, self.population, self.sample)
        inside = OwnRowsAccount.for_event(self.inner, relation=self.relation, noise=noise)
        drawn = seal_rows(whole[chosen], self.relation, among=inside)
        found = call_quietly(lambda: self._outcome(drawn, inside))
        if found is None:
            raise SchemaError(
                "run raised an exception on its sample; its text is withheld because it may quote "
                "records. Try it on made-up rows to see it."
            )
        if found.refusal is not None:
            raise found.refusal
        return found.value

    def _outcome(self, rows: SealedRows, account: Account) -> _Outcome:
        try:
            return _Outcome(value=self.run(rows, account))
        except QuorateError as error:
            return _Outcome(refusal=type(error)(str(error)))


def amplified_epsilon(epsilon: float, *, rate: float) -> float:
    r"""Return :math:`\log(1+q(e^\varepsilon-1))`, the cost on a sample, rounded up.

    >>> round(amplified_epsilon(1.0, rate=0.1), 6)
    0.158565
    """
    whole = exact(epsilon)
    if not epsilon < _LARGEST:
        return float_up(whole)
    raised = exact(math.log1p(rate * math.expm1(epsilon))) * (1 + Fraction(1, 2**48))
    return float_up(min(whole, raised))


def draw_without_replacement(noise: NoiseSource, population: int, sample: int) -> NDArray[np.int64]:
    """Return ``sample`` of the numbers below ``population``, in order; all sets are equally likely.

    It is Floyd's algorithm, with one uniform integer for each number drawn.

    >>> from quorate.core.noise import SecureNoise
    >>> draw_without_replacement(SecureNoise(), 5, 5)
    array([0, 1, 2, 3, 4])
    """
    chosen: set[int] = set()
    for last in range(population - sample, population):
        drawn = noise.uniform_below(last + 1)
        chosen.add(last if drawn in chosen else drawn)
    return np.array(sorted(chosen), dtype=np.int64)
