"""Winsorized means as published by Levy et al.: one dimension (U2) and many (U3).

Both need the concentration radius from the caller and are included for study and comparison;
:class:`~quorate.means.user_mean.UserMean` finds a radius privately and needs far fewer users in
more than a few dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact, float_down
from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.account.costs import gdp_mu
from quorate.core.bounds.grid import Interval
from quorate.core.guarantees import Event, Guarantee, Pure, Relation, Repeated
from quorate.core.noise import ambient_noise
from quorate.core.sealed import SealedRows, check_sealed
from quorate.exceptions import ParameterError
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.means.private_range import CONSTANTS, PrivateRange
from quorate.mechanisms.means.rotation import Rotation
from quorate.mechanisms.pure import PureMechanism
from quorate.mechanisms.sums import fitting_grid

__all__ = ["RotatedWinsorizedMean", "WinsorizedMean"]

# Probability with which the calibrated split lets the range miss the users.
_MISS = 0.01
# The search for a calibrated epsilon goes down by this ratio, then halves the last step this often.
_LADDER = 1.02
_REFINEMENTS = 1


@dataclass(frozen=True, kw_only=True)
class WinsorizedMean(PureMechanism):
    r"""Release the mean of one number per user, winsorized to a private range (U2).

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : replace all records of one user
    trust : central
    public : ``lower``, ``upper``, ``radius``, ``n_users``
    numerics : exact
    proof : :class:`PrivateRange` costs ``range_epsilon``. Given its interval, of width :math:`w`,
        one user changes the sum of the clipped values by at most :math:`w`, and Laplace noise uses
        the rest of the budget; the two costs add up to at most ``epsilon``.

    Utility
    -------
    If all values lie within :math:`\tau` = ``radius`` of a point, the result is the mean plus
    Laplace noise of scale ``noise_scale``, except with probability ``failure``. Published: the
    range costs :math:`\varepsilon/2` and the scale is :math:`8\tau/(\varepsilon n)`. Calibrated:
    the range gets the epsilon for a failure probability of 1 %, but at most half.

    Complexity
    ----------
    Time :math:`O(n \log n)`.

    Parameters
    ----------
    lower, upper : float
        Public range of the values.
    radius : float
    epsilon : float
    n_users : int
    constants : {"calibrated", "published"}, default="calibrated"

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845,
       Algorithm 1 and Theorem 1. Published clipping at :math:`\pm 2\tau` can cut values although
       they are concentrated; the calibrated version uses :math:`\pm 3\tau`.

    Examples
    --------
    >>> from quorate.core.by_hand import rows_by_hand
    >>> values = rows_by_hand(np.linspace(9.0, 11.0, 500))
    >>> mean = WinsorizedMean(lower=-1e4, upper=1e4, radius=1.0, epsilon=1.0, n_users=500)
    >>> abs(mean.release(values) - 10.0) < 0.5
    True
    >>> published = WinsorizedMean(
    ...     lower=-1e4, upper=1e4, radius=1.0, epsilon=1.0, n_users=500, constants="published"
    ... )
    >>> round(published.noise_scale, 6)
    0.016
    """

    lower: float
    upper: float
    radius: float
    epsilon: float | Fraction
    n_users: int
    constants: str = "calibrated"

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.positive_integer(n_users=self.n_users)
        _ = self.range

    @property
    def relation(self) -> Relation:  # type: ignore[override]
        """The neighbours of the guarantee."""
        return Relation.REPLACE

    @property
    def epsilons(self) -> tuple[Fraction, Fraction]:
        """The epsilon of the range and that of the mean."""
        share, whole = 0.5, exact(self.epsilon)
        if self.constants == "calibrated":
            bins = max(1.0, (self.upper - self.lower) / (2.0 * self.radius))
            needed = 4.0 / self.n_users * math.log(max(2.0, bins) / _MISS)
            share = min(0.5, max(0.05, needed / float(whole)))
        first = exact(share) * whole
        return first, whole - first

    @property
    def range(self) -> PrivateRange:
        """The search for the interval."""
        return PrivateRange(
            lower=self.lower,
            upper=self.upper,
            radius=self.radius,
            epsilon=self.epsilons[0],
            constants=self.constants,
        )

    @property
    def noise_scale(self) -> float:
        """Scale of the Laplace noise in the mean."""
        return 2.0 * self.range.half_width / (float(self.epsilons[1]) * self.n_users)

    @property
    def failure(self) -> float:
        """Probability that the range misses values that lie within ``radius`` of a point."""
        return self.range.failure(self.n_users)

    def release(self, values: SealedRows, *, account: Account | None = None) -> float:
        """Return the noisy winsorized mean of one number per user."""
        paying = Account.of_release(account, self)
        low, high = self.range.release(values, account=paying)
        grid = fitting_grid(
            Interval(low, high),
            n_users=self.n_users,
            relation=self.relation,
            noise=self.noise_scale * self.n_users,
        )
        total = LaplaceSum(grid=grid, epsilon=self.epsilons[1], relation=self.relation)
        offset = total.release(values.total(grid), count=0, account=paying)
        return float((low + high) / 2.0 + offset[0] / self.n_users)

    def error_bound(self, beta: float) -> float:
        """Bound the noise, except with probability ``beta``."""
        _validate.probability(beta=beta)
        return self.noise_scale * math.log(1.0 / beta)


@dataclass(frozen=True, kw_only=True)
class RotatedWinsorizedMean:
    r"""Release the mean of one vector per user, winsorized after a random rotation (U3).

    Privacy
    -------
    guarantee : :math:`(\varepsilon, \delta)`-DP, with ``epsilon`` and ``delta``
    neighbours : replace all records of one user
    trust : central
    public : ``bound``, ``radius``, ``n_users``, the signs of the rotation
    numerics : exact
    proof : The rotation is public and acts on each user alone; each of the :math:`D` padded
        coordinates is an :math:`\varepsilon'`-DP :class:`WinsorizedMean`; then composition.
        Published: :math:`\varepsilon' = \varepsilon/\sqrt{8 D \ln(1/\delta)}` (Theorem 2 of [1]_).
        Calibrated: an :math:`\varepsilon'` whose composition costs at most ``epsilon`` according to
        the accountant.

    Utility
    -------
    If all users lie within :math:`\tau` of a point, then except with probability ``gamma`` every
    rotated coordinate lies within :math:`\tau'` of its centre, with :math:`\tau' =
    \tau\sqrt{2\ln(2Dn/\gamma)/D}` (Hoeffding); published :math:`\tau' =
    10\tau\sqrt{\ln(DnK/\gamma)/D}`, K = ``queries``: every query gets a part of ``gamma``. Then the
    noise per coordinate is that of :class:`WinsorizedMean`, except with probability ``failure``;
    for ``users_needed`` users or more that is at most twice the failure probability of the
    rotations.

    Complexity
    ----------
    Time :math:`O(n D (\sqrt D + \log n))`.

    Parameters
    ----------
    bound : float
        Every coordinate lies between ``-bound`` and ``bound``.
    radius : float
        :math:`\tau`, in L2 norm.
    epsilon, delta : float
    n_users, dimension : int
    gamma : float, default=0.01
    queries : int, default=1
        How many such means, possibly of adaptively chosen vectors, share the budget (U4).
    constants : {"calibrated", "published"}, default="calibrated"

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845,
       Algorithm 2, Theorems 2, 3, and Lemma 2, whose constant 10 is :math:`\sqrt 2` by McDiarmid.

    Examples
    --------
    >>> mean = RotatedWinsorizedMean(bound=100.0, radius=2.0, epsilon=1.0, delta=1e-6,
    ...                              n_users=10**6, dimension=3, constants="published")
    >>> round(mean.coordinate_epsilon, 4)
    0.0476
    """

    bound: float
    radius: float
    epsilon: float
    delta: float
    n_users: int
    dimension: int
    gamma: float = 0.01
    queries: int = 1
    constants: str = "calibrated"

    def __post_init__(self) -> None:
        _validate.positive(bound=self.bound, radius=self.radius, epsilon=self.epsilon)
        _validate.probability(delta=self.delta, gamma=self.gamma)
        _validate.positive_integer(
            n_users=self.n_users, dimension=self.dimension, queries=self.queries
        )
        _validate.one_of(CONSTANTS, constants=self.constants)
        # The published composition needs its square-root form: eps <= 4 ln(1/delta) is enough.
        if self.constants == "published" and self.epsilon > 4.0 * math.log(1.0 / self.delta):
            raise ParameterError(
                f"The published constants need epsilon <= 4 ln(1/delta), got "
                f"epsilon={self.epsilon!r}; use constants='calibrated'."
            )
        each = self._calibrated_epsilon() if self.constants == "calibrated" else self._published()
        object.__setattr__(self, "_coordinate_epsilon", each)

    @property
    def padded(self) -> int:
        """Number of coordinates after padding to a power of two."""
        return 1 << (self.dimension - 1).bit_length()

    @property
    def relation(self) -> Relation:
        """The neighbours of the guarantee."""
        return Relation.REPLACE

    @property
    def coordinate_epsilon(self) -> float:
        """Pure cost of each rotated coordinate."""
        return float(getattr(self, "_coordinate_epsilon"))  # noqa: B009 - set on a frozen class

    @property
    def coordinate_radius(self) -> float:
        """Radius of each rotated coordinate."""
        if self.constants == "published":
            vectors = self.n_users * self.queries
            spread = 10.0 * math.sqrt(math.log(self.padded * vectors / self.gamma))
        else:
            spread = math.sqrt(2.0 * math.log(2.0 * self.padded * self.n_users / self.gamma))
        return self.radius * spread / math.sqrt(self.padded)

    @property
    def coordinate(self) -> WinsorizedMean:
        """The mechanism of each rotated coordinate."""
        reach = self.bound * math.sqrt(self.dimension)
        return WinsorizedMean(
            lower=-reach,
            upper=reach,
            radius=self.coordinate_radius,
            epsilon=self.coordinate_epsilon,
            n_users=self.n_users,
            constants=self.constants,
        )

    @property
    def rotation_failure(self) -> float:
        """Probability that for one of ``queries`` a rotated coordinate exceeds its radius."""
        # Published radii have room for all queries, calibrated ones for each.
        shares = 1 if self.constants == "published" else self.queries
        return min(1.0, shares * self.gamma)

    @property
    def failure(self) -> float:
        r"""Probability that an answer is biased by clipping, for concentrated users.

        It is the :math:`\beta` of Theorems 2 and 3 of [1]_: the failure probability of the
        rotations, plus the probability that the range of one of D coordinates of K queries misses
        its users. (The theorems add the probability that users are not within ``radius``, which is
        unknown.)
        """
        missed = self.queries * self.padded * self.coordinate.failure
        return min(1.0, self.rotation_failure + missed)

    @property
    def users_needed(self) -> int:
        r"""The number of users from which ranges fail no more often than rotations.

        It is the condition :math:`n = \Omega(\sqrt{D K
        \ln(1/\delta)\ln(K/\delta)}\,\varepsilon^{-1} \ln(\cdot))` of Theorems 2, 3 and 4 of [1]_,
        solved exactly.
        """

        def suffices(users: int) -> bool:
            tried = replace(self, n_users=users)
            return tried.queries * tried.padded * tried.coordinate.failure <= self.rotation_failure

        high = 1
        while not suffices(high):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if suffices(middle) else (middle, high)
        return high

    @property
    def event(self) -> Event:
        """The event for the accountant: all queries together."""
        return Repeated(Pure(self.coordinate_epsilon), self.padded * self.queries)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of ``queries`` calls of :meth:`release`."""
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            numerics=ambient_noise().numerics,
            events=(self.event,),
        )

    def release(
        self,
        vectors: SealedRows,
        *,
        rotation: Rotation,
        account: Account | None = None,
    ) -> NDArray[np.float64]:
        """Return the noisy mean of one bounded vector per user; the rotation is public."""
        if rotation.dimension != self.dimension or rotation.padded != self.padded:
            raise ParameterError(
                f"Expected a rotation of {self.dimension} coordinates, got {rotation.dimension}."
            )
        check_sealed(vectors, SealedRows)
        turned = vectors.map(lambda rows: rotation.apply(np.clip(rows, -self.bound, self.bound)))
        mechanism = self.coordinate
        paying = Account.of_release(account, self)
        columns = map(turned.column, range(self.padded))
        means = np.array([mechanism.release(column, account=paying) for column in columns])
        return np.asarray(rotation.undo(means[None, :])[0])

    def error_bound(self, beta: float) -> float:
        """Bound the length of the noise, except with probability ``beta``."""
        _validate.probability(beta=beta)
        each = self.coordinate.error_bound(beta / self.padded)
        return each * math.sqrt(self.padded)

    def _published(self) -> float:
        epsilon, delta = self.epsilon, self.delta
        if self.queries > 1:
            # Theorem 3: strong composition over the queries, then over the coordinates.
            epsilon /= 2.0 * math.sqrt(2.0 * self.queries * math.log(2.0 / delta))
            delta /= 2.0 * self.queries
        return epsilon / math.sqrt(8.0 * self.padded * math.log(1.0 / delta))

    def _calibrated_epsilon(self) -> float:
        count = self.padded * self.queries
        return largest_pure_epsilon(float(self.epsilon), float(self.delta), count)


