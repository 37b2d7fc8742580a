"""The function ``plan``: of users, error and epsilon it computes the one that is left out."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from quorate import _validate
from quorate.app.catalogue import CATALOGUE, open_path
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.planning.advice import Doubling, advise, doublings, warn
from quorate.planning.plan import Baseline, Curve, Plan, PublishedBound
from quorate.planning.solve import smallest_epsilon, smallest_users
from quorate.planning.tasks.base import ErrorModel, PeopleTask, PlanTask
from quorate.planning.tasks.series import SeriesTask

if TYPE_CHECKING:
    from quorate.means.variation import UserVariation, VariationError

__all__ = ["TASKS", "TaskNumbers", "describe_task", "pilot_numbers", "plan", "task_kind"]

_KINDS: dict[str, type[PlanTask]] = {
    kind.name: kind
    for kind in (
        *(open_path(path) for each in CATALOGUE.values() for path in each.plans),
        SeriesTask,  # which is updated and not fitted
    )
}

TASKS = tuple(_KINDS)
"""The tasks that can be planned."""


class TaskNumbers(TypedDict, total=False):
    """The numbers of a task besides users, records and privacy; ``None`` is the default."""

    dimension: int | None
    size: int | None
    vc: int | None
    domain: int | None
    bounds: Any
    scale: float | None
    between: float | None
    heterogeneity: float | None
    error_level: float | None
    alike: bool | None
    plurality: float | None
    horizon: int | None
    touched: int | None


# A pilot's share between people is taken for its estimate and this part of the way to the end of
# its 95 % range: half a standard error. Forecasts have a caution of their own, and the very end
# asked for a quarter more people than that on tables that constants are chosen on.
_PILOT_CAUTION = 0.25
_CURVE_POINTS = 33  # machine: points of a curve on a screen
_CURVE_REACH = 16.0


def plan(
    task: str,
    *,
    users: int | None = None,
    records: int | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    error: float | None = None,
    confidence: float = 0.9,
    relation: Relation | None = None,
    pilot: UserVariation | None = None,
    **described: Unpack[TaskNumbers],
) -> Plan:
    """Answer one of: how many users, what error, which epsilon, or "are we quorate?".

    Leave out exactly one of ``users``, ``error`` and ``epsilon``: it is computed. If all three are
    given, the plan says whether the users suffice. No data are read.

    Parameters
    ----------
    task : str
        One of ``quorate.planning.TASKS``, such as "mean", "threshold" or "logistic".
    users : int, optional
    records : int, optional
        Records per user, by default 1. If users have different numbers of records, give the
        harmonic mean, which is smaller than the average.
    epsilon : float, optional
    delta : float, default=0.0
    error : float, optional
        ``Plan.error_meaning`` says what it measures.
    confidence : float, default=0.9
        Probability with which the error stays within its bound.
    relation : Relation, default=that of the task
        By default add or remove a user for counts, sums and tables, and replace a user for
        everything else.
    pilot : UserVariation, optional
        A fitted :class:`UserVariation`, for tasks with ``between``. Cautious versions of its
        estimates (:func:`pilot_numbers`) are used for ``between`` and ``records``.
    dimension : int, optional
        Coordinates of a mean; features of a model.
    size : int, optional
        Hypotheses or candidates; categories of shares, cells of a distribution function.
    vc : int, optional
        VC dimension of a concept class, for the published bounds; default from its size.
    domain : int, optional
        Number of possible cut-offs.
    bounds : float or pair, optional
        Mean and median: the public range of every coordinate, b for [-b, b] or (lower, upper).
        Select: the public range of the loss.
    scale : float, optional
        A public guess of how much single records vary; its meaning depends on the task.
    between : float, optional
        Means, choices, models, rules and distributions: share of the variance of records that lies
        between people, from 0 (people are alike) to 1. By default a half, and the advice says so.
    heterogeneity : float, optional
        For means, instead of ``between``: standard deviation of the users' own means around the
        common mean, in each coordinate. Then ``scale`` is the standard deviation of records around
        their user's mean.
    error_level : float, optional
        Error of the best rule.
    alike : bool, optional
        Cut-offs, rules and choices: whether users are alike, as in the learner.
    plurality : float, optional
        Share of the users who agree on one rule, if it is known.
    horizon, touched : int, optional
        For series: the number of periods, and in how many of them a person has records.

    Examples
    --------
    >>> answer = plan("threshold", domain=2**32, epsilon=1.0, records=16, error=0.02)
    >>> again = plan("threshold", domain=2**32, epsilon=1.0, records=16, users=answer.users)
    >>> again.error <= 0.02
    True
    """
    if pilot is not None:
        records = _read_pilot(task, pilot, records, described)
    question = describe_task(
        task, records=records, delta=delta, confidence=confidence, relation=relation, **described
    )
    open_questions = [
        name
        for name, value in (("users", users), ("error", error), ("epsilon", epsilon))
        if value is None
    ]
    if len(open_questions) > 1:
        raise ParameterError(
            "Expected at least two of users, error and epsilon, got "
            f"{3 - len(open_questions)}; missing: {', '.join(open_questions)}."
        )
    if users is not None:
        _validate.positive_integer(users=users)
    if error is not None:
        _validate.positive(error=error)
    if epsilon is not None:
        _validate.positive(epsilon=epsilon)
    solved_for = open_questions[0] if open_questions else "nothing"
    return _solve(question, solved_for, users=users, error=error, epsilon=epsilon)


def _read_pilot(
    task: str, pilot: UserVariation, records: int | None, described: TaskNumbers
) -> int:
    """Enter the pilot's cautious ``between`` into ``described``; return the records per user."""
    if not issubclass(task_kind(task), PeopleTask):
        raise ParameterError(f"The task {task!r} makes no use of a pilot.")
    stated = (records, described.get("between"), described.get("heterogeneity"))
    if any(value is not None for value in stated):
        raise ParameterError(
            "Expected a pilot or records, between and heterogeneity, got both: a pilot estimates "
            "how many records people have and how much people differ."
        )
    if getattr(pilot, "error_", None) is None:
        raise ParameterError("Expected a pilot that has been fitted.")
    described["between"], held = pilot_numbers(pilot)
    return held


