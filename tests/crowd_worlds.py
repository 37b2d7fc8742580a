"""One made-up world for every engine: text ids, decimal numbers on rounding ties, shuffled files.

The numbers are tenths. One grid of :func:`digest` has steps of a half: sums of tenths lie on its
points, give or take a last bit, which decides to which side they fall. The other grid is so fine
that it shows almost every bit. Whatever changes a bit changes an integer somewhere.
"""

import hashlib
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quorate.concepts import Direction, Thresholds
from quorate.grid import Bound, Box, Grid
from quorate.guarantees import Relation
from quorate.learners import (
    ConceptLearner,
    LossSelector,
    PrivateMinError,
    PrivateThreshold,
    ThresholdLearner,
)
from quorate.means import (
    PrivateMedian,
    UserCovariance,
    UserMean,
    UserQuantiles,
    UserQueries,
    UserScaler,
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
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData
from quorate.users.assembly import ordered_users
from quorate.users.statistics import UserMeans, encode_users

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
        weighted = users.X * 0.3 * (1.0 - 0.1 * users.y)[:, None]
        index, size = users.user_index(), users.n_users
        return np.stack([np.bincount(index, column, minlength=size) for column in weighted.T], 1)


@dataclass(frozen=True)
class Reversed(Bent):
    """The control: the same sums, added up in the opposite order."""

    def __call__(self, users):
        order = np.concatenate(
            [
                np.arange(a, b)[::-1]
                for a, b in zip(users.offsets[:-1], users.offsets[1:], strict=True)
            ]
            or [np.empty(0, np.int64)]
        )
        turned = UserData(users.X[order], users.y[order], offsets=users.offsets)
        return Bent.__call__(self, turned)


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
    found.update(crowd.total(kind(BOX), GRIDS[1]).tobytes())
    found.update(crowd.counts(UserData.record_counts, np.arange(60.0)).tobytes())
    for data in (crowd, crowd.cap(5, random_state=3)):
        rows = np.concatenate(data.map(Everything(kind)))
        found.update(rows[np.argsort(rows[:, 0].view(np.uint64))].tobytes())
    return found.hexdigest()


def _first_feature(users):
    """Return the users with one feature, in steps of a tenth, for cut-offs."""
    return ordered_users(
        np.ascontiguousarray(users.X[:, :1]),
        users.y,
        users.offsets,
        users.keys(),
        users.unit,
        ("a",),
    )


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


MEAN = {"delta": 1e-5, "bounds": 10.0}
MODEL = {"delta": 1e-5, "steps": 3, "records": 20, "progress": False}
REMOVE = {"relation": Relation.ADD_REMOVE}

# Name, what is fitted, and whether it looks at the first feature only.
ESTIMATORS = {
    "mean by a ball": (lambda: UserMean(9.0, algorithm="ball", **MEAN), False),
    "mean by a core": (lambda: UserMean(60.0, algorithm="core", **MEAN), False),
    "mean by clipping": (lambda: UserMean(2.0, algorithm="clip", **MEAN), False),
    "mean of weighted users": (lambda: UserMean(9.0, records="auto", **MEAN), False),
    "mean of some users": (lambda: UserMean(9.0, **MEAN, **REMOVE), False),
    "mean as published": (
        lambda: UserMean(9.0, algorithm="winsorized", radius=3.0, random_state=0, **MEAN),
        False,
    ),
    "pure mean": (lambda: UserMean(9.0, algorithm="quantile", bounds=10.0), False),
    "pure mean of some users": (
        lambda: UserMean(9.0, algorithm="clip", bounds=10.0, **REMOVE),
        False,
    ),
    "median": (lambda: PrivateMedian(3.0, bounds=10.0), False),
    "quantiles": (lambda: UserQuantiles(3.0, bounds=10.0, each_user="middle half"), False),
    "quantiles of means": (lambda: UserQuantiles(3.0, bounds=10.0, each_user="mean"), False),
    "scaler": (lambda: UserScaler(9.0, **MEAN), False),
    "pure scaler": (lambda: UserScaler(9.0, bounds=10.0), False),
    "covariance": (lambda: UserCovariance(20.0, **MEAN), False),
    "variances": (lambda: UserCovariance(20.0, shape="diagonal", **MEAN), False),
    "questions": (_questions, False),
    "logistic regression": (lambda: LogisticRegression(9.0, classes=(0, 1), **MODEL), False),
    "minibatches": (
        lambda: LogisticRegression(9.0, classes=(0, 1), batch_rate=0.3, **MODEL),
        False,
    ),
    "support vector machine": (lambda: LinearSVC(9.0, classes=(0, 1), bounds=4.0, **MODEL), False),
    "linear regression": (lambda: LinearRegression(9.0, target_bounds=(0.0, 1.0), **MODEL), False),
    "ridge": (lambda: Ridge(9.0, penalty=0.1, **(MODEL | REMOVE)), False),
    "huber": (lambda: HuberRegression(9.0, **(MODEL | {"records": "auto"})), False),
    "constant model": (lambda: LinearRegression(0.3, hopeless="constant", **MODEL), False),
    "grid search": (
        lambda: PrivateGridSearch(
            LinearRegression(target_bounds=(0.0, 1.0), **MODEL),
            {"penalty": [0.0, 0.5]},
            epsilon=30.0,
            delta=1e-5,
            random_state=0,
        ),
        False,
    ),
    "minimisation": (_minimum, False),
    "phases": (_phases, False),
    "cut-off": (_threshold(), True),
    "cut-off by own best": (_threshold(algorithm="own_best"), True),
    "cut-off by crossing": (_threshold(algorithm="crossing"), True),
    "cut-off by any rate": (_threshold(algorithm="kolmogorov_smirnov"), True),
    "cut-off by the median": (_threshold(algorithm="median", direction=Direction.EITHER), True),
    "cut-off by estimated level": (_threshold(algorithm="estimated_level"), True),
    "private threshold": (lambda: PrivateThreshold(9.0, domain=(-4, 4), step=0.1), True),
    "private threshold as published": (
        lambda: PrivateThreshold(
            9.0, domain=(-4, 4), step=0.1, constants="published", records=4, random_state=0
        ),
        True,
    ),
    "smallest error": (
        lambda: PrivateMinError(Thresholds(-4, 4), 4.0, records=5, random_state=0),
        True,
    ),
    "finite class": (lambda: ConceptLearner(Thresholds(-4, 4), 0.05), True),
    "finite class by duels": (
        lambda: ConceptLearner(Thresholds(-4, 4), 0.05, algorithm="duels"),
        True,
    ),
    "finite class as published": (
        lambda: ConceptLearner(
            Thresholds(-4, 4), 0.05, constants="published", records=4, random_state=0
        ),
        True,
    ),
    "losses": (lambda: LossSelector(0.02, bounds=(-4, 4)), False),
    "losses by a reference": (
        lambda: LossSelector(0.02, bounds=(-4, 4), algorithm="reference"),
        False,
    ),
    "losses as published": (
        lambda: LossSelector(30.0, bounds=(-4, 4), algorithm="published"),
        False,
    ),
    "losses of candidates": (
        lambda: LossSelector(0.02, bounds=(0, 9), candidates=[0.0, 1.0], loss=_distance),
        False,
    ),
}


# One of each kind of question: sums, counts and gathers, lines, tallies, few integers a user.
SOME = ["mean by a ball", "median", "cut-off by own best", "finite class", "losses"]


def _distance(candidate, X, y):
    return np.abs(X[:, 0] - candidate) + y


def released(name, crowd, seed=0):
    """Return everything that a fit releases about a crowd, as bytes and numbers."""
    make, single = ESTIMATORS[name]
    data = crowd.derive(_first_feature) if single else crowd
    with use_noise(SeededNoise(seed)):
        if make in (_minimum, _phases, _questions):
            values = {str(i): value for i, value in enumerate(make(data))}
        else:
            fitted = make().fit(data)
            values = {k: v for k, v in vars(fitted).items() if k.endswith("_") and k[0] != "_"}
            values |= (
                {"best": vars(values["best_estimator_"])} if "best_estimator_" in values else {}
            )
    return {key: _plain(value) for key, value in sorted(values.items())}


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return repr(value)
