"""Which way to a distribution over categories is best: public numbers and one paid test decide.

*Laplace* noise on the shares of all users works for every data set. Where users are alike, a small
ball around a rough centre holds most of them, and noise can shrink with the ball: in the L1 norm
under pure privacy, which pays for few categories, or in the L2 norm with Gaussian noise, for many.
How alike users have to be follows from the numbers of users and categories; whether they are is
asked of disjoint pairs of users, for a few percent of the budget. Where users are few all pairs are
looked at (:mod:`~quorate.distributions.categories.likeness`): a cover of the pairs that are far
apart moves by one with a user, as a count of disjoint pairs does, and tells more. Its answer also
says where the radius has to be searched for, so that less is paid for that. Users outside the ball
are included when they are many enough to be seen, with the noise of the whole simplex. A wrong
decision therefore costs at most half as much again. The test is slightly stricter unless the caller
states that users are alike. Below some 250 users, or 30 for each category, where counts are too
noisy, nobody is asked (fifty categories or more are asked with a delta all the same: unlike people
agree rarely there); nor below 1,000 where there are four categories or fewer, because unlike people
agree by chance.

The constants were measured on Zipf distributions of 6 to 1000 categories; see
``benchmarks/distributions.py``. Those for few users were settled on other worlds than the ones
reported there: 5 to 9 categories, 260 to 550 users, Zipf exponents of .5 to 1.5, and people who
differ by Dirichlet distributions, by types, or by holding one label each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from quorate.estimators import Route
from quorate.guarantees import Relation

__all__ = [
    "BALL_SHARES",
    "UNLIKE",
    "Likeness",
    "ball_noise",
    "decide_shares",
    "l1_spread",
    "likeness_worth_asking",
    "polytope_noise",
    "polytope_shares",
    "widening",
]

BALL_SHARES = (0.04, 0.02, 0.09, 0.03, 0.82)
"""Shares of the squared budget: rough centre, radius, centre, radius, mean."""

# The test for 1,000 users: users times its share of epsilon; its largest and smallest share; the
# share of pairs that must be close.
_STRICT = (45.0, 0.06, 0.001, 0.80)
_LENIENT = (15.0, 0.05, 0.015, 0.60)
# Below this many users times epsilon, in all or for each category, the count of pairs and the rough
# centre tell too little; with delta, from so many categories on, only the first number matters.
_FEWEST, _FEWEST_EACH, _MANY, _MANY_CATEGORIES = 250.0, 30.0, 1000.0, 50
# People who hold one label each, of so few categories, are often the same by chance.
_FEW_CATEGORIES = 4
# The forecast of a ball is too high beside that of the polytope, by this much.
_BALL_GAIN = 1.09
# Where few users make the count noisy, people are believed sooner: those of whom nothing is known,
# and those who are known to be alike.
_FEW_BELIEVED, _BELIEVED = 0.68, 0.50
# Up to so many users all pairs are looked at: the share of epsilon; the share of users who must be
# left when the cover is gone, of whom nothing is known or who are known to be alike.
_EVERYBODY, _COVER_SHARE, _COVER_LEFT, _COVER_BELIEVED = 1024, 0.05, 0.55, 0.40
# A way must promise at most so much of the noise of Laplace on the whole simplex: the ball; the
# polytope for 10 categories or fewer, among which distances vary, for ten times as many, and more.
_GAIN, _FEW_GAIN, _TENFOLD, _MANY_GAIN = 0.95, 0.75, 0.3, 1.05
# Two norms are compared for users who are this far from their centre in L2, and for alike users
# with a Zipf distribution that is so much in L1.
_COMPARED = 0.06
_L1_PER_L2, _L1_POWER = 0.8, 0.45
# A centre that was made a distribution is nearer to the users than its noise says.
_NEARER = 0.7
# Shares of epsilon for the centre are weighed for users who are this far from it in L1.
_TYPICAL = 0.12
_CENTRE_SHARES = tuple(percent / 100 for percent in range(13, 36))
# Share for the radius where all pairs have told how alike people are.
_KNOWN_RADIUS = 0.07
_CANDIDATES = 2.0 ** (np.arange(-28.0, 1.0) / 4.0)


@dataclass(frozen=True)
class Likeness:
    """How alike users must be for a way to pay, and what it costs to ask.

    Attributes
    ----------
    norm : {1, 2}
        Norm of the ball.
    spread : float
        Distance from the centre up to which the way pays.
    share : float
        Share of epsilon that the test costs.
    close : float
        Share of the pairs, or of the users, that must be close.
    everybody : bool, default=False
        Whether all pairs are looked at, through a cover, and not disjoint ones.
    """

    norm: int
    spread: float
    share: float
    close: float
    everybody: bool = False

    @property
    def route(self) -> Route:
        """The way that is taken if people are so alike."""
        name = "ball" if self.norm == 2 else "polytope"
        return Route(name=name, reason="users are alike: most pairs of them are close.")


def widening(categories: int) -> float:
    """Return how much farther than a typical user nearly everybody is, for users who are alike.

    In many dimensions distances hardly vary.

    >>> round(widening(6), 2), round(widening(1000), 2)
    (1.59, 1.14)
    """
    return 1.1 + 1.2 / math.sqrt(categories)


def _survivors(categories: int, noise: float) -> float:
    """Guess how many coordinates stay above 0 when noisy shares are made a distribution."""
    return max(1.0, min(0.6 * categories, 2.0 / noise))


def ball_noise(*, users: float, categories: int, mu: float, spread: float) -> float:
    """Return the standard deviation of a coordinate after the rounds of the L2 ball.

    >>> known = dict(users=3000, categories=100, mu=0.23)
    >>> ball_noise(spread=0.06, **known) < 0.3 * math.sqrt(8) / 3000
    True
    """
    first, _, second, _, last = BALL_SHARES
    noise = math.sqrt(2.0 / first) / (users * mu)
    for share in (second, last):
        error = _NEARER * noise * math.sqrt(_survivors(categories, noise))
        radius = min(1.4, 1.12 * widening(categories) * math.hypot(spread, error))
        noise = 2.0 * radius / (users * mu * math.sqrt(share))
    return noise


@lru_cache(maxsize=4096)
def polytope_shares(
    *, users: float, categories: int, epsilon: float, answered: bool = False
) -> tuple[float, float]:
    """Return the shares of epsilon for the rough centre and the radius; the mean gets the rest.

    More users make both more exact, so that less does. Where the question was ``answered`` by all
    pairs, the radius is searched for in a short range, for less.

    >>> polytope_shares(users=300, categories=6, epsilon=1.0)
    (0.25, 0.1)
    >>> polytope_shares(users=3000, categories=6, epsilon=1.0)
    (0.13, 0.05)
    """
    signal = max(1.0, users) * epsilon
    most = _KNOWN_RADIUS if answered else 0.10
    radius = round(min(most, max(0.05, 0.10 * math.sqrt(300.0 / signal))), 2)

    def length(share: float) -> float:
        scale = 2.0 / (signal * share)
        error = scale * _survivors(categories, scale)
        return min(2.0, math.hypot(_TYPICAL, error)) / (1.0 - share - radius)

    return min(_CENTRE_SHARES, key=length), radius


def polytope_noise(*, users: float, categories: int, epsilon: float, spread: float) -> float:
    """Return the standard deviation of a coordinate after the two rounds of the L1 ball.

    >>> known = dict(users=1000, categories=6, epsilon=1.0)
    >>> polytope_noise(spread=0.1, **known) < 0.6 * math.sqrt(8) / 1000
    True
    """
    first, second = polytope_shares(users=users, categories=categories, epsilon=epsilon)
    last = 1.0 - first - second
    scale = 2.0 / (users * first * epsilon)
    error = scale * _survivors(categories, scale)
    radius = min(2.0, 1.25 * (1.1 + 0.5 / math.sqrt(categories)) * math.hypot(spread, error))
    return math.sqrt(2.0) * 2.0 * radius / (users * last * epsilon)


def l1_spread(categories: int, spread: float) -> float:
    """Return the L1 distance that goes with an L2 distance, for users who are alike.

    >>> round(l1_spread(100, 0.06), 2)
    0.38
    """
    return float(_L1_PER_L2 * categories**_L1_POWER * spread)


def _ball_is_better(*, users: int, categories: int, epsilon: float, mu: float) -> bool:
    if mu == 0:
        return False
    ball = ball_noise(users=users, categories=categories, mu=mu, spread=_COMPARED)
    spread = l1_spread(categories, _COMPARED)
    known = {"users": users, "categories": categories}
    return ball < _BALL_GAIN * polytope_noise(**known, epsilon=epsilon, spread=spread)


UNLIKE = Route(name="laplace", reason="users are not alike enough for a small ball around them.")
"""What is done where the question was asked and denied."""


def decide_shares(
    *,
    users: int,
    categories: int,
    epsilon: float,
    mu: float,
    relation: Relation,
    weighted: bool = False,
    alike: bool = False,
) -> Likeness | Route:
    """Return what ``"auto"`` does: a way, or the question on which it depends.

    The planner calls the same function, with what the caller stated about the users.

    >>> known = dict(categories=100, epsilon=1.0, mu=0.2367, relation=Relation.REPLACE)
    >>> decide_shares(users=200, **known).name, decide_shares(users=3000, **known).route.name
    ('laplace', 'ball')
    """
    if relation is not Relation.REPLACE or weighted:
        return Route(name="laplace", reason="everybody's shares can be anywhere.")
    question = likeness_worth_asking(
        users=users, categories=categories, epsilon=epsilon, mu=mu, alike=alike
    )
    if question is None:
        reason = "no other way pays for so few users and so many categories."
        return Route(name="laplace", reason=reason)
    return question


def likeness_worth_asking(
    *, users: int, categories: int, epsilon: float, mu: float, alike: bool = False
) -> Likeness | None:
    """Return the question that may pay, from public numbers; ``mu`` is 0 under pure privacy.

    ``alike`` says that nobody is unlike the others, so that only how alike they are is asked.

    >>> likeness_worth_asking(users=3000, categories=100, epsilon=1.0, mu=0.2367).norm
    2
    >>> likeness_worth_asking(users=300, categories=100, epsilon=1.0, mu=0.0) is None
    True
    """
    scale, largest, smallest, close = _LENIENT if alike else _STRICT
    # More users make the count more exact, and the share smaller.
    signal = max(1, users) * epsilon
    share = max(smallest, scale * math.sqrt(max(1.0, signal / 1000.0)) / signal)
    many = mu > 0 and categories >= _MANY_CATEGORIES
    wanted = _FEWEST if many else min(_MANY, max(_FEWEST, _FEWEST_EACH * categories))
    if not alike and signal < (_MANY if categories <= _FEW_CATEGORIES else wanted):
        return None
    few = share >= largest
    if few:
        share, close = largest, _BELIEVED if alike else _FEW_BELIEVED
    plain = math.sqrt(8.0) / (users * (1.0 - share) * epsilon)
    narrow = min(_MANY_GAIN, _FEW_GAIN + _TENFOLD * math.log10(max(1.0, categories / 10.0)))
    known = {"users": users, "categories": categories}

    def widest(norm: int) -> float | None:
        """Return the largest spread at which the ball of this norm still pays."""
        if norm == 2:
            limit = _GAIN * plain
            balls = (float(s) for s in _CANDIDATES[::-1] if mu > 0)
            return next((s for s in balls if ball_noise(**known, mu=mu, spread=s) < limit), None)
        limit, left = narrow * plain, (1.0 - share) * epsilon
        balls = (2.0 * float(s) for s in _CANDIDATES[::-1])
        return next(
            (s for s in balls if polytope_noise(**known, epsilon=left, spread=s) < limit), None
        )

    norm = 2 if _ball_is_better(**known, epsilon=epsilon, mu=mu) else 1
    spread = widest(norm)
    if spread is None:
        norm = 3 - norm
        spread = widest(norm)
    if spread is None:
        return None
    if few and norm == 1 and users <= _EVERYBODY:
        left = _COVER_BELIEVED if alike else _COVER_LEFT
        return Likeness(norm, spread, _COVER_SHARE, left, everybody=True)
    return Likeness(norm, spread, share, close)
