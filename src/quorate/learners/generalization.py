"""The explicit sample-size bounds of Li, Wang, Ye (L7).

They hold for every class and every distribution, and the planner uses them. Their constants are
large. For finite classes and known numbers of records the exact tails of
:mod:`quorate.learners.scores.more_than` need far fewer users.
"""

from __future__ import annotations

import math

from quorate import _validate

__all__ = [
    "agnostic_records",
    "agnostic_users",
    "realizable_records",
    "realizable_users",
    "relative_deviation",
]


def agnostic_records(*, vc_dimension: int, alpha: float, beta: float) -> int:
    """Return the records needed for all errors to be within ``alpha`` of their means (Lemma 3.1).

    >>> agnostic_records(vc_dimension=1, alpha=0.1, beta=0.05)
    522731
    """
    _check(vc_dimension, alpha, beta)
    return math.ceil(576 / alpha**2 * (4 * vc_dimension + math.log(8 / beta)))


def realizable_records(*, vc_dimension: int, alpha: float, beta: float) -> int:
    """Return how many records tell apart concepts that differ by ``alpha`` (Lemma 3.2).

    Two concepts are told apart if their observed disagreement exceeds ``alpha / 2``.

    >>> realizable_records(vc_dimension=1, alpha=0.1, beta=0.05)
    20053
    """
    _check(vc_dimension, alpha, beta)
    return math.ceil(96 / alpha * (2 * vc_dimension * math.log(384 / alpha) + math.log(4 / beta)))


def relative_deviation(*, labelings: float, n: int, gamma: float, xi: float) -> float:
    """Bound P[some err(c) > (1 + gamma) observed(c) + xi] (Lemma 4.2).

    ``labelings`` is the growth function at 2 n records, or at 2 n m for users of m records.

    >>> relative_deviation(labelings=11, n=10_000, gamma=0.5, xi=0.05) < 1e-16
    True
    """
    _validate.positive(labelings=labelings, xi=xi)
    _validate.positive_integer(n=n)
    _validate.probability(gamma=gamma)
    return min(1.0, 4 * labelings * math.exp(-gamma * xi * n / (4 * (gamma + 1))))


def agnostic_users(*, vc_dimension: int, records: int, alpha: float, beta: float) -> int:
    """Return the users needed to estimate all counts of "more than t mistakes" (Lemma 4.3).

    For every t, the error is at most the share ``alpha`` of users.

    >>> agnostic_users(vc_dimension=1, records=16, alpha=0.1, beta=0.05)
    110752
    """
    _check(vc_dimension, alpha, beta)
    _validate.positive_integer(records=records)
    return math.ceil(
        64 / alpha**2 * (vc_dimension * math.log(128 * records / alpha**2) + math.log(8 / beta))
    )


def realizable_users(*, vc_dimension: int, records: int, alpha: float, beta: float) -> int:
    """Return how many users tell apart concepts that differ for a share ``alpha`` of users.

    Lemma 4.4: concepts are told apart if the records of more than ``alpha / 2`` of the users
    distinguish them.

    >>> realizable_users(vc_dimension=1, records=16, alpha=0.1, beta=0.05)
    25377
    """
    _check(vc_dimension, alpha, beta)
    _validate.positive_integer(records=records)
    return math.ceil(
        96 / alpha * (2 * vc_dimension * math.log(384 * records / alpha) + math.log(4 / beta))
    )


def _check(vc_dimension: int, alpha: float, beta: float) -> None:
    _validate.positive_integer(vc_dimension=vc_dimension)
    _validate.probability(alpha=alpha, beta=beta)
