r"""Lower bounds for every method, and the errors of simpler methods (F2, F9, G12, U8).

They are the theorems behind the planner; every function evaluates one with explicit constants.
Where a paper states only an order, the constant comes from its proof, or from the proof of the
inequality it cites.

* the lower bound for a fixed number of users: Theorem 9 of [U]_, and its consequences in appendix A
  for means, convex losses and choices (U8);
* heterogeneous users: Theorem 10 of [U]_ (U8);
* means and convex losses: the lower bounds of Corollaries 1 and 5 and Theorem 6 of [U]_ (U8), with
  the constants of Lemma 6.7 of [K]_; finite classes, Theorem 8 of [U]_, are a packing of
  :mod:`quorate.planning.packings`;
* group privacy: Lemma 34 of [G]_;
* users needed by a class of a given representation dimension: Lemma 4 of [G]_ (G12) and its packing
  form;
* user-level Fano: Theorem 38 and Lemma 39 of [F]_ (F9), constants of Corollary 4 of [A]_;
* the conversion from item-level to user-level privacy (F2): Lemma 19, Theorems 10 and 11, Corollary
  3 and Observation 28 of [F]_, all from :mod:`quorate.papers.conversion.translation`;
* agnostic learners: :mod:`quorate.planning.learner_bounds`.

Every function here is used by some plan; a test checks this.

References
----------
.. [U] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845.
.. [G] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS 2021.
.. [F] Ghazi et al. User-level differential privacy with few examples per user. NeurIPS 2023.
.. [K] Kamath, Li, Singhal, Ullman. Privately learning high-dimensional distributions. COLT 2019,
   arXiv:1805.00216.
.. [A] Acharya, Sun, Zhang. Differentially private Assouad, Fano, and Le Cam. ALT 2021.
"""

from __future__ import annotations

import math

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.papers.conversion.translation import (
    corollary_3_users,
    item_to_user,
    item_to_user_users,
    super_users,
    theorem_11_users,
    utility_budget,
)
from quorate.planning.solve import smallest_users

__all__ = [
    "convex_floor",
    "corollary_3_users",
    "fano_users",
    "fixed_users_error",
    "fixed_users_failure",
    "fixed_users_floor",
    "group_privacy",
    "heterogeneity_penalty",
    "item_to_user",
    "item_to_user_users",
    "mean_floor",
    "packing_users",
    "replacement",
    "representation_users",
    "super_users",
    "theorem_11_users",
    "two_point_users",
    "utility_budget",
]


_LARGEST_EXPONENT = 700.0  # machine: floats end at e^709


def replacement(
    *, epsilon: float, delta: float = 0.0, relation: Relation = Relation.REPLACE
) -> tuple[float, float]:
    """Return the guarantee for replacing one user, given a guarantee for add or remove.

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
    """Return a lower bound on how often any method confuses two populations.

    It holds for any number of records per user.

    Theorem 9 of [U]_: all users of one population have the value +B, of the other -B. The data sets
    differ in all n users, so by group privacy the larger failure probability is at least (1 - n
    delta e^(n epsilon)) / (1 + e^(n epsilon)).

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
    """Return the users that any method needs to fail with at most ``beta`` (Theorem 9 of [U]_).

    >>> fixed_users_floor(epsilon=0.5, beta=0.1)
    5
    """
    _validate.probability(beta=beta)
    known = {"epsilon": epsilon, "delta": delta}
    found = smallest_users(lambda n: fixed_users_failure(users=n, relation=relation, **known), beta)
    return 1 if found is None else found


def fixed_users_error(
    *,
    largest: float,
    users: int,
    epsilon: float,
    delta: float = 0.0,
    relation: Relation = Relation.REPLACE,
) -> float:
    r"""Return a lower bound on any method's mean error, for any number of records (appendix A).

    The reductions are those of appendix A of [U]_. The method confuses the two populations of
    Theorem 9 with at least the probability of :func:`fixed_users_failure`, and then the error is at
    least ``largest``. For bounded and for convex losses this is the difference of the losses half
    way; for a mean it is half the distance of the populations. For a root mean squared error the
    root of the probability is needed, as :func:`mean_floor` does.

    >>> round(fixed_users_error(largest=2.0, users=3, epsilon=0.5), 4)
    0.3649
    """
    _validate.positive(largest=largest)
    return largest * fixed_users_failure(
        users=users, epsilon=epsilon, delta=delta, relation=relation
    )


