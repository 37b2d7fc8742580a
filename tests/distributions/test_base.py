"""What estimators of distributions share."""

import sys

import numpy as np
import pytest

from crowds_of_shares import alike
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.distributions import DiscreteDistribution, EmpiricalCDF, Histogram
from quorate.distributions.base import draw, new_figure
from quorate.exceptions import MissingExtraError, ParameterError

MAKERS = {
    "discrete": lambda **known: DiscreteDistribution(categories=range(3), **known),
    "histogram": lambda **known: Histogram(bounds=(0.0, 3.0), bins=3, **known),
    "cdf": lambda **known: EmpiricalCDF(bounds=(0.0, 3.0), cells=8, **known),
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every_maker
class TestParameters:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"epsilon": 0.0},
            {"epsilon": np.nan},
            {"epsilon": 1e-12},
            {"records": 0},
            {"records": "some"},
            {"records": 2.5},
            {"relation": "replace"},
            {"random_state": "seed"},
        ],
        ids=str,
    )
    def test_wrong_parameters_are_refused(self, make, wrong):
        labels, users = alike(50, 2, 3)
        with pytest.raises(ParameterError):
            make(**wrong).fit(labels, users=users)

    def test_rows_are_not_people(self, make):
        with pytest.raises(ParameterError, match="users="):
            make().fit(np.zeros(5))

    def test_two_columns_are_refused(self, make):
        with pytest.raises(ValueError, match="one"):
            make().fit(np.zeros((5, 2)), users=range(5))

    @pytest.mark.parametrize("relation", list(Relation))
    def test_records_are_weighed_by_a_cap_that_is_bought(self, make, relation):
        labels = np.concatenate([np.zeros(4000), np.full(900, 2.0)])
        users = np.concatenate([np.repeat(np.arange(1000), 4), np.arange(1000, 1900)])
        with use_noise(SeededNoise(0)):
            people = make(relation=relation).fit(labels, users=users)
            records = make(relation=relation, records="auto").fit(labels, users=users)

        def below(estimator):
            return estimator.pmf_[0] if hasattr(estimator, "pmf_") else estimator.cdf(1.0)

        assert below(people) == pytest.approx(1000 / 1900, abs=0.05)
        assert below(records) > below(people) + 0.1
        assert records.guarantee_.epsilon == 1.0

    def test_a_clone_keeps_its_parameters(self, make):
        from sklearn.base import clone

        assert clone(make(epsilon=2.0)).get_params()["epsilon"] == 2.0


class TestWays:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"algorithm": "ball"},
            {"algorithm": "gaussian"},
            {"algorithm": "polytope", "relation": Relation.ADD_REMOVE},
            {"algorithm": "polytope", "records": 4},
            {"algorithm": "best"},
        ],
        ids=str,
    )
    def test_ways_that_do_not_fit_are_refused(self, wrong):
        labels, users = alike(50, 2, 3)
        with pytest.raises(ParameterError):
            MAKERS["discrete"](**wrong).fit(labels, users=users)


def test_draws_follow_the_shares():
    places = draw(np.array([0.2, 0.0, 0.8]), 5000, 0)
    assert set(places.tolist()) == {0, 2}
    assert np.mean(places == 2) == pytest.approx(0.8, abs=0.03)
    with pytest.raises(ParameterError):
        draw(np.array([1.0]), 0, 0)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="plot"):
        new_figure()
