"""One made-up world for every engine: text ids, decimal numbers on rounding ties, shuffled files.

The numbers are tenths. One grid of :func:`digest` has steps of a half: sums of tenths lie on its
points, give or take a last bit, which decides to which side they fall. The other grid is so fine
that it shows almost every bit. Whatever changes a bit changes an integer somewhere.
"""

import functools
import hashlib
import os
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quorate.core.bounds.grid import Bound, Box, Grid
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.core.users.crowd import UserMeans, encode_users
from quorate.core.users.data import ordered_users
from quorate.core.users.public_choices import in_own_order
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
from quorate.learners import (
    ConceptLearner,
    ConciseLearner,
    LossSelector,
    ParityLearner,
    PrivateMinError,
    PrivateThreshold,
    ThresholdLearner,
)
from quorate.learners.concepts import Direction, Thresholds
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
    LogisticLoss,
    LogisticRegression,
    PhasedMinimizer,
    PrivateGridSearch,
    Ridge,
    minimize,
)
from quorate.nets import NeuralClassifier, NeuralRegressor
from quorate.papers.queries.algorithms import ConjunctionQueries, DecisionListQueries
from quorate.papers.queries.local_masked_parity import LocalMaskedParity
from quorate.papers.queries.private_score import private_cross_val_score, private_score
from quorate.papers.queries.query_learner import QueryLearner
from quorate.papers.stability import DecisionListRule, QueryRule, StableLearner
from quorate.synth import UserSynthesizer
from quorate.tabulate import PopularPhrases, RecordMean, UserCount, UserSum, UserTable
from sealing import crowd_counts, crowd_total

BOX = Box(np.full(3, -64.0), np.full(3, 64.0))
GRIDS = (Grid(BOX, 0.5), Grid(BOX, 2.0**-46))
COLUMNS = {"user": "id", "features": ["a", "b", "c"], "target": "y"}


def visits(rows=6000, users=250, seed=0):
    """Return a table with ids that are text, some missing, and features in tenths."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, users, rows)
    ids = pa.array([f"pätient {u}" if u else None for u in who])
    X = rng.integers(-40, 41, (rows, 3)) / 10.0
    X[rng.random(rows) < 0.02, 1] = np.nan
    y = (X[:, 0] + rng.standard_normal(rows) > 0).astype(np.int64)
    return pa.table({"id": ids, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})


def write(table, folder, files=4):
    """Write a table as several files, of unequal sizes and several row groups."""
    cuts = np.linspace(0, 1, files + 1) ** 1.5 * table.num_rows
    for i, (start, stop) in enumerate(
        zip(cuts[:-1].astype(int), cuts[1:].astype(int), strict=True)
    ):
        path = Path(folder) / f"part-{i}.parquet"
        pq.write_table(table.slice(start, stop - start), path, row_group_size=600)
    return folder


@dataclass(frozen=True)
class Bent:
    """A statistic of floats whose last bits depend on the order of a user's records."""

    bound: Bound

    def __call__(self, users):
        users = self.turned(in_own_order(users))
        weighted = users.X * 0.3 * (1.0 - 0.1 * users.y)[:, None]
        index, size = users.user_index(), users.n_users
        return np.stack([np.bincount(index, column, minlength=size) for column in weighted.T], 1)

    def turned(self, users):
        return users


@dataclass(frozen=True)
class Reversed(Bent):
    """The control: the same sums, added up in the opposite order."""

    def turned(self, users):
        order = np.concatenate(
            [
                np.arange(a, b)[::-1]
                for a, b in zip(users.offsets[:-1], users.offsets[1:], strict=True)
            ]
            or [np.empty(0, np.int64)]
        )
        return UserData(users.X[order], users.y[order], offsets=users.offsets)


@dataclass(frozen=True)
class Everything:
    """Every user's integers on both grids, under their key, in one pass over a part."""

    kind: type

    def __call__(self, users):
        votes = [
            encode_users(users, statistic, grid)
            for grid, statistic in product(GRIDS, (UserMeans(BOX), self.kind(BOX)))
        ]
        return np.hstack([users.keys().view(np.int64)[:, None], *votes])


