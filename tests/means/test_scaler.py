"""UserScaler: a transformer whose centre and scale were paid for."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from quorate.auditing import replay
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError
from quorate.means import UserMean, UserScaler

RNG = np.random.default_rng(0)
RECORDS = RNG.normal(size=(20_000, 2)) * np.array([4.0, 0.1]) + np.array([50.0, -1.0])
IDS = np.arange(20_000) // 5


def scaler(**parameters):
    return UserScaler(**({"epsilon": 1.0, "delta": 1e-6, "bounds": 100.0} | parameters))


class TestUtility:
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_rows_come_out_standardised(self, delta):
        with use_noise(SeededNoise(0)):
            scaled = scaler(delta=delta, epsilon=2.0).fit(RECORDS, users=IDS).transform(RECORDS)
        assert np.abs(scaled.mean(axis=0)).max() < 0.5
        assert np.all((scaled.std(axis=0) > 0.3) & (scaled.std(axis=0) < 3.0))

    def test_numbers_that_people_share_are_met(self):
        # Quartiles 2, 3 and 3; a fine grid over the range passes them by.
        visits = np.repeat(np.arange(6.0), [100, 150, 300, 400, 150, 100])
        with use_noise(SeededNoise(0)):
            fitted = scaler(delta=0.0, bounds=125.0).fit(visits[:, None], users=range(1200))
        assert fitted.centre_[0] == 3.0
        assert fitted.scale_[0] == pytest.approx(1.0 / 1.349)

    def test_the_way_back_leads_back(self):
        fitted = scaler().fit(RECORDS, users=IDS)
        assert np.allclose(fitted.inverse_transform(fitted.transform(RECORDS)), RECORDS)

    def test_a_constant_feature_keeps_the_scale_of_its_range(self):
        constant = np.full((3000, 1), 7.0)
        with use_noise(SeededNoise(0)):
            fitted = scaler().fit(constant, users=range(3000))
        assert np.isfinite(fitted.transform(constant)).all()
        assert fitted.scale_[0] > 0


class TestColumns:
    def test_names_go_in_and_out(self):
        table = pd.DataFrame(RECORDS[:2000], columns=["age", "dose"])
        fitted = scaler().fit(table, users=IDS[:2000])
        assert fitted.get_feature_names_out().tolist() == ["age", "dose"]
        out = fitted.set_output(transform="pandas").transform(table)
        assert list(out.columns) == ["age", "dose"]

    def test_nameless_columns_get_numbers(self):
        fitted = scaler().fit(RECORDS[:2000], users=IDS[:2000])
        assert fitted.get_feature_names_out().tolist() == ["x0", "x1"]
        assert isinstance(fitted.transform(RECORDS[:3]), np.ndarray)


class TestUsersWithoutRecords:
    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_they_change_neither_centre_nor_scale(self, relation, delta):
        rows = np.random.default_rng(0).normal(20.0, 2.0, size=(20_000, 1))
        rows[:2000] = np.nan
        parameters = {"bounds": (0.0, 800.0), "relation": relation, "delta": delta, "epsilon": 2.0}
        with use_noise(SeededNoise(0)):
            fitted = scaler(**parameters).fit(rows, users=np.arange(20_000) // 4)
        # At the centre of the range they would move the centre by 38 and the scale to 100.
        assert abs(fitted.centre_[0] - 20.0) < 1.0
        assert 0.8 < fitted.scale_[0] < 5.0


class TestPrivacy:
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    @pytest.mark.parametrize("relation", list(Relation))
    def test_neighbours_with_the_same_answers_look_the_same(self, delta, relation):
        data = UserData.from_arrays(RECORDS[:2000], users=IDS[:2000])
        if relation is Relation.REPLACE:
            changed = RECORDS[:2000].copy()
            changed[IDS[:2000] == 3] = 1e300
            neighbour = UserData.from_arrays(changed, users=IDS[:2000])
        else:
            kept = IDS[:2000] != 3
            neighbour = UserData.from_arrays(RECORDS[:2000][kept], users=IDS[:2000][kept])

        def run(people):
            return scaler(delta=delta, relation=relation, epsilon=4.0).fit(people)

        report = replay(run, data, neighbour)
        assert report.same, str(report)

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_the_guarantee_is_the_declared_one(self, delta):
        guarantee = scaler(delta=delta).fit(RECORDS, users=IDS).guarantee_
        assert (guarantee.epsilon, guarantee.delta) == (1.0, delta)
        assert guarantee.holds


class TestContract:
    def test_parameters_survive_cloning(self):
        assert clone(scaler()).get_params() == scaler().get_params()

    def test_it_stands_in_a_pipeline(self):
        pipeline = make_pipeline(scaler(), UserMean(1.0, delta=1e-6, bounds=50.0))
        with config_context(enable_metadata_routing=True):
            pipeline.fit(RECORDS, users=IDS)
        assert np.abs(pipeline[-1].mean_).max() < 1.0

    def test_other_columns_are_refused(self):
        fitted = scaler().fit(RECORDS, users=IDS)
        with pytest.raises(SchemaError, match="features"):
            fitted.transform(np.zeros((3, 5)))

    def test_a_missing_bound_and_bad_budgets_are_refused(self):
        with pytest.raises(UnboundedContributionError):
            scaler(bounds=None).fit(RECORDS, users=IDS)
        with pytest.raises(ParameterError):
            scaler(epsilon=0.0).fit(RECORDS, users=IDS)
