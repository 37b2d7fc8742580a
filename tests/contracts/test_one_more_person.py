"""Under addition and removal nobody can tell how many people there are: one contract for everybody.

Every estimator, every function and every task that hides *that* somebody is there runs on n people
and on one more, with the same released values (:func:`quorate.auditing.replay`). Then everything
else is compared: which noise was drawn, of which shape and scale; on which desk; how many releases
and which events; what is raised, warned, logged and printed; all attributes; predictions, model
files and pages. Nothing may differ. n is 0, 1, and lies beside powers of two. And since one more
person is never seen, a thousand more are not: few people are compared with many, which finds a
switch wherever it lies.
"""

import inspect
import os
import sys
from functools import partial, partialmethod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from sklearn.base import clone

from asked_tasks import ASKED
from fitting_worlds import FIRST, ROUTES, WORLDS, Route, public_estimators, words_of
from quorate.app.catalogue import TASKS
from quorate.app.cli import main
from quorate.app.model_files import StoredModel
from quorate.app.reports.fit_report import fit_page, fit_summary
from quorate.app.tasks.fitting import fit
from quorate.app.tasks.forecast import forecast
from quorate.app.tasks.requests import request_text
from quorate.auditing import replay
from quorate.auditing.observations import observe
from quorate.core.account import among_keys
from quorate.core.bounds.grid import Interval
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.data.engines.files import FileCrowd
from quorate.data.engines.layout import Layout
from quorate.data.files.table_files import TableFile
from quorate.distributions import GaussianDistribution
from quorate.exceptions import ParameterError
from quorate.learners import ConceptLearner, LossSelector, PrivateMinError
from quorate.learners.concepts import Thresholds
from quorate.means import UserMean, UserQueries
from quorate.mechanisms import sums, user_releases
from quorate.mechanisms.choices.set_union import SetUnion
from quorate.models import LogisticLoss, LogisticRegression, PrivateGridSearch, minimize
from quorate.papers.queries.private_score import private_cross_val_score, private_score
from quorate.papers.stability import StableLearner
from quorate.tabulate import UserTable

GONE = Relation.ADD_REMOVE
# People before one more comes: nobody, few, one less than a power of two, and powers of two.
# A switch at any other number is seen where few are compared with many.
SIZES = (0, 1, 2, 63, 64, 1024)
# What the one more holds.
BROUGHT = ("one record", "nothing", "a thousand", "missing", "largest")

# --- the exceptions: at most five, each with its reason ------------------------------------------

OF_PEOPLE_ONLY = {
    "UserVariation": "compares pairs of users, and who joins changes all pairs",
    "ParityLearner": "splits users into groups, whose number has to be public",
    "ConciseLearner": "splits users into groups, whose number has to be public",
}
KEEPS_ITS_RECORDS = {"UserQueries": "a desk goes on asking; it is compared by what it answers"}


def test_exceptions_are_few_and_have_reasons():
    exceptions = OF_PEOPLE_ONLY | KEEPS_ITS_RECORDS
    assert len(exceptions) <= 5
    assert all(exceptions.values())


class Worlds(dict):
    """People of each kind, and the one who is not always there; made once."""

    def __missing__(self, asked):
        world, size = asked
        brought = BROUGHT[size % len(BROUGHT)]
        present = WORLDS[world](brought, size + 1)
        self[asked] = present.take(range(1, present.n_users)), present
        return self[asked]


NEIGHBOURS = Worlds()


def pairs_of(world, sizes=SIZES):
    """Return neighbours of several sizes; and few people and many, in both orders."""
    few, many = NEIGHBOURS[world, 1][0], NEIGHBOURS[world, max(sizes)][1]
    return [*(NEIGHBOURS[world, size] for size in sizes), (few, many), (many, few)]