def pilot_numbers(pilot: UserVariation) -> tuple[float, int]:
    """Return cautious values of ``between`` and ``records`` from a fitted pilot.

    >>> from types import SimpleNamespace
    >>> ranges = SimpleNamespace(between=(0.25, 0.75), records=(7.9, 12.0))
    >>> pilot_numbers(SimpleNamespace(between_=0.5, error_=ranges))
    (0.5625, 7)
    """
    found: VariationError = pilot.error_
    estimate = pilot.between_
    between = estimate + _PILOT_CAUTION * (found.between[1] - estimate)
    # Whole records, and the fewest that the pilot allows.
    return between, max(1, math.floor(found.records[0]))


def task_kind(task: str) -> type[PlanTask]:
    """Return the class that describes a task.

    >>> task_kind("median").error_meaning[:4]
    'dist'
    """
    _validate.one_of(TASKS, task=task)
    return _KINDS[task]


def describe_task(task: str, **numbers: Any) -> PlanTask:
    """Return the task of that name; numbers that are ``None`` keep their defaults.

    >>> describe_task("median", records=4, domain=None).records
    4
    """
    kind = task_kind(task)
    known = {field.name for field in fields(kind)}
    given = {name: value for name, value in numbers.items() if value is not None}
    foreign = sorted(set(given) - known)
    if foreign:
        shared = {field.name for field in fields(PlanTask)}
        raise ParameterError(
            f"The task {task!r} does not use {', '.join(foreign)}; it is described by "
            f"{', '.join(sorted(known - shared)) or 'nothing else'}."
        )
    return kind(**given)


