r"""What no method can beat, and what simpler ways cost: the theorems behind the planner.

Every function evaluates one theorem with explicit constants. Where a paper states only an order,
the constant comes from its proof, or from the proof of the inequality it cites.

* the floor for a fixed number of users: Theorem 9 of [U]_;
* heterogeneous users: Theorem 10 of [U]_;
* group privacy: Lemma 34 of [G]_;
* users needed by a class of a given representation dimension: Lemma 4 of [G]_ and its packing form;
* user-level Fano: Theorem 38 and Lemma 39 of [F]_, constants of Corollary 4 of [A]_;
* from hiding records to hiding users: Theorems 7 and 10 of [F]_; Lemma 19, Theorems 11 and 17,
  Corollary 3 and Observation 28 are in :mod:`quorate.conversion.translation`.

References
----------
.. [U] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845.
.. [G] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS 2021.
.. [F] Ghazi et al. User-level differential privacy with few examples per user. NeurIPS 2023.
.. [A] Acharya, Sun, Zhang. Differentially private Assouad, Fano, and Le Cam. ALT 2021.
"""

from __future__ import annotations

import math

from quorate import _validate
from quorate.conversion.translation import item_to_user, item_to_user_users, subsampled
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.planning.solve import smallest_users

__all__ = [
    "fano_users",
    "fixed_users_failure",
    "fixed_users_floor",
    "group_privacy",
    "heterogeneity_penalty",
    "item_to_user",
    "item_to_user_users",
    "packing_users",
    "replacement",
    "representation_users",
    "subsampled",
    "two_point_users",
]


_LARGEST_EXPONENT = 700.0


def replacement(
    *, epsilon: float, delta: float = 0.0, relation: Relation = Relation.REPLACE
) -> tuple[float, float]:
    """Return what a guarantee means when one user is replaced.

    A replacement is a removal and an addition: (2 epsilon, (1 + e^epsilon) delta).

    >>> replacement(epsilon=0.5, relation=Relation.ADD_REMOVE)
    (1.0, 0.0)
    """
    if relation is Relation.REPLACE:
        return epsilon, delta
    return 2.0 * epsilon, (1.0 + math.exp(min(epsilon, _LARGEST_EXPONENT))) * delta


def fixed_users_failure(
    *, users: int, epsilon: float, delta: float = 0.0, relation: Relation = Relation.REPLACE
) -> float:
    """Bound from below how often any method confuses two crowds, however many records they hold.

    Theorem 9 of [U]_: all users of one crowd hold +B, of the other -B. The crowds differ in all n
    users, so by group privacy the larger failure probability is at least
    (1 - n delta e^(n epsilon)) / (1 + e^(n epsilon)).

    >>> round(fixed_users_failure(users=3, epsilon=0.5), 4)
    0.1824
    >>> fixed_users_failure(users=100, epsilon=1.0, delta=1e-6)
    0.0
    """
    _validate.positive_integer(users=users)
    _validate.positive(epsilon=epsilon)
    _validate.delta(delta=delta)
    epsilon, delta = replacement(epsilon=epsilon, delta=delta, relation=relation)
    exponent = users * epsilon
    if exponent > _LARGEST_EXPONENT:
        return 0.0
    growth = math.exp(exponent)
    return max(0.0, (1.0 - users * delta * growth) / (1.0 + growth))


def fixed_users_floor(
    *, epsilon: float, delta: float = 0.0, beta: float, relation: Relation = Relation.REPLACE
) -> int:
    """Return the users without which no method fails less often than ``beta`` (Theorem 9 of [U]_).

    >>> fixed_users_floor(epsilon=0.5, beta=0.1)
    5
    """
    _validate.probability(beta=beta)
    known = {"epsilon": epsilon, "delta": delta}
    found = smallest_users(lambda n: fixed_users_failure(users=n, relation=relation, **known), beta)
    return 1 if found is None else found


def heterogeneity_penalty(*, bound: float, users: int, records: int, distance: float) -> float:
    """Bound the excess loss that different users add (Theorem 10 of [U]_).

    If every user's distribution is within total variation ``distance`` of a common one and losses
    are at most ``bound``, the excess loss on any user's own distribution grows by at most
    B (m n + 2) distance.

    >>> round(heterogeneity_penalty(bound=1.0, users=100, records=10, distance=1e-5), 6)
    0.01002
    """
    _validate.positive(bound=bound)
    _validate.positive_integer(users=users, records=records)
    _validate.fraction(distance=distance)
    return bound * (records * users + 2) * distance


def group_privacy(*, epsilon: float, delta: float = 0.0, size: int) -> tuple[float, float]:
    """Return the (epsilon, delta) for single records that hides groups of ``size`` records.

    Lemma 34 of [G]_: a group of k pays k epsilon and delta (e^(k epsilon) - 1) / (e^epsilon - 1).

    >>> group_privacy(epsilon=1.0, size=10)
    (0.1, 0.0)
    """
    _validate.positive(epsilon=epsilon)
    _validate.delta(delta=delta)
    _validate.positive_integer(size=size)
    each = epsilon / size
    if delta == 0:
        return each, 0.0
    return each, delta * math.exp(_log_expm1(each) - _log_expm1(epsilon))


def _log_expm1(x: float) -> float:
    """Return ln(e^x - 1) without overflow."""
    return x + math.log(-math.expm1(-x))


