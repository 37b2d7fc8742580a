"""Inversion of an error model: how many users, or which epsilon, a target error needs.

The error decreases in users and in epsilon, so both are found by bisection. The answers agree with
each other: the computed number of users reaches the error, and one user fewer does not.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["EPSILONS", "MOST_USERS", "first_users", "smallest_epsilon", "smallest_users"]

MOST_USERS = 10**13  # public: the largest answer
"""More users than there are; an error not reached by then is out of reach."""

EPSILONS = (1e-6, 1e3)  # public: the smallest and largest answer
"""Between which epsilons an answer is looked for."""

_HALVINGS = 60  # machine: floats have 53 bits


def smallest_users(error: Callable[[int], float], target: float) -> int | None:
    """Return the smallest number of users whose error is at most ``target``, or ``None``.

    >>> smallest_users(lambda n: 1 / n, 0.01)
    100
    >>> smallest_users(lambda n: 1.0, 0.5) is None
    True
    """
    if error(1) <= target:
        return 1
    high = 2
    while error(high) > target:
        high *= 2
        if high > MOST_USERS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if error(middle) <= target:
            high = middle
        else:
            low = middle
    return high


def first_users(holds: Callable[[int], bool]) -> int:
    """Return the smallest number of users that satisfies a condition; at most ``MOST_USERS``.

    >>> first_users(lambda n: n >= 200)
    200
    """
    found = smallest_users(lambda n: float(not holds(n)), 0.0)
    return MOST_USERS if found is None else found


def smallest_epsilon(error: Callable[[float], float], target: float) -> float | None:
    """Return the smallest epsilon whose error is at most ``target``, or ``None``.

    It is rounded up, so that it does reach the target.

    >>> round(smallest_epsilon(lambda epsilon: 1 / epsilon, 0.5), 9)
    2.0
    >>> smallest_epsilon(lambda epsilon: 1.0, 0.5) is None
    True
    """
    low, high = EPSILONS
    if error(high) > target:
        return None
    if error(low) <= target:
        return low
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        if error(middle) <= target:
            high = middle
        else:
            low = middle
    return high