def _solve(
    task: PlanTask,
    solved_for: str,
    *,
    users: int | None,
    error: float | None,
    epsilon: float | None,
) -> Plan:
    if epsilon is None and users is not None and error is not None:
        epsilon = _epsilon(task, users, error)
    aim = _expected(task, users, epsilon) if error is None else error
    needed = None if epsilon is None else _users(task.error, epsilon, aim)
    planned = needed if users is None else users
    upper, lower = _published(task, epsilon=epsilon, error=aim)
    known = epsilon is not None and 0 < aim < task.largest_error
    algorithm, reason = "none", "the error is out of reach."
    changes: tuple[Doubling, ...] = ()
    if planned is not None and epsilon is not None:
        algorithm, reason = task.algorithm(planned, epsilon)
        changes = doublings(task, users=planned, epsilon=epsilon)
    return Plan(
        task=task.name,
        solved_for=solved_for,
        users=planned,
        records=task.records,
        epsilon=epsilon,
        delta=task.delta,
        error=aim,
        confidence=task.confidence,
        relation=task.relation,
        size=task.description,
        error_meaning=task.error_meaning,
        users_needed=needed,
        error_expected=_expected(task, planned, epsilon),
        upper=upper,
        lower=lower,
        sufficient=task.sufficient(epsilon=epsilon, error=aim) if epsilon and known else (),
        necessary=task.necessary(epsilon=epsilon, error=aim) if epsilon and known else (),
        baselines=_baselines(task, users=planned, epsilon=epsilon, error=aim),
        algorithm=algorithm,
        reason=reason,
        warning=warn(task, users=planned, needed=needed, epsilon=epsilon, error=aim, lower=lower),
        advice=(*advise(task, users=planned, epsilon=epsilon), *task.assumptions),
        changes=changes,
        curves=_curves(task, users=planned, epsilon=epsilon),
    )


def _expected(task: PlanTask, users: int | None, epsilon: float | None) -> float:
    return math.inf if users is None or epsilon is None else task.error(users, epsilon)


def _epsilon(task: PlanTask, users: int, error: float) -> float | None:
    return smallest_epsilon(lambda epsilon: task.error(users, epsilon), error)


def _users(model: ErrorModel, epsilon: float, error: float) -> int | None:
    return smallest_users(lambda users: model(users, epsilon), error)


def _published(
    task: PlanTask, *, epsilon: float | None, error: float
) -> tuple[PublishedBound, PublishedBound]:
    if epsilon is None or not 0 < error < math.inf:
        nothing = PublishedBound(
            users=None, theorem="no theorem", holds=False, note="the error is out of reach"
        )
        return nothing, nothing
    upper = task.upper(epsilon=epsilon, error=error)
    if error >= task.largest_error:
        anybody = PublishedBound(
            users=1.0, theorem="no theorem", holds=True, note="a guess has no larger error"
        )
        return upper, anybody
    return upper, task.lower(epsilon=epsilon, error=error)


def _baselines(
    task: PlanTask, *, users: int | None, epsilon: float | None, error: float
) -> tuple[Baseline, ...]:
    if epsilon is None:
        return ()
    return tuple(
        Baseline(
            name=name,
            users=_users(model, epsilon, error),
            error=math.inf if users is None else model(users, epsilon),
        )
        for name, model in task.baselines().items()
    )


def _curves(task: PlanTask, *, users: int | None, epsilon: float | None) -> tuple[Curve, ...]:
    """Return errors from a sixteenth to sixteen times the planned users."""
    if users is None or epsilon is None:
        return ()
    steps = (
        _CURVE_REACH ** (2.0 * step / (_CURVE_POINTS - 1) - 1.0) for step in range(_CURVE_POINTS)
    )
    grid = tuple(sorted({max(1, round(users * step)) for step in steps}))
    models: dict[str, ErrorModel] = {"quorate": task.error, **task.baselines()}
    return tuple(
        Curve(name=name, users=grid, errors=tuple(model(n, epsilon) for n in grid))
        for name, model in models.items()
    )