def packing_users(
    *, log_alternatives: float, epsilon: float, beta: float, relation: Relation = Relation.REPLACE
) -> float:
    """Return the users needed to tell W answers apart under pure privacy, whatever the records.

    The first term of Lemma 39 of [F]_, with its constant: if each of W crowds has its own set of
    right answers, group privacy over all n users gives
    (W - 1) (1 - beta) e^(-n epsilon) <= beta. Under addition or removal the common neighbour is the
    empty crowd, and W (1 - beta) e^(-n epsilon) <= 1.

    >>> round(packing_users(log_alternatives=32 * math.log(2), epsilon=1.0, beta=0.1), 1)
    24.4
    """
    _validate.non_negative(log_alternatives=log_alternatives)
    _validate.positive(epsilon=epsilon)
    _validate.probability(beta=beta)
    if log_alternatives <= math.log(2):
        return 0.0
    if relation is Relation.ADD_REMOVE:
        return max(0.0, (log_alternatives + math.log1p(-beta)) / epsilon)
    others = _log_expm1(log_alternatives)
    return max(0.0, (others + math.log1p(-beta) - math.log(beta)) / epsilon)


def representation_users(*, dimension: float, epsilon: float, delta: float = 0.0) -> float:
    """Return the users needed by a class of this representation dimension (Lemma 4 of [G]_).

    A learner for n users that errs at most alpha with probability 1/2 gives, by its outputs on
    public data, 100 ceil(e^(epsilon n)) hypotheses that represent the class
    (:class:`~quorate.stability.from_learner.LearnerRepresentation`); the class has no
    representation smaller than ``dimension`` nats at (alpha, 0.01), so
    n >= ln(e^dimension / 100 - 1) / epsilon. The proof needs n <= 0.01 ln(1/delta) / epsilon, so
    with delta > 0 the smaller of the two is all that is shown; its 0.01 is about delta alone.

    >>> round(representation_users(dimension=22.2, epsilon=0.5), 1)
    35.2
    >>> round(representation_users(dimension=22.2, epsilon=0.5, delta=1e-6), 2)
    0.28
    """
    _validate.positive(dimension=dimension, epsilon=epsilon)
    _validate.delta(delta=delta)
    above = dimension - math.log(100.0)
    pure = _log_expm1(above) / epsilon if above > math.log(2.0) else 0.0
    if delta == 0:
        return pure
    return min(pure, -0.01 * math.log(delta) / epsilon)


def fano_users(
    *,
    log_alternatives: float,
    divergence: float,
    records: int,
    epsilon: float,
    beta: float,
    relation: Relation = Relation.REPLACE,
) -> float:
    """Return the users needed by any pure method (user-level Fano, Lemma 39 of [F]_).

    W distributions with disjoint right answers and Kullback-Leibler divergences of at most
    ``divergence`` a record. Users see products of m records, so divergences grow to m times and
    distances to min(1, sqrt(m divergence / 2)) by Pinsker. Constants of Corollary 4 of [A]_: the
    failure probability is at least 1 - (n m divergence + ln 2) / ln W and at least
    0.4 min(1, W e^(-10 epsilon n distance)).

    >>> known = dict(log_alternatives=50.0, divergence=0.01, epsilon=1.0, beta=0.1)
    >>> fano_users(records=1, **known) > 10 * fano_users(records=100, **known)
    True
    """
    _validate.positive(log_alternatives=log_alternatives, divergence=divergence, epsilon=epsilon)
    _validate.positive_integer(records=records)
    _validate.probability(beta=beta)
    sampling = ((1.0 - beta) * log_alternatives - math.log(2.0)) / (records * divergence)
    distance = min(1.0, math.sqrt(records * divergence / 2.0))
    rate, _ = replacement(epsilon=epsilon, relation=relation)
    privacy = (log_alternatives + math.log(0.4 / beta)) / (10.0 * rate * distance)
    floor = packing_users(
        log_alternatives=log_alternatives, epsilon=epsilon, beta=beta, relation=relation
    )
    return max(sampling, privacy if beta < 0.4 else 0.0, floor, 0.0)


def two_point_users(
    *,
    divergence: float,
    records: int,
    epsilon: float,
    beta: float,
    delta: float = 0.0,
    distance: float | None = None,
    relation: Relation = Relation.REPLACE,
) -> float:
    """Return the users needed to tell two distributions apart, with or without delta.

    ``divergence`` (Kullback-Leibler) and ``distance`` (total variation) are those of one record;
    without ``distance`` Pinsker's sqrt(divergence / 2) takes its place. Without privacy failures of
    both kinds add up to at least e^(-n m divergence) / 2 (Bretagnolle and Huber). With privacy the
    larger one is at least (0.9 e^(-10 epsilon D) - 10 D delta) / 2 for D users that differ, D being
    n times the distance of two users (Theorem 1 of [A]_).

    >>> known = dict(divergence=0.01, epsilon=1.0, delta=0.0, beta=0.05)
    >>> round(two_point_users(records=1, **known))
    161
    """
    _validate.positive(epsilon=epsilon)
    _validate.positive_integer(records=records)
    _validate.probability(beta=beta)
    _validate.delta(delta=delta)
    if not divergence > 0:
        raise ParameterError(f"Expected divergence > 0, got divergence={divergence!r}.")
    epsilon, delta = replacement(epsilon=epsilon, delta=delta, relation=relation)
    sampling = math.log(1.0 / (4.0 * beta)) / (records * divergence)
    apart = min(1.0, math.sqrt(records * divergence / 2.0))
    if distance is not None:
        _validate.fraction(distance=distance)
        apart = min(apart, records * distance)
    # With d users that differ, 0.45 e^(-10 epsilon d) - 5 d delta <= beta must hold.
    differing = max(0.0, math.log(0.45 / beta) / (10.0 * epsilon))
    if delta > 0:
        shifted = beta + 5.0 * differing * delta
        differing = max(0.0, math.log(0.45 / shifted) / (10.0 * epsilon))
    return max(sampling, differing / apart, 0.0)
