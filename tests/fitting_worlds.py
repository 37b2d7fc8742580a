"""How every public estimator is fitted: one table of routes, on people among whom one is wild.

The first user may hold anything, the others plain, decimal, huge and cancelling numbers. Contracts
that are about *every* estimator take :data:`ROUTES` and compare it with
:func:`public_estimators`, so that an estimator nobody listed fails them.
"""

import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

import quorate
from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.distributions import (
    DiscreteDistribution,
    DiscreteFamily,
    EmpiricalCDF,
    GaussianDistribution,
    GaussianFamily,
    Histogram,
    HypothesisSelector,
    ProductDistribution,
)
from quorate.estimators import UserEstimator
from quorate.learners import (
    ConceptLearner,
    ConciseLearner,
    LossSelector,
    ParityLearner,
    PrivateMinError,
    PrivateThreshold,
    ThresholdLearner,
)
from quorate.learners.concepts import Intervals, Thresholds
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
from quorate.papers.queries.query_learner import QueryLearner
from quorate.papers.stability import DecisionListRule, HashedPoints, StableLearner
from quorate.synth import UserSynthesizer
from quorate.tabulate import PopularPhrases, RecordMean, UserCount, UserSum, UserTable

D = 5
N_USERS = 48


def public_estimators():
    """Return the names of all estimators that a package or a module offers."""
    found = set()
    for module in pkgutil.walk_packages(quorate.__path__, "quorate."):
        if module.name.rpartition(".")[2] == "__main__":
            continue
        opened = importlib.import_module(module.name)
        for name in getattr(opened, "__all__", ()):
            thing = getattr(opened, name)
            if inspect.isclass(thing) and issubclass(thing, UserEstimator) and "fit" in dir(thing):
                found.add(thing.__name__)
    # Shared by others, and never fitted themselves.
    return found - {
        "LinearModel",
        "NeuralModel",
        "RuleLearner",
        "UserDistribution",
        "UserEstimator",
        "UserStatistic",
    }


def others(rng, n_users=N_USERS):
    """Return the records of everybody but the first user: plain, decimal, huge and cancelling."""
    held = []
    for user in range(1, n_users):
        count = 1 + user % 5
        rows = np.round(rng.normal(size=(count, D)), 1 + user % 3)
        if user % 4 == 0:
            rows = np.tile([1e16, 1.0, -1e16, 3.0, 0.1], (count, 1)) + rows
        if user % 17 == 0:
            rows[0] = [1e308, -1e308, 1e308, 1.0, 0.0]
        held.append(rows)
    return held


# What the first user may hold: other values, and another number of records.
FIRST = {
    "one record": np.ones((1, D)),
    "nothing": np.zeros((0, D)),
    "two": np.array([[1e16, 1.0, -1e16, 1.0, 0.3], [0.1, 0.2, 0.3, 0.4, 0.5]]),
    "three that cancel": np.array([[1e16] * D, [1.0] * D, [-1e16] * D]),
    "largest": np.array([[1e308, -1e308, 1e308, 1e308, 1e308]] * 5),
    "missing": np.array([[np.nan] * D, [np.inf] * D, [-np.inf] * D, [1.0] * D]),
    "a thousand": np.linspace(-3.0, 3.0, 1003 * D).reshape(-1, D),
}
CHANGES = list(FIRST)[1:]


def held_by(first):
    """Return the records of the first user: those of a name, or any others."""
    return FIRST[first] if isinstance(first, str) else first


def people(first="one record", n_users=N_USERS, *, labels=2, binary=False, integers=False):
    """Return everybody, the first user with these records, or with those of this name."""
    rng = np.random.default_rng(7)
    rows = [held_by(first), *others(rng, n_users)]
    X = np.concatenate(rows)
    if integers:
        X = np.clip(np.nan_to_num(np.round(X)), -4, 4)
    if binary:
        X = (X > 0.2).astype(float)
    y = np.concatenate([(np.arange(len(r)) + i) % labels for i, r in enumerate(rows)]).astype(float)
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    return UserData(X, y, offsets=offsets, ids=np.arange(n_users))


