"""Where a count passes a target: a binary search in which every look is noisy.

The helper behind each private radius: values are distances, one a user or one a pair of users, and
the answer is a radius that holds about a given share of them. Doubling the number of candidate
radii costs one more look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.accounting.account import Account
from quorate.accounting.compose import guarantee
from quorate.accounting.costs import DISCRETENESS
from quorate.accounting.events import Event, Gaussian, Repeated
from quorate.accounting.rounding import exact, root_up
from quorate.exceptions import ParameterError
from quorate.guarantees import Guarantee, Relation
from quorate.noise import ambient_noise
from quorate.users.crowd import counts_up_to

__all__ = ["NoisySearch", "looks_needed"]

# Counts are multiplied by this, so that the discrete noise is close to continuous even when little
# of it is needed.
_FINENESS = 16


def looks_needed(candidates: int) -> int:
    """Return how many noisy counts a search among ``candidates`` thresholds takes.

    >>> looks_needed(128), looks_needed(1)
    (7, 0)
    """
    return max(0, math.ceil(math.log2(candidates)))


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisySearch:
    r"""Find the smallest threshold below which about ``target`` values lie.

    Each look counts the values up to one threshold, adds discrete Gaussian noise and compares with
    ``target``; the largest threshold is never asked for and holds by default.

    Privacy
    -------
    guarantee : Gaussian DP with parameter :math:`\sqrt{L} / z`, for :math:`L` looks and
        :math:`z` = ``noise_multiplier``; hence :math:`(\varepsilon, \delta)`-DP with the
        :math:`\varepsilon` of ``guarantee_at(delta)``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the thresholds, the target
    numerics : exact
    proof : A user owns one value (or half of the one value of a pair; see
        :func:`~quorate.means.radius.find_spread`), so each count changes by at most 1. A
        look is a Gaussian mechanism of sensitivity 1 (for the discrete noise see
        ``docs/proofs/discrete_gaussian.md``); later thresholds depend on noisy answers only, hence
        adaptive composition; the index is computed from the noisy answers.

    Utility
    -------
    If no look errs by more than ``error_bound(beta)``, which has probability at least
    :math:`1-\beta`, the threshold found holds at least ``target`` minus that many values, and the
    one before it fewer than ``target`` plus that many.

    Complexity
    ----------
    Time :math:`O(n L)`.

    Parameters
    ----------
    thresholds : array of float
        Increasing candidates.
    target : float
    noise_multiplier : float
        Standard deviation of the noise of each count.
    relation : Relation, default=Relation.REPLACE
    delta : float, default=0.0
        At which ``guarantee`` is stated; with 0 it is "no guarantee", as Gaussian noise has no
        pure one.

    References
    ----------
    .. [1] Amin, Kulesza, Munoz, Vassilvitskii. Bounding user contributions: a bias-variance
       trade-off in differential privacy. ICML 2019. (Why a quantile is the radius to look for.)

    Examples
    --------
    >>> search = NoisySearch(thresholds=2.0 ** np.arange(8), target=50, noise_multiplier=1.0)
    >>> search.release(np.arange(100.0))
    6
    """

    thresholds: NDArray[np.float64]
    target: float
    noise_multiplier: float
    relation: Relation = Relation.REPLACE
    delta: float = 0.0

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.one_of(tuple(Relation), relation=self.relation)
        _validate.delta(delta=self.delta)
        _validate.finite(target=self.target)
        thresholds = np.array(self.thresholds, dtype=np.float64)
        if thresholds.ndim != 1 or not thresholds.size or not np.all(np.diff(thresholds) > 0):
            raise ParameterError("Expected increasing thresholds, at least one.")
        thresholds.flags.writeable = False
        object.__setattr__(self, "thresholds", thresholds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoisySearch) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        known = self.target, self.noise_multiplier, self.relation, self.delta
        return (self.thresholds.tobytes(), *known)

    @property
    def looks(self) -> int:
        """Largest number of noisy counts."""
        return looks_needed(self.thresholds.size)

    @property
    def sensitivity(self) -> int:
        """How far one user moves a count."""
        return 1

    @property
    def event(self) -> Event:
        """What the accountant prices."""
        return Repeated(Gaussian(self.noise_multiplier), self.looks)

    @property
    def guarantee(self) -> Guarantee:
        """The promise of one release at ``delta``."""
        return self.guarantee_at(self.delta)

    def guarantee_at(self, delta: float) -> Guarantee:
        """Return the promise of one release at another delta."""
        return guarantee(
            self.event, delta=delta, relation=self.relation, numerics=ambient_noise().numerics
        )

    @property
    def sigma(self) -> float:
        """Standard deviation of the integer noise on ``16 x count``, rounded up."""
        return root_up((_FINENESS * exact(self.noise_multiplier)) ** 2 + DISCRETENESS)

    def release(self, values: NDArray[Any], *, account: Account | None = None) -> int:
        """Return the index of the threshold found; NaN counts as infinitely far."""
        return self.release_counts(counts_up_to(values, self.thresholds), account=account)

    def release_counts(
        self,
        counts: NDArray[np.int64],
        *,
        account: Account | None = None,
        at_once: bool = False,
    ) -> int:
        """Return the index of the threshold found, from the counts at all thresholds.

        Whoever holds the values in parts counts them there, all thresholds in one pass; the search
        looks at few of the counts. With ``at_once`` all looks are paid before the first of them,
        which is quicker.
        """
        if counts.shape != self.thresholds.shape:
            raise ParameterError("Expected one count for each threshold.")
        paying = Account.of_release(account, self)
        low, high, sigma = -1, self.thresholds.size - 1, self.sigma
        reach = Fraction(_FINENESS * self.sensitivity) ** 2
        paid = paying.pay(self.event) if at_once and self.looks else None
        while high - low > 1:
            middle = (low + high) // 2
            count = np.array([_FINENESS * int(counts[middle])], dtype=np.int64)
            noisy = (
                paying.gaussian(count, sensitivity_squared=reach, sigma=sigma)
                if paid is None
                else paid.discrete_gaussian(count, sigma=sigma)
            )[0] / _FINENESS
            low, high = (low, middle) if noisy >= self.target else (middle, high)
        return high

    def error_bound(self, beta: float) -> float:
        """Return what no look's noise exceeds, with probability at least ``1 - beta``."""
        _validate.probability(beta=beta)
        tail = math.sqrt(2.0 * math.log(2.0 * max(1, self.looks) / beta))
        return tail * self.sigma / _FINENESS
