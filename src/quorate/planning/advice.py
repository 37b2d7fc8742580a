"""Advice for a plan: which of users, records and epsilon to increase, and whether it helps.

The error is computed again with one number doubled at a time. This shows which number matters most,
and whether to collect more users or more records.
"""

from __future__ import annotations

from quorate.planning.plan import PublishedBound
from quorate.planning.tasks.base import PlanTask

__all__ = ["Doubling", "advise", "doublings", "warn"]

Doubling = tuple[str, float]
"""The parameter that is doubled, and the share of the error that remains."""

# Changes smaller than this are not worth a recommendation.
_NOTICEABLE = 0.02


def doublings(task: PlanTask, *, users: int, epsilon: float) -> tuple[Doubling, ...]:
    """Return the share of the error that is left after doubling each number, best first.

    >>> from quorate.planning.tasks.median import MedianTask
    >>> doublings(MedianTask(), users=2000, epsilon=1.0)[0][0]
    'users'
    """
    now = task.error(users, epsilon)
    if not now > 0:
        return ()
    after = {
        "users": task.error(2 * users, epsilon),
        "records": task.with_records(2 * task.records).error(users, epsilon),
        "epsilon": task.error(users, 2 * epsilon),
    }
    return tuple(sorted(((name, error / now) for name, error in after.items()), key=_share))


def _share(doubling: Doubling) -> float:
    return doubling[1]


def advise(task: PlanTask, *, users: int | None, epsilon: float | None) -> tuple[str, ...]:
    """Say what changes the error most, and whether to collect users or records.

    >>> from quorate.planning.tasks.median import MedianTask
    >>> print(advise(MedianTask(), users=2000, epsilon=1.0)[1])
    More users help more than more records of the same users.
    """
    if users is None or epsilon is None:
        return ()
    changes = doublings(task, users=users, epsilon=epsilon)
    if not changes or changes[0][1] > 1 - _NOTICEABLE:
        return ("Doubling users, records or epsilon alone hardly changes the error.",)
    first, *rest = (f"{name} {_said(share)}" for name, share in changes)
    left = dict(changes)
    lines = [f"Doubling {first}, " + ", ".join(f"doubling {text}" for text in rest) + "."]
    if left["users"] <= left["records"]:
        lines.append("More users help more than more records of the same users.")
    else:
        lines.append("More records of the same users are worth more than more users.")
    return tuple(lines)


def warn(
    task: PlanTask,
    *,
    users: int | None,
    needed: int | None,
    epsilon: float | None,
    error: float,
    lower: PublishedBound,
) -> str | None:
    """Return why a plan is hopeless, or ``None``.

    >>> from quorate.planning.tasks.median import MedianTask
    >>> nothing = PublishedBound(users=None, theorem="none", holds=False, note="")
    >>> known = dict(users=10, epsilon=1.0, error=0.01, lower=nothing)
    >>> print(warn(MedianTask(), needed=5000, **known))
    Hopeless: 5,000 users are needed, 10 are planned.
    """
    if epsilon is None:
        return "Hopeless: no epsilon is large enough, because the sampling error alone is larger."
    if needed is None or users is None:
        return "Hopeless: no number of users is large enough; more records per user may help."
    if lower.users is not None and lower.holds and users < lower.users:
        return f"Hopeless: {lower.theorem} proves that no method can do it with so few users."
    if task.error(users, epsilon) >= task.largest_error:
        if users < needed:
            return f"Hopeless: {needed:,} users are needed, {users:,} are planned."
        return "Hopeless: the error is no better than an answer that ignores the data."
    if 2 * users < needed and error < task.largest_error:
        return f"Far from quorate: {needed:,} users are needed, {users:,} are planned."
    return None


def _said(share: float) -> str:
    """Say what becomes of the error when something is doubled.

    >>> _said(0.71), _said(1.16), _said(0.9999)
    ('lowers the error by 29%', 'raises the error by 16%', 'hardly changes it')
    """
    percent = f"{abs(1 - share):.0%}"
    if percent == "0%":
        return "hardly changes it"
    return f"{'lowers' if share < 1 else 'raises'} the error by {percent}"