class Desk:
    """What a run asks for beside its noise, and what the run before it was told."""

    def __init__(self):
        self.asked, self.popular, self.repeats = [], [], False
        self.refusals = []

    def grid(self, honest, signature):
        """Return the function that makes desk and writes down for how many users."""

        def made(*given, **named):
            grid = honest(*given, **named)
            told = signature.bind(*given, **named)
            told.apply_defaults()
            wanted = {name: told.arguments[name] for name in ("n_users", "noise_scale")}
            # The same step may hide that the grid was made for n.
            self.asked.append(wanted | {"step": float(grid.step)})
            return grid

        return made

    def keys(self, honest, asked, *given):
        """Return the popular keys: of the first run, whose release the second one repeats.

        How many keys have a vote is private, and so is the shape of their noise: what is released
        is who is above the threshold.
        """
        self.asked.append(asked)
        if not self.repeats:
            self.popular.append(honest(*given, SeededNoise(0)))
            return self.popular[-1]
        return self.popular.pop(0)

    def watch(self, run):
        """Return the program that also returns what was asked for."""

        def watched(data):
            self.asked = []
            # What is remembered is asked for once only.
            user_releases._roomy_grid.cache_clear()
            try:
                return {"said": run(data), "asked": self.asked}
            except Exception as error:
                self.refusals.append(error)
                raise
            finally:
                self.repeats = True

        self.popular, self.repeats = [], False
        return watched


def _asked_of(mechanism, desk, honest, held, noise):
    return desk.keys(honest, repr(mechanism), mechanism, held)


@pytest.fixture(autouse=True)
def desk(monkeypatch):
    """Watch every grid and every list of popular keys; let public seeds be the same."""
    made, honest = Desk(), sums.choose_grid
    watched = made.grid(honest, inspect.signature(honest))
    for name, module in list(sys.modules.items()):
        if name.startswith("quorate.") and getattr(module, "choose_grid", None) is honest:
            monkeypatch.setattr(module, "choose_grid", watched)
    union, above = SetUnion._popular, among_keys._above
    monkeypatch.setattr(SetUnion, "_popular", partialmethod(_asked_of, made, union))
    monkeypatch.setattr(
        among_keys, "_above", lambda *given: made.keys(above, given[1:3], *given[:-1])
    )
    seeded = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: seeded(seed or 0))
    return made


def everything(estimator, data):
    """Fit, and return everything that somebody may look at."""
    fitted = estimator.fit(data)
    said = {name: getattr(fitted, name) for name in dir(type(fitted)) if _is_told(fitted, name)}
    said["repr"], said["promise"] = repr(fitted), str(fitted.guarantee_)
    if isinstance(fitted, UserQueries):
        said["answers"] = [fitted.ask(lambda records: float(np.tanh(records.sum())))]
        return said | {"guarantee_": fitted.guarantee_}
    rows = WORLDS["reals"]("two", 9).X[:, : fitted.n_features_in_]
    for verb in ("predict", "predict_proba", "transform", "cdf"):
        if hasattr(fitted, verb):
            said[verb] = observe(partial(getattr(fitted, verb), rows))
    return said | {"fitted": fitted}


def _is_told(fitted, name):
    return name.endswith("_") and name[0] != "_" and hasattr(fitted, name)


MORE = {
    "UserTable, popular": Route(
        UserTable(
            by="x0",
            keys="popular",
            statistics={"people": "users", "total": ("x1", "sum")},
            bounds={"x1": (0.0, 9.0)},
            epsilon=40.0,
            delta=1e-2,
        ),
        "named columns",
    ),
    "StableLearner, truncated": Route(
        StableLearner(Thresholds(-(2**40), 2**40), epsilon=4.0, delta=1e-2, random_state=0),
        "one integer",
    ),
    "LogisticRegression, large": Route(
        LogisticRegression(epsilon=400.0, delta=1e-2, progress=False, random_state=0)
    ),
    "LogisticRegression, hopeless": Route(
        LogisticRegression(epsilon=4.0, delta=1e-2, hopeless="refuse", progress=False)
    ),
    "LossSelector, many records": Route(LossSelector(bounds=(-3.0, 3.0), records=32, epsilon=1.0)),
    "PrivateMinError, few are enough": Route(
        PrivateMinError(Thresholds(-4, 4), 400.0, excess=0.5, records=2, random_state=0),
        "one integer",
    ),
    "GaussianDistribution, little": Route(
        GaussianDistribution(0.5, bounds=9.0, covariance=np.eye(5), algorithm="medians")
    ),
    "GaussianDistribution, much": Route(
        GaussianDistribution(20.0, bounds=9.0, covariance=np.eye(5), algorithm="medians")
    ),
    "PrivateGridSearch, large": Route(
        PrivateGridSearch(
            LogisticRegression(steps=2, progress=False),
            {"penalty": [0.0, 1.0]},
            epsilon=4000.0,
            delta=1e-2,
            random_state=0,
        )
    ),
}
EVERY = ROUTES | MORE
# One route of each kind by every algorithm.
WAYS = {
    (route.name, route.world, getattr(route.estimator, "delta", 0.0) > 0, word): (name, word)
    for name, route in EVERY.items()
    for word in words_of(route.estimator)
}


