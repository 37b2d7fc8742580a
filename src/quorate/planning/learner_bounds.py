r"""Numbers of users that agnostic learners are proved to need, with constants (L1, L4, L6, L7).

Theorems 3.4, 4.6 and 5.2 of [L]_ are stated up to constants and logarithms. Their proofs are chains
of explicit steps, each of which needs a number of records or users: uniform convergence (the five
bounds of :mod:`quorate.learners.generalization`), Laplace noise, the exponential mechanism and
Chernoff's bound. The functions here return the largest of these numbers. The hypotheses are the
concepts themselves, so representing the class costs nothing.

The bounds are proved but far from practice. Constants such as 1/134400 come from Lemma 4.1, whose
1/700 holds for all pairs of binomials at once. The learners choose by exact tails instead.

References
----------
.. [L] Li, Wang, Ye. Improved bounds for pure private agnostic learning: item-level and user-level
   privacy. ICML 2024.
"""

from __future__ import annotations

import math

from quorate import _validate
from quorate.learners.generalization import (
    agnostic_records,
    agnostic_users,
    realizable_records,
    realizable_users,
    relative_deviation,
)
from quorate.learners.smallest_error_search import published_records

__all__ = [
    "counted_users",
    "cut_off_users",
    "item_learner_records",
    "min_error_users",
    "user_learner_users",
]

# public: as printed, where 1 + 1/6300 and 6303/6302 of Lemma 5.1 are met by Bernstein's inequality.
_MEDIAN_DEVIATION = 12_610.0
_BERNSTEIN = 1.001


def _laplace(*, epsilon: float, reach: float, beta: float) -> float:
    """Return the n from which Laplace noise of scale 1 / (n epsilon) stays within ``reach``."""
    return math.log(1.0 / beta) / (epsilon * reach)


def _choice(
    *, log_size: float, epsilon: float, reach: float, beta: float, per_user: float
) -> float:
    """Return the n from which the exponential mechanism loses at most ``reach`` (Lemma 2.6)."""
    return 2.0 * per_user * (log_size + math.log(1.0 / beta)) / (epsilon * reach)


def item_learner_records(
    *, vc_dimension: int, log_size: float, epsilon: float, alpha: float, beta: float
) -> float:
    r"""Return the number of records required by Theorem 3.4 of [L]_, one per user.

    It needs errors within :math:`\alpha/18` (Lemma 3.1); small true disagreements where small ones
    are observed (Lemma 3.2), correct up to a factor of two (Chernoff); and a choice with a loss of
    :math:`\alpha/18` at a sensitivity of 2/n. Each has a fifth of :math:`\beta`.

    >>> known = dict(vc_dimension=1, log_size=5.0, epsilon=1.0, beta=0.1)
    >>> round(item_learner_records(alpha=0.1, **known))
    186464708
    """
    _validate.positive(epsilon=epsilon)
    _validate.non_negative(log_size=log_size)
    fifth = beta / 5.0
    return max(
        float(agnostic_records(vc_dimension=vc_dimension, alpha=alpha / 18.0, beta=fifth)),
        float(realizable_records(vc_dimension=vc_dimension, alpha=2.0 * alpha / 3.0, beta=fifth)),
        54.0 * math.log(1.0 / fifth) / alpha,
        _choice(log_size=log_size, epsilon=epsilon, reach=alpha / 18.0, beta=fifth, per_user=2.0),
    )


def counted_users(
    *, vc_dimension: int, log_size: float, records: int, alpha: float, beta: float
) -> float:
    r"""Return how many users are needed for all shares "more than t mistakes" to be accurate.

    It evaluates Lemma 4.3 of [L]_ or, if the class is small, the inequality from which it is
    proved: Lemma 4.2 with :math:`\gamma = \xi = \alpha/2` on as many labelings as there are rules,
    on both sides.

    >>> known = dict(vc_dimension=10, records=16, alpha=0.1, beta=0.05)
    >>> counted_users(log_size=math.log(10), **known) < counted_users(log_size=99.0, **known) / 10
    True
    """
    by_dimension = float(
        agnostic_users(vc_dimension=vc_dimension, records=records, alpha=alpha, beta=beta)
    )
    if log_size > 500.0:
        return by_dimension
    half = alpha / 2.0
    chance = {"labelings": math.exp(log_size), "gamma": half, "xi": half}
    needed = math.ceil(4.0 * (half + 1.0) / half**2 * (log_size + math.log(8.0 / beta)))
    # Rounded up by another millionth where the exponential rounds the other way.
    while relative_deviation(n=needed, **chance) > beta / 2.0:
        needed += math.ceil(1e-6 * needed)
    return min(by_dimension, float(needed))


