"""Medians and quantiles over users."""

import numpy as np
import pytest
from sklearn.base import clone

from quorate.auditing import RecordedNoise, SmallWorld, audit_exactly, replay
from quorate.core.guarantees import Guarantee, Numerics, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.means import PrivateMedian, UserQuantiles
from quorate.means.median import record_quantile
from quorate.mechanisms.choices.quantiles import PrivateQuantile

RNG = np.random.default_rng(0)
IDS = np.sort(RNG.integers(0, 400, size=4000))
RECORDS = RNG.normal(size=(4000, 2)) * 3.0 + np.array([50.0, -10.0])
DATA = UserData.from_arrays(RECORDS, users=IDS)


class TestReduction:
    @pytest.mark.parametrize("quantile", [0.1, 0.25, 0.5, 0.75, 0.99])
    def test_each_users_quantile_is_that_of_numpy(self, quantile):
        found = record_quantile(DATA, quantile)
        for user, own in enumerate(np.split(DATA.X, DATA.offsets[1:-1])):
            loop = np.quantile(own, quantile, axis=0, method="averaged_inverted_cdf")
            np.testing.assert_allclose(found[user], loop, rtol=1e-15)

    def test_the_median_is_the_middle_and_quartiles_are_mirror_images(self):
        for m in range(1, 9):
            own = UserData.from_arrays(np.arange(m, dtype=float)[:, None], users=[0] * m)
            low, middle, high = (record_quantile(own, q)[0, 0] for q in (0.25, 0.5, 0.75))
            assert middle == (m - 1) / 2
            assert low + high == m - 1

    @pytest.mark.parametrize("ends", [(1e308, 1e308), (-1e308, 1e308), (-np.inf, np.inf)])
    def test_no_two_middle_records_overflow_or_warn(self, ends):
        data = UserData(np.array(ends)[:, None], offsets=[0, 2])
        assert np.isfinite(record_quantile(data, 0.5)).all()

    def test_a_user_without_records_is_nan(self):
        data = UserData(np.array([[1.0]]), offsets=[0, 1, 1])
        assert np.isnan(record_quantile(data, 0.5)[1, 0])

    def test_one_user_changes_one_row(self):
        changed = RECORDS.copy()
        changed[IDS == 7] = 1e300
        other = UserData.from_arrays(changed, users=IDS)
        moved = record_quantile(DATA, 0.5) != record_quantile(other, 0.5)
        assert moved.any(axis=1).sum() == 1


class TestPrivacy:
    @pytest.mark.parametrize("each_user", ["median", "mean", "middle half"])
    @pytest.mark.parametrize("relation", list(Relation))
    def test_neighbours_with_the_same_answers_look_the_same(self, each_user, relation):
        if relation is Relation.REPLACE:
            changed = RECORDS.copy()
            changed[IDS == 7] = -1e300
            neighbour = UserData.from_arrays(changed, users=IDS)
        else:
            neighbour = UserData.from_arrays(RECORDS[IDS != 7], users=IDS[IDS != 7])

        def run(data):
            return UserQuantiles(1.0, bounds=1000.0, each_user=each_user, relation=relation).fit(
                data
            )

        report = replay(run, DATA, neighbour)
        assert report.same, str(report)

    def test_every_quantile_and_feature_gets_its_part_of_epsilon(self):
        noise = RecordedNoise(0)
        with use_noise(noise):
            quantiles = UserQuantiles(2.0, bounds=1000.0).fit(DATA)
        choices, looks = noise.log[0::2], noise.log[1::2]
        # Quantile a/b: sensitivity b, so epsilon is 2 b rate; quartiles have b = 4, the median 2.
        parts = [
            2 * b * float(choice.parameters["rate"]) + b / look.parameters["scale"]
            for b, choice, look in zip([4, 4, 2, 2, 4, 4], choices, looks, strict=True)
        ]
        assert parts == pytest.approx([1 / 3] * 6)
        assert sum(parts) <= 2.0 + 1e-12
        assert quantiles.guarantee_.epsilon == 2.0