def digest(crowd, kind=Bent):
    """Return a hash of exact integers: totals, counts, every user's own and under a cap."""
    found = hashlib.sha256()
    found.update(crowd_total(crowd, kind(BOX), GRIDS[1]).tobytes())
    found.update(crowd_counts(crowd, UserData.record_counts, np.arange(60.0)).tobytes())
    for data in (crowd, crowd.cap(5, random_state=3)):
        rows = np.concatenate(data.map(Everything(kind)))
        found.update(rows[np.argsort(rows[:, 0].view(np.uint64))].tobytes())
    return found.hexdigest()


def _with(users, X, names, y=None):
    """Return the same users with other features."""
    labels = users.y if y is None else y.astype(np.float64)
    return ordered_users(
        np.ascontiguousarray(X), labels, users.offsets, users.keys(), users.unit, names
    )


def first(users):
    """Return the users with one feature, in steps of a tenth, for cut-offs and densities."""
    return _with(users, users.X[:, :1], ("a",))


def whole(users):
    """Return the users with one whole number from 0 to 8, for categories."""
    return _with(users, np.rint(users.X[:, :1]) + 4.0, ("a",))


def bits(users):
    """Return the users with Boolean features."""
    return _with(users, (users.X > 0).astype(np.float64), ("a", "b", "c"))


def odd(users):
    """Return the users with Boolean features and a parity of two of them."""
    X = users.X > 0
    return _with(users, X.astype(np.float64), ("a", "b", "c"), X[:, 0] ^ X[:, 2])


def masked(users):
    """Return the users with the features of a masked parity of two bits: x, index, mask."""
    X = np.stack([users.X[:, 0] > 0, users.X[:, 1] > 0, users.X[:, 2] > 0, users.X[:, 0] > 2], 1)
    return _with(users, X.astype(np.float64), tuple("abcd"))


def _threshold(**options):
    return lambda: ThresholdLearner(4.0, domain=(-4, 4), step=2.0**-20, random_state=0, **options)


def _minimum(crowd):
    found = minimize(
        crowd, LogisticLoss(), epsilon=9.0, delta=1e-5, steps=3, records=20, progress=False
    )
    return [found.theta]


def _phases(crowd):
    phases = PhasedMinimizer(
        epsilon=9.0,
        delta=1e-5,
        records=20,
        gradient_bound=9.0,
        gradient_spread=1.0,
        smoothness=9.0,
        radius=9.0,
        random_state=0,
    )
    return [phases.minimize(crowd, LogisticLoss()).theta]


def _questions(crowd):
    desk = UserQueries(9.0, delta=1e-5, queries=2, bounds=4.0, dimension=1).fit(crowd)
    return [desk.ask(lambda records: records.max()).value, desk.ask(np.mean).value]


def _concise():
    return ConciseLearner([Thresholds(0, 8)], 1.0, error=0.9, failure=0.9, random_state=0)


def _masked_parity(crowd):
    return [LocalMaskedParity(2, epsilon=2.0).learn(crowd, random_state=0)]


def _score(crowd):
    rule = Thresholds(-4, 4).concept(3)
    return [private_score(rule, crowd, epsilon=2.0)]


def _cross_validation(crowd):
    found = private_cross_val_score(
        ConceptLearner(Thresholds(-4, 4)), crowd, epsilon=4.0, folds=3, random_state=0
    )
    return [found.scores, found.error]


RUNS = (_minimum, _phases, _questions, _masked_parity, _score, _cross_validation)
MEAN = {"delta": 1e-5, "bounds": 10.0}
TABLE = {
    "by": "a",
    "keys": [-4.0, 0.0, 1.0, 2.0, 3.5],
    "statistics": {"n": "count", "who": "users", "b": "sum", "m": ("b", "mean"), "c": "median"},
    "bounds": 10.0,
}
MODEL = {"delta": 1e-5, "steps": 3, "records": 20, "progress": False}
REMOVE = {"relation": Relation.ADD_REMOVE}

