"""Under addition and removal not even the number of users shows: in grids, refusals or messages.

Every estimator runs on everybody and on everybody but one, with the same released values. Steps of
grids and scales of noise are parameters of the noise calls, so a step that follows the private n is
seen; so is a refusal, a message or an attribute. Twins that follow n are caught.
"""

import re

import numpy as np
import pytest
from sklearn.base import clone

from quorate.auditing.replay import replay
from quorate.core.bounds.grid import Ball, Box, Grid, Interval
from quorate.core.guarantees import Relation
from quorate.core.questions.ranks import covered_pieces
from quorate.core.users import UserData
from quorate.learners import (
    ConceptLearner,
    LossSelector,
    PrivateMinError,
    PrivateThreshold,
    ThresholdLearner,
)
from quorate.learners.concepts import Conjunctions, Thresholds
from quorate.means import (
    PrivateMedian,
    UserCovariance,
    UserMean,
    UserQuantiles,
    UserQueries,
    UserScaler,
)
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.sums import choose_grid
from quorate.models import (
    LinearRegression,
    LogisticRegression,
    PrivateGridSearch,
    SquaredLoss,
    minimize,
)
from quorate.ranges import as_bound

# Around a power of two, where a step that follows n would change.
N = 65
GONE = {"relation": Relation.ADD_REMOVE}
DELTA = {"epsilon": 3.0, "delta": 1e-5, **GONE}
MODEL = {"steps": 2, "progress": False, "random_state": 0, **DELTA}
ESTIMATORS = {
    "UserMean": UserMean(bounds=9.0, **DELTA),
    "UserMean, clip": UserMean(bounds=9.0, algorithm="clip", **DELTA),
    "UserMean, pure": UserMean(epsilon=3.0, bounds=9.0, **GONE),
    "UserScaler": UserScaler(bounds=9.0, **DELTA),
    "UserCovariance": UserCovariance(bounds=9.0, **DELTA),
    "UserQueries": UserQueries(bounds=9.0, **DELTA),
    "PrivateMedian": PrivateMedian(bounds=(-9.0, 9.0), **GONE),
    "UserQuantiles": UserQuantiles(bounds=(-9.0, 9.0), **GONE),
    "LogisticRegression": LogisticRegression(**MODEL),
    "LogisticRegression, hopeless": LogisticRegression(**{**MODEL, "epsilon": 0.01}),
    "LogisticRegression, sampled": LogisticRegression(batch_rate=0.5, **MODEL),
    "LinearRegression": LinearRegression(target_bounds=(0.0, 1.0), **{**MODEL, "epsilon": 60.0}),
    "PrivateGridSearch": PrivateGridSearch(
        LogisticRegression(steps=2, progress=False),
        {"penalty": [0.0, 1.0]},
        random_state=0,
        **DELTA,
    ),
    "LossSelector": LossSelector(bounds=(-3.0, 3.0), records=1, **GONE),
    "ThresholdLearner": ThresholdLearner(domain=(-4, 4), random_state=0, **GONE),
    "PrivateThreshold": PrivateThreshold(domain=(-4, 4), random_state=0, **GONE),
    "ConceptLearner": ConceptLearner(Thresholds(-4, 4), random_state=0, **GONE),
    "PrivateMinError": PrivateMinError(Thresholds(-4, 4), random_state=0, **GONE),
}
WIDE = {"UserMean", "UserScaler", "UserCovariance", "LossSelector", "PrivateGridSearch"}


def everybody(n=N, *, width=1):
    rng = np.random.default_rng(0)
    rows = np.round(rng.normal(size=(3 * N, width)), 1)
    y = rng.integers(0, 2, 3 * N).astype(float)
    return UserData(
        rows[: 3 * n], y[: 3 * n], offsets=np.arange(0, 3 * n + 1, 3), ids=np.arange(100, 100 + n)
    )


def released(estimator):
    """Return what may be looked at: of a desk with the data in it, an answer."""
    if isinstance(estimator, UserQueries):
        return estimator.ask(lambda records: records.mean())
    return estimator


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nobody_can_tell_whether_one_user_is_there(name):
    width = 2 if name.split(",")[0] in WIDE or "Regression" in name else 1
    for seed in (0, 1):
        report = replay(
            lambda data: released(clone(ESTIMATORS[name]).fit(data)),
            everybody(width=width),
            everybody(N - 1, width=width),
            seed=seed,
        )
        assert report.same, str(report)


def test_nor_in_a_minimisation():
    def run(data):
        return minimize(data, SquaredLoss(), progress=False, steps=2, **DELTA).theta

    assert replay(run, everybody(), everybody(N - 1)).same


def test_a_twin_whose_grid_follows_the_number_of_users_is_caught():
    def run(data):
        grid = choose_grid(Interval(-1.0, 1.0), n_users=data.n_users * 2**30)
        return LaplaceSum(grid=grid, epsilon=1.0, **GONE).release_values(data.user_means()[:, 0])

    assert not replay(run, everybody(64), everybody(33)).same


COUNTS = re.compile("77[78]")
MESSAGES = {
    "a grid": lambda rows: Grid(Ball(1.0, dimension=3), 0.5).encode(rows),
    "ends of intervals": lambda rows: covered_pieces(
        np.zeros(len(rows), int), np.zeros(len(rows) + 1, int), domain=(0, 9)
    ),
    "data as a box": lambda rows: Box(rows[:, 0] + 1.0, rows[:, 0]),
    "data as a matrix of limits": lambda rows: Box(rows, rows + 1.0),
    "data as bounds": lambda rows: as_bound(rows, 2),
    "data as a pair": lambda rows: as_bound((rows, rows), 2),
    "lists as bounds": lambda rows: as_bound(rows.tolist(), 2),
    "data as the bounds of a mean": lambda rows: UserMean(bounds=rows).fit(
        rows, users=np.arange(len(rows))
    ),
    "data as the bounds of a model": lambda rows: LogisticRegression(bounds=(rows, rows)).fit(
        rows, rows[:, 0], users=np.arange(len(rows))
    ),
    "lengths": lambda rows: UserMean(bounds=9.0).fit(rows, users=np.arange(len(rows) + 1)),
    "columns of a rule": lambda rows: Conjunctions(3).predictions(rows),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_no_message_tells_how_many_rows_there_are(name):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is what is tested
        MESSAGES[name](np.full((777, 2), 0.125))
    text = str(caught.value)
    assert text
    assert not COUNTS.search(text)
    assert "0.125" not in text
