"""UserMean: the contract of an estimator, privacy of the whole, and what it delivers."""

import math

import numpy as np
import pytest
from sklearn.base import clone

from quorate.auditing import Cells, SmallWorld, audit_exactly, enumerate_runs, replay
from quorate.core.bounds.grid import Ball, Box
from quorate.core.guarantees import Guarantee, Numerics, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.means import UserMean
from quorate.means.weighted_users import record_weights
from quorate.ranges import as_bound, half_widths

RNG = np.random.default_rng(0)


def people(means):
    means = np.asarray(means, dtype=float)
    return UserData(means, offsets=np.arange(len(means) + 1))


def fitted(data, *, seed=0, **parameters):
    parameters = {"epsilon": 1.0, "delta": 1e-6, "bounds": 1000.0, "random_state": 0} | parameters
    with use_noise(SeededNoise(seed)):
        return UserMean(**parameters).fit(data)


CROWD = RNG.normal(size=(3000, 3)) + np.array([100.0, -50.0, 0.0])


class TestContract:
    def test_arrays_frames_and_user_data_give_the_same(self):
        records = RNG.normal(size=(4000, 2))
        ids = np.repeat(np.arange(2000), 2)
        with use_noise(SeededNoise(1)):
            first = UserMean(1.0, delta=1e-6, bounds=50.0, random_state=0).fit(records, users=ids)
        with use_noise(SeededNoise(1)):
            data = UserData.from_arrays(records, users=ids)
            second = UserMean(1.0, delta=1e-6, bounds=50.0, random_state=0).fit(data)
        assert np.array_equal(first.mean_, second.mean_)
        assert first.n_features_in_ == 2

    def test_parameters_are_stored_untouched_and_survive_cloning(self):
        mean = UserMean(2.0, delta=1e-5, bounds=(0.0, 1.0), robust=0.1, records="auto")
        assert clone(mean).get_params() == mean.get_params()
        fitted(people(CROWD))
        assert mean.bounds == (0.0, 1.0)

    def test_users_are_never_assumed(self):
        with pytest.raises(ParameterError, match="needs users="):
            UserMean(bounds=1.0).fit(np.zeros((5, 1)))

    def test_every_user_counts_once(self):
        few = np.full((1500, 1), 1.0)
        many = np.full((1500 * 9, 1), 3.0)
        ids = np.concatenate([np.arange(1500), np.repeat(np.arange(1500, 3000), 9)])
        data = UserData.from_arrays(np.concatenate([few, many]), users=ids)
        assert abs(fitted(data, bounds=100.0).mean_[0] - 2.0) < 0.2

    def test_the_guarantee_states_what_was_asked_for(self):
        guarantee = fitted(people(CROWD)).guarantee_
        assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-6)
        assert guarantee.relation is Relation.REPLACE
        assert guarantee.numerics is Numerics.VOID  # the noise of this test is a double
        assert UserMean(1.0, delta=1e-6, bounds=9.0).fit(people(CROWD)).guarantee_.holds


class TestPrivacy:
    @pytest.mark.parametrize(
        ("n", "d", "options"),
        [
            (300, 2, {"epsilon": 6.0}),
            (500, 40, {"epsilon": 4.0}),
            (300, 2, {"epsilon": 6.0, "robust": 0.1}),
            (80, 2, {}),
            (300, 1, {"delta": 0.0}),
            (300, 1, {"delta": 0.0, "algorithm": "winsorized", "radius": 3.0}),
            (300, 3, {"algorithm": "winsorized", "radius": 3.0}),
            (300, 2, {"algorithm": "clip"}),
        ],
        ids=["ball", "core", "robust", "few", "pure", "winsorized", "rotated", "clip"],
    )
    def test_neighbours_with_the_same_answers_look_the_same(self, n, d, options):
        means = RNG.normal(size=(n, d))
        for seed, other in enumerate((1e300, -1e300, 0.0)):
            neighbour = means.copy()
            neighbour[seed] = other

            def run(values):
                parameters = {"epsilon": 1.0, "delta": 1e-6, "bounds": 100.0} | options
                return UserMean(**parameters, random_state=0).fit(people(values))

            report = replay(run, means, neighbour, seed=seed)
            assert report.same, str(report)

    def test_add_or_remove_hides_the_number_of_users(self):
        means = RNG.normal(size=(300, 2))

        def run(values):
            mean = UserMean(1.0, delta=1e-6, bounds=9.0, relation=Relation.ADD_REMOVE)
            return mean.fit(people(values))

        report = replay(run, means, means[:-1])
        assert report.same, str(report)

    def test_a_twin_that_takes_its_bound_from_the_data_is_caught(self):
        means = RNG.normal(size=(300, 2))
        neighbour = means.copy()
        neighbour[0] = 50.0

        def leaky(values):
            bound = float(np.abs(values).max())
            return UserMean(1.0, delta=1e-6, bounds=bound, random_state=0).fit(people(values))

        assert not replay(leaky, means, neighbour).same

    @pytest.mark.parametrize("algorithm", ["clip", "ball"])
    def test_an_exact_audit_of_the_whole_on_two_users(self, algorithm):
        world = SmallWorld(records=(-1.0, 0.5, 7.0), n_users=2)
        delta = 0.05

        def law(claimed):
            def of(records):
                def run(_):
                    mean = UserMean(
                        claimed,
                        delta=delta,
                        bounds=1.0,
                        algorithm=algorithm,
                        random_state=0,
                        radius=0.5,
                    )
                    return mean.fit(people(np.array(records)[:, None])).mean_

                return enumerate_runs(run, cells=Cells(width=1.0, reach=3.0), max_runs=60_000)

            return of

        claim = Guarantee(epsilon=1.0, delta=delta, numerics=Numerics.VOID)
        audit = audit_exactly(law(1.0), world, claim)
        assert audit.holds, str(audit)
        assert not audit_exactly(law(3.0), world, claim, thorough=False).holds