def compare(run, pairs, desk):
    for place, (one, other) in enumerate(pairs):
        report = replay(desk.watch(run), one, other, seed=place)
        assert report.same, f"{one} and {other}, pair {place}, are told apart: {report}"


def one_more(route, desk, sizes=SIZES, **parameters):
    def run(data):
        return everything(route.fresh(relation=GONE, **parameters), data)

    compare(run, pairs_of(route.world, sizes), desk)


@pytest.mark.parametrize("name", EVERY)
def test_one_more_person_is_not_seen(name, desk):
    one_more(EVERY[name], desk)
    assert all("REPLACE" in str(refusal) for refusal in desk.refusals)


@pytest.mark.parametrize(("name", "algorithm"), WAYS.values(), ids=map(" by ".join, WAYS.values()))
def test_one_more_person_is_not_seen_by_any_algorithm(name, algorithm, desk):
    one_more(EVERY[name], desk, (64,), algorithm=algorithm)
    assert all(isinstance(refusal, ParameterError) for refusal in desk.refusals)


def test_every_public_estimator_fits_or_says_that_it_needs_the_number():
    fits = set()
    for route in EVERY.values():
        estimator, data = route.fresh(relation=GONE), NEIGHBOURS[route.world, 64][0]
        with use_noise(SeededNoise(0)):
            seen = observe(partial(estimator.fit, data))
        if seen.error is None:
            fits.add(route.name)
        else:
            assert isinstance(seen.error, ParameterError)
            assert "REPLACE" in str(seen.error)
    assert fits == public_estimators() - OF_PEOPLE_ONLY.keys()


# --- functions that are no estimators -------------------------------------------------------------

CUTS = ConceptLearner(Thresholds(-4, 4), random_state=0)


def scored(data):
    return private_score(Thresholds(-4, 4).concept(1), data, epsilon=2.0, relation=GONE)


def scored_with_delta(data):
    rule = Thresholds(-4, 4).concept(1)
    return private_score(rule, data, epsilon=2.0, delta=1e-6, relation=GONE)


def cross_validated(data):
    return private_cross_val_score(CUTS, data, epsilon=9.0, folds=3, relation=GONE, random_state=0)


def minimized(data, **others):
    return minimize(
        data,
        LogisticLoss(),
        epsilon=40.0,
        delta=1e-5,
        steps=3,
        records=2,
        progress=False,
        relation=GONE,
        **others,
    )


def asked_often(data):
    desk = UserQueries(9.0, delta=1e-5, queries=2, bounds=4.0, dimension=1, relation=GONE).fit(data)
    return [desk.ask(np.mean), desk.ask(lambda records: records.max()), desk.guarantee_]


RUNS = {
    "score": (scored, "one integer"),
    "score with delta": (scored_with_delta, "one integer"),
    "cross-validation": (cross_validated, "one integer"),
    "minimum": (minimized, "reals"),
    "minimum by samples": (partial(minimized, batch_rate=0.2), "reals"),
    "questions": (asked_often, "one real"),
}


@pytest.mark.parametrize("name", RUNS)
def test_one_more_person_is_not_seen_by_functions(name, desk):
    run, world = RUNS[name]
    # Whether there is anybody to sample is seen by the coins alone.
    sizes = SIZES[1:] if "samples" in name else SIZES
    compare(run, pairs_of(world, sizes), desk)
    assert desk.refusals == []


