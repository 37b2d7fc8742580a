"""Whether plans hold for real people: forecast errors against those of random crowds of a table.

A crowd is drawn from the people of a table with replacement, and the truth is that of the whole
table: every column of it in turn for what one number is enough for. The planner is told what anyone
may know or guess beforehand: the public range, how much single records vary, the harmonic mean of
records a person, and nothing about how much people differ; or, in the place of the last two, what a
pilot of 1,000 people says. A forecast is an error that is kept in 90 % of crowds; a task passes if
it is kept in 85 % of all crowds, and if at the median setting no more than 2.5 times the users are
asked for that would do: the users that are planned for the error measured in 90 % of crowds, over
those there were. Where nearly all crowds find the very best answer (the median of answers yes or
no), one user less would do as well and nothing is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from people_groups import GROUP_BYS, records
from people_ranks import column, rank_off
from people_rules import CHOOSE, DOMAIN, REPORT, fit_cut_off
from people_tables import PeopleTable, part, tables
from quorate import UserTable
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.distributions import DiscreteDistribution
from quorate.learners import LossSelector
from quorate.means import PrivateMedian, UserMean, UserVariation
from quorate.models import LinearRegression, LogisticRegression
from quorate.planning import plan
from quorate.planning.questions import describe_task, pilot_numbers

EPSILON, DELTA = 1.0, 1e-6
USERS = (2000, 5000)
PILOT = 1000
# A cut-off errs so much less often than one answer for everybody, or there is nothing to learn.
WORTH_LEARNING = 0.05
# Numbers that anyone would try for a column, in half-widths of its range.
GUESSES = np.linspace(-1.0, 1.0, 41)


@dataclass(frozen=True)
class Question:
    """One task on one table: what the planner is told, and the error of one crowd."""

    task: str
    name: str
    told: dict
    error: Callable[[int, np.random.Generator], float]
    # What a pilot looks at, in half-widths of its range; nothing if the task makes no use of one.
    seen: UserData | None = None

    def pilots(self) -> dict[str, dict]:
        """Return what the planner is told without and with a pilot."""
        told = {"": self.told}
        if self.seen is not None:
            with use_noise(SeededNoise(5)):
                pilot = UserVariation(epsilon=1.0, bounds=1.0)
                pilot.fit(crowd(self.seen, PILOT, np.random.default_rng(5)))
            between, records = pilot_numbers(pilot)
            told["pilot"] = {**self.told, "between": between, "records": records}
        return told

    def forecast(self, users: int, told: dict) -> float | None:
        """Return the error that the planner expects; nothing if any answer would do as well."""
        task = describe_task(self.task, **told)
        error = task.error(users, EPSILON)
        return None if error >= task.largest_error else error

    def planned(self, error: float, told: dict) -> float:
        """Return the users that the planner asks for."""
        users = plan(self.task, error=error, epsilon=EPSILON, **told).users
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


def weights(users: UserData) -> np.ndarray:
    """Return what every record counts where all people count the same."""
    held = np.diff(users.offsets)
    return np.repeat(1.0 / held, held) / users.n_users


def numbers(table: PeopleTable, columns: int) -> UserData:
    """Return columns in half-widths of their ranges around the middle; whole records only."""
    lower, upper = (limits[:columns] for limits in table.limits)
    X = (table.users.X[:, :columns] - (lower + upper) / 2) / ((upper - lower) / 2)
    whole = ~np.isnan(X).any(axis=1)
    who = np.repeat(np.arange(table.users.n_users), np.diff(table.users.offsets))
    return UserData.from_arrays(np.clip(X[whole], -1, 1), users=who[whole])


def each_column(which: str) -> Iterator[tuple[str, UserData]]:
    for table in tables(which):
        users = numbers(table, len(table.ranges))
        for place, name in enumerate(table.ranges):
            alone = np.ascontiguousarray(users.X[:, place : place + 1])
            yield f"{table.name}: {name}", UserData(alone, offsets=users.offsets)


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

                name = f"{table.name} d={columns} delta={delta:g}"
                yield Question("mean", name, told, error, users)


def medians(which: str) -> Iterator[Question]:
    """Ask in the units of the table, in which many people have the same round number."""
    for table in tables(which):
        for place, name in enumerate(table.ranges):
            users, own, bounds = column(table, place)
            told = {"bounds": bounds, "scale": float(np.std(own)), "records": harmonic(users)}

            def error(n, rng, users=users, own=own, bounds=bounds):
                median = PrivateMedian(EPSILON, bounds=bounds).fit(crowd(users, n, rng))
                return rank_off(own, float(np.ravel(median.median_)[0]), 0.5)

            yield Question("median", f"{table.name}: {name}", told, error)


def selections(which: str) -> Iterator[Question]:
    """Ask which of a few numbers is nearest to a column's."""
    for name, users in each_column(which):
        losses = UserData(np.abs(users.X - GUESSES) / 2.0, offsets=users.offsets)
        mean = losses.user_means().mean(axis=0)
        moments = np.cov(losses.X, rowvar=False)
        apart = np.diag(moments)[:, np.newaxis] + np.diag(moments) - 2.0 * moments
        told = {
            "size": len(GUESSES),
            "scale": float(np.sqrt(apart.mean())),
            "records": harmonic(users),
        }

        def error(n, rng, losses=losses, mean=mean):
            chosen = LossSelector(EPSILON).fit(crowd(losses, n, rng)).index_
            return float(mean[chosen] - mean.min())

        yield Question("select", name, told, error, users)


