r"""User-level guarantees from record-level privacy: the paper's formulas with constants (F2).

They use neither data nor noise, and give numbers for plans and comparisons. :math:`n_1(\varepsilon,
\delta)` is the number of single records that a record-level method needs. Where the paper writes
O(.) the constant 1 is used, which makes the result look better than it is. Where its proof states
the constants, they are used and the docstring says so.

References
----------
.. [F] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
   examples per user. NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from quorate import _validate
from quorate.core.noise.truncated_laplace import published_reach
from quorate.exceptions import ParameterError

__all__ = [
    "corollary_3_users",
    "crossover_records",
    "deletion_reach",
    "item_to_user",
    "item_to_user_users",
    "local_deletion",
    "one_record_each",
    "solved_users",
    "subsampled",
    "super_users",
    "theorem_11_users",
    "utility_budget",
]

Needed = Callable[[float, float], float]
"""From (epsilon, delta) to the number of single records that a method needs."""

_MOST_USERS = 10**18  # machine: integers of 64 bits


def subsampled(*, epsilon: float, delta: float = 0.0, rate: float) -> tuple[float, float]:
    """Return the privacy of running on a random share of the records (Theorem 7 of [F]_).

    It is a fixed number of records, drawn without replacement; neighbours differ in one replaced
    record.

    >>> tuple(round(x, 4) for x in subsampled(epsilon=1.0, delta=1e-6, rate=0.1))
    (0.1586, 0.0)
    """
    _validate.positive(epsilon=epsilon)
    _validate.delta(delta=delta)
    _validate.probability(rate=rate)
    return math.log1p(rate * math.expm1(epsilon)), rate * delta


def deletion_reach(*, epsilon: float, delta: float) -> int:
    r"""Return the :math:`\kappa` of Algorithm 1 of [F]_; four times as many users are left out.

    >>> deletion_reach(epsilon=1.0, delta=1e-6)
    48
    """
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    step = epsilon / 3
    return published_reach(step, delta / (math.exp(2 * step) + math.exp(step) + 2))


def local_deletion(
    *, epsilon: float, delta: float, users: int, deleted: int, records: int, beta: float
) -> tuple[float, float]:
    r"""Return how close the results of a record-level method are if ``deleted`` users are left out.

    Theorem 17 of [F]_ with the constants of its proof: with probability :math:`1-\beta` over the
    records, leaving out any two sets of r users gives laws within this distance. It is the radius
    of Theorem 13 on r m records
    (:func:`~quorate.papers.conversion.perfect_generalisation.published_radius`) at :math:`\beta /
    \binom{n}{r}^2`, or group privacy of the r m records, whichever is smaller.

    >>> near = local_deletion(
    ...     epsilon=1e-6, delta=1e-12, users=1000, deleted=192, records=100, beta=0.01
    ... )
    >>> round(near[0], 3)
    0.019
    """
    from quorate.papers.conversion.perfect_generalisation import published_radius

    _validate.positive_integer(users=users, deleted=deleted, records=records)
    _validate.probability(beta=beta)
    if deleted > users:
        raise ParameterError(f"Expected at most {users} deleted users, got {deleted}.")
    choices = math.lgamma(users + 1) - math.lgamma(deleted + 1) - math.lgamma(users - deleted + 1)
    return published_radius(
        epsilon=epsilon,
        delta=delta,
        records=deleted * records,
        log_inverse_beta=2 * choices - math.log(beta),
    )


def utility_budget(
    *, epsilon: float, delta: float, users: int, records: int, constant: float = 1.0
) -> tuple[float, float]:
    r"""Return the record-level privacy that Algorithm 1 needs (Lemma 19 of [F]_).

    It is :math:`\varepsilon' = \varepsilon/(c\kappa\sqrt{m\ln(nm/\delta)})` and :math:`\delta' =
    \delta/(c\kappa m)`.

    >>> budget = utility_budget(epsilon=1.0, delta=1e-6, users=1000, records=100)
    >>> tuple(f"{x:.3g}" for x in budget)
    ('0.000414', '2.08e-10')
    """
    _validate.positive(constant=constant)
    _validate.positive_integer(users=users, records=records)
    reach = deletion_reach(epsilon=epsilon, delta=delta)
    spread = math.sqrt(records * math.log(users * records / delta))
    return epsilon / (constant * reach * spread), delta / (constant * reach * records)


def item_to_user(*, epsilon: float, delta: float, records: int) -> tuple[float, float]:
    """Return the record-level (epsilon', delta') that protects users of m records.

    Theorem 10 of [F]_: epsilon' = epsilon^2 / (ln(1/delta) sqrt(m ln(m/delta))) and delta' of order
    delta epsilon / (m ln(1/delta)); constants 1. Group privacy divides by m instead of sqrt(m).

    >>> round(item_to_user(epsilon=1.0, delta=1e-6, records=10_000)[0], 7)
    0.0001508
    """
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    _validate.positive_integer(records=records)
    spread = math.log(1.0 / delta)
    each = epsilon**2 / (spread * math.sqrt(records * math.log(records / delta)))
    return each, delta * epsilon / (records * spread)


def item_to_user_users(*, item_records: float, epsilon: float, delta: float, records: int) -> float:
    """Return how many users of m records replace ``item_records`` single records.

    Theorem 10 of [F]_ with constants 1: ln(1/delta)/epsilon + item_records / m, where
    ``item_records`` is the number of records that the record-level method needs at the privacy of
    :func:`item_to_user`.

    >>> round(item_to_user_users(item_records=1e5, epsilon=1.0, delta=1e-6, records=100))
    1014
    """
    _validate.positive(item_records=item_records, epsilon=epsilon)
    _validate.probability(delta=delta)
    _validate.positive_integer(records=records)
    return math.log(1.0 / delta) / epsilon + item_records / records


def solved_users(
    needed: Needed, *, epsilon: float, delta: float, records: int, constant: float = 1.0
) -> int:
    r"""Return the number of users required by Theorem 10 of [F]_ by solving its inequality exactly.

    With (eps'', delta') of :func:`item_to_user` it is based on the smallest multiple N of m for
    which a method that needs :math:`n_1(\varepsilon'', \delta')` of N records, run on a sample, is
    as private as Lemma 19 requires. The number of users is N/m + 4 kappa.

    >>> solved_users(lambda e, d: 100 / e, epsilon=1.0, delta=1e-6, records=100)
    2656
    """
    target, target_delta = item_to_user(epsilon=epsilon, delta=delta, records=records)
    aside = 4 * deletion_reach(epsilon=epsilon, delta=delta)
    load = math.expm1(target) * needed(target, target_delta)

    def enough(kept: int) -> bool:
        allowed, _ = utility_budget(
            epsilon=epsilon, delta=delta, users=kept + aside, records=records, constant=constant
        )
        return load <= kept * records * math.expm1(allowed)

    low, high = 0, 1
    while not enough(high):
        if high > _MOST_USERS:
            raise ParameterError("Expected a method that some number of records is enough for.")
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high + aside


def theorem_11_users(needed: Needed, *, epsilon: float, delta: float, records: int) -> float:
    r"""Return the number of users required by Theorem 11 of [F]_ at one epsilon, constants 1.

    It is :math:`4\kappa + m^{-1/2} \ln(1/\delta)^{1.5} \varepsilon^{-1} n_1(\varepsilon, \delta')`.

    >>> round(theorem_11_users(lambda e, d: 100 / e, epsilon=1.0, delta=1e-6, records=100))
    706
    """
    _, inner = item_to_user(epsilon=epsilon, delta=delta, records=records)
    factor = math.pow(math.log(1 / delta), 1.5) / (epsilon * math.sqrt(records))
    return 4 * deletion_reach(epsilon=epsilon, delta=delta) + factor * needed(epsilon, inner)


def corollary_3_users(
    *,
    private_records: float,
    statistical_records: float,
    power: float,
    epsilon: float,
    delta: float,
    records: int,
) -> float:
    r"""Return the number of users required by Corollary 3 of [F]_, constants 1.

    It is for a record-level method that needs :math:`\ln(1/\delta)^c n_{\mathrm{priv}}/\varepsilon
    + n_{\mathrm{stat}}` records.

    >>> round(corollary_3_users(
    ...     private_records=100, statistical_records=1e4, power=0, epsilon=1.0, delta=1e-6,
    ...     records=100,
    ... ))
    627
    """
    _validate.non_negative(
        private_records=private_records, statistical_records=statistical_records, power=power
    )
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    _validate.positive_integer(records=records)
    spread = math.log(1 / delta)
    private = math.pow(spread, power + 1.5) * private_records
    private /= math.sqrt(records) * epsilon**2
    return private + statistical_records / records + spread / epsilon


def one_record_each(item_records: float) -> float:
    """Return how many users suffice if each contributes one record (Observation 28 of [F]_).

    >>> one_record_each(500.0)
    500.0
    """
    _validate.positive(item_records=item_records)
    return item_records


def super_users(item_records: float, *, records: int) -> int:
    r"""Return the users that *every* method needs: :math:`\lceil n_1/m \rceil`.

    Observation 28 of [F]_: m single records can be treated as one user, so fewer users would mean
    fewer records.

    >>> super_users(500.0, records=64)
    8
    """
    _validate.positive(item_records=item_records)
    _validate.positive_integer(records=records)
    return math.ceil(item_records / records)


def crossover_records(*, epsilon: float, delta: float) -> int:
    """Return the records per user from which Theorem 10 allows more than group privacy.

    It is computed by the formula, with constants 1. With the constants of an actual converter the
    crossover is far higher; see ``docs/item-to-user.md``.

    >>> crossover_records(epsilon=1.0, delta=1e-6)
    4231
    """
    low, high = 0, 1
    while item_to_user(epsilon=epsilon, delta=delta, records=high)[0] < epsilon / high:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        wins = item_to_user(epsilon=epsilon, delta=delta, records=middle)[0] >= epsilon / middle
        low, high = (low, middle) if wins else (middle, high)
    return high
