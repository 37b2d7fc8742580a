r"""Item-level mechanisms on sums of scores at user level, with a fast certificate (F1).

Algorithm 1 of Ghazi et al. [1]_ leaves out the users who differ from the others, and examines all
small sets of users to find them (:class:`~quorate.papers.conversion.ItemToUser`). For the
exponential mechanism, Laplace and Gaussian noise on sums of users' scores a relaxed vertex cover
does the same in milliseconds, and its proof needs half of the paper's :math:`\kappa`.

Both are reference implementations. With realistic numbers they are less accurate than a clipped
sum, and better than group privacy only for very many records per user; ``docs/item-to-user.md``
gives the limits.

References
----------
.. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
   examples per user. NeurIPS 2023. Definitions 8 and 16, Algorithm 1, Lemma 18.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.guarantees import Approximate, Guarantee, Relation
from quorate.exceptions import NotEnoughUsersError, ParameterError, SchemaError
from quorate.mechanisms.wrappers.stable_release import Base, BaseKind, StableRelease
from quorate.papers.conversion.alike import Alike, certify_by_cover, certify_by_sorting

__all__ = ["CertifiedItemToUser"]

Integers = NDArray[np.int64]

MAX_USERS = 5_000  # machine: memory of the table
"""The table of differences of more users takes too much memory; one difference needs none."""


@dataclass(frozen=True, kw_only=True)
class CertifiedItemToUser:
    r"""Release an item-level mechanism on similar users, or None if there are too few.

    Users contribute integer scores, one for each candidate (exponential mechanism) or coordinate
    (sums). They are clipped to ``bound``, so that sums fit into 64 bits. Privacy does *not* rely on
    this bound: the noise of the base may be far below it. Users who differ from the others are left
    out; if there are too many of them, nothing is released.

    Privacy
    -------
    guarantee : :math:`(\varepsilon, \delta)`-DP, with :math:`\varepsilon` = ``epsilon`` and
        :math:`\delta` at most ``delta``
    neighbours : replace all records of one user
    trust : central
    public : ``n_users``, ``width``, ``bound`` and all other parameters
    numerics : exact
    proof : docs/proofs/item_to_user.md; half of epsilon is for the noisy limit, and a quarter for
        the step from each of the two neighbours to their common users. The proof is Quorate's, not
        the paper's: it uses a relaxed vertex cover instead of all subsets of users, and its delta
        is one tail of the limit instead of two.

    Utility
    -------
    A result is released with certainty if all users are similar (distance 0), and with
    ``pass_probability(v)`` at distance v. Users are similar if they differ by at most
    ``tolerance``.

    Complexity
    ----------
    Time :math:`O(n^2 k)` and memory :math:`O(n^2)` for n users and k scores; for one score
    difference time :math:`O(n \log n + \kappa^2)`.

    Parameters
    ----------
    base : Base
    n_users : int
        At least ``8 * reach + 1``; at least ``4 * reach + 1`` for one score difference.
    width : int
        Number of scores per user.
    bound : int
        Largest absolute score.
    epsilon : float, default=1.0
    delta : float, default=1e-6
    reach : int or None, default=None
        As for :class:`~quorate.mechanisms.wrappers.stable_release.StableRelease`.

    Examples
    --------
    >>> base = Base(BaseKind.EXPONENTIAL, scale=40_000.0)
    >>> choose = CertifiedItemToUser(base=base, n_users=300, width=3, bound=50)
    >>> choose.reach, choose.survivors, round(choose.tolerance, 1)
    (25, 100, 50.0)
    >>> scores = np.tile([10, 45, 20], (300, 1))
    >>> choose.release(scores) in (0, 1, 2)
    True
    >>> choose.certify(scores).distance
    0
    """

    base: Base
    n_users: int
    width: int
    bound: int
    epsilon: float = 1.0
    delta: float = 1e-6
    reach: int | None = None

    relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive_integer(n_users=self.n_users, width=self.width, bound=self.bound)
        if self.base.kind is BaseKind.EXPONENTIAL and self.width < 2:
            raise ParameterError(f"Expected at least 2 candidates, got width={self.width}.")
        if self.n_users > MAX_USERS and not self.is_one_difference:
            raise ParameterError(
                f"Expected at most {MAX_USERS} users with several scores, got {self.n_users}."
            )
        # Differences, their squares and the totals of all users stay far below 2**63.
        if 4 * self.bound**2 * max(self.width, self.n_users) >= 2**62:
            raise ParameterError(
                f"Expected scores whose squares add up in 64 bits, got {self.bound}."
            )
        object.__setattr__(self, "reach", self.stable.reach)
        if self.survivors < 1:
            raise NotEnoughUsersError(
                f"Expected at least {self.set_aside + 1} users for epsilon={self.epsilon!r} and "
                f"delta={self.delta!r}, got {self.n_users}."
            )

    @cached_property
    def stable(self) -> StableRelease:
        """The release after the certificate."""
        return StableRelease(
            base=self.base, epsilon=self.epsilon, delta=self.delta, reach=self.reach
        )

    @property
    def is_one_difference(self) -> bool:
        """Whether one number describes a user, so that sorting finds the exact distance."""
        return self.width == (2 if self.base.kind is BaseKind.EXPONENTIAL else 1)

    @property
    def set_aside(self) -> int:
        """The number of users who are left out of the sum."""
        return (4 if self.is_one_difference else 8) * (self.stable.reach or 0)

    @property
    def survivors(self) -> int:
        """The number of users who are summed."""
        return self.n_users - self.set_aside

    @property
    def tolerance(self) -> float:
        """How much two users (with one difference: two sums) may differ, in floating point."""
        closeness = math.sqrt(self.stable.closeness_squared)
        return closeness if self.is_one_difference else closeness / self.set_aside

    @property
    def event(self) -> Approximate:
        """The event for the accountant."""
        return self.stable.event

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release."""
        return self.stable.guarantee

    def certify(self, scores: Integers) -> Alike:
        """Return the users who would be summed, and the distance; private, for audits only.

        Users are sorted first, so the order of arrival has no effect.
        """
        scores = self._bounded(scores)
        order = np.lexsort(scores.T)
        alike = self._certify(scores[order])
        chosen = np.zeros(self.n_users, dtype=np.bool_)
        chosen[order] = alike.chosen
        return Alike(alike.distance, chosen)

    def _certify(self, scores: Integers) -> Alike:
        squared, reach = self.stable.closeness_squared, self.stable.reach or 0
        if not self.is_one_difference:
            return certify_by_cover(
                scores, kind=self.base.kind, closeness_squared=squared, reach=reach
            )
        values = scores[:, 0] if self.width == 1 else scores[:, 1] - scores[:, 0]
        return certify_by_sorting(values, closeness_squared=squared, reach=reach)

    def release(self, scores: Integers, *, account: Account | None = None) -> int | Integers | None:
        """Release a choice or noisy sums of ``survivors`` users, or None."""
        alike = self.certify(scores)
        totals = self._totals(scores, alike)
        return self.stable.release(alike.distance, totals, account=account)

    def law(self, scores: Integers) -> dict[int | None, float]:
        """Return the law of :meth:`release` for the exponential mechanism, for audits."""
        alike = self.certify(scores)
        chance = self.stable.pass_probability(alike.distance)
        choice = self.base.probabilities(self._totals(scores, alike))
        return {None: 1 - chance} | {i: chance * float(p) for i, p in enumerate(choice)}

    def pass_probability(self, distance: int) -> float:
        """Return the probability that something is released at a distance."""
        return self.stable.pass_probability(distance)

    def _totals(self, scores: Integers, alike: Alike) -> Integers:
        return np.asarray(self._bounded(scores)[alike.chosen].sum(axis=0), dtype=np.int64)

    def _bounded(self, scores: Integers) -> Integers:
        scores = np.asarray(scores)
        if scores.dtype.kind != "i" or scores.shape != (self.n_users, self.width):
            raise SchemaError(
                f"Expected integers of shape {(self.n_users, self.width)}, got {scores.dtype} of "
                f"shape {scores.shape}."
            )
        return np.clip(scores, -self.bound, self.bound).astype(np.int64)
