"""Expected errors of the algorithms for shares of categories, and the choice among them.

*Laplace* noise on the shares of all users works for every data set. If users are similar, a small
ball around a rough centre contains most of them, and the noise shrinks with the ball: in the L1
norm under pure privacy (the polytope), in the L2 norm with Gaussian noise. The expected errors say
how similar users have to be. Whether they are is estimated from disjoint pairs of users, for a
small part of epsilon, if the expected gain exceeds this cost. Users outside of the ball are
included, with the noise of the whole simplex, if there are enough of them to be detected. The
planner calls the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.costs import as_gaussian
from quorate.core.guarantees import Relation
from quorate.estimators import Route

__all__ = [
    "CELLS",
    "CLOSE",
    "DIAMETER",
    "INSIDE",
    "RATIO",
    "UNLIKE",
    "ExpectedErrors",
    "Likeness",
    "stretch",
]

Floats = NDArray[np.float64]

CLOSE = 3 / 4  # derived: (1 + 1/2) / 2
"""Share of the pairs that must be close: halfway between one kind of people and two equal ones."""

INSIDE = 1 / 2
"""Share of the users that a radius is searched for: as many are inside as outside of it."""

CELLS = 16
"""Radii that are searched; each of them is ``RATIO`` times the next smaller one."""

RATIO = 2.0**0.25

DIAMETER = {1: 2.0, 2: math.sqrt(2.0)}
"""The largest distance of two points of the simplex, in the L1 and the L2 norm."""

# derived: k normal coordinates are this times the root of k as long in L1 as in L2.
_L1_OF_L2 = math.sqrt(2.0 / math.pi)
# Half of all data sets are taken to be alike, and a spread to be half of the widest that pays.
_HALF = 0.5
_MOST_ASKED = 1 / 8
# Plans of one and of two centres: a column for each percentage of the budget.
_PERCENT = np.arange(1, 51) / 100
_PLANS = (_PERCENT[None, :], np.stack([_PERCENT**2, _PERCENT]))


def stretch(norm: int, categories: int, share: float) -> float:
    """Return the distance of this quantile of users from their centre, relative to a typical one.

    Coordinates are assumed to be normal, so distances hardly vary in many dimensions. The L1 length
    of k coordinates has the mean k sqrt(2/pi) and the variance k (1 - 2/pi). The root of twice the
    squared L2 length is about sqrt(2 k - 1) + z (Fisher), and twice the squared length is typically
    2 k.

    >>> round(stretch(2, 6, 0.99), 2), round(stretch(2, 1000, 0.99), 2)
    (1.63, 1.05)
    """
    z = NormalDist().inv_cdf(share)
    if norm == 1:
        return 1.0 + z * math.sqrt((math.pi / 2.0 - 1.0) / categories)
    return (math.sqrt(2.0 * categories - 1.0) + z) / math.sqrt(2.0 * categories)


@dataclass(frozen=True)
class Likeness:
    """A test on pairs of users: whether most of them are close enough for a ball.

    Attributes
    ----------
    norm : {1, 2}
        Norm of the ball.
    spread : float
        Distance from the centre, in this norm, up to which a ball reduces the error.
    reach : float
        Distance up to which a pair is close.
    epsilon : float
        Cost of the test.
    """

    norm: int
    spread: float
    reach: float
    epsilon: float

    @property
    def route(self) -> Route:
        """The algorithm that is used if users are similar."""
        name = "ball" if self.norm == 2 else "polytope"
        return Route(name=name, reason="users are alike: most pairs of them are close.")


UNLIKE = Route(name="laplace", reason="users are not alike enough for a small ball around them.")
"""The route after a private test found that users are not similar enough for a small ball."""


@dataclass(frozen=True, kw_only=True)
class ExpectedErrors:
    """Expected errors of all algorithms for shares of k categories, per share.

    Parameters
    ----------
    users, categories : int
    epsilon : float
        The epsilon that is left.
    mu : float
        Parameter of Gaussian differential privacy; 0 for pure differential privacy.

    Examples
    --------
    >>> errors = ExpectedErrors(users=3000, categories=100, epsilon=1.0, mu=0.2367)
    >>> errors.ball(2, 0.06)[0] < 0.3 * errors.laplace
    True
    """

    users: int
    categories: int
    epsilon: float
    mu: float

    @property
    def laplace(self) -> float:
        """Expected error of noise on all shares: one user changes them by 2 in the L1 norm."""
        if not self.epsilon:
            return math.inf
        return math.sqrt(2.0) * 2.0 / (self.users * self.epsilon)

    def _price(self, *, answers: int, users: float, loss: float) -> float:
        r"""Return the epsilon of a choice that fails with a probability that falls in n epsilon.

        The failure probability is ``a * exp(-epsilon * n / users)``.

        A wrong choice adds ``loss`` times the error. The sum of cost and expected loss is smallest
        where its derivative is zero. No choice may take more than an eighth of epsilon.
        """
        nats = math.log(max(math.e, loss * answers * self.users * self.epsilon / users))
        return min(users * nats / self.users, _MOST_ASKED * self.epsilon)

    @property
    def asking(self) -> float:
        """Cost of the test: it fails if noise of scale 1 / epsilon exceeds a quarter of the pairs.

        If users are not similar, a ball raises the error by about a half.

        >>> round(ExpectedErrors(users=1000, categories=6, epsilon=1.0, mu=0.0).asking, 3)
        0.033
        """
        return self._price(answers=1, users=8.0, loss=_HALF)

    @property
    def searching(self) -> float:
        """Cost of a radius; the choice uses half of epsilon.

        The scores of wrong cells are lower by half of the users.

        If all users are outside of the ball, the error is that of noise on all shares: about four
        times that of a useful ball.
        """
        return self._price(answers=CELLS, users=4.0, loss=4.0)

    def after(self, price: float) -> ExpectedErrors:
        """Return the same expected errors after a pure mechanism with this epsilon."""
        square = max(0.0, self.mu**2 - float(as_gaussian(Fraction(price))))
        return replace(self, epsilon=max(0.0, self.epsilon - price), mu=math.sqrt(square))

    def ball(self, norm: int, spread: float) -> tuple[float, tuple[float, ...]]:
        """Return the expected error of a ball around users of this spread.

        Return also the best shares of the budget.

        Each rough centre gets a share of the budget (of epsilon, or of mu squared). Between two
        centres a radius is searched for. For two centres the shares are s squared and s.
        """
        found = [self._shrunk(norm, np.array([spread]), plans)[0] for plans in _PLANS]
        best = min(range(len(_PLANS)), key=lambda rounds: float(found[rounds].min()))
        place = int(found[best].argmin())
        return float(found[best][place]), tuple(_PLANS[best][:, place].tolist())

    def shrunk(self, norm: int, spread: float, shares: Sequence[float]) -> float:
        """Return the expected error of a ball around users of this spread, for these shares."""
        plan = np.array(shares)[:, None]
        return float(self._shrunk(norm, np.array([spread]), plan)[0, 0])

    def _shrunk(self, norm: int, spreads: Floats, plans: Floats) -> Floats:
        """Return the noise of a share after means in balls around one centre after the other.

        One row for each spread, one column for each plan. A radius is rounded up to the next
        candidate, on average by half a step.
        """
        kept = self
        for _ in plans:
            kept = kept.after(self.searching)
        budget = kept.users * (kept.epsilon if norm == 1 else kept.mu)
        if not budget:
            return np.full((spreads.size, plans.shape[1]), math.inf)
        far = math.sqrt(RATIO) * stretch(norm, self.categories, self.nearly_all)
        noise = radius = np.full((spreads.size, plans.shape[1]), DIAMETER[norm])
        for share in (*plans, 1.0 - plans.sum(axis=0)):
            part = share if norm == 1 else np.sqrt(share)
            apart = np.where(radius < DIAMETER[norm], 2.0 * radius, radius)
            noise = apart / (budget * part)
            error = np.hypot(spreads[:, None], self._centre_error(norm, noise))
            radius = np.minimum(DIAMETER[norm], far * error)
        return noise * (math.sqrt(2.0) if norm == 1 else 1.0)

    def _centre_error(self, norm: int, noise: Floats) -> Floats:
        """Return the distance between the true centre and a noisy one, projected to a distribution.

        Each share that stays above 0 exceeds the subtracted level by at least about the noise, and
        all shares add up to at most 1.
        """
        left = np.maximum(1.0, np.minimum(self.categories - 1.0, 1.0 / noise))
        return np.asarray(noise * (left if norm == 1 else np.sqrt(left)))

    @property
    def nearly_all(self) -> float:
        """Share of the users that a ball should contain: all except what noise hides."""
        return 1.0 - 1.0 / max(4.0, self.users * self.epsilon)

    def widest(self, norm: int) -> float:
        """Return the largest spread at which the ball of this norm is useful; 1 / n if none."""
        count = max(0, math.floor(math.log(self.users * DIAMETER[norm] / 2.0, RATIO)))
        spreads = DIAMETER[norm] / 2.0 * np.float64(RATIO) ** -np.arange(count, dtype=np.float64)
        errors = [self._shrunk(norm, spreads, plans).min(axis=1) for plans in _PLANS]
        paying = spreads[np.minimum(*errors) < self.laplace]
        return float(paying[0]) if paying.size else 1.0 / self.users

    def typical(self, widest: float) -> float:
        """Return the expected spread of users if only an upper limit of it is known."""
        return _HALF * widest

    @cached_property
    def _best_norm(self) -> tuple[int, float]:
        """The norm whose ball is useful up to the largest spread, and that spread.

        Spreads in L1 are compared through the L2 spreads of the same users.
        """
        wide = {norm: self.widest(norm) for norm in (1, 2)}
        norm = 2 if wide[2] * self.l1_of_l2 > wide[1] else 1
        return norm, wide[norm]

    @property
    def l1_of_l2(self) -> float:
        """The ratio of the L1 and the L2 length of a user's offset.

        Coordinates are assumed to be normal.
        """
        return _L1_OF_L2 * math.sqrt(self.categories)

    def question(self, *, alike: bool = False) -> Likeness | None:
        """Return the test that is worth its cost, or None.

        The prior probability that users are similar is one half, or one if this is public
        knowledge.
        """
        epsilon = self.asking
        if epsilon >= _MOST_ASKED * self.epsilon:
            return None  # the answer would be noise
        left = self.after(epsilon)
        norm, spread = left._best_norm
        lost = 1.0 - self.laplace / left.laplace
        gain = 1.0 - left.ball(norm, self.typical(spread))[0] / left.laplace
        if gain * (1.0 if alike else _HALF) <= lost:
            return None
        reach = math.sqrt(2.0) * spread * stretch(norm, self.categories, CLOSE)
        return Likeness(norm, spread, reach, epsilon)

    def decide(
        self, *, relation: Relation, weighted: bool = False, alike: bool = False
    ) -> Likeness | Route:
        """Return the choice of ``"auto"``: an algorithm, or the test that decides between two.

        >>> known = dict(categories=100, epsilon=1.0, mu=0.2367)
        >>> few, many = (ExpectedErrors(users=n, **known) for n in (150, 3000))
        >>> few.decide(relation=Relation.REPLACE).name
        'laplace'
        >>> many.decide(relation=Relation.REPLACE).route.name
        'ball'
        """
        if relation is not Relation.REPLACE or weighted:
            return Route(name="laplace", reason="everybody's shares can be anywhere.")
        question = self.question(alike=alike)
        if question is None:
            reason = "no other way pays for so few users and so many categories."
            return Route(name="laplace", reason=reason)
        return question

    def expected(self, question: Likeness | Route, spread: float) -> tuple[Route, float]:
        """Return the algorithm and its expected error for users of this spread, in L2."""
        if isinstance(question, Route):
            return question, self.laplace
        left = self.after(question.epsilon)
        own = spread if question.norm == 2 else self.l1_of_l2 * spread
        if own > question.spread:
            return UNLIKE, left.laplace
        _, shares = left.ball(question.norm, self.typical(question.spread))
        return question.route, min(left.laplace, left.shrunk(question.norm, own, shares))
