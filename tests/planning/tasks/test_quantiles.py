"""Plans for quantiles, held against crowds."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from quorate import UserQuantiles
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.planning import plan
from quorate.planning.tasks.median import MedianTask
from quorate.planning.tasks.quantiles import QuantilesTask, level_error


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("n", "bounds"), [(500, 20.0), (2000, 1000.0)])
def test_ranks_keep_their_error_as_often_as_planned(n, bounds, relation):
    task = QuantilesTask(bounds=bounds, relation=relation)
    planned, off = task.error(n, 1.0), []
    for seed in range(30):
        values = np.random.default_rng(seed).normal(size=(n, 1))
        with use_noise(SeededNoise(seed)):
            found = UserQuantiles(1.0, bounds=bounds, relation=relation).fit(values, users=range(n))
        off.append(np.abs(ndtr(found.quantiles_[:, 0]) - task.levels).max())
    assert np.mean(np.array(off) <= planned) >= 0.9
    assert planned < 5 * np.quantile(off, 0.9)


def test_one_quantile_is_planned_like_the_median():
    one, median = QuantilesTask(size=1).error(1500, 1.0), MedianTask().error(1500, 1.0)
    # Several share what is left of a failure probability: a little more cautious.
    assert median <= one <= 1.15 * median


def test_more_answers_share_epsilon():
    errors = [
        QuantilesTask(size=k, dimension=d).error(4000, 1.0) for k, d in ((1, 1), (3, 1), (3, 4))
    ]
    assert errors == sorted(errors)
    assert len(set(errors)) == 3
    with pytest.raises(ParameterError):
        plan("quantiles", users=9, epsilon=1.0, size=0)


def test_people_outside_of_everything_win_where_there_are_few():
    known = {"rate": 0.4, "beta": 0.05}
    assert level_error(0.25, users=10, outside=1e6, **known) == 0.75
    assert level_error(0.25, users=10_000, outside=1e6, **known) < 0.05
    assert math.isclose(
        level_error(0.25, users=999, outside=5.0, **known),
        level_error(0.75, users=999, outside=5.0, **known),
        rel_tol=1e-3,
    )