def narrow(users, width, *, shift=0.0):
    """Return the same people with their first columns only."""
    return UserData(
        users.X[:, :width] + shift, users.y, offsets=users.offsets, ids=range(users.n_users)
    )


def named(users):
    """Return the same people with names for their columns."""
    names = [f"x{j}" for j in range(users.n_features)]
    return UserData(
        users.X, users.y, offsets=users.offsets, ids=range(users.n_users), feature_names=names
    )


def crowded(first, n_users=N_USERS):
    """Return many users of one small integer each, and the first one with what it holds."""
    n_users += 352
    held = held_by(first)
    x = np.concatenate([np.nan_to_num(held[:, 0]), np.arange(n_users - 1) % 9 - 4.0])
    x = np.clip(np.round(x), -4, 4)[:, None]
    offsets = np.r_[0, np.arange(n_users) + len(held)]
    return UserData(x, (x[:, 0] > 0) * 1.0, offsets=offsets, ids=np.arange(n_users))


def _world(width=None, shift=0.0, names=False, **kind):
    """Return a function that makes people of this kind, however many."""

    def made(first="one record", n_users=N_USERS):
        users = people(first, n_users, **kind)
        users = users if width is None else narrow(users, width, shift=shift)
        return named(users) if names else users

    return made


WORLDS = {
    "reals": _world(),
    "three classes": _world(labels=3),
    "one real": _world(1),
    "binary": _world(binary=True),
    "one integer": _world(1, integers=True),
    "many integers": crowded,
    "named columns": _world(2, 4.0, names=True, integers=True),
    "one category": _world(1, 4.0, integers=True),
    "two categories": _world(2, 4.0, integers=True),
}


def words_of(estimator):
    """Return the algorithms that a docstring names."""
    text = inspect.getdoc(type(estimator))
    told = re.search(r"^algorithm : (.*?)^\S", text, re.S | re.M)
    known = told is not None and "algorithm" in estimator.get_params(deep=False)
    return sorted(set(re.findall(r'"(\w+)"', told[1]))) if known else []


@dataclass(frozen=True)
class Route:
    """One way through one estimator, and the world that it is fitted on."""

    estimator: UserEstimator
    world: str = "reals"

    @property
    def name(self):
        return type(self.estimator).__name__

    def people(self, first="one record", n_users=N_USERS):
        return WORLDS[self.world](first, n_users)

    def fresh(self, **parameters):
        return clone(self.estimator).set_params(**parameters)

    def neighbours(self, first):
        """Return two data sets that differ in the first user, as the relation says."""
        present = self.people(first)
        if self.estimator.relation is Relation.REPLACE:
            return self.people(), present
        return present.take(range(1, present.n_users)), present

    def release(self, data):
        """Fit, and ask a desk its question; return what was promised."""
        fitted = self.fresh().fit(data)
        if isinstance(fitted, UserQueries):
            fitted.ask(lambda records: float(np.tanh(records.sum())))
        return fitted.guarantee_


COMMON = {"epsilon": 40.0, "delta": 1e-5}
MODEL = {"steps": 3, "progress": False, "random_state": 0, **COMMON}
GONE, ALL = {"relation": Relation.ADD_REMOVE}, {"relation": Relation.REPLACE}
PURE = {"epsilon": 4.0}
SHARES = {"categories": range(9)}
CUTS = Thresholds(-4, 4)
NORMAL = {"bounds": 9.0, "covariance": np.eye(D)}
TABLE = {
    "by": "x0",
    "keys": range(9),
    "statistics": {
        "records": "count",
        "people": "users",
        "sum": ("x1", "sum"),
        "mean": ("x1", "mean"),
        "median": ("x1", "median"),
    },
    "bounds": (0.0, 8.0),
}
SYNTH = {"categories": {"x0": range(9)}, "bounds": {"x1": (0.0, 9.0)}, "bins": 4}