def _high_dimensional(*, dimension: int, users: int, epsilon: float, delta: float) -> float:
    r"""Return a lower bound on the root mean squared error of a mean in many dimensions ([K]_).

    Users are normal with deviation 1.

    Lemma 6.7: with :math:`\delta \le \sqrt d/(48\sqrt2Rn\sqrt{\ln(48\sqrt2Rn/\sqrt d)})` and
    coordinates of the mean between -R and R, an error of :math:`\alpha \le R\sqrt{d/6}` needs
    :math:`n \ge d/(24\alpha\varepsilon)`. The smallest R that this error allows is used.
    """
    error = dimension / (24.0 * users * epsilon)
    radius = error * math.sqrt(6.0 / dimension)
    signal = max(math.e, 48.0 * math.sqrt(2.0) * radius * users / math.sqrt(dimension))
    return error if delta <= 1.0 / (signal * math.sqrt(math.log(signal))) else 0.0


def mean_floor(
    *,
    dimension: int,
    deviation: float,
    half_width: float,
    users: int,
    epsilon: float,
    delta: float = 0.0,
    relation: Relation = Relation.REPLACE,
) -> float:
    r"""Return a lower bound on any method's root mean squared error of a mean.

    It is for the hardest population.

    Users' mean records are normal with this ``deviation`` in each of d coordinates, around a mean
    in a box of this ``half_width``. The deviation is :math:`\sigma/\sqrt m` for m records of
    deviation :math:`\sigma` (Corollary 1 of [U]_), and :math:`\sigma` for one record (Corollary 5).
    The largest of

    * :math:`d/(n/s^2 + \pi^2/b^2)` for the squared error, due to sampling (van Trees' inequality
      for the prior :math:`\cos^2`);
    * :math:`ds/(24n\varepsilon)`, due to privacy (Lemma 6.7 of [K]_), as long as it fits into the
      box;
    * :math:`b\sqrt{dq}` for populations that cannot be distinguished (appendix A of [U]_), with q
      from :func:`fixed_users_failure`.

    >>> known = dict(dimension=100, deviation=0.1, half_width=100.0, epsilon=1.0, delta=1e-6)
    >>> [f"{mean_floor(users=n, **known):.2g}" for n in (5, 1000)]
    ['82', '0.032']
    """
    _validate.positive(deviation=deviation, half_width=half_width)
    _validate.positive_integer(dimension=dimension)
    failure = fixed_users_failure(users=users, epsilon=epsilon, delta=delta, relation=relation)
    sampling = dimension / (users / deviation**2 + (math.pi / half_width) ** 2)
    rate, chance = replacement(epsilon=epsilon, delta=delta, relation=relation)
    noise = _high_dimensional(dimension=dimension, users=users, epsilon=rate, delta=chance)
    inside = half_width * math.sqrt(dimension / 6.0)
    apart = half_width * math.sqrt(dimension * failure)
    return max(math.sqrt(sampling), min(deviation * noise, inside), apart)