def test_folds_are_fitted_under_the_same_relation():
    """An estimator for a fold promises what everything together promises."""
    seen = []

    class Watched(ConceptLearner):
        def fit(self, X, y=None, *, users=None):
            fitted = super().fit(X, y, users=users)
            seen.append(fitted.guarantee_.relation)
            return fitted

    private_cross_val_score(
        Watched(Thresholds(-4, 4)),
        NEIGHBOURS["one integer", 64][1],
        epsilon=9.0,
        folds=3,
        relation=GONE,
        random_state=0,
    )
    assert seen == [GONE] * 3


def ids(crowd):
    return set(crowd.keys().tolist())


def test_everybody_stays_in_their_fold_and_on_their_side_when_one_more_comes():
    folds = []

    class Watched(ConceptLearner):
        def fit(self, X, y=None, *, users=None):
            folds[-1].append(ids(X))
            return super().fit(X, y, users=users)

    for size in SIZES[1:5]:
        absent, present = NEIGHBOURS["one integer", size]
        (newcomer,) = ids(present) - ids(absent)
        folds.clear()
        for data in (absent, present):
            folds.append([ids(half) for half in data.split(0.5, relation=GONE, random_state=0)])
            private_cross_val_score(
                Watched(Thresholds(-4, 4)),
                data,
                epsilon=9.0,
                folds=3,
                relation=GONE,
                random_state=0,
            )
        assert [fold - {newcomer} for fold in folds[1]] == folds[0]


def test_a_search_moves_nobody_to_another_half_when_one_more_comes(monkeypatch):
    halves, honest = [], PrivateGridSearch._fitted

    def watched(self, data, *given):
        halves[-1].append(ids(data._held_crowd()))
        return honest(self, data, *given)

    monkeypatch.setattr(PrivateGridSearch, "_fitted", watched)
    for size in SIZES[1:5]:
        absent, present = NEIGHBOURS["reals", size]
        (newcomer,) = ids(present) - ids(absent)
        halves.clear()
        for data in (absent, present):
            halves.append([])
            EVERY["PrivateGridSearch"].fresh(relation=GONE).fit(data)
        assert [half - {newcomer} for half in halves[1]] == halves[0]


# --- tasks and the command line -------------------------------------------------------------------


def write_visits(path, n_people):
    """Write a table in which everybody has up to ten visits."""
    lines = ["patient,age,dose,ill,cost"]
    for person in range(n_people):
        rng = np.random.default_rng(person)
        for _ in range(1 + person % 10):
            age, dose = rng.uniform(18, 99), rng.integers(0, 1000)
            ill, cost = ("yes" if dose >= 400 else "no"), 2 * age + rng.normal()
            lines.append(f"p{person},{age:.3f},{dose},{ill},{cost:.3f}")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("task", TASKS)
def test_one_more_person_is_not_seen_by_tasks(task, desk, tmp_path, make_request):
    path = tmp_path / "visits.csv"
    asked = make_request(task, relation=GONE, **ASKED[task])
    (tmp_path / "request.toml").write_text(request_text(asked, path))
    codes = []

    def run(n_people):
        write_visits(path, n_people)
        codes.append(main(["fit", str(tmp_path / "request.toml")]))
        codes.append(main(["fit", str(tmp_path / "request.toml"), "--json"]))
        if codes[-1]:
            return None
        result = fit(asked, TableFile(path))
        expected = forecast(result)
        stored = StoredModel(result.estimator, result.labels).to_dict()
        return fit_page(result, expected), fit_summary(result, expected), stored, result

    compare(run, [(63, 64), (1, 90), (90, 2)], desk)
    assert desk.refusals == []
    refused = TASKS[task].kind.__name__ in OF_PEOPLE_ONLY
    assert set(codes) == {2 if refused else 0}


def test_a_task_does_not_count_people_where_their_number_is_private(
    visits, make_request, monkeypatch
):
    counted = []
    monkeypatch.setattr(TableFile, "count_users", lambda *given: counted.append(given) or 600)
    fit(make_request("logistic", relation=GONE, **ASKED["logistic"]), TableFile(visits))
    assert counted == []
    fit(make_request("logistic", **ASKED["logistic"]), TableFile(visits))
    assert counted


# --- where people lie ----------------------------------------------------------------------------