ROUTES = {
    "UserMean": Route(UserMean(bounds=9.0, **COMMON)),
    "UserMean, clip": Route(UserMean(bounds=9.0, algorithm="clip", **COMMON)),
    "UserMean, ball": Route(UserMean(bounds=9.0, algorithm="ball", **COMMON)),
    "UserMean, interval": Route(UserMean(bounds=900.0, algorithm="interval", **COMMON)),
    "UserMean, weighted": Route(UserMean(bounds=9.0, records="auto", **COMMON)),
    "UserMean, pure": Route(UserMean(bounds=9.0, **PURE)),
    "UserMean, add/remove": Route(UserMean(bounds=9.0, **COMMON, **GONE)),
    "UserScaler": Route(UserScaler(bounds=9.0, **COMMON)),
    "UserScaler, pure": Route(UserScaler(bounds=9.0, **PURE)),
    "UserCovariance": Route(UserCovariance(bounds=9.0, **COMMON)),
    "UserVariation": Route(UserVariation(bounds=9.0, **PURE)),
    "UserQueries": Route(UserQueries(bounds=9.0, dimension=1, **COMMON)),
    "PrivateMedian": Route(PrivateMedian(bounds=(-9.0, 9.0), **PURE), "one real"),
    "UserQuantiles": Route(UserQuantiles(bounds=(-9.0, 9.0), **PURE), "one real"),
    "LogisticRegression": Route(LogisticRegression(**MODEL)),
    "LogisticRegression, three": Route(
        LogisticRegression(classes=(0, 1, 2), **MODEL), "three classes"
    ),
    "LogisticRegression, add/remove": Route(LogisticRegression(**MODEL, **GONE)),
    "LogisticRegression, constant": Route(
        LogisticRegression(epsilon=0.1, delta=1e-5, hopeless="constant")
    ),
    "LinearSVC": Route(LinearSVC(bounds=3.0, **MODEL)),
    "LinearRegression": Route(LinearRegression(target_bounds=(0.0, 1.0), **MODEL)),
    "Ridge": Route(Ridge(**MODEL)),
    "HuberRegression": Route(HuberRegression(**MODEL)),
    "NeuralClassifier": Route(NeuralClassifier(hidden=3, **MODEL)),
    "NeuralClassifier, three": Route(
        NeuralClassifier(classes=(0, 1, 2), bounds=3.0, hidden=3, **MODEL), "three classes"
    ),
    "NeuralClassifier, add/remove": Route(NeuralClassifier(hidden=3, **MODEL, **GONE)),
    "NeuralRegressor": Route(
        NeuralRegressor(bounds=(-2.0, 2.0), target_bounds=(0.0, 1.0), hidden=3, **MODEL)
    ),
    "PrivateGridSearch": Route(
        PrivateGridSearch(
            LogisticRegression(steps=2, progress=False),
            {"penalty": [0.0, 1.0]},
            epsilon=400.0,
            delta=1e-5,
            random_state=0,
        )
    ),
    "LossSelector": Route(LossSelector(bounds=(-3.0, 3.0), records=2, **PURE)),
    "LossSelector, add/remove": Route(LossSelector(bounds=(-3.0, 3.0), records=2, **PURE, **GONE)),
    "ThresholdLearner": Route(
        ThresholdLearner(domain=(-4, 4), random_state=0, **PURE), "one integer"
    ),
    "ThresholdLearner, a long line": Route(
        ThresholdLearner(domain=(-(2**40), 2**40), random_state=0, **PURE), "one integer"
    ),
    "PrivateThreshold": Route(
        PrivateThreshold(domain=(-4, 4), random_state=0, **PURE), "one integer"
    ),
    "PrivateMinError": Route(PrivateMinError(CUTS, random_state=0, **PURE), "one integer"),
    "ConceptLearner": Route(ConceptLearner(CUTS, random_state=0, **PURE), "one integer"),
    "ConceptLearner, duels": Route(ConceptLearner(CUTS, algorithm="duels", **PURE), "one integer"),
    "ConciseLearner": Route(
        ConciseLearner(
            [Thresholds(-4, -3), Intervals(3, lower=-4)],
            40.0,
            error=0.99,
            failure=0.9,
            random_state=0,
        ),
        "many integers",
    ),
    "UserCount": Route(UserCount(where={"x0": (0.5, None)}, **PURE), "named columns"),
    "UserCount, records": Route(UserCount(of="records", **PURE), "named columns"),
    "UserCount, records, with delta": Route(
        UserCount(of="records", algorithm="gaussian", **COMMON), "named columns"
    ),
    "UserCount, add/remove": Route(UserCount(of="records", **PURE, **GONE), "named columns"),
    "UserSum": Route(UserSum(bounds=(-4.0, 4.0), **PURE), "named columns"),
    "UserSum, with delta": Route(UserSum(bounds=(-4.0, 4.0), cap=9, **COMMON), "named columns"),
    "UserTable": Route(
        UserTable(
            by="x0",
            keys=range(9),
            statistics={"people": "users", "total": ("x1", "sum")},
            bounds={"x1": (0.0, 9.0)},
            **PURE,
        ),
        "named columns",
    ),
    # Two keys, which others hold too: how many there are is private, and shows in the noise.
    "PopularPhrases": Route(PopularPhrases(column="x0", **COMMON, **ALL), "binary"),
    "PopularPhrases, add/remove": Route(PopularPhrases(column="x0", **COMMON), "binary"),
    "RecordMean": Route(RecordMean(bounds=(-4.0, 4.0), **PURE), "named columns"),
    "RecordMean, with delta": Route(RecordMean(bounds=(-4.0, 4.0), **COMMON), "named columns"),
    "ParityLearner": Route(ParityLearner(40.0, random_state=0), "binary"),
    "ParityLearner, votes": Route(ParityLearner(40.0, algorithm="vote", random_state=0), "binary"),
    "QueryLearner": Route(QueryLearner(ConjunctionQueries(D), 40.0), "binary"),
    "QueryLearner, with delta": Route(
        QueryLearner(ConjunctionQueries(D), 40.0, delta=1e-5), "binary"
    ),
    "QueryLearner, local": Route(
        QueryLearner(ConjunctionQueries(D), 40.0, trust="local", random_state=0), "binary"
    ),
    "StableLearner": Route(StableLearner(CUTS, random_state=0, **PURE), "one integer"),
    "StableLearner, with delta": Route(
        StableLearner(HashedPoints(9, lower=-4), random_state=0, agreement=True, **COMMON),
        "one integer",
    ),
    "StableLearner, lists": Route(
        StableLearner(DecisionListRule(D), delta=1e-5, random_state=0, **PURE), "binary"
    ),
    "StableLearner, local": Route(
        StableLearner(CUTS, trust="local", random_state=0, **PURE), "one integer"
    ),
    "StableLearner, shuffle": Route(
        StableLearner(CUTS, trust="shuffle", delta=1e-2, random_state=0, epsilon=1.0), "one integer"
    ),
    "StableLearner, buckets": Route(
        StableLearner(CUTS, "shuffle", reports="buckets", delta=1e-2, random_state=0, epsilon=1.0),
        "one integer",
    ),
    "DiscreteDistribution": Route(DiscreteDistribution(**SHARES, **PURE), "one category"),
    "DiscreteDistribution, records": Route(
        DiscreteDistribution(records=3, **SHARES, **PURE), "one category"
    ),
    "DiscreteDistribution, bought": Route(
        DiscreteDistribution(records="auto", **SHARES, **PURE), "one category"
    ),
    "DiscreteDistribution, gaussian": Route(
        DiscreteDistribution(algorithm="gaussian", **SHARES, **COMMON), "one category"
    ),
    "DiscreteDistribution, ball": Route(
        DiscreteDistribution(algorithm="ball", **SHARES, **COMMON), "one category"
    ),
    "DiscreteDistribution, polytope": Route(
        DiscreteDistribution(algorithm="polytope", **SHARES, **PURE), "one category"
    ),
    "DiscreteDistribution, alike": Route(
        DiscreteDistribution(alike=True, **SHARES, **COMMON), "one category"
    ),
    "DiscreteDistribution, add/remove": Route(
        DiscreteDistribution(**SHARES, **PURE, **GONE), "one category"
    ),
    "Histogram": Route(Histogram(bounds=(-4.0, 4.0), bins=6, **PURE), "one real"),
    "Histogram, quantiles": Route(
        Histogram(edges="quantiles", bounds=(-4.0, 4.0), bins=3, **PURE), "one real"
    ),
    "EmpiricalCDF": Route(EmpiricalCDF(bounds=(-4.0, 4.0), cells=16, **PURE), "one real"),
    "EmpiricalCDF, records": Route(
        EmpiricalCDF(bounds=(-4.0, 4.0), cells=16, records=3, **PURE), "one real"
    ),
    "ProductDistribution": Route(
        ProductDistribution(categories=[range(9), range(9)], **PURE), "two categories"
    ),
    "ProductDistribution, with delta": Route(
        ProductDistribution(categories=[range(9), range(9)], **COMMON), "two categories"
    ),
    "ProductDistribution, covers": Route(
        ProductDistribution(categories=[range(2), range(3)], algorithm="cover", error=0.9, **PURE),
        "two categories",
    ),
    "GaussianDistribution, cover": Route(
        GaussianDistribution(bounds=0.5, deviations=(1.0, 1.2), error=0.9, **PURE), "one real"
    ),
    "GaussianDistribution": Route(GaussianDistribution(**NORMAL, **PURE)),
    "GaussianDistribution, with delta": Route(GaussianDistribution(**NORMAL, **COMMON)),
    "GaussianDistribution, deviations": Route(
        GaussianDistribution(bounds=9.0, deviations=(0.1, 9.0), **COMMON)
    ),
    "HypothesisSelector": Route(
        HypothesisSelector(DiscreteFamily([[0.5] + [0.0625] * 8, [1 / 9] * 9]), 4.0), "one category"
    ),
    "UserCount, a cap": Route(UserCount(of="records", cap=2, **COMMON, **GONE)),
    "UserSum, reals": Route(UserSum(bounds=9.0, **PURE)),
    "UserSum, a cap": Route(UserSum(bounds=9.0, cap=5.0, algorithm="gaussian", **COMMON)),
    "RecordMean, reals": Route(RecordMean(bounds=9.0, **PURE)),
    "RecordMean, gaussian": Route(RecordMean(bounds=9.0, algorithm="gaussian", **COMMON)),
    "UserSynthesizer": Route(UserSynthesizer(**SYNTH, **COMMON), "named columns"),
    "UserSynthesizer, replace": Route(
        UserSynthesizer(**SYNTH, **COMMON, relation=Relation.REPLACE), "named columns"
    ),
    "UserTable, categories": Route(UserTable(**TABLE, **COMMON), "two categories"),
    "UserTable, pure": Route(UserTable(**TABLE, **PURE), "two categories"),
    "UserTable, caps": Route(UserTable(cap=2, groups=2, **TABLE, **COMMON), "two categories"),
    "UserTable, add/remove": Route(UserTable(**TABLE, **COMMON, **GONE), "two categories"),
    "HypothesisSelector, normals": Route(
        HypothesisSelector(GaussianFamily(np.array([[0.0] * D, [1.0] * D]), 1.0), 4.0)
    ),
}