# Name, what is fitted, and what of the features it looks at.
ESTIMATORS = {
    "mean by a ball": (lambda: UserMean(9.0, algorithm="ball", **MEAN), None),
    "mean by clipping": (lambda: UserMean(2.0, algorithm="clip", **MEAN), None),
    "mean of weighted users": (lambda: UserMean(9.0, records="auto", **MEAN), None),
    "mean of some users": (lambda: UserMean(9.0, **MEAN, **REMOVE), None),
    "mean as published": (
        lambda: UserMean(9.0, algorithm="winsorized", radius=3.0, random_state=0, **MEAN),
        None,
    ),
    "pure mean": (lambda: UserMean(9.0, algorithm="interval", bounds=10.0), None),
    "pure mean of some users": (
        lambda: UserMean(9.0, algorithm="clip", bounds=10.0, **REMOVE),
        None,
    ),
    "median": (lambda: PrivateMedian(3.0, bounds=10.0), None),
    "quantiles": (lambda: UserQuantiles(3.0, bounds=10.0, each_user="middle half"), None),
    "quantiles of means": (lambda: UserQuantiles(3.0, bounds=10.0, each_user="mean"), None),
    "count of people": (lambda: UserCount(2.0, where={"a": (0, None)}), None),
    "count of records": (lambda: UserCount(2.0, of="records", **REMOVE), None),
    "sums": (lambda: UserSum(2.0, bounds=10.0), None),
    "mean of records": (lambda: RecordMean(2.0, **MEAN), None),
    "synthetic people": (
        lambda: UserSynthesizer(9.0, bounds=(-4.0, 4.0), bins=4),
        None,
    ),
    "table": (lambda: UserTable(9.0, delta=1e-5, **TABLE), None),
    "pure table": (lambda: UserTable(9.0, cap=9, groups=2, **TABLE), None),
    "table of popular keys": (
        lambda: UserTable(40.0, delta=1e-3, random_state=2, **{**TABLE, "keys": "popular"}),
        None,
    ),
    "phrases": (lambda: PopularPhrases(0.2, delta=1e-3, random_state=2), whole),
    "scaler": (lambda: UserScaler(9.0, **MEAN), None),
    "pure scaler": (lambda: UserScaler(9.0, bounds=10.0), None),
    "covariance": (lambda: UserCovariance(20.0, **MEAN), None),
    "variation": (lambda: UserVariation(20.0, bounds=MEAN["bounds"]), None),
    "variances": (lambda: UserCovariance(20.0, shape="diagonal", **MEAN), None),
    "questions": (_questions, None),
    "logistic regression": (lambda: LogisticRegression(9.0, classes=(0, 1), **MODEL), None),
    "minibatches": (
        lambda: LogisticRegression(9.0, classes=(0, 1), batch_rate=0.3, **MODEL),
        None,
    ),
    "support vector machine": (lambda: LinearSVC(9.0, classes=(0, 1), bounds=4.0, **MODEL), None),
    "linear regression": (lambda: LinearRegression(9.0, target_bounds=(0.0, 1.0), **MODEL), None),
    "ridge": (lambda: Ridge(9.0, penalty=0.1, **(MODEL | REMOVE)), None),
    "huber": (lambda: HuberRegression(9.0, **(MODEL | {"records": "auto"})), None),
    "network": (
        lambda: NeuralClassifier(epsilon=9.0, bounds=4.0, hidden=2, steps=2, random_state=0),
        None,
    ),
    "network, sampled": (
        lambda: NeuralRegressor(
            epsilon=9.0,
            bounds=4.0,
            target_bounds=(0.0, 1.0),
            hidden=2,
            steps=2,
            batch_rate=0.5,
            random_state=0,
        ),
        None,
    ),
    "constant model": (lambda: LinearRegression(0.3, hopeless="constant", **MODEL), None),
    "grid search": (
        lambda: PrivateGridSearch(
            LinearRegression(target_bounds=(0.0, 1.0), **MODEL),
            {"penalty": [0.0, 0.5]},
            epsilon=30.0,
            delta=1e-5,
            random_state=0,
        ),
        None,
    ),
    "minimisation": (_minimum, None),
    "phases": (_phases, None),
    "cut-off": (_threshold(), first),
    "cut-off by own best": (_threshold(algorithm="own_best"), first),
    "cut-off by crossing": (_threshold(algorithm="crossing"), first),
    "cut-off by any rate": (_threshold(algorithm="kolmogorov_smirnov"), first),
    "cut-off by the median": (_threshold(algorithm="median", direction=Direction.EITHER), first),
    "cut-off by estimated level": (_threshold(algorithm="estimated_level"), first),
    "private threshold": (lambda: PrivateThreshold(9.0, domain=(-4, 4), step=0.1), first),
    "private threshold as published": (
        lambda: PrivateThreshold(
            9.0, domain=(-4, 4), step=0.1, constants="published", records=4, random_state=0
        ),
        first,
    ),
    "smallest error": (
        lambda: PrivateMinError(Thresholds(-4, 4), 0.4, records=5, random_state=0),
        first,
    ),
    "finite class": (lambda: ConceptLearner(Thresholds(-4, 4), 0.05), first),
    "finite class by duels": (
        lambda: ConceptLearner(Thresholds(-4, 4), 0.05, algorithm="duels"),
        first,
    ),
    "finite class as published": (
        lambda: ConceptLearner(
            Thresholds(-4, 4), 0.05, constants="published", records=4, random_state=0
        ),
        first,
    ),
    "losses": (lambda: LossSelector(0.02, bounds=(-4, 4)), None),
    "losses by a reference": (
        lambda: LossSelector(0.02, bounds=(-4, 4), algorithm="reference"),
        None,
    ),
    "losses as published": (
        lambda: LossSelector(30.0, bounds=(-4, 4), algorithm="published"),
        None,
    ),
    "losses of candidates": (
        lambda: LossSelector(0.02, bounds=(0, 9), candidates=[0.0, 1.0], loss=_distance),
        None,
    ),
    "concise rules": (_concise, whole),
    "parity by one record": (
        lambda: ParityLearner(0.6, failure=0.2, random_state=0),
        odd,
    ),
    "parity by votes": (lambda: ParityLearner(0.06, algorithm="vote", random_state=0), odd),
    "parity by stable votes": (
        lambda: ParityLearner(0.17, delta=1e-5, algorithm="vote", random_state=0),
        odd,
    ),
    "categories": (lambda: DiscreteDistribution(2.0, categories=range(9)), whole),
    "categories by records": (
        lambda: DiscreteDistribution(
            2.0, categories=range(9), delta=1e-5, records="auto", random_state=0
        ),
        whole,
    ),
    "categories of some users": (
        lambda: DiscreteDistribution(2.0, categories=range(9), **REMOVE),
        whole,
    ),
    "categories by medians": (
        lambda: DiscreteDistribution(60.0, categories=range(9), alike=True),
        whole,
    ),
    "histogram": (lambda: Histogram(2.0, bounds=(-4.0, 4.0), bins=5), first),
    "histogram by quantiles": (
        lambda: Histogram(2.0, edges="quantiles", bounds=(-4.0, 4.0), bins=3),
        first,
    ),
    "distribution function": (
        lambda: EmpiricalCDF(2.0, bounds=(-4.0, 4.0), cells=64, records=5, random_state=0),
        first,
    ),
    "product": (lambda: ProductDistribution(2.0, categories=[range(2)] * 3), bits),
    "product by gaussian noise": (
        lambda: ProductDistribution(2.0, categories=[range(2)] * 3, delta=1e-5),
        bits,
    ),
    "normal": (
        lambda: GaussianDistribution(9.0, bounds=10.0, covariance=np.eye(3), delta=1e-5),
        None,
    ),
    "normal by medians": (
        lambda: GaussianDistribution(9.0, bounds=10.0, covariance=np.eye(3), algorithm="medians"),
        None,
    ),
    "normal of unknown spread": (
        lambda: GaussianDistribution(60.0, bounds=10.0, deviations=(0.1, 10.0), delta=1e-5),
        None,
    ),
    "one of several densities": (
        lambda: HypothesisSelector(DiscreteFamily(np.roll(np.eye(9), 2, 1) + 0.1), 0.5),
        whole,
    ),
    "one of several normals": (
        lambda: HypothesisSelector(GaussianFamily([[-1.0], [0.0], [1.0]], 2.0), 0.05),
        first,
    ),
    "stable cut-off": (
        lambda: StableLearner(Thresholds(-4, 4), epsilon=0.02, seeds=3, random_state=0),
        first,
    ),
    "stable cut-off with a delta": (
        lambda: StableLearner(
            Thresholds(-(2**40), 2**40), epsilon=4.0, delta=1e-5, agreement=True, random_state=0
        ),
        first,
    ),
    "stable cut-off by local reports": (
        lambda: StableLearner(
            Thresholds(-4, 4), "local", epsilon=0.5, agreement=True, random_state=0
        ),
        first,
    ),
    "stable cut-off by shuffled reports": (
        lambda: StableLearner(
            Thresholds(-4, 4), "shuffle", epsilon=0.5, delta=1e-5, agreement=True, random_state=0
        ),
        first,
    ),
    "stable queries": (
        lambda: StableLearner(
            QueryRule(ConjunctionQueries(3, tolerance=0.2)), epsilon=0.02, seeds=2, random_state=0
        ),
        bits,
    ),
    "stable decision list": (
        lambda: StableLearner(DecisionListRule(3, length=2), epsilon=0.02, seeds=2, random_state=0),
        bits,
    ),
    "queries": (lambda: QueryLearner(ConjunctionQueries(3, tolerance=0.2), 0.02), bits),
    "queries of some users": (
        lambda: QueryLearner(DecisionListQueries(3), 1.0, delta=1e-5, **REMOVE),
        bits,
    ),
    "local queries": (
        lambda: QueryLearner(
            ConjunctionQueries(3, tolerance=0.2), 1.0, trust="local", random_state=0
        ),
        bits,
    ),
    "joint local queries": (
        lambda: QueryLearner(
            ConjunctionQueries(3, tolerance=0.2),
            1.0,
            trust="local",
            joint=[3.0],
            random_state=0,
        ),
        bits,
    ),
    "local masked parity": (_masked_parity, masked),
    "score": (_score, first),
    "cross-validation": (_cross_validation, first),
    "softmax regression": (
        lambda: LogisticRegression(9.0, classes=(0, 1, 2), **MODEL),
        None,
    ),
}