def labelled_lines(which: str) -> Iterator[tuple[str, UserData]]:
    """Return a feature on a line and a label, from what learners are tried on and from tables."""
    for world in REPORT if which == "report" else CHOOSE:
        if world.everybody is not None:
            yield world.name, world.everybody()[0]
    for table in tables(which):
        users = numbers(table, len(table.ranges))
        target = users.X[:, 0] > np.median(users.X[:, 0])
        for place, name in list(enumerate(table.ranges))[1:]:
            x = np.floor((users.X[:, place : place + 1] + 1.0) / 2.0 * (DOMAIN - 1))
            if 0.05 < target.mean() < 0.95:
                yield f"{table.name}: {name}", UserData(x, target * 1.0, offsets=users.offsets)


def cut_offs(which: str) -> Iterator[Question]:
    for name, users in labelled_lines(which):
        order = np.argsort(users.X[:, 0], kind="stable")
        at, one = users.X[order, 0], users.y[order] > 0
        counts = weights(users)[order]
        mistakes = np.sum(counts * ~one) + np.r_[0, np.cumsum(np.where(one, counts, -counts))]
        # Cut-offs between records of one value do not exist.
        best = float(mistakes[np.r_[True, at[1:] != at[:-1], True]].min())
        if min(mistakes[0], mistakes[-1]) < best + WORTH_LEARNING:
            continue
        told = {"records": harmonic(users), "error_level": min(0.49, best)}
        spread = users.X / (DOMAIN / 2) - 1.0, 2.0 * users.y[:, np.newaxis] - 1.0
        seen = UserData(np.concatenate(spread, axis=1), offsets=users.offsets)

        def error(n, rng, users=users, at=at, mistakes=mistakes, best=best):
            seed = int(rng.integers(2**31))
            found = fit_cut_off(crowd(users, n, rng), seed).threshold_
            return float(mistakes[np.searchsorted(at, found)] - best)

        yield Question("threshold", name, told, error, seen)


