"""A mistake costs nothing: what parameters, types, shapes and names show is refused for free.

The order of every fit and of every command is: parameters, types and shapes, charge, read. Here a
ledger counts its charges while people make mistakes in every estimator and every task. A fit
without a mistake is charged exactly once, which shows that the counting works.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from fitting_worlds import public_estimators
from quorate.app.cli import main
from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.distributions import (
    DiscreteDistribution,
    DiscreteFamily,
    EmpiricalCDF,
    GaussianDistribution,
    Histogram,
    HypothesisSelector,
    ProductDistribution,
)
from quorate.exceptions import NotEnoughUsersError, QuorateError
from quorate.learners import (
    ConceptLearner,
    ConciseLearner,
    LossSelector,
    ParityLearner,
    PrivateMinError,
    PrivateThreshold,
    ThresholdLearner,
)
from quorate.learners.concepts import Thresholds
from quorate.ledger.ledger import Ledger
from quorate.means import (
    PrivateMedian,
    UserCovariance,
    UserMean,
    UserQuantiles,
    UserQueries,
    UserScaler,
    UserVariation,
)
from quorate.models import (
    HuberRegression,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PrivateGridSearch,
    Ridge,
)
from quorate.nets import NeuralClassifier, NeuralRegressor
from quorate.papers.queries.algorithms import ConjunctionQueries
from quorate.papers.queries.private_score import private_cross_val_score
from quorate.papers.queries.query_learner import QueryLearner
from quorate.papers.stability import StableLearner
from quorate.synth import UserSynthesizer
from quorate.tabulate import PopularPhrases, RecordMean, UserCount, UserSum, UserTable

N, PEOPLE = 1200, 300
RNG = np.random.default_rng(0)
X1, X2 = RNG.integers(0, 9, (N, 1)).astype(float), RNG.normal(size=(N, 2))
Y = RNG.integers(0, 2, N)
IDS = np.arange(N) % PEOPLE
DELTA = {"epsilon": 4.0, "delta": 1e-6}
MODEL = {"progress": False, "steps": 2, **DELTA}
REFUSED = (QuorateError, ValueError, TypeError)


class CountedLedger(Ledger):
    """A ledger that knows how often it was charged."""

    charges = 0

    def charge(self, *args, **keywords):
        self.charges += 1
        return super().charge(*args, **keywords)


@pytest.fixture(scope="module")
def shelf():
    return []


@pytest.fixture
def new_ledger(shelf, tmp_path_factory):
    """Return ledgers that nobody has charged: the last one, as long as it was spared."""

    def make():
        if not shelf or shelf[-1].charges:
            shelf.append(CountedLedger(tmp_path_factory.mktemp("books") / "book.db"))
            shelf[-1].set_budget("visits", epsilon=1e9, delta=0.9)
        return shelf[-1]

    return make


@pytest.fixture
def ledger(new_ledger):
    return new_ledger()


GRID = {"penalty": [0.0, 1.0]}
MEANS = {
    "UserMean": UserMean(bounds=9.0, **DELTA),
    "UserScaler": UserScaler(bounds=9.0, **DELTA),
    "UserCovariance": UserCovariance(bounds=9.0, **DELTA),
    "UserQueries": UserQueries(bounds=9.0, **DELTA),
    "PrivateMedian": PrivateMedian(bounds=(-9.0, 9.0)),
    "UserQuantiles": UserQuantiles(bounds=(-9.0, 9.0)),
    "LossSelector": LossSelector(records=1),
}
MODELS = {
    "LogisticRegression": LogisticRegression(**MODEL),
    "LinearSVC": LinearSVC(**MODEL),
    "LinearRegression": LinearRegression(target_bounds=(0, 1), **MODEL),
    "Ridge": Ridge(**MODEL),
    "HuberRegression": HuberRegression(**MODEL),
    "PrivateGridSearch": PrivateGridSearch(LogisticRegression(steps=2), GRID, epsilon=50.0),
    "NeuralClassifier": NeuralClassifier(hidden=2, steps=2, epsilon=4.0),
    "NeuralRegressor": NeuralRegressor(target_bounds=(0, 1), hidden=2, steps=2, epsilon=4.0),
}
RULES = {
    "ThresholdLearner": ThresholdLearner(domain=(0, 9)),
    "PrivateThreshold": PrivateThreshold(domain=(0, 9)),
    "ConceptLearner": ConceptLearner(Thresholds(0, 9)),
    "PrivateMinError": PrivateMinError(Thresholds(0, 9)),
}
NUMBERS = {
    "UserVariation": UserVariation(bounds=9.0),
    "UserSynthesizer": UserSynthesizer(bounds=9.0, bins=3, relation=Relation.REPLACE),
    "EmpiricalCDF": EmpiricalCDF(bounds=(-9.0, 9.0)),
    "GaussianDistribution": GaussianDistribution(bounds=9.0, covariance=np.eye(2)),
    "Histogram": Histogram(bounds=(-9.0, 9.0)),
    "HypothesisSelector": HypothesisSelector(DiscreteFamily(np.full((2, 9), 1 / 9))),
}
# Their columns may hold labels of any kind.
LABELLED = {
    "DiscreteDistribution": DiscreteDistribution(categories=range(9)),
    "ProductDistribution": ProductDistribution(categories=[range(9)]),
    "PopularPhrases": PopularPhrases(relation=Relation.REPLACE),
}
# They read columns by name.
NAMED = {
    "RecordMean": RecordMean(bounds=(-9.0, 9.0), relation=Relation.REPLACE),
    "UserCount": UserCount(relation=Relation.REPLACE),
    "UserSum": UserSum(bounds=(-9.0, 9.0), relation=Relation.REPLACE),
    "UserTable": UserTable(
        by="x0", keys=range(9), statistics={"people": "users"}, relation=Relation.REPLACE
    ),
}
VOTES = {
    "ConciseLearner": ConciseLearner([Thresholds(0, 9)], 40.0, error=0.99, failure=0.9),
    "ParityLearner": ParityLearner(40.0, algorithm="vote"),
    "QueryLearner": QueryLearner(ConjunctionQueries(2)),
    "StableLearner": StableLearner(Thresholds(0, 9)),
}
MEANS |= NUMBERS | LABELLED | NAMED
RULES |= VOTES
ESTIMATORS = {**MEANS, **MODELS, **RULES}
TWO_FEATURES = {"ParityLearner", "QueryLearner"}
ONE_FEATURE = {"PrivateMedian", "UserQuantiles", "EmpiricalCDF", "Histogram", "HypothesisSelector"}
ONE_FEATURE |= {*RULES, *LABELLED, *NAMED} - TWO_FEATURES


def table_of(name):
    return X1 if name in ONE_FEATURE else X2


def test_every_public_estimator_is_listed():
    assert set(ESTIMATORS) == public_estimators()


def attempt(name, ledger, *, X=None, y=None, users=IDS, parameters=None, drop=()):
    """Fit; return what was raised and how often the ledger was charged."""
    estimator = clone(ESTIMATORS[name]).set_params(ledger=ledger, data_name="visits")
    y = Y if y is None and name not in MEANS else y
    arguments = {"X": table_of(name) if X is None else X, "y": y, "users": users}
    if name in NAMED and X is None:
        arguments["X"] = pd.DataFrame({"x0": X1[:, 0]})
    for dropped in drop:
        arguments[dropped] = None
    try:
        estimator.set_params(**(parameters or {}))
        estimator.fit(arguments["X"], arguments["y"], users=arguments["users"])
    except REFUSED as error:
        return error, ledger.charges
    return None, ledger.charges


def not_free(tried):
    """Return what was not refused, or was charged, of mistakes and what came of them."""
    return {m: found for m, found in tried.items() if found[0] is None or found[1] != 0}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_without_a_mistake_is_charged_once(name, ledger):
    assert attempt(name, ledger) == (None, 1)


ID_MISTAKES = {
    "floats as ids": IDS.astype(float),
    "truth values as ids": IDS > 5,
    "complex ids": IDS.astype(complex),
    "two id columns": (IDS, IDS // 2),
    "a list of two id columns": [IDS, IDS // 2],
    "a matrix of ids": np.stack([IDS, IDS // 2], axis=1),
    "a frame of two ids": pd.DataFrame({"a": IDS, "b": IDS}),
    "rows of two ids": np.stack([IDS, IDS], axis=1).tolist(),
    "an Arrow column of floats": pa.array(IDS.astype(float)),
    "a polars column of floats": pl.Series(IDS.astype(float)),
    "a pandas column of floats": pd.Series(IDS.astype(float)),
    "durations as ids": IDS.astype("m8[s]"),
    "no ids": None,
    "the name of a column": "patient",
    "too few ids": IDS[:-1],
    "too many axes of ids": IDS.reshape(2, 2, -1),
    "ids of several lengths": (IDS, IDS[:-1]),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_wrong_ids_are_free(name, new_ledger):
    tried = {m: attempt(name, new_ledger(), users=ids) for m, ids in ID_MISTAKES.items()}
    assert not_free(tried) == {}


@lru_cache
def x_mistakes(columns):
    X = X1 if columns == 1 else X2
    texts = np.array([["a"] * X.shape[1]] * N)
    names = [f"x{j}" for j in range(X.shape[1])]
    return {
        "text in X": texts,
        "objects in X": X.astype(object),
        "complex numbers in X": X.astype(complex),
        "dates in X": X.astype(np.int64).astype("M8[s]"),
        "a sparse matrix": sparse.csr_array(X),
        "three axes": X.reshape(N, X.shape[1], 1),
        "no columns": np.zeros((N, 0)),
        "a frame with text": pd.DataFrame(texts, columns=names),
        "a frame of categories": pd.DataFrame({n: pd.Categorical(["a"] * N) for n in names}),
        "a polars frame with text": pl.DataFrame({n: ["a"] * N for n in names}),
        "an Arrow table with text": pa.table({n: ["a"] * N for n in names}),
        "too few rows": X[:-1],
        "data with ids beside them": UserData.from_arrays(X, Y, users=IDS),
    }


LABELS_OF_ANY_KIND = {
    "text in X",
    "objects in X",
    "complex numbers in X",
    "dates in X",
    "a frame with text",
    "a frame of categories",
    "a polars frame with text",
    "an Arrow table with text",
}


def may_be_a_label(name, mistake):
    named = "frame" in mistake or "table" in mistake
    return mistake in LABELS_OF_ANY_KIND and (
        name in LABELLED or (named and name in ("UserCount", "UserTable"))
    )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_wrong_tables_are_free(name, new_ledger):
    tried = {
        mistake: attempt(name, new_ledger(), X=table)
        for mistake, table in x_mistakes(table_of(name).shape[1]).items()
        if not may_be_a_label(name, mistake)
    }
    assert not_free(tried) == {}
    assert len(tried) >= 5


Y_MISTAKES = {
    "no y": None,
    "two columns": np.stack([Y, Y], axis=1),
    "complex y": Y.astype(complex),
    "too short": Y[:-1],
    "dates": Y.astype("M8[s]"),
}
TEXT_AS_Y = {
    "text": np.array(["yes", "no"])[Y],
    "objects": Y.astype(object),
    "a column of text": pd.Series(np.array(["yes", "no"])[Y]),
    "an Arrow column of text": pa.array(["yes"] * N),
}


@pytest.mark.parametrize("name", [*MODELS, *RULES])
def test_wrong_targets_are_free(name, new_ledger):
    tried = {
        mistake: attempt(name, new_ledger(), y=y, drop=("y",) if mistake == "no y" else ())
        for mistake, y in (Y_MISTAKES | TEXT_AS_Y).items()
    }
    assert not_free(tried) == {}


COMMON = {
    "epsilon below 0": {"epsilon": -1.0},
    "epsilon 0": {"epsilon": 0},
    "epsilon NaN": {"epsilon": float("nan")},
    "infinite epsilon": {"epsilon": float("inf")},
    "epsilon in words": {"epsilon": "one"},
    "delta above 1": {"delta": 2.0},
    "delta below 0": {"delta": -1e-6},
    "delta in words": {"delta": "small"},
    "a relation in words": {"relation": "replace"},
    "no name of the data": {"data_name": None},
    "an unknown data set": {"data_name": "nobody's"},
    "a name that is no text": {"data_name": 7},
    "a random state in words": {"random_state": "seven"},
    "an unknown parameter": {"no_such_parameter": 1},
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_wrong_common_parameters_are_free(name, new_ledger):
    known = {*ESTIMATORS[name].get_params(), "no_such_parameter"}
    tried = {}
    for mistake, parameters in COMMON.items():
        if set(parameters) <= known:
            ledger = new_ledger()
            error, charges = attempt(name, ledger, parameters=parameters)
            # A data set that the ledger does not know is refused by the ledger itself.
            if mistake in ("an unknown data set", "a name that is no text"):
                charges = 0
            tried[mistake] = error, charges + ledger.spent("visits").epsilon
    assert not_free(tried) == {}
    assert len(tried) >= 10


REVERSED = (9.0, -9.0)
OWN = [
    *(
        (name, bounds)
        for name in ("UserMean", "UserScaler", "UserCovariance", "UserQueries", "PrivateMedian")
        for bounds in (REVERSED, (0.0, np.inf), (np.nan, 1.0), "wide", None, -3.0, (1.0, 2.0, 3.0))
    ),
    *((name, REVERSED) for name in MODELS if name != "PrivateGridSearch"),
    *((name, ([0.0] * 5, [1.0] * 5)) for name in ("UserMean", "Ridge", "LogisticRegression")),
]


@pytest.mark.parametrize(("name", "bounds"), OWN)
def test_wrong_bounds_are_free(name, bounds, ledger):
    error, charges = attempt(name, ledger, parameters={"bounds": bounds})
    assert error is not None
    assert charges == 0


def fails(candidate, X, y):
    raise ValueError("not today")


SPECIAL = [
    ("UserMean", {"algorithm": "best"}),
    ("UserMean", {"algorithm": "core", "delta": 1e-6}),
    ("UserMean", {"algorithm": "ball", "delta": 0.0}),
    ("UserMean", {"records": -2}),
    ("UserCovariance", {"delta": 0.0}),
    ("UserCovariance", {"shape": "round"}),
    ("UserQueries", {"queries": 0}),
    ("UserQueries", {"dimension": 0}),
    ("UserQueries", {"delta": 0.0}),
    ("UserQueries", {"algorithm": "winsorized"}),
    ("PrivateMedian", {"algorithm": "best"}),
    ("UserQuantiles", {"quantiles": (0.5, 1.5)}),
    ("UserQuantiles", {"quantiles": ()}),
    ("LossSelector", {"bounds": (1.0, 0.0)}),
    ("LossSelector", {"candidates": [1]}),
    ("LossSelector", {"candidates": [], "loss": fails}),
    ("LossSelector", {"candidates": [1], "loss": 7}),
    ("LossSelector", {"candidates": [1], "loss": fails}),
    ("LossSelector", {"alpha": 1.5}),
    ("LossSelector", {"vectorized": "yes"}),
    ("LossSelector", {"algorithm": "published", "relation": Relation.ADD_REMOVE}),
    ("LogisticRegression", {"delta": 0.0}),
    ("LogisticRegression", {"classes": (1,)}),
    ("LogisticRegression", {"classes": (1, 1)}),
    ("LogisticRegression", {"classes": "yes"}),
    ("LogisticRegression", {"penalty": -1.0}),
    ("LogisticRegression", {"steps": 0}),
    ("LogisticRegression", {"batch_rate": 2.0}),
    ("LogisticRegression", {"records": -1}),
    ("LogisticRegression", {"hopeless": "try"}),
    ("LogisticRegression", {"fit_intercept": "yes"}),
    ("LogisticRegression", {"warm_start": 3}),
    ("LogisticRegression", {"epsilon": 1e-3}),
    ("LinearSVC", {"classes": (0, 1, 2)}),
    ("LinearRegression", {"target_bounds": (1.0, 0.0)}),
    ("LinearRegression", {"target_bounds": ([0.0, 0.0], [1.0, 1.0])}),
    ("HuberRegression", {"width": -1.0}),
    ("NeuralClassifier", {"hidden": 0}),
    ("NeuralClassifier", {"module": "resnet"}),
    ("NeuralClassifier", {"classes": (0,)}),
    ("NeuralClassifier", {"learning_rate": 0.0}),
    ("NeuralClassifier", {"records_per_step": 0}),
    ("NeuralClassifier", {"frozen": "hidden"}),
    ("NeuralClassifier", {"shape": (7, 7)}),
    ("NeuralRegressor", {"target_bounds": (1.0, 0.0)}),
    ("PrivateGridSearch", {"param_grid": {"penalty": [0.0, -1.0]}}),
    ("PrivateGridSearch", {"param_grid": {"steps": [2, 0]}}),
    ("PrivateGridSearch", {"param_grid": {"bounds": [(0.0, 1.0), REVERSED]}}),
    ("PrivateGridSearch", {"param_grid": {"no_such_parameter": [1]}}),
    ("PrivateGridSearch", {"param_grid": {"penalty": []}}),
    ("PrivateGridSearch", {"param_grid": {"epsilon": [1.0]}}),
    ("PrivateGridSearch", {"param_grid": {"hopeless": ["refuse", "try"]}}),
    ("PrivateGridSearch", {"param_grid": "penalty"}),
    ("PrivateGridSearch", {"estimator": UserMean()}),
    ("PrivateGridSearch", {"estimator": LinearRegression()}),
    ("PrivateGridSearch", {"selection_share": 1.0}),
    ("PrivateGridSearch", {"fit_share": 0.0}),
    ("PrivateGridSearch", {"epsilon": 0.01}),
    ("ThresholdLearner", {"domain": (9, 0)}),
    ("ThresholdLearner", {"step": -1.0}),
    ("ThresholdLearner", {"direction": "up"}),
    ("ThresholdLearner", {"algorithm": "best"}),
    ("ThresholdLearner", {"algorithm": "more_than"}),
    ("ThresholdLearner", {"classes": (0, 1, 2)}),
    ("ThresholdLearner", {"delta": 1e-6}),
    ("PrivateThreshold", {"domain": (9, 0)}),
    ("PrivateThreshold", {"excess": 2.0}),
    ("ConceptLearner", {"concepts": "thresholds"}),
    ("ConceptLearner", {"concepts": None}),
    ("ConceptLearner", {"score": "best"}),
    ("ConceptLearner", {"records": 0}),
    ("PrivateMinError", {"alpha": 0.0}),
    ("PrivateMinError", {"concepts": 7}),
]


@pytest.mark.parametrize(("name", "parameters"), SPECIAL)
def test_wrong_parameters_of_their_own_are_free(name, parameters, ledger):
    error, charges = attempt(name, ledger, parameters=parameters)
    assert error is not None
    assert charges == 0


# What no parameter means; where one does mean it, the fit goes on and is charged.
NONSENSE = ["nonsense", -1, float("nan"), 0.5j, (), [None], {"a": 1}, object(), np.zeros((2, 2))]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nonsense_for_any_parameter_is_refused_for_free(name, new_ledger, tmp_path, monkeypatch):
    """Every parameter of every estimator: what is refused was never charged."""
    monkeypatch.chdir(tmp_path)  # "nonsense" is the name of a file, too
    charged, refused = [], 0
    for parameter in sorted({*ESTIMATORS[name].get_params(deep=False)} - {"ledger", "data_name"}):
        for value in NONSENSE:
            error, charges = attempt(name, new_ledger(), parameters={parameter: value})
            refused += error is not None
            if error is not None and charges:
                charged.append((parameter, value, error))
    assert charged == []
    assert refused > len(NONSENSE)


@pytest.mark.parametrize("name", [*MODELS, *RULES])
def test_a_table_of_other_columns_is_free(name, ledger):
    if name in MODELS or name == "ParityLearner":
        pytest.skip("a model takes any number of columns")
    error, charges = attempt(name, ledger, X=X1 if name in TWO_FEATURES else X2)
    assert error is not None
    assert charges == 0


def test_a_warm_start_from_other_columns_is_free(ledger):
    model = LogisticRegression(warm_start=True, **MODEL).fit(X2, Y, users=IDS)
    model.set_params(ledger=ledger, data_name="visits")
    with pytest.raises(REFUSED):
        model.fit(X1, Y, users=IDS)
    assert ledger.charges == 0


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    frame = pd.DataFrame({"patient": IDS, "a": X2[:, 0], "b": X2[:, 1], "ill": Y})
    frame = frame.assign(word="w", half=IDS + 0.5)
    frame.to_csv(folder / "visits.csv", index=False)
    frame.to_parquet(folder / "visits.parquet")
    return folder / "visits"


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """Count charges of all ledgers; return the count and the options that name one."""
    book = Ledger(tmp_path / "cli.db")
    for unit in ("patient",):
        book.set_budget("visits", epsilon=1e9, delta=0.9, unit=unit)
    charges = []
    charge = Ledger.charge
    monkeypatch.setattr(
        Ledger, "charge", lambda self, *a, **k: (charges.append(1), charge(self, *a, **k))[1]
    )
    return charges, ["--ledger", str(book.path), "--data-name", "visits"]


MEAN = ["--task", "mean", "--user", "patient", "--features", "a,b", "--bounds", "9"]
LOGISTIC = [
    *("--task", "logistic", "--user", "patient", "--features", "a,b", "--target", "ill"),
    *("--bounds", "9", "--delta", "1e-6"),
]
LINEAR = [*LOGISTIC[2:], "--task", "linear"]
THRESHOLD = [
    *("--task", "threshold", "--user", "patient", "--features", "a", "--target", "ill"),
    *("--bounds", "0,9"),
]
COMMANDS = {
    "an unknown algorithm": [*MEAN, "--epsilon", "1", "--algorithm", "best"],
    "a ball without delta": [*MEAN, "--epsilon", "1", "--algorithm", "ball"],
    "epsilon below 0": [*MEAN, "--epsilon", "-1"],
    "epsilon in words": [*MEAN, "--epsilon", "one"],
    "delta above 1": [*MEAN, "--epsilon", "1", "--delta", "2"],
    "reversed bounds": [*MEAN[:-1], "9,-9", "--epsilon", "1"],
    "no bounds": [*MEAN[:-2], "--epsilon", "1"],
    "bounds of an unknown column": [*MEAN, "--bounds", "c=0,1", "--epsilon", "1"],
    "an unknown task": [*MEAN[2:], "--task", "mode", "--epsilon", "1"],
    "an unknown column": [*MEAN, "--epsilon", "1", "--features", "a,c"],
    "an unknown id": [*MEAN, "--epsilon", "1", "--user", "person"],
    "floats as ids": [*MEAN, "--epsilon", "1", "--user", "half"],
    "text as a feature": [*MEAN, "--epsilon", "1", "--features", "a,word"],
    "ids as a feature": [*MEAN, "--epsilon", "1", "--features", "patient"],
    "an unknown engine": [*MEAN, "--epsilon", "1", "--engine", "abacus"],
    "no target": [*LOGISTIC[:6], *LOGISTIC[8:], "--epsilon", "1"],
    "an unknown target": [*LOGISTIC, "--epsilon", "1", "--target", "well"],
    "one class": [*LOGISTIC, "--epsilon", "1", "--classes", "0"],
    "classes of a regression": [*LINEAR, "--epsilon", "1", "--classes", "0,1"],
    "three classes of a cut-off": [*THRESHOLD, "--epsilon", "1", "--classes", "0,1,2"],
    "delta for a cut-off": [*THRESHOLD, "--epsilon", "1", "--delta", "1e-6"],
    "two features for a cut-off": [*THRESHOLD, "--epsilon", "1", "--features", "a,b"],
    "no delta for a model": [*LOGISTIC[:-2], "--epsilon", "1"],
    "a hopeless model": [*LOGISTIC, "--epsilon", "0.001"],
    "records below 1": [*LOGISTIC, "--epsilon", "1", "--records", "0"],
    "a model that cannot be written": [*MEAN, "--epsilon", "1", "--model", "nowhere/m.json"],
    "a report that cannot be written": [*MEAN, "--epsilon", "1", "--report", "nowhere/m.html"],
    "text as a target": [*LINEAR, "--epsilon", "9", "--target", "word"],
}


TYPED = {"floats as ids", "text as a feature", "text as a target"}


class TestCommands:
    @pytest.mark.parametrize(
        "options",
        [[*MEAN, "--epsilon", "1"], [*LOGISTIC, "--epsilon", "4"]],
        ids=["mean", "logistic"],
    )
    def test_a_command_without_a_mistake_is_charged_once(self, options, visits, counted):
        charges, book = counted
        assert main(["fit", f"{visits}.csv", *options, *book]) == 0
        assert len(charges) == 1

    @pytest.mark.parametrize("mistake", COMMANDS)
    def test_a_mistake_is_free(self, mistake, visits, counted, capsys):
        charges, book = counted
        # A CSV file declares no types.
        ending = "parquet" if mistake in TYPED else "csv"
        assert main(["fit", f"{visits}.{ending}", *COMMANDS[mistake], *book]) in (1, 2)
        assert charges == []
        assert capsys.readouterr().err


FOLDED = {
    "nobody in some fold": (ConceptLearner(Thresholds(0, 9)), 4, 0.0),
    "a model of too few": (LogisticRegression(**MODEL), 50, 1e-6),
    "a search of too few": (MODELS["PrivateGridSearch"], 60, 1e-6),
    "a parity of too few": (ParityLearner(classes=(0, 1)), 50, 0.0),
}


class TestTooFewPeople:
    """Where the number of people is public, too few of them are refused for free."""

    @pytest.mark.parametrize("mistake", FOLDED)
    def test_folds_of_too_few_are_free(self, mistake, ledger):
        estimator, people, delta = FOLDED[mistake]
        few = people > IDS
        asked = {"epsilon": 4.0, "delta": delta, "ledger": ledger, "data_name": "visits"}
        for X in (X1[few], UserData.from_arrays(X1[few], Y[few], users=IDS[few])):
            given = {} if isinstance(X, UserData) else {"y": Y[few], "users": IDS[few]}
            with pytest.raises(NotEnoughUsersError):
                private_cross_val_score(estimator, X, **given, **asked)
        assert ledger.charges == 0

    def test_enough_people_are_charged_once(self, ledger):
        asked = {"users": IDS, "epsilon": 4.0, "ledger": ledger, "data_name": "visits"}
        private_cross_val_score(ConceptLearner(Thresholds(0, 9)), X1, Y, **asked)
        assert ledger.charges == 1

    @pytest.mark.parametrize("honest", [0, 0.0, 1e-9, 0.9 / PEOPLE])
    def test_nobody_who_hides_the_others_is_free(self, honest, ledger):
        learner = StableLearner(
            Thresholds(0, 9),
            "shuffle",
            delta=1e-2,
            honest=honest,
            ledger=ledger,
            data_name="visits",
        )
        with pytest.raises(NotEnoughUsersError, match="honest"):
            learner.fit(X1, Y, users=IDS)
        assert ledger.charges == 0
        learner.set_params(honest=0.5).fit(X1, Y, users=IDS)
        assert ledger.charges == 1

    def test_where_their_number_is_private_nobody_counts_them(self, tmp_path):
        book = CountedLedger(tmp_path / "book.db")
        book.set_budget("visits", epsilon=1e9, relation=Relation.ADD_REMOVE)
        asked = {"epsilon": 4.0, "ledger": book, "data_name": "visits"}
        found = private_cross_val_score(
            ConceptLearner(Thresholds(0, 9)),
            X1[:2],
            Y[:2],
            users=IDS[:2],
            relation=Relation.ADD_REMOVE,
            **asked,
        )
        assert (len(found.scores), book.charges) == (5, 1)


def test_the_contract_lists_enough_mistakes():
    listed = len(ID_MISTAKES) + len(x_mistakes(1)) + len(Y_MISTAKES | TEXT_AS_Y)
    assert listed + len(COMMON) + len(OWN) + len(SPECIAL) + len(COMMANDS) >= 150