def min_error_users(
    *, vc_dimension: int, log_size: float, records: int, epsilon: float, alpha: float, beta: float
) -> float:
    r"""Return the number of users required by Lemma 4.5 of [L]_, for accuracy ``alpha``.

    It needs :math:`T = \lceil\log_2(2/\alpha)\rceil` comparisons (Lemma C.1), each with
    :math:`\varepsilon/T` and :math:`\beta/T`. Noise and shares must be within :math:`\sqrt
    m\alpha/5600`, each with half of that.

    >>> known = dict(vc_dimension=1, log_size=5.0, epsilon=1.0, beta=0.1)
    >>> one = min_error_users(records=1, alpha=0.1, **known)
    >>> min_error_users(records=16, alpha=0.1, **known) < one / 10
    True
    """
    _validate.positive(epsilon=epsilon)
    kept = published_records(records, alpha)
    rounds = math.ceil(math.log2(2.0 / alpha))
    reach, half = math.sqrt(kept) * alpha / 5600.0, beta / (2.0 * rounds)
    return max(
        _laplace(epsilon=epsilon / rounds, reach=reach, beta=half),
        counted_users(
            vc_dimension=vc_dimension, log_size=log_size, records=kept, alpha=reach, beta=half
        ),
    )


def user_learner_users(
    *, vc_dimension: int, log_size: float, records: int, epsilon: float, alpha: float, beta: float
) -> float:
    r"""Return the number of users required by Theorem 4.6 of [L]_ (appendix C.4).

    The proof uses Lemma 4.5 to within :math:`\alpha/6`, for half of :math:`\varepsilon`. Then it
    needs, in units of :math:`\sqrt m\alpha`: the best rule's share within 1/134400 (Hoeffding),
    disagreements up to a factor of two (Chernoff), a choice within 1/16800 of the best, all shares
    within 1/8400 (Lemma 4.3), and disagreements of 1/2100 (Lemma 4.4). Each has a seventh of
    :math:`\beta`.

    >>> known = dict(vc_dimension=1, log_size=5.0, epsilon=1.0, beta=0.1)
    >>> one = user_learner_users(records=1, alpha=0.1, **known)
    >>> user_learner_users(records=16, alpha=0.1, **known) < one / 10
    True
    """
    kept = published_records(records, alpha)
    unit, part = math.sqrt(kept) * alpha, beta / 7.0
    shape = {"vc_dimension": vc_dimension, "records": kept}
    return max(
        min_error_users(
            vc_dimension=vc_dimension,
            log_size=log_size,
            records=kept,
            epsilon=epsilon / 2.0,
            alpha=alpha / 6.0,
            beta=part,
        ),
        math.log(1.0 / part) / 2.0 * (134_400.0 / unit) ** 2,
        3.0 * 134_400.0 * math.log(1.0 / part) / unit,
        _choice(
            log_size=log_size, epsilon=epsilon / 2.0, reach=unit / 16_800.0, beta=part, per_user=2.0
        ),
        counted_users(log_size=log_size, alpha=unit / 8_400.0, beta=part, **shape),
        float(realizable_users(alpha=unit / 2_100.0, beta=part, **shape)),
    )


def cut_off_users(
    *, log_size: float, records: int, epsilon: float, alpha: float, beta: float
) -> float:
    r"""Return the number of users required by Theorem 5.2 of [L]_, for cut-offs (appendix D).

    The proof uses Lemma 4.5 to within :math:`\alpha/6` and the search of Algorithm 1, each for half
    of :math:`\varepsilon`. In :math:`T = \log_{3/2}(2/\alpha)` rounds it needs noise within
    :math:`\sqrt m\alpha/(25200T)`, shares within :math:`\sqrt m\alpha/12600` (Lemma 4.3), and
    medians (Lemma 5.1) with an error of :math:`m\alpha'/12600`, where :math:`\alpha'` is the excess
    left by the round before. Each has a quarter of :math:`\beta`. Only the medians depend on the
    domain, and that part of the bound is divided by :math:`m\alpha`.

    >>> known = dict(records=16, epsilon=1.0, alpha=0.05, beta=0.1)
    >>> short, long = (cut_off_users(log_size=bits * math.log(2), **known) for bits in (8, 32))
    >>> short <= long < 4 * short
    True
    """
    _validate.positive(epsilon=epsilon)
    _validate.non_negative(log_size=log_size)
    kept = published_records(records, alpha)
    unit, part = math.sqrt(kept) * alpha, beta / 4.0
    rounds = math.ceil(math.log(2.0 / alpha) / math.log(1.5))
    each = epsilon / 2.0 / (4.0 * rounds)
    needed = [
        min_error_users(
            vc_dimension=1,
            log_size=log_size,
            records=kept,
            epsilon=epsilon / 2.0,
            alpha=alpha / 6.0,
            beta=part,
        ),
        _laplace(epsilon=each, reach=unit / (25_200.0 * rounds), beta=part / (3.0 * rounds)),
        counted_users(
            vc_dimension=1, log_size=log_size, records=kept, alpha=unit / 12_600.0, beta=part
        ),
    ]
    third = part / (3.0 * rounds)
    for step in range(rounds):
        mass = (2.0 / 3.0) ** step
        share = min(kept, math.floor(1.0 / mass)) * mass
        # Deviations of about 1/12604 of the share, on two sides and for all pairs of places.
        chance = math.log(2.0 / third) + 2.0 * log_size
        needed.append(_BERNSTEIN * _MEDIAN_DEVIATION**2 * chance / share)
        needed.append(
            _choice(
                log_size=log_size, epsilon=each, reach=share / 12_600.0, beta=third, per_user=1.0
            )
        )
    return max(needed)