def shares(which: str) -> Iterator[Question]:
    for name, users in each_column(which):
        cuts = np.unique(np.quantile(users.X[:, 0], np.arange(1, 6) / 6))
        cells = np.searchsorted(cuts, users.X[:, 0], side="right")
        size = len(cuts) + 1
        if len(np.unique(cells)) < 2:
            continue
        coded = UserData(cells[:, np.newaxis].astype(float), offsets=users.offsets)
        shown = UserData(2.0 * np.eye(size)[cells] - 1.0, offsets=users.offsets)
        truth = (shown.user_means().mean(axis=0) + 1.0) / 2.0
        told = {"size": size, "records": harmonic(users), "delta": DELTA}

        def error(n, rng, coded=coded, truth=truth, size=size):
            estimator = DiscreteDistribution(EPSILON, delta=DELTA, categories=range(size))
            found = estimator.fit(crowd(coded, n, rng)).pmf_
            return float(np.abs(found - truth).sum() / 2)

        yield Question("shares", name, told, error, shown)


@dataclass(frozen=True)
class Target:
    """One column of a table to be told from the others, whose deviations are one."""

    name: str
    people: UserData
    seen: UserData

    @property
    def told(self) -> dict:
        """What the planner is told of any target."""
        dimension = self.people.X.shape[1]
        return {"dimension": dimension, "records": harmonic(self.people), "delta": DELTA}


def targets(which: str) -> Iterator[Target]:
    for table in tables(which):
        users = numbers(table, len(table.ranges))
        for place, name in enumerate(table.ranges):
            X = np.delete(users.X, place, axis=1)
            if X.shape[1]:
                X = X / np.maximum(X.std(axis=0), 1e-9)
                people = UserData(X, users.X[:, place], offsets=users.offsets)
                yield Target(f"{table.name}: {name}", people, users)


def linear(which: str) -> Iterator[Question]:
    for target in targets(which):
        people = target.people
        design = np.column_stack([people.X, np.ones(len(people.X))])
        weight = weights(people)
        root = np.sqrt(weight)
        best = np.linalg.lstsq(design * root[:, np.newaxis], people.y * root, rcond=None)[0]
        fitted = design @ best
        length = float(np.sqrt(np.sum(weight * (fitted - np.sum(weight * fitted)) ** 2)))
        if length < 1e-6:
            continue
        y = people.y / length
        residual = float(np.sqrt(np.sum(weight * (y - fitted / length) ** 2)))
        people = UserData(people.X, y, offsets=people.offsets)

        def error(n, rng, people=people, design=design, truth=fitted / length, weight=weight):
            model = LinearRegression(EPSILON, delta=DELTA, hopeless="constant")
            model.fit(crowd(people, n, rng))
            found = design @ np.r_[np.ravel(model.coef_), model.intercept_]
            return float(np.sum(weight * (found - truth) ** 2)) / 2

        told = {**target.told, "scale": residual}
        yield Question("linear", target.name, told, error, target.seen)


def logistic(which: str) -> Iterator[Question]:
    """Ask whether a column is above its median."""
    from sklearn.linear_model import LogisticRegression as Open

    for target in targets(which):
        X, y = target.people.X, target.people.y
        high = (y > np.median(y)).astype(float)
        if not 0.05 < high.mean() < 0.95:
            continue
        people = UserData(X, high, offsets=target.people.offsets)
        weight = weights(people)
        opened = Open(C=1e6, max_iter=500).fit(X, high, sample_weight=weight * len(X))

        def loss(scores, high=high, weight=weight):
            return float(np.sum(weight * (np.logaddexp(0, scores) - high * scores)))

        least = loss(opened.decision_function(X))

        def error(n, rng, people=people, loss=loss, least=least):
            model = LogisticRegression(EPSILON, delta=DELTA, hopeless="constant")
            model.fit(crowd(people, n, rng))
            return loss(people.X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0]) - least

        yield Question("logistic", target.name, target.told, error, target.seen)


