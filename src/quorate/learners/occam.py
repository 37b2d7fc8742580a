r"""Private versions of Occam's razor: users needed to choose among many rules (Section 3).

The cardinality version bounds the error by the number of rules. If some rule makes no mistakes, the
dependence on the error improves from :math:`1/\alpha^2` to :math:`1/\alpha`. The compression
version looks for a rule with a short description: :mod:`quorate.learners.concise_learner`. [1]_

References
----------
.. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011, Theorem 3.4
   and the remarks after it. With these constants Theorem 3.4 needs ln(3 / beta), not ln(1 / beta).
"""

from __future__ import annotations

import math

from quorate import _validate

__all__ = ["agnostic_occam_users", "concise_rounds", "realizable_occam_users"]


def agnostic_occam_users(
    *, log_size: float, alpha: float, beta: float, epsilon: float = math.inf
) -> int:
    r"""Return how many users, one record each, the exponential mechanism needs for ``alpha``.

    Theorem 3.4 of [1]_ with its constants: let :math:`\rho = \alpha/3`. All errors are within
    :math:`\rho` of their means except with probability :math:`2|H|e^{-2n\alpha^2/9}`, and the
    choice is worse by at most :math:`\rho` except with probability :math:`|H| e^{-\varepsilon
    n\alpha/6}`. Both are at most their share of ``beta`` for :math:`n \ge (\ln|H| +
    \ln(3/\beta))\max(9/(2\alpha^2), 6/(\varepsilon\alpha))`. Without ``epsilon`` this is the
    classical bound.

    >>> agnostic_occam_users(log_size=math.log(1000), alpha=0.1, beta=0.05, epsilon=1.0)
    4951
    """
    _check(log_size, alpha, beta, epsilon)
    most = max(9 / (2 * alpha**2), 6 / (epsilon * alpha))
    return math.ceil((log_size + math.log(3 / beta)) * most)


def realizable_occam_users(
    *, log_size: float, alpha: float, beta: float, epsilon: float = math.inf
) -> int:
    r"""Return how many users with one record a choice needs to be within ``alpha``, if a rule fits.

    A rule of error :math:`\alpha` or more has an observed error below :math:`\alpha/2` with
    probability at most :math:`e^{-n\alpha/8}` (Chernoff). If another rule makes no mistakes, the
    exponential mechanism chooses one with observed error :math:`\alpha/2` or more with probability
    at most :math:`e^{-\varepsilon n\alpha/4}`. Over all rules both are at most ``beta / 2`` for
    :math:`n \ge (\ln|H| + \ln(2/\beta))\max(8/\alpha, 4/(\varepsilon\alpha))`. This is the
    :math:`1/\alpha` of the remark after Theorem 3.4 of [1]_.

    >>> realizable_occam_users(log_size=math.log(1000), alpha=0.1, beta=0.05, epsilon=1.0)
    848
    """
    _check(log_size, alpha, beta, epsilon)
    return math.ceil((log_size + math.log(2 / beta)) * max(8 / alpha, 4 / (epsilon * alpha)))


def concise_rounds(
    *, log_sizes: list[float], alpha: float, beta: float, epsilon: float
) -> list[tuple[int, int]]:
    r"""Return, for each class in turn, how many users choose a rule and how many test it.

    Round j may fail with probability :math:`\beta/2^{j+1}`. Half of this is for a choice that does
    not reach error :math:`\alpha/2` although a rule of the class fits, half for a wrong test of the
    chosen rule. The test compares a noisy error of s users with :math:`3\alpha/4`. The observed
    error is within :math:`\alpha/8` by Hoeffding's inequality, and the noise within
    :math:`\alpha/8` by its tail.

    >>> concise_rounds(log_sizes=[math.log(10), math.log(10**6)], alpha=0.2, beta=0.1, epsilon=1.0)
    [(535, 4061), (1512, 4615)]
    """
    rounds = []
    for place, log_size in enumerate(log_sizes):
        share = beta / 2 ** (place + 1)
        choose = realizable_occam_users(
            log_size=log_size, alpha=alpha / 2, beta=share / 2, epsilon=epsilon
        )
        tail = math.log(8 / share)
        test = math.ceil(tail * max(32 / alpha**2, 8 / (epsilon * alpha)))
        rounds.append((choose, test))
    return rounds


def _check(log_size: float, alpha: float, beta: float, epsilon: float) -> None:
    _validate.non_negative(log_size=log_size)
    _validate.probability(alpha=alpha, beta=beta)
    if epsilon != math.inf:
        _validate.positive(epsilon=epsilon)