class TestUtility:
    def test_the_noise_follows_the_users_and_not_the_range(self):
        tight = fitted(people(CROWD), bounds=200.0)
        loose = fitted(people(CROWD), bounds=200_000.0)
        for mean in (tight, loose):
            assert np.linalg.norm(mean.mean_ - [100.0, -50.0, 0.0]) < 0.3
            assert mean.algorithm_.name == "interval"
        assert loose.error_.standard_error < 3 * tight.error_.standard_error

    def test_the_error_stated_is_the_error_made(self):
        data, plain = people(CROWD), CROWD.mean(axis=0)
        fits = [fitted(data, seed=seed) for seed in range(40)]
        made = math.sqrt(np.mean([np.sum((f.mean_ - plain) ** 2) for f in fits]))
        stated = np.mean([f.error_.standard_error for f in fits])
        assert 0.6 < made / stated < 1.6

    def test_robust_keeps_hostile_users_out(self):
        means = RNG.normal(size=(3000, 10))
        means[:300] = 1000.0
        error = np.linalg.norm(fitted(people(means), robust=0.1).mean_)
        assert error < 0.25 * math.sqrt(10)
        assert np.linalg.norm(fitted(people(means)).mean_) > math.sqrt(10)

    def test_too_few_users_fall_back_and_say_so(self):
        mean = fitted(people(RNG.normal(size=(40, 5))))
        assert mean.algorithm_.name == "clip"
        assert "too few users" in str(mean.algorithm_)

    def test_bounds_may_be_boxes_balls_and_pairs(self):
        for bound in (
            1000.0,
            (-1000.0, [1000.0, 900.0, 800.0]),
            Box([-200.0] * 3, [200.0] * 3),
            Ball(300.0, dimension=3),
        ):
            mean = fitted(people(CROWD), bounds=bound)
            assert np.linalg.norm(mean.mean_ - [100.0, -50.0, 0.0]) < 0.5

    def test_wild_values_count_as_the_edge_or_the_centre_of_the_bound(self):
        means = CROWD.copy()
        means[:5] = 1e308
        means[5:10] = -1e-320
        assert np.linalg.norm(fitted(people(means)).mean_ - [100.0, -50.0, 0.0]) < 5.0


class TestRefusal:
    def test_a_bound_is_never_taken_from_the_data(self):
        with pytest.raises(UnboundedContributionError, match="must not be taken"):
            UserMean(1.0).fit(people(CROWD))

    @pytest.mark.parametrize(
        "options",
        [
            {"algorithm": "best"},
            {"algorithm": "ball", "delta": 0.0},
            {"algorithm": "core", "delta": 0.0},
            {"algorithm": "quantile"},
            {"algorithm": "winsorized"},
            {"algorithm": "core", "radius": 1.0, "relation": Relation.ADD_REMOVE},
            {"records": 0},
            {"records": "many"},
            {"records": 10, "delta": 0.0},
            {"records": "auto", "relation": Relation.ADD_REMOVE},
            {"robust": 0.5},
            {"robust": 0.1, "delta": 0.0},
            {"radius": -1.0},
            {"constants": "mine"},
            {"bounds": (1.0, -1.0)},
            {"bounds": ([0.0, 0.0], [1.0, 1.0])},
            {"bounds": Ball(1.0, dimension=2)},
            {"bounds": math.nan},
            {"epsilon": 0.0},
            {"delta": 1.0},
            {"algorithm": "winsorized", "radius": 1.0, "delta": 0.0},
        ],
        ids=str,
    )
    def test_parameters_that_mean_nothing_are_refused(self, options):
        with pytest.raises(ParameterError):
            fitted(people(CROWD), **options)

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_one_user_and_no_user_are_no_error(self, delta):
        assert fitted(people(np.ones((1, 2))), delta=delta).mean_.shape == (2,)
        for n in (0, 1):
            alone = fitted(people(np.ones((n, 2))), delta=delta, relation=Relation.ADD_REMOVE)
            assert alone.mean_.shape == (2,)
        empty = UserData(np.ones((0, 2)), offsets=np.zeros(4, dtype=int))
        assert fitted(empty, delta=delta).mean_.shape == (2,)