@pytest.mark.parametrize("records", [0, 1, 1023, 1_398_101, 2**40])
def test_the_number_of_parts_of_a_crowd_does_not_follow_its_records(records, desk):
    """1,398,101 records of one feature were one part, and one record more made two of it."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    layout = Layout.of(schema, user="id")

    def run(rows):
        crowd = FileCrowd.from_batches([], layout, rows=rows)
        kept = crowd.cap(1)
        return [repr(crowd), crowd.n_parts, repr(kept), kept.n_parts]

    compare(run, [(records, records + 1), (1, records)], desk)
    assert desk.refusals == []


@pytest.mark.parametrize("spool", [False, True])
def test_the_kind_of_a_crowd_does_not_follow_its_files(spool, desk, tmp_path, monkeypatch):
    """Files of more than 256 megabytes were grouped on disk; whether they were was seen."""
    sparse, honest = 2**28 + 1, Path.stat

    def as_if_large(self, **how):
        found = honest(self, **how)
        large = self.name == "many.parquet" or self.name == "many.csv"
        return os.stat_result((*found[:6], sparse, *found[7:10])) if large else found

    monkeypatch.setattr(Path, "stat", as_if_large)
    for name in ("few", "many"):
        table = pa.table({"id": range(9), "x": np.arange(9.0)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        csv.write_csv(table, tmp_path / f"{name}.csv")

    def run(name):
        typed = UserData.from_parquet(tmp_path / f"{name}.parquet", user="id", spool=spool)
        text = UserData.from_csv(tmp_path / f"{name}.csv", user="id", features=["x"], spool=spool)
        return [type(typed).__name__, repr(typed), type(text).__name__, repr(text)]

    compare(run, [("few", "many")], desk)
    assert desk.refusals == []


@pytest.mark.parametrize("engine", ["local", "files"])
def test_what_is_said_about_rows_does_not_follow_the_size_of_a_table(engine, desk, tmp_path):
    path = tmp_path / "visits.csv"
    given = ["--task", "median", "--user", "patient", "--features", "age", "--bounds", "0,120"]
    given += ["--epsilon", "1", "--relation", "add-remove", "--engine", engine]

    def run(n_people):
        write_visits(path, n_people)
        return main(["fit", str(path), *given]), main(["fit", str(path), *given, "--json"])

    compare(run, [(1, 2), (64, 65), (1, 65)], desk)
    assert desk.refusals == []


# --- the contract sees ---------------------------------------------------------------------------


class DividesByTheNumber(UserMean):
    def fit(self, X, y=None, *, users=None):
        super().fit(X, y, users=users)
        self.mean_ = self.mean_ * 50 / (X.n_users + 1)
        return self


class SaysTheNumber(UserMean):
    def fit(self, X, y=None, *, users=None):
        super().fit(X, y, users=users)
        self._note = f"{X.n_users} people"
        return self


class TakesAnotherWay(UserMean):
    def fit(self, X, y=None, *, users=None):
        self.algorithm = "clip" if X.n_users < 64 else "ball"
        return super().fit(X, y, users=users)


class MakesItsGridForTheNumber(UserMean):
    def fit(self, X, y=None, *, users=None):
        sums.choose_grid(Interval(0.0, 1.0), n_users=X.n_users)
        return super().fit(X, y, users=users)


class RefusesFew(UserMean):
    def fit(self, X, y=None, *, users=None):
        if X.n_users < 64:
            raise ParameterError("Too few people.")
        return super().fit(X, y, users=users)


@pytest.mark.parametrize(
    "twin",
    [DividesByTheNumber, SaysTheNumber, TakesAnotherWay, MakesItsGridForTheNumber, RefusesFew],
)
def test_a_twin_that_follows_the_number_is_told_apart(twin, desk):
    route = Route(clone(twin(bounds=9.0, epsilon=4.0, delta=1e-6)))
    with pytest.raises(AssertionError, match="told apart"):
        one_more(route, desk, (63,))
    honest = Route(UserMean(bounds=9.0, epsilon=4.0, delta=1e-6))
    one_more(honest, desk, (63,))


def test_what_the_one_more_holds_is_of_every_kind():
    assert set(BROUGHT) <= set(FIRST)
    assert {BROUGHT[size % len(BROUGHT)] for size in SIZES} == set(BROUGHT)
    one, other = NEIGHBOURS["reals", 64]
    assert (one.n_users, other.n_users) == (64, 65)
    assert isinstance(one, UserData)
