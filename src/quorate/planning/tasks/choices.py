r"""The common part of choices among hypotheses: how clearly users prefer the better one.

Take two hypotheses, one of which errs more often by an *excess*. The records of a user favour one
of them, or favour neither. The *share* of users with a preference and the *margin* (the share who
prefer the better one minus the share who prefer the other) decide whether n users suffice. Near the
best hypothesis there are usually other good ones, so the noise of the private choice and the
fluctuation of the votes hardly depend on the number of hypotheses:

.. math:: n\,\text{margin}(\alpha) \ge A/\varepsilon + Z\sqrt{n\,\text{share}(\alpha)}.

The margin against a bad hypothesis must outweigh all hypotheses together, which needs the logarithm
of their number: :math:`n\,\text{margin}(1/2) \ge C\ln(K/\beta)/\varepsilon`. The constants below
were measured on dense classes (stumps, intervals, ladders of losses).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quorate.learners.generalization import agnostic_users
from quorate.learners.occam import agnostic_occam_users
from quorate.planning.learner_bounds import item_learner_records, user_learner_users
from quorate.planning.limits import (
    corollary_3_users,
    fano_users,
    fixed_users_error,
    fixed_users_floor,
    heterogeneity_penalty,
    packing_users,
    two_point_users,
)
from quorate.planning.packings import agnostic_packing, packing_floor
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import PlanTask

__all__ = [
    "VoteModel",
    "further_learners",
    "further_rule_limits",
    "label_divergence",
    "label_preference",
    "normal_preference",
    "people_excess",
    "published_agnostic",
    "regret_excess",
    "rule_limit",
    "unavoidable_excess",
]

_HALVINGS = 40  # machine: a bisection to 2^-40
_LARGE = 2000.0
# Measured: excess of capped regret x n epsilon = this ln(1/beta) + this ln(options).
_REGRET_DOUBT = 1.5
_REGRET_OPTION = 0.4
# Along a line the loss rises to both sides of the best place, and its noise is exponential.
_LINE_DOUBT = 1.15
# Measured on real people: how much less than this many single records they are worth.
_PEOPLE = 1.0


def label_preference(excess: float, *, records: int, error_level: float) -> tuple[float, float]:
    """Return margin and share between the best rule and one whose error is larger by ``excess``.

    Where two rules differ, the better one errs with probability ``error_level``, so they differ on
    a share excess / (1 - 2 error_level) of the records. The numbers of a user's records for and
    against are nearly independent Poisson variables.

    >>> margin, share = label_preference(0.1, records=1, error_level=0.0)
    >>> round(margin, 4), round(share, 4)
    (0.0952, 0.0952)
    >>> label_preference(0.1, records=100, error_level=0.2)[0] > 0.95
    True
    """
    from scipy.special import chndtr

    differ = records * excess / (1.0 - 2.0 * error_level)
    right, wrong = differ * (1.0 - error_level), differ * error_level
    if wrong == 0:
        return -math.expm1(-right), -math.expm1(-right)
    if differ > _LARGE:
        return normal_preference((right - wrong) / math.sqrt(differ))
    # P[X > Y] for Poisson X and Y is a non-central chi-square with two degrees of freedom.
    better = float(chndtr(2.0 * right, 2.0, 2.0 * wrong))
    worse = float(chndtr(2.0 * wrong, 2.0, 2.0 * right))
    return better - worse, better + worse


def normal_preference(signal: float) -> tuple[float, float]:
    """Return margin and share if a user's difference is normal with mean ``signal`` deviations.

    >>> round(normal_preference(1.0)[0], 4)
    0.6827
    """
    return math.erf(signal / math.sqrt(2.0)), 1.0


@dataclass(frozen=True, kw_only=True)
class VoteModel:
    """The constants of a private choice by users' votes.

    Attributes
    ----------
    certainty, per_option : float
        A = certainty ln(1/beta) + per_option ln(K).
    everything : float
        C, for the term of all hypotheses together.
    fluctuation : float
        Z = fluctuation sqrt(ln(1/beta)).

    Examples
    --------
    >>> from functools import partial
    >>> votes = VoteModel()
    >>> known = dict(users=300, epsilon=1.0, options=1000, beta=0.1, largest=0.4)
    >>> clear = partial(label_preference, records=16, error_level=0.1)
    >>> votes.excess(clear, **known) < 0.01
    True
    """

    certainty: float = 3.2
    per_option: float = 0.4
    everything: float = 4.0
    fluctuation: float = 0.5

    def excess(
        self,
        preference: Callable[[float], tuple[float, float]],
        *,
        users: int,
        epsilon: float,
        options: int,
        beta: float,
        largest: float,
    ) -> float:
        """Return the smallest excess error that the votes can detect, at most ``largest``.

        ``preference`` maps an excess to margin and share.
        """
        doubt, many = math.log(1.0 / beta), math.log(options)
        if users * preference(largest)[0] < self.everything * (many + doubt) / epsilon:
            return largest
        noise = (self.certainty * doubt + self.per_option * many) / epsilon
        fluctuation = self.fluctuation * math.sqrt(doubt)

        def is_separated(excess: float) -> bool:
            margin, share = preference(excess)
            return users * margin >= noise + fluctuation * math.sqrt(users * share)

        if not is_separated(largest):
            return largest
        low, high = 0.0, largest
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if is_separated(middle) else (middle, high)
        return high


def regret_excess(
    *,
    reach: float,
    options: int | None,
    beta: float,
    records: int,
    share: Fraction = Fraction(1, 2),
) -> float:
    r"""Return a bound on the excess of a choice by (capped) regret, for all users.

    ``reach`` is users x epsilon, or twice that under addition and removal; ``share`` is that of
    :class:`~quorate.learners.scores.CappedRegret`. With a cap at a share c of the records, an
    excess of a lowers the weight of a rule by :math:`e^{-n\varepsilon a/2c}`. So the excess is at
    most :math:`2c\ln(K/\beta)/(n\varepsilon)` for any K rules. Near the best rule there are other
    good ones, so measured errors depend less on K; for ordered classes (``options`` is ``None``)
    hardly at all.

    >>> round(regret_excess(reach=1000.0, options=None, beta=0.1, records=10), 4)
    0.0032
    """
    if options is None:
        doubt = _LINE_DOUBT * math.log(1.0 / beta)
    else:
        doubt = _REGRET_DOUBT * math.log(1.0 / beta) + _REGRET_OPTION * math.log(options)
    cap = min(1.0, float(share) + 1.0 / records)
    return 2.0 * cap * doubt / reach


def people_excess(
    *, users: int, records: int, between: float, error_level: float, beta: float
) -> float:
    r"""Return the excess error of a choice without privacy, for people who differ.

    As for a mean, records of one user replace people only in part: n users with a share ``between``
    of the variance between them are worth ``N = n / (between + (1 - between) / records)`` records.
    If the best rule errs with probability :math:`\eta`, rules can be distinguished up to an excess
    of :math:`\ln(1/\beta)/(N (1 - 2\eta)^2)`, and up to :math:`\sqrt{\ln(1/\beta)/2N}` in any case.

    >>> known = dict(users=2000, records=3, between=0.5, beta=0.1)
    >>> [round(people_excess(error_level=level, **known), 4) for level in (0.1, 0.4, 0.45)]
    [0.0012, 0.0192, 0.0196]
    """
    shrunk = between + (1.0 - between) / records
    spread = _PEOPLE * math.log(1.0 / beta) * shrunk / users
    return min(spread / (1.0 - 2.0 * error_level) ** 2, math.sqrt(spread / 2.0))


def label_divergence(excess: float, *, error_level: float) -> tuple[float, float]:
    """Return divergence and distance, per record, of two populations with different best rules.

    The rules differ on a share p = excess / (1 - 2 error_level) of the records, where each has the
    error ``error_level`` in its own population.

    >>> label_divergence(0.1, error_level=0.0)
    (inf, 0.1)
    """
    share = min(1.0, excess / (1.0 - 2.0 * error_level))
    distance = share * (1.0 - 2.0 * error_level)
    if error_level == 0:
        return math.inf, distance
    return distance * math.log((1.0 - error_level) / error_level), distance


def unavoidable_excess(*, users: int, records: int, error_level: float, beta: float) -> float:
    """Return the excess below which two rules cannot be distinguished, even without privacy.

    The sampling term of :func:`rule_limit`: n m records of :func:`label_divergence` must add up to
    ln(1 / (4 beta)).

    >>> round(unavoidable_excess(users=10, records=10, error_level=0.1, beta=0.05), 4)
    0.0073
    """
    if error_level == 0:
        return 0.0
    doubt = max(0.0, math.log(1.0 / (4.0 * beta)))
    return doubt / (users * records * math.log((1.0 - error_level) / error_level))


def rule_limit(
    task: PlanTask, *, epsilon: float, error: float, error_level: float, vc: int, log_places: float
) -> PublishedBound:
    """Return how many users any learner of rules needs, at the given error of the best rule.

    ``log_places`` is the logarithm of the number of populations that have no right rule in common
    for any error below a half (for cut-offs, their number).
    """
    divergence, distance = label_divergence(error, error_level=error_level)
    bounds = {
        "Theorem 1 of Acharya et al. (2021)": two_point_users(
            divergence=divergence,
            distance=distance,
            delta=task.delta,
            records=task.records,
            epsilon=epsilon,
            beta=task.beta,
            relation=task.relation,
        ),
        "Theorem 9 of Levy et al. (2021)": float(
            fixed_users_floor(
                epsilon=epsilon, delta=task.delta, beta=task.beta, relation=task.relation
            )
        ),
    }
    if task.delta == 0 and error < 0.5 - error_level:
        bounds["Lemma 39 (packing) of Ghazi et al. (2023)"] = packing_users(
            log_alternatives=log_places, epsilon=epsilon, beta=task.beta, relation=task.relation
        )
    if task.delta == 0 and vc >= 16 and 8.0 * error <= 1.0 - 2.0 * error_level and error_level > 0:
        bounds["Theorem 40 of Ghazi et al. (2023)"] = fano_users(
            log_alternatives=vc / 8.0,
            divergence=8.0 * divergence,
            records=task.records,
            epsilon=epsilon,
            beta=task.beta,
            relation=task.relation,
        )
    theorem = max(bounds, key=bounds.__getitem__)
    return PublishedBound(
        users=max(1.0, bounds[theorem]),
        theorem=theorem,
        holds=True,
        note="for the hardest data with this error of the best rule",
    )


def published_agnostic(
    task: PlanTask, *, epsilon: float, error: float, vc: int, log_size: float
) -> PublishedBound:
    """Return the number of users that suffices for an agnostic learner, by theorems.

    One record per user: Theorem 3.4 of Kasiviswanathan et al., with ln(3/beta). The function also
    evaluates Theorem 4.6 of Li, Wang, Ye step by step. Lemma 4.1 turns an excess of alpha into a
    gap of sqrt(m) alpha / 700 in the share of users with more than t mistakes. By Lemma 4.3 all
    shares are within a quarter of this gap. The exponential mechanism may use another quarter.
    """
    beta = task.beta
    if task.records == 1:
        users = float(
            agnostic_occam_users(log_size=log_size, alpha=error, beta=beta, epsilon=epsilon)
        )
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


def _per_rule(log_size: float, beta: float) -> float:
    """Return the factor 6 ln(3 K / beta) of Theorem 3.4 of Kasiviswanathan et al."""
    return 6.0 * (log_size + math.log(3.0 / beta))


def further_learners(
    task: PlanTask, *, epsilon: float, error: float, vc: int, log_size: float
) -> tuple[PublishedBound, ...]:
    """Return further theorems about how many users suffice for an agnostic learner.

    Theorems 3.4 and 4.6 of Li, Wang, Ye with all constants of their proofs, and, with delta,
    Corollary 3 of Ghazi et al. (2023) around the learner of Kasiviswanathan et al.
    """
    whole: dict[str, Any] = {
        "vc_dimension": vc,
        "log_size": log_size,
        "epsilon": epsilon,
        "alpha": error,
        "beta": task.beta,
    }
    if task.records == 1:
        proved, number = item_learner_records(**whole), "3.4"
    else:
        proved, number = user_learner_users(records=task.records, **whole), "4.6"
    distance = error / heterogeneity_penalty(
        bound=1.0, users=math.ceil(proved), records=task.records, distance=1.0
    )
    found = [
        PublishedBound(
            users=proved,
            theorem=f"Theorem {number} of Li, Wang, Ye (2024)",
            holds=True,
            note="every constant of the proof; people who differ by "
            f"{distance:.1g} in total variation at most double the error (Theorem 10 of Levy et "
            "al. (2021))",
        )
    ]
    if task.delta > 0 and task.records > 1:
        each = _per_rule(log_size, task.beta)
        found.append(
            PublishedBound(
                users=corollary_3_users(
                    private_records=each / error,
                    statistical_records=each / error**2,
                    power=0.0,
                    epsilon=epsilon,
                    delta=task.delta,
                    records=task.records,
                ),
                theorem="Corollary 3 of Ghazi et al. (2023)",
                holds=False,
                note="the learner of Kasiviswanathan et al. inside; constants 1",
            )
        )
    return tuple(found)


def further_rule_limits(
    task: PlanTask, *, epsilon: float, error: float, error_level: float, vc: int
) -> tuple[PublishedBound, ...]:
    """Return further lower bounds for all learners of rules.

    They are those of appendix A of Levy et al., for two populations with opposite labels, and of
    Theorem 40 of Ghazi et al. (2023), whatever the error of the best rule is.
    """
    few = smallest_users(
        lambda n: fixed_users_error(
            largest=1.0 - 2.0 * error_level,
            users=n,
            epsilon=epsilon,
            delta=task.delta,
            relation=task.relation,
        ),
        error,
    )
    found = [
        PublishedBound(
            users=None if few is None else float(few),
            theorem="Appendix A of Levy et al. (2021)",
            holds=True,
            note="this excess in the mean, however many records people hold",
        )
    ]
    packing = agnostic_packing(vc, error) if task.delta == 0 else None
    if packing is not None:
        users = packing_floor(
            packing,
            records=task.records,
            epsilon=epsilon,
            beta=task.beta,
            relation=task.relation,
        )
        found.append(
            PublishedBound(
                users=users,
                theorem="Theorem 40 of Ghazi et al. (2023)",
                holds=True,
                note="for the hardest data, whatever the error of the best rule",
            )
        )
    return tuple(found)