# One of each family, and each kind of question: sums, counts, gathers, lines, tallies, integers.
FAMILIES = [
    "mean by a ball",
    "median",
    "minimisation",
    "cut-off by own best",
    "finite class",
    "losses",
    "parity by votes",
    "categories",
    "one of several normals",
    "stable cut-off with a delta",
    "queries",
    "joint local queries",
    "score",
]
# Whether slow engines are asked about every estimator, and not about one of each family.
EVERY = bool(os.environ.get("QUORATE_EVERY_ENGINE"))


def _distance(candidate, X, y):
    return np.abs(X[:, 0] - candidate) + y


def released(name, crowd, seed=0):
    """Return everything that a fit releases about a crowd, as bytes and numbers."""
    make, view = ESTIMATORS[name]
    data = crowd if view is None else crowd.derive(view)
    with use_noise(SeededNoise(seed)):
        if make in RUNS:
            values = {str(i): value for i, value in enumerate(make(data))}
        else:
            fitted = make().fit(data)
            values = {k: v for k, v in vars(fitted).items() if k.endswith("_") and k[0] != "_"}
            values |= (
                {"best": vars(values["best_estimator_"])} if "best_estimator_" in values else {}
            )
    return {key: _plain(value) for key, value in sorted(values.items())}


@functools.cache
def known(name, whole, seed=0):
    """Return what a fit releases about people in memory, with whom many crowds are compared."""
    return released(name, whole, seed)


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return repr(value)