def group_bys(which: str, statistic: str) -> Iterator[Question]:
    """Tables by group: the error of one cell, drawn at random, as plans state it."""
    for asked in GROUP_BYS:
        name = "/".join(map(str, (*asked[:2], *asked[3:5])))
        if part(name) != which or (held := records(*asked)) is None:
            continue
        who, group, x = held
        size, lower, upper = int(group.max()) + 1, *asked[5]
        users = UserData.from_arrays(np.column_stack([group, x]), users=who)
        told = {"size": size, "records": max(1, round(len(who) / users.n_users)), "delta": DELTA}
        told["dimension"] = int(statistic == "mean")
        table = UserTable(
            EPSILON,
            delta=DELTA,
            by="group",
            keys=list(range(size)),
            statistics={"found": "count" if statistic == "count" else ("x", "mean")},
            bounds={"x": (lower, upper)},
        )

        spread = float(np.std(x))

        def error(n, rng, users=users, size=size, table=table, spread=spread):
            people = crowd(users, n, rng)
            cells, values = people.X[:, 0].astype(int), people.X[:, 1]
            counts = np.bincount(cells, minlength=size)
            frame = pa.table({"group": cells, "x": values})
            found = np.asarray(table.fit(frame, users=people.user_index()).table_["found"])
            group = rng.choice(np.flatnonzero(counts))
            if statistic == "count":
                return float(abs(found[group] - counts[group]) / np.mean(counts))
            # A plan is about a group of average size.
            off = abs(found[group] - np.mean(values[cells == group])) / spread
            return float(off * counts[group] / np.mean(counts))

        yield Question("table", name, told, error)


TASKS: dict[str, Callable[[str], Iterator[Question]]] = {
    "mean": means,
    "median": medians,
    "threshold": cut_offs,
    "select": selections,
    "shares": shares,
    "linear": linear,
    "logistic": logistic,
    "counts by group": partial(group_bys, statistic="count"),
    "means by group": partial(group_bys, statistic="mean"),
}


def crowd_errors(question: Question, n: int, runs: int) -> np.ndarray:
    """Return the errors of so many crowds of n people."""
    errors = []
    for run in range(runs):
        rng = np.random.default_rng([n, run, 17])
        with use_noise(SeededNoise([n, run])):
            errors.append(question.error(n, rng))
    return np.array(errors)


@dataclass
class Tally:
    """How often forecasts were kept, and how many users were planned over those needed."""

    kept: list[float]
    ratios: list[float]
    unsaid: int = 0

    def add(self, question: Question, n: int, told: dict, errors: np.ndarray) -> str:
        """Compare one forecast with the errors of crowds; return what to print."""
        forecast, reached = question.forecast(n, told), float(np.quantile(errors, 0.9))
        if forecast is None:
            self.unsaid += 1
            return "no promise"
        self.kept.append(float(np.mean(errors <= forecast)))
        said = f"forecast {forecast:.3g} kept {self.kept[-1]:.2f}"
        if reached > 0:
            self.ratios.append(question.planned(reached, told) / n)
            said += f", planned / needed {self.ratios[-1]:.2f}"
        return said


def forecasts_for_people(report, which: str, runs: int, tasks: tuple[str, ...] = ()) -> None:
    """Compare forecasts with the errors of crowds, task by task, without and with a pilot."""
    for name in tasks or tuple(TASKS):
        tallies: dict[str, Tally] = {}
        for question in TASKS[name](which):
            about = question.pilots()
            # Errors of medians take few values, so that few crowds say little of nine in ten.
            crowds = max(100, runs) if name == "median" else runs
            for n in USERS:
                errors = crowd_errors(question, n, crowds)
                said = [f"90 % of crowds {np.quantile(errors, 0.9):.3g}"]
                for how, told in about.items():
                    tally = tallies.setdefault(how, Tally([], []))
                    said.append(f"{how} {tally.add(question, n, told, errors)}".strip())
                print(f"  {name:<9s} {question.name:<40s} n = {n}: {'; '.join(said)}", flush=True)
        for how, tally in tallies.items():
            label = f"forecasts, {name}{', ' + how if how else ''}"
            report.line(f"{label}: kept in crowds", np.mean(tally.kept), 0.85, at_most=False)
            # Of a few candidates nearly all crowds find the best: there is nothing to compare.
            if name != "select":
                middle = float(np.median(tally.ratios))
                report.line(f"{label}: planned / needed in the middle", middle, 2.5)
            print(f"         ({len(tally.kept)} settings, {tally.unsaid} without a promise)")
