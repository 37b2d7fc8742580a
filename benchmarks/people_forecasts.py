"""Whether plans hold for real people: forecast errors against those of random crowds of a table.

A crowd is drawn from the people of a table with replacement, and the truth is that of the whole
table. The planner is told what anyone may know or guess beforehand: the public range, how much
single records vary, the harmonic mean of records a person, and nothing about how much people
differ. A forecast is an error that is kept in 90 % of crowds; a task passes if it is kept in 85 %
of all crowds, and if at the median setting no more than 2.5 times the users are asked for that
would do: the users that are planned for the error measured in 90 % of crowds, over those there
were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from people_rules import CHOOSE, REPORT, fit_cut_off
from people_tables import PeopleTable, tables
from quorate.distributions import DiscreteDistribution
from quorate.means import PrivateMedian, UserMean
from quorate.models import LinearRegression, LogisticRegression
from quorate.noise import SeededNoise, use_noise
from quorate.planning import plan
from quorate.planning.questions import describe_task
from quorate.users import UserData

EPSILON, DELTA = 1.0, 1e-6
USERS = (2000, 5000)


@dataclass(frozen=True)
class Question:
    """One task on one table: what the planner is told, and the error of one crowd."""

    task: str
    name: str
    told: dict
    error: Callable[[int, np.random.Generator], float]

    def forecast(self, users: int) -> tuple[float, bool]:
        """Return the error that the planner expects, and whether it promises nothing."""
        task = describe_task(self.task, **self.told)
        error = task.error(users, EPSILON)
        return error, error >= task.largest_error

    def planned(self, error: float) -> float:
        """Return the users that the planner asks for."""
        users = plan(self.task, error=error, epsilon=EPSILON, **self.told).users
        return float("inf") if users is None else float(users)


def crowd(users: UserData, n: int, rng: np.random.Generator) -> UserData:
    """Return n people drawn with replacement, each a new person."""
    chosen = rng.integers(0, users.n_users, n)
    held = np.diff(users.offsets)[chosen]
    starts = np.repeat(users.offsets[:-1][chosen] - np.r_[0, np.cumsum(held)[:-1]], held)
    rows = np.arange(held.sum()) + starts
    y = None if users.y is None else users.y[rows]
    return UserData(users.X[rows], y, offsets=np.r_[0, np.cumsum(held)])


def harmonic(users: UserData) -> int:
    held = np.diff(users.offsets)
    return max(1, int(1.0 / np.mean(1.0 / held[held > 0])))


def numbers(table: PeopleTable, columns: int) -> UserData:
    """Return columns in half-widths of their ranges around the middle; whole records only."""
    lower, upper = (limits[:columns] for limits in table.limits)
    X = (table.users.X[:, :columns] - (lower + upper) / 2) / ((upper - lower) / 2)
    whole = ~np.isnan(X).any(axis=1)
    who = np.repeat(np.arange(table.users.n_users), np.diff(table.users.offsets))
    return UserData.from_arrays(np.clip(X[whole], -1, 1), users=who[whole])


def means(which: str) -> Iterator[Question]:
    for table in tables(which):
        for columns in sorted({1, len(table.ranges)}):
            for delta in (DELTA, 0.0):
                users = numbers(table, columns)
                truth = users.user_means().mean(axis=0)
                told = {
                    "dimension": columns,
                    "bounds": 1.0,
                    "scale": float(np.sqrt(np.mean(users.X.var(axis=0)))),
                    "records": harmonic(users),
                    "delta": delta,
                }

                def error(n, rng, users=users, truth=truth, delta=delta):
                    mean = UserMean(EPSILON, delta=delta, bounds=1.0).fit(crowd(users, n, rng))
                    return float(np.linalg.norm(mean.mean_ - truth))

                yield Question("mean", f"{table.name} d={columns} delta={delta:g}", told, error)


def medians(which: str) -> Iterator[Question]:
    for table in tables(which):
        users = numbers(table, 1)
        # With an even number of records everything between the two in the middle is a median.
        records = [np.sort(users.X[first:last, 0]) for first, last in pairwise(users.offsets)]
        low = np.sort([own[(len(own) - 1) // 2] for own in records])
        high = np.sort([own[len(own) // 2] for own in records])
        told = {
            "bounds": 1.0,
            "scale": float(np.std([np.median(own) for own in records])),
            "records": harmonic(users),
        }

        def error(n, rng, users=users, low=low, high=high):
            median = PrivateMedian(EPSILON, bounds=1.0).fit(crowd(users, n, rng))
            found = float(np.ravel(median.median_)[0])
            below = np.searchsorted(high, found, side="left") / len(high)
            above = 1.0 - np.searchsorted(low, found, side="right") / len(low)
            return max(0.0, below - 0.5, above - 0.5)

        yield Question("median", table.name, told, error)


def cut_offs(which: str) -> Iterator[Question]:
    for world in REPORT if which == "report" else CHOOSE:
        if world.everybody is None:
            continue
        users, excess, level = world.everybody()
        told = {"records": harmonic(users), "error_level": min(0.49, level)}

        def error(n, rng, users=users, excess=excess):
            seed = int(rng.integers(2**31))
            return excess(fit_cut_off(crowd(users, n, rng), seed).threshold_)

        yield Question("threshold", world.name, told, error)


def shares(which: str) -> Iterator[Question]:
    for table in tables(which):
        users = numbers(table, 1)
        cuts = np.unique(np.quantile(users.X[:, 0], np.arange(1, 6) / 6))
        cells = np.searchsorted(cuts, users.X[:, 0], side="right")
        size = len(cuts) + 1
        coded = UserData(cells[:, np.newaxis].astype(float), offsets=users.offsets)
        who = np.repeat(np.arange(users.n_users), np.diff(users.offsets))
        own = np.zeros((users.n_users, size))
        np.add.at(own, (who, cells), 1.0)
        truth = (own / own.sum(axis=1, keepdims=True)).mean(axis=0)
        told = {"size": size, "records": harmonic(users), "delta": DELTA}

        def error(n, rng, coded=coded, truth=truth, size=size):
            estimator = DiscreteDistribution(EPSILON, delta=DELTA, categories=range(size))
            found = estimator.fit(crowd(coded, n, rng)).pmf_
            return float(np.abs(found - truth).sum() / 2)

        yield Question("shares", table.name, told, error)


def regressions(which: str) -> Iterator[Question]:
    """Ask for the first column of a table from the others, and whether it is above its median."""
    for table in tables(which):
        if len(table.ranges) < 2:
            continue
        users = numbers(table, len(table.ranges))
        X = users.X[:, 1:] / np.maximum(users.X[:, 1:].std(axis=0), 1e-9)
        y = users.X[:, 0]
        d = X.shape[1]
        design = np.column_stack([X, np.ones(len(X))])
        weight = np.repeat(1.0 / np.diff(users.offsets), np.diff(users.offsets)) / users.n_users
        best = np.linalg.lstsq(design * np.sqrt(weight)[:, None], y * np.sqrt(weight), rcond=None)[
            0
        ]
        fitted = design @ best
        length = float(np.sqrt(np.sum(weight * (fitted - np.sum(weight * fitted)) ** 2)))
        if length < 1e-6:
            continue
        y = y / length
        residual = float(np.sqrt(np.sum(weight * (y - fitted / length) ** 2)))
        told = {"dimension": d, "records": harmonic(users), "delta": DELTA}
        people = UserData(X, y, offsets=users.offsets)

        def squares(n, rng, people=people, design=design, best=best / length, weight=weight):
            model = LinearRegression(EPSILON, delta=DELTA, hopeless="constant")
            model.fit(crowd(people, n, rng))
            found = design @ np.r_[np.ravel(model.coef_), model.intercept_]
            return float(np.sum(weight * (found - design @ best) ** 2)) / 2

        yield Question("linear", table.name, {**told, "scale": residual}, squares)
        high = (y > np.median(y)).astype(float)
        if not 0.05 < high.mean() < 0.95:
            continue
        binary = UserData(X, high, offsets=users.offsets)
        from sklearn.linear_model import LogisticRegression as Open

        opened = Open(C=1e6, max_iter=500).fit(X, high, sample_weight=weight * len(X))

        def loss(scores, high=high, weight=weight):
            return float(np.sum(weight * (np.logaddexp(0, scores) - high * scores)))

        least = loss(opened.decision_function(X))

        def logistic(n, rng, binary=binary, loss=loss, least=least):
            model = LogisticRegression(EPSILON, delta=DELTA, hopeless="constant")
            model.fit(crowd(binary, n, rng))
            return loss(binary.X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0]) - least

        yield Question("logistic", table.name, told, logistic)


TASKS: dict[str, Callable[[str], Iterator[Question]]] = {
    "mean": means,
    "median": medians,
    "threshold": cut_offs,
    "shares": shares,
    "regressions": regressions,
}


def forecasts_for_people(report, which: str, runs: int, tasks: tuple[str, ...] = ()) -> None:
    """Compare forecasts with the errors of crowds, task by task."""
    kept: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}
    for name in tasks or tuple(TASKS):
        for question in TASKS[name](which):
            for n in USERS:
                forecast, hopeless = question.forecast(n)
                if hopeless:
                    print(f"  {question.task:<9s} {question.name:<44s} n = {n}: no promise")
                    continue
                errors = []
                for run in range(runs):
                    rng = np.random.default_rng([n, run, 17])
                    with use_noise(SeededNoise([n, run])):
                        errors.append(question.error(n, rng))
                reached = float(np.quantile(errors, 0.9))
                share = float(np.mean(np.less_equal(errors, forecast)))
                ratio = question.planned(max(reached, 1e-9)) / n
                kept.setdefault(question.task, []).append(share)
                ratios.setdefault(question.task, []).append(ratio)
                print(
                    f"  {question.task:<9s} {question.name:<44s} n = {n}: forecast {forecast:.4g}, "
                    f"90 % of crowds {reached:.4g}, kept {share:.2f}, planned / needed {ratio:.2f}",
                    flush=True,
                )
    for task in kept:
        each = float(np.mean(kept[task]))
        report.line(f"forecasts, {task}: kept in crowds", each, 0.85, at_most=False)
        middle = float(np.median(ratios[task]))
        report.line(f"forecasts, {task}: planned / needed in the middle", middle, 2.5)
