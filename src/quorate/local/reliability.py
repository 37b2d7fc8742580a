"""The probability of finding the most frequent key, from exact tails; for plans and defaults.

A candidate's score is the number of reports that agree with it. Reports of users who have this
candidate agree with probability 2^-s + gain, all others with probability exactly 2^-s,
independently over users. So the score of the most frequent candidate is a sum of two binomials, and
that of any other candidate is one binomial if the other votes are spread. Only the union bound over
the candidates is not exact.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from quorate import _validate
from quorate.local.randomizers.hashed import MAX_WIDTH, HashedResponse
from quorate.local.shuffling.blanket import amplified_epsilon

__all__ = ["choice_failure", "liars_withstood", "shuffled_response", "users_needed"]


def choice_failure(response: HashedResponse, *, users: int, plurality: float) -> float:
    """Return a bound on the probability of missing a candidate named by a share ``plurality``.

    All other users name candidates that nobody else names. With several levels each must find the
    prefix from the reports of its own users, whose number is assumed to be the expected one.

    >>> response = HashedResponse(candidates=2**14, epsilon=1.0)
    >>> choice_failure(response, users=400, plurality=0.8) < 0.01
    True
    """
    _validate.positive_integer(users=users)
    _validate.fraction(plurality=plurality)
    part = users // response.levels
    failure = 0.0
    for level, length in enumerate(response.prefix_bits):
        known = response.prefix_bits[level - 1] if level else 0
        rivals = min(2 ** (length - known), response.candidates) - 1
        failure += _miss(response, part, plurality, rivals)
    return min(1.0, failure)


def _miss(response: HashedResponse, users: int, plurality: float, rivals: int) -> float:
    from scipy.stats import binom

    if users == 0:
        return 1.0
    chance = 0.5 ** int(response.width or 0)
    supporters = int(np.floor(users * plurality))
    scores = np.arange(users + 1)
    own = binom.pmf(np.arange(supporters + 1), supporters, chance + float(response.gain))
    law = np.convolve(own, binom.pmf(np.arange(users - supporters + 1), users - supporters, chance))
    reached = np.minimum(1.0, rivals * binom.sf(scores - 1, users, chance))
    return float(np.sum(law * reached))


def users_needed(
    *,
    candidates: int,
    epsilon: float,
    delta: float = 0.0,
    plurality: float,
    beta: float = 0.1,
) -> int:
    """Return how many users are needed to find the winner with probability at least 1 - ``beta``.

    In the local model for ``delta`` = 0, otherwise with one shuffled report each; see
    :func:`choice_failure` for what is assumed.

    >>> users_needed(candidates=2**14, epsilon=1.0, plurality=0.8)
    197
    """
    _validate.probability(beta=beta)

    def failure(users: int) -> float:
        response = (
            shuffled_response(candidates, epsilon, delta, users)
            if delta
            else HashedResponse(candidates=candidates, epsilon=epsilon)
        )
        return choice_failure(response, users=users, plurality=plurality)

    low, high = 1, 2
    while failure(high) > beta:
        low, high = high, 2 * high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (middle, high) if failure(middle) > beta else (low, middle)
    return high


@lru_cache(maxsize=256)
def shuffled_response(
    candidates: int, epsilon: float, delta: float, honest_users: int
) -> HashedResponse:
    """Return the report that finds a majority of half of the users most reliably when shuffled.

    Every width has its own epsilon by the privacy blanket. The width with the best exact tails is
    used, because for few users the scores are far from normal and variances are misleading.

    >>> response = shuffled_response(2**14, 1.0, 1e-6, 100)
    >>> response.width, response.epsilon
    (5, 2.6...)
    """

    def shuffled(width: int) -> HashedResponse:
        plain = HashedResponse(candidates=candidates, epsilon=epsilon, width=width)
        allowed = amplified_epsilon(
            epsilon, delta, users=honest_users, width=width, levels=plain.levels
        )
        return replace(plain, epsilon=allowed)

    # Difficulty falls and rises again in the width; the best one grows with the users.
    start = min(MAX_WIDTH, max(1, round(math.log2(honest_users) / 2) + 1))
    best = shuffled(start)
    least = _difficulty(best, honest_users)
    for step in (1, -1):
        width = start + step
        while 1 <= width <= MAX_WIDTH:
            response = shuffled(width)
            difficulty = _difficulty(response, honest_users)
            if difficulty >= least:
                break
            best, least, width = response, difficulty, width + step
    return best


def _difficulty(response: HashedResponse, users: int) -> tuple[float, float]:
    """Return the failure probability at a share of votes for which it is about a tenth."""
    failures = [
        choice_failure(response, users=min(users, 2_000), plurality=share)
        for share in (0.8, 0.6, 0.4, 0.2, 0.1)
    ]
    return sum(failures), response.variance(others=1.0)


def liars_withstood(response: HashedResponse, *, plurality: float) -> float:
    """Return the share of dishonest users that cannot change the winner, up to noise.

    A dishonest user changes the difference of two candidates by at most ``influence`` votes, an
    honest one by one vote on average. So the most frequent candidate, with the share ``plurality``
    of the honest users, wins if the share f of dishonest users satisfies (1 - f) plurality > f
    influence.

    >>> round(liars_withstood(HashedResponse(candidates=2**14, epsilon=1.0), plurality=0.8), 3)
    0.153
    """
    _validate.fraction(plurality=plurality)
    return plurality / (plurality + float(response.influence))
