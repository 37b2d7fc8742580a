"""Sealed numbers of any kind with Gaussian noise, calibrated to their own sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact_ratio, float_down, ratio_root_up
from quorate.core.account.account import Account
from quorate.core.guarantees import DISCRETENESS, Gaussian, Relation
from quorate.core.moves import Moves
from quorate.core.sealed import Sealed, check_sealed
from quorate.exceptions import ParameterError
from quorate.mechanisms.gaussian import GaussianMechanism
from quorate.mechanisms.stated_error import chance_of_each

__all__ = ["NoisyNumbers"]


@dataclass(frozen=True, kw_only=True)
class NoisyNumbers(GaussianMechanism):
    r"""Release sealed numbers with Gaussian noise in proportion to their sensitivity.

    A sum on a grid has a :class:`~quorate.mechanisms.sums.GaussianSum`. Numbers computed from such
    sums while they are sealed, such as the distance of a table from a public one, have only the
    sensitivity of their seal.

    Privacy
    -------
    guarantee : Gaussian DP with :math:`\mu` = 1 / ``noise_multiplier``, hence
        :math:`(\varepsilon, \delta)`-DP with the :math:`\varepsilon` of ``guarantee_at(delta)``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``noise_multiplier``, ``relation`` and by how much a user changes the numbers, which is
        on their seal
    numerics : exact
    proof : The sealed numbers carry a proved L2 sensitivity :math:`\Delta`. Discrete Gaussian noise
        of parameter :math:`\sigma` with :math:`\sigma^2 - 4 \ge` ``noise_multiplier``:math:`^2
        \Delta^2` is a post-processing of continuous noise of variance :math:`\sigma^2 - 4`, up to a
        factor that the accountant includes (``docs/proofs/discrete_gaussian.md``). [1]_ The account
        reads :math:`\Delta` from the same seal again when it charges.

    Utility
    -------
    With probability at least :math:`1-\beta` no number is off by more than ``error_bound(beta)``.

    Complexity
    ----------
    One draw per number.

    Parameters
    ----------
    size : int
        How many numbers there are.
    moves : Moves
        Upper limits on their sensitivity; sealed numbers with a larger sensitivity are refused.
    noise_multiplier : float
        Standard deviation of the noise divided by the L2 sensitivity.
    relation : Relation, default=Relation.REPLACE
    delta : float, default=0.0
        The delta of ``guarantee``; with 0 there is no guarantee, because Gaussian noise is not
        pure.

    References
    ----------
    .. [1] Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy.
       arXiv:2004.00010v5; Proposition 25 for the tail.

    Examples
    --------
    >>> from quorate.core.by_hand import sealed_by_hand
    >>> numbers = sealed_by_hand([40_000, 90_000], Moves.of_counts(2).times(100))
    >>> mechanism = NoisyNumbers(size=2, moves=numbers.moves, noise_multiplier=4.0)
    >>> bool(np.abs(mechanism.release(numbers) - [40_000, 90_000]).max() < 6000)
    True
    >>> mechanism.error_bound(0.05)
    1266
    """

    size: int
    moves: Moves
    noise_multiplier: float
    relation: Relation = Relation.REPLACE
    delta: float = 0.0

    def __post_init__(self) -> None:
        _validate.positive_integer(size=self.size)
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.delta(delta=self.delta)
        _validate.one_of(tuple(Relation), relation=self.relation)

    @property
    def sigma(self) -> float:
        """Parameter of the noise, rounded up."""
        top, bottom = exact_ratio(self.noise_multiplier)
        square = Fraction(self.moves.l2_squared)
        variance = top * top * square + DISCRETENESS * bottom * bottom
        return ratio_root_up(variance.numerator, variance.denominator * bottom * bottom)

    @property
    def event(self) -> Gaussian:
        """The event for the accountant."""
        return Gaussian(float_down(self.noise_multiplier))

    def release(self, numbers: Sealed, *, account: Account | None = None) -> NDArray[np.int64]:
        """Release noisy numbers, given the exact ones; they may be negative."""
        check_sealed(numbers, Sealed)
        if numbers.shape != (self.size,) or numbers.moves.l2_squared > self.moves.l2_squared:
            raise ParameterError(
                f"Expected {self.size} numbers of squared L2 sensitivity at most "
                f"{self.moves.l2_squared}, got {numbers!r}."
            )
        return Account.of_release(account, self).gaussian(numbers, sigma=self.sigma)

    def error_bound(self, beta: float) -> int:
        """Return a bound on the error of every number, except with probability ``beta``."""
        from scipy.special import ndtri

        # P(|Z| >= m) <= P(|N| >= m - 1) for integers m >= 1: Proposition 25 of [1], both sides.
        return math.ceil(-self.sigma * float(ndtri(chance_of_each(beta, self.size) / 2)))
