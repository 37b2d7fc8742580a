r"""What choices among hypotheses have in common: how clearly a user prefers the better one.

A user with m records of whom a share differs between two hypotheses prefers the better one with
some *margin* (chance to prefer it minus chance to prefer the other). Under label noise the numbers
of records that speak for and against are nearly independent Poisson variables, and the margin is
that of a Skellam variable. n users tell the two apart once n times the margin exceeds the noise of
the private choice and the fluctuation of the votes:

.. math:: \text{margin} \ge A/(n\varepsilon) + Z/\sqrt n.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from quorate.learners.generalization import agnostic_users
from quorate.planning.limits import fano_users, fixed_users_floor, packing_users, two_point_users
from quorate.planning.plan import PublishedBound
from quorate.planning.tasks.base import Task

__all__ = [
    "excess_for_margin",
    "label_divergence",
    "label_margin",
    "normal_margin",
    "published_agnostic",
    "rule_limit",
]

_HALVINGS = 40
_LARGE = 2000.0


def label_margin(excess: float, *, records: int, error_level: float) -> float:
    """Return the margin between the best rule and one that errs ``excess`` more often.

    Where two rules differ the better one errs with chance ``error_level``, so they differ in a
    share excess / (1 - 2 error_level) of the records.

    >>> round(label_margin(0.1, records=1, error_level=0.0), 4)
    0.0952
    >>> label_margin(0.1, records=100, error_level=0.2) > 0.95
    True
    """
    from scipy.special import chndtr

    differ = records * excess / (1.0 - 2.0 * error_level)
    right, wrong = differ * (1.0 - error_level), differ * error_level
    if wrong == 0:
        return -math.expm1(-right)
    if differ > _LARGE:
        return normal_margin((right - wrong) / math.sqrt(differ))
    # P[X > Y] for Poisson X and Y is a non-central chi-square with two degrees of freedom.
    return float(chndtr(2.0 * right, 2.0, 2.0 * wrong) - chndtr(2.0 * wrong, 2.0, 2.0 * right))


def normal_margin(signal: float) -> float:
    """Return the margin if a user's difference is normal, ``signal`` deviations from zero.

    >>> round(normal_margin(1.0), 4)
    0.6827
    """
    return math.erf(signal / math.sqrt(2.0))


def excess_for_margin(margin: Callable[[float], float], needed: float, *, largest: float) -> float:
    """Return the smallest excess whose margin is at least ``needed``, or ``largest``.

    >>> round(excess_for_margin(lambda excess: 2 * excess, 0.5, largest=1.0), 6)
    0.25
    """
    if margin(largest) <= needed:
        return largest
    low, high = 0.0, largest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if margin(middle) >= needed:
            high = middle
        else:
            low = middle
    return high


def label_divergence(excess: float, *, error_level: float) -> tuple[float, float]:
    """Return divergence and distance, per record, of two worlds whose best rules differ.

    The rules differ on a share p = excess / (1 - 2 error_level) of the records, where each errs
    with chance ``error_level`` in its own world.

    >>> label_divergence(0.1, error_level=0.0)
    (inf, 0.1)
    """
    share = min(1.0, excess / (1.0 - 2.0 * error_level))
    distance = share * (1.0 - 2.0 * error_level)
    if error_level == 0:
        return math.inf, distance
    return distance * math.log((1.0 - error_level) / error_level), distance


def rule_limit(
    task: Task, *, epsilon: float, error: float, error_level: float, vc: int, log_places: float
) -> PublishedBound:
    """Return how many users any learner of rules needs, at the given error of the best rule.

    ``log_places`` is the logarithm of the number of worlds that have no right rule in common for
    any error below a half (cut-offs: their number).
    """
    divergence, distance = label_divergence(error, error_level=error_level)
    bounds = {
        "Theorem 1 of Acharya et al. (2021), users of m records": two_point_users(
            divergence=divergence,
            distance=distance,
            delta=task.delta,
            records=task.records,
            epsilon=epsilon,
            beta=task.beta,
        ),
        "Theorem 9 of Levy et al. (2021)": float(
            fixed_users_floor(epsilon=epsilon, delta=task.delta, beta=task.beta)
        ),
    }
    if task.delta == 0 and error < 0.5 - error_level:
        bounds["Lemma 39 of Ghazi et al. (2023), packing form"] = packing_users(
            log_alternatives=log_places, epsilon=epsilon, beta=task.beta, relation=task.relation
        )
    if task.delta == 0 and vc >= 16 and 8.0 * error <= 1.0 - 2.0 * error_level and error_level > 0:
        bounds["Theorem 40 of Ghazi et al. (2023)"] = fano_users(
            log_alternatives=vc / 8.0,
            divergence=8.0 * divergence,
            records=task.records,
            epsilon=epsilon,
            beta=task.beta,
        )
    theorem = max(bounds, key=bounds.__getitem__)
    return PublishedBound(
        users=max(1.0, bounds[theorem]),
        theorem=theorem,
        holds=True,
        note="for the hardest data with this error of the best rule",
    )


def published_agnostic(
    task: Task, *, epsilon: float, error: float, vc: int, log_size: float
) -> PublishedBound:
    """Return what is proved to suffice for an agnostic learner.

    One record a user: Theorem 3.4 of Kasiviswanathan et al., with ln(3/beta). More: Theorem 4.6 of
    Li, Wang, Ye by its own steps: Lemma 4.1 makes an excess of alpha a gap of sqrt(m) alpha / 700
    in the share of users with more than t mistakes, Lemma 4.3 lets all shares be within a quarter
    of it, and the exponential mechanism may lose another quarter.
    """
    beta = task.beta
    if task.records == 1:
        users = 6.0 * (log_size + math.log(3.0 / beta)) * max(1 / (epsilon * error), 1 / error**2)
        theorem = "Theorem 3.4 of Kasiviswanathan et al. (2011)"
        return PublishedBound(users=users, theorem=theorem, holds=True, note="any distribution")
    gap = min(1.0, math.sqrt(task.records) * error) / 700.0 / 4.0
    sampling = agnostic_users(vc_dimension=vc, records=task.records, alpha=gap, beta=beta / 2.0)
    choice = 2.0 * (log_size + math.log(2.0 / beta)) / (epsilon * gap)
    return PublishedBound(
        users=max(float(sampling), choice),
        theorem="Theorem 4.6 of Li, Wang, Ye (2024)",
        holds=task.records <= 1.0 / error**2,
        note="any distribution; the error of the best rule known, records at most 1 / error^2",
    )