class TestRecords:
    @pytest.mark.parametrize("kind", [int, np.int64, np.uint8])
    def test_every_kind_of_integer_is_a_number_of_records(self, kind):
        mean = fitted(people(CROWD), records=kind(200))
        assert mean.algorithm_.records in (200.0, None)
        weights = []

        def watch(counts, *, records):
            weights.append(records)
            return record_weights(counts, records=records)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("quorate.means.weighted_users.record_weights", watch)
            fitted(people(CROWD), records=kind(200))
        assert set(weights) == {200.0}


class TestUsersWithoutRecords:
    """The mean is that of users with records; the others do not pull it to the middle."""

    @staticmethod
    def crowd(share, *, d=1, n=5000):
        rows = np.random.default_rng(5).normal(20.0, 2.0, size=(n * 2, d))
        rows[: int(n * share) * 2] = np.nan
        data = UserData.from_arrays(rows, users=np.repeat(np.arange(n), 2))
        return data, np.nanmean(rows, axis=0)

    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_the_automatic_mean_is_not_biased(self, relation, share, delta):
        data, true = self.crowd(share)
        errors = []
        for seed in range(9):
            mean = fitted(data, seed=seed, delta=delta, bounds=(0.0, 800.0), relation=relation)
            errors.append(float(mean.mean_[0] - true[0]))
        # Nine times the noise in the median: a false alarm has a probability below 1e-6. As the
        # centre of the range, 2 % of the users would move it by 7.6.
        assert abs(np.median(errors)) < 0.3 if delta == 0 else abs(np.median(errors)) < 0.05

    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_clipping_is_as_accurate_as_it_says(self, relation, delta):
        data, true = self.crowd(0.1)
        options = {"bounds": (0.0, 800.0), "algorithm": "clip", "relation": relation}
        means = [fitted(data, seed=seed, delta=delta, **options) for seed in range(40)]
        errors = np.array([mean.mean_[0] - true[0] for mean in means])
        claimed = np.mean([mean.error_.standard_error for mean in means])
        # Bounds for 40 normal or Laplace numbers that fail with a probability below 1e-6.
        assert 0.35 * claimed < np.sqrt(np.mean(errors**2)) < 2.2 * claimed
        outside = np.mean(
            [abs(e) > mean.error_.bound for e, mean in zip(errors, means, strict=True)]
        )
        assert outside < 0.3
        assert claimed < 3.0

    def test_a_ball_survives_a_few_of_them(self):
        data, true = self.crowd(0.03, d=40, n=2000)
        mean = fitted(data, algorithm="ball", bounds=(0.0, 800.0))
        assert mean.algorithm_.name == "ball"
        assert np.linalg.norm(mean.mean_ - true) < 10 * mean.error_.standard_error

    def test_they_do_not_count_with_weights(self):
        data, true = self.crowd(0.2)
        mean = fitted(data, records=2, bounds=(0.0, 800.0))
        assert abs(mean.mean_[0] - true[0]) < 10 * mean.error_.standard_error

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_published_means_are_not_pulled_to_the_middle(self, delta):
        data, true = self.crowd(0.1)
        options = {"algorithm": "winsorized", "radius": 8.0, "bounds": (0.0, 800.0)}
        assert abs(fitted(data, delta=delta, **options).mean_[0] - true[0]) < 3.0


class TestNoisyNumberOfUsers:
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    @pytest.mark.parametrize("algorithm", ["auto", "clip"])
    def test_the_error_counts_the_noise_of_the_number(self, delta, algorithm):
        """Under add or remove, at the end of the range, where it is most of the error."""
        values = np.random.default_rng(6).normal(20.0, 2.0, size=(5000, 1))
        options = {"bounds": (0.0, 800.0), "relation": Relation.ADD_REMOVE, "delta": delta}
        means = [fitted(people(values), seed=s, algorithm=algorithm, **options) for s in range(40)]
        errors = np.array([mean.mean_[0] - values.mean() for mean in means])
        claimed = np.mean([mean.error_.standard_error for mean in means])
        assert 0.35 * claimed < np.sqrt(np.mean(errors**2)) < 2.2 * claimed


class TestBounds:
    def test_half_widths_are_seen_from_the_centre(self):
        assert half_widths(as_bound((0.0, [2.0, 6.0]), 2)).tolist() == [1.0, 3.0]
        assert half_widths(Ball(2.0, dimension=3)).tolist() == [2.0, 2.0, 2.0]