@lru_cache(maxsize=64)
def largest_pure_epsilon(epsilon: float, delta: float, count: int) -> float:
    """Return a pure epsilon for each of ``count`` steps; one larger by 1 % would be too much.

    The price of many small steps is computed numerically. The computation may fail at one epsilon
    and not at neighbouring ones, so prices need not increase with epsilon. Each price is an upper
    bound, so every epsilon whose price is within the budget may be used.

    >>> largest_pure_epsilon(1.0, 1e-6, 1)
    1.0
    >>> largest_pure_epsilon(1.0, 1e-6, 64) > 1.5 / 64
    True
    """

    def fits(each: float) -> bool:
        return price(Repeated(Pure(each), count), delta=delta) <= epsilon

    basic = float_down(exact(epsilon) / count)
    if count == 1:
        return basic
    # Many small pure steps cost about as much as Gaussian noise of the same loss.
    too_large = 1.2 * max(basic, gdp_mu(epsilon, delta) / math.sqrt(count))
    best = too_large / _LADDER
    while best > basic and not fits(best):
        too_large, best = best, best / _LADDER
    if best <= basic:
        return basic
    for _ in range(_REFINEMENTS):
        middle = math.sqrt(best * too_large)
        best, too_large = (middle, too_large) if fits(middle) else (best, middle)
    return best