def convex_floor(
    *,
    dimension: int,
    gradient_bound: float,
    gradient_spread: float,
    radius: float,
    users: int,
    records: int,
    epsilon: float,
    delta: float = 0.0,
    relation: Relation = Relation.REPLACE,
) -> float:
    r"""Return a lower bound on any method's mean excess loss, for the hardest convex loss.

    It is Theorem 6 of [U]_ for linear losses on a ball of radius R, with records of length at most
    G. The bound is the largest of:

    * :math:`RG/(5\sqrt{nm})`, due to sampling. Two populations of records :math:`\pm G` with
      probabilities :math:`(1 \pm \gamma)/2`, :math:`\gamma = 1/(2\sqrt{nm})`, have a total
      variation distance of at most 0.53 (Pinsker), and on one of them :math:`\gamma RG(1 - 0.53)`
      is lost (Le Cam);
    * :math:`RB/40`, due to privacy: Proposition 5 and Corollary 6 with :math:`B =
      d\sigma/(512n\varepsilon\sqrt m)`. Proposition 5 needs :math:`B + 10\sigma\sqrt d \le G`, so
      :math:`\sigma` is capped at :math:`G/(20\sqrt d)` and B at G/2. The effect of truncation, of
      order :math:`e^{-10d}`, is neglected;
    * RG times the probability of confusing two populations (appendix A).

    >>> known = dict(dimension=20, gradient_bound=1.0, gradient_spread=0.01, radius=1.0, records=10)
    >>> f"{convex_floor(users=1000, epsilon=1.0, delta=1e-6, **known):.2g}"
    '0.002'
    """
    _validate.positive(
        gradient_bound=gradient_bound, gradient_spread=gradient_spread, radius=radius
    )
    _validate.positive_integer(dimension=dimension, records=records)
    confused = fixed_users_error(
        largest=radius * gradient_bound,
        users=users,
        epsilon=epsilon,
        delta=delta,
        relation=relation,
    )
    sampling = radius * gradient_bound / (5.0 * math.sqrt(users * records))
    rate, chance = replacement(epsilon=epsilon, delta=delta, relation=relation)
    spread = min(gradient_spread, gradient_bound / (20.0 * math.sqrt(dimension)))
    noise = _high_dimensional(dimension=dimension, users=users, epsilon=rate, delta=chance)
    drift = spread * dimension / (512.0 * users * math.sqrt(records) * rate)
    private = radius * min(drift, gradient_bound / 2.0) / 40.0
    return max(sampling, private if noise > 0 else 0.0, confused)


def heterogeneity_penalty(*, bound: float, users: int, records: int, distance: float) -> float:
    """Bound the excess loss caused by differences between users (Theorem 10 of [U]_).

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
    """Return the (epsilon, delta) for single records that protects groups of ``size`` records.

    Lemma 34 of [G]_: a group of k has k epsilon and delta (e^(k epsilon) - 1) / (e^epsilon - 1).

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
    """Return the users needed to distinguish W answers under pure privacy, for any records.

    This is the first term of Lemma 39 of [F]_, with its constant. If each of W populations has its
    own set of right answers, group privacy over all n users gives (W - 1) (1 - beta) e^(-n epsilon)
    <= beta. Under add or remove the common neighbour is the empty data set, and W (1 - beta) e^(-n
    epsilon) <= 1.

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

    A learner for n users whose error is at most alpha with probability 1/2 gives, by its outputs on
    public data, 100 ceil(e^(epsilon n)) hypotheses that represent the class
    (:class:`~quorate.papers.stability.from_learner.LearnerRepresentation`). The class has no
    representation smaller than ``dimension`` nats at (alpha, 0.01), so n >= ln(e^dimension / 100 -
    1) / epsilon. The proof needs n <= 0.01 ln(1/delta) / epsilon, so with delta > 0 only the
    smaller of the two numbers is proved.

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
    """Return the users needed by any pure method (Fano: Theorem 38 and Lemma 39 of [F]_).

    It considers W distributions with disjoint sets of right answers and Kullback-Leibler
    divergences of at most ``divergence`` per record. Users have products of m records, so
    divergences are multiplied by m, and total variation distances become min(1, sqrt(m divergence /
    2)) by Pinsker. With the constants of Corollary 4 of [A]_ the failure probability is at least
    1 - (n m divergence + ln 2) / ln W and at least 0.4 min(1, W e^(-10 epsilon n distance)).

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
    """Return the users needed to distinguish two distributions, with or without delta.

    ``divergence`` (Kullback-Leibler) and ``distance`` (total variation) are those of one record;
    without ``distance`` Pinsker's sqrt(divergence / 2) is used instead. Without privacy the two
    failure probabilities add up to at least e^(-n m divergence) / 2 (Bretagnolle and Huber). With
    privacy the larger one is at least (0.9 e^(-10 epsilon D) - 10 D delta) / 2. Here D is the
    number of users that differ, n times the distance of two users (Theorem 1 of [A]_).

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
