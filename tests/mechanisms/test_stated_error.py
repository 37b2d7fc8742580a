"""One form of every ``error_``: found by scanning the catalogue, and what each kind says."""

import importlib
import math

import numpy as np
import pytest

from quorate import PrivateMedian, UserQuantiles
from quorate.app.catalogue import CATALOGUE
from quorate.core.noise import SeededNoise, use_noise
from quorate.distributions.released import DistributionError
from quorate.means.median import QuantileError
from quorate.means.variation import VariationError
from quorate.mechanisms.stated_error import StatedError
from quorate.tabulate import RecordMean, StatisticError, UserCount, UserSum
from quorate.tabulate.released import TableError

KINDS = sorted({kind for each in CATALOGUE.values() for kind in each.releases.get("error_", ())})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_of_the_one_form(kind):
    home, _, name = kind.partition(":")
    assert issubclass(getattr(importlib.import_module(home), name), StatedError)


@pytest.mark.parametrize(
    ("error", "bound", "coordinates", "worst"),
    [
        (QuantileError(rank=9.0, confidence=0.95, coordinates=(9.0, 4.0)), 9.0, (9.0, 4.0), 9.0),
        (StatisticError(standard_error=1.0, bound=3.0), 3.0, (3.0,), math.inf),
        (DistributionError(metric="total variation", noise=0.1, bound=0.2), 0.2, (0.2,), 0.2),
        (VariationError(share=(0.2, 0.6), between=(0, 2), records=(4, 6)), 0.2, (0.2, 1, 1), 1.0),
        (TableError(standard_error={"n": 1.0}, caps={}), math.inf, (), math.inf),
    ],
)
def test_each_kind_tells_the_same_things(error, bound, coordinates, worst):
    assert error.bound == pytest.approx(bound)
    assert error.coordinates == pytest.approx(coordinates)
    assert error.worst == worst
    assert error.covers.endswith(".")


def test_quantiles_state_a_rank_for_each_number_they_release():
    ages = np.tile(np.arange(20.0, 60.0), 50)[:, None]
    with use_noise(SeededNoise(0)):
        fit = UserQuantiles(epsilon=1.0, bounds=(0.0, 120.0)).fit(ages, users=range(2000))
        alone = PrivateMedian(epsilon=1.0, bounds=(0.0, 120.0)).fit(ages, users=range(2000))
    assert len(fit.error_.coordinates) == fit.quantiles_.size == 3
    assert max(fit.error_.coordinates) < fit.error_.rank
    assert alone.error_.rank < fit.error_.rank


def test_sums_say_whether_anybody_can_be_cut():
    spent, users = np.full((400, 1), 2.5), np.arange(400) // 4
    people = UserCount(epsilon=1.0).fit(spent, users=users)
    assert people.error_.worst == people.error_.bound
    assert "nobody is clipped" in people.error_.covers
    total = UserSum(epsilon=1.0, bounds=(0, 100), cap=5).fit(spent, users=users)
    assert total.error_.worst == math.inf
    assert "what the stated caps clip" in total.error_.covers
    mean = RecordMean(epsilon=1.0, bounds=(0, 100), cap=5).fit(spent, users=users)
    assert mean.error_.worst == 100.0