class TestUtility:
    @pytest.mark.parametrize("decimals", [0, 1, 2])
    def test_the_rank_is_right_where_people_share_values(self, decimals):
        # With two records each, the larger one would be off by a quarter of the ranks; a binary
        # grid that misses the decimals of the data would be off by whole groups of users.
        rng = np.random.default_rng(decimals)
        own = np.round(rng.gamma(2.0, 1.2, 3000), decimals)
        apart = np.round(rng.exponential(1.0, 3000))
        pairs = np.column_stack([own - apart, own + apart]).reshape(-1, 1)
        data = UserData(pairs, offsets=np.arange(3001) * 2)
        for seed in range(5):
            with use_noise(SeededNoise([decimals, seed])):
                (found,) = PrivateMedian(1.0, bounds=(-40.0, 60.0)).fit(data).median_
            medians = record_quantile(data, 0.5)
            below, above = np.mean(medians < found), np.mean(medians > found)
            assert max(below, above) <= 0.5 + 12 / 3000

    @pytest.mark.parametrize("each_user", ["median", "mean", "middle half"])
    def test_the_median_is_near(self, each_user):
        with use_noise(SeededNoise(0)):
            median = PrivateMedian(1.0, bounds=1e9, each_user=each_user).fit(DATA)
        assert np.abs(median.median_ - [50.0, -10.0]).max() < 1.5

    def test_quantiles_come_in_their_order(self):
        with use_noise(SeededNoise(0)):
            found = UserQuantiles(
                1.0, quantiles=[0.9, 0.1, 0.5], bounds=1000.0, each_user="mean"
            ).fit(DATA)
        assert np.all(found.quantiles_[1] <= found.quantiles_[2])
        assert np.all(found.quantiles_[2] <= found.quantiles_[0])

    @pytest.mark.parametrize("resolution", [None, 1.0])
    def test_the_rank_is_off_by_no_more_than_stated(self, resolution):
        values = np.arange(1000.0)[:, None]
        off, stated = [], []
        for seed in range(40):
            with use_noise(SeededNoise(seed)):
                median = PrivateMedian(1.0, bounds=(0.0, 1000.0), resolution=resolution).fit(
                    values, users=range(1000)
                )
            below, above = (values < median.median_[0]).sum(), (values > median.median_[0]).sum()
            off.append(max(below, above) - 500.0)
            stated.append(median.error_.rank)
        assert np.mean(np.array(off) <= stated) >= 0.9
        assert 5.0 < np.median(stated) <= 3 * np.quantile(off, 0.95)

    def test_where_many_share_a_number_no_error_is_stated(self):
        values = np.repeat([0.0, 2.5, 7.0], [400, 300, 300])[:, None]
        for seed in range(5):
            with use_noise(SeededNoise(seed)):
                median = PrivateMedian(1.0, bounds=(0.0, 125.0)).fit(values, users=range(1000))
            assert median.median_[0] == 2.5
            assert median.error_.rank == 0.0

    def test_a_bound_of_everything_is_wider_than_those_of_its_parts(self):
        with use_noise(SeededNoise(0)):
            error = UserQuantiles(1.0, bounds=1000.0).fit(DATA).error_
        assert len(error.coordinates) == 6
        assert error.rank > max(error.coordinates) > 0

    def test_hostile_users_hardly_move_it(self):
        values = np.concatenate([np.zeros((800, 1)), np.full((200, 1), 1e9)])
        with use_noise(SeededNoise(0)):
            median = PrivateMedian(1.0, bounds=1e9).fit(values, users=range(1000))
        assert abs(median.median_[0]) < 1.0


class TestUsersWithoutRecords:
    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("each_user", ["median", "mean", "middle half"])
    def test_quantiles_are_those_of_the_others(self, relation, each_user):
        values = np.random.default_rng(0).normal(20.0, 2.0, size=(3000, 1))
        values[:1000] = np.nan
        with use_noise(SeededNoise(0)):
            found = UserQuantiles(
                3.0, bounds=(0.0, 800.0), each_user=each_user, relation=relation
            ).fit(values, users=range(3000))
        # At the centre of the range they would make the upper quartile 400.
        assert np.abs(found.quantiles_.ravel() - [18.65, 20.0, 21.35]).max() < 0.5

    @pytest.mark.parametrize("relation", list(Relation))
    def test_nobody_at_all_is_no_error(self, relation):
        median = PrivateMedian(1.0, bounds=10.0, relation=relation)
        assert abs(median.fit(np.full((3, 1), np.nan), users=range(3)).median_[0]) <= 10.0

    def test_leaving_a_user_out_keeps_the_claim_of_replacement(self):
        """Exactly, in a small world in which a replaced user may be without a value."""
        world = SmallWorld(records=(0, 2, 4, None), n_users=2)
        for quantile in (0.5, 0.25, 0.9):

            def law(records, epsilon=1.0, quantile=quantile):
                held = np.array([r for r in records if r is not None], dtype=np.int64)
                mechanism = PrivateQuantile(domain=(0, 4), epsilon=epsilon, quantile=quantile)
                return mechanism.probabilities(held)

            claim = Guarantee(epsilon=1.0, numerics=Numerics.VOID)
            audit = audit_exactly(law, world, claim)
            assert audit.holds, str(audit)
            assert not audit_exactly(
                lambda r, of=law: of(r, epsilon=2.5), world, claim, thorough=False
            ).holds


class TestContract:
    def test_parameters_survive_cloning(self):
        median = PrivateMedian(2.0, bounds=3.0, each_user="mean")
        assert clone(median).get_params() == median.get_params()
        assert "quantiles" not in median.get_params()

    def test_a_single_quantile_may_be_a_number(self):
        found = UserQuantiles(1.0, quantiles=0.9, bounds=1000.0).fit(DATA)
        assert found.quantiles_.shape == (1, 2)

    @pytest.mark.parametrize(
        "options",
        [{"quantiles": []}, {"quantiles": [1.0]}, {"each_user": "max"}, {"resolution": 0.0}],
    )
    def test_bad_parameters_are_refused(self, options):
        with pytest.raises(ParameterError):
            UserQuantiles(1.0, bounds=10.0, **options).fit(DATA)

    def test_a_missing_bound_is_refused(self):
        with pytest.raises(UnboundedContributionError):
            PrivateMedian(1.0).fit(DATA)
