"""A noisy binary search: sensitivity, noise, exact audit, replay, usefulness, refusals."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawing import Drawing, gaussian_account
from quorate.auditing import Cells, RecordedNoise, SmallWorld, audit_exactly, enumerate_runs, replay
from quorate.core.account.compose import price
from quorate.core.guarantees import Guarantee, Numerics, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users.crowd import counts_up_to
from quorate.exceptions import ParameterError
from quorate.mechanisms.sums import NoisySearch, looks_needed
from sealing import release_by_hand, released_counts

FALSE_ALARM = 1e-6
ADVERSARIAL = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.integers(-3, 3))


def search(**changes):
    parameters = {
        "thresholds": np.array([0.5, 1.5, 2.5, 3.5]),
        "target": 1.5,
        "noise_multiplier": 1.0,
    }
    return NoisySearch(**(parameters | changes))


class TestSensitivity:
    @given(
        values=st.lists(ADVERSARIAL, min_size=1, max_size=6), other=ADVERSARIAL, place=st.integers()
    )
    def test_one_user_moves_every_count_by_at_most_one(self, values, other, place):
        neighbour = list(values)
        neighbour[place % len(values)] = other
        counts = [
            [np.count_nonzero(np.array(v, float) <= t) for t in search().thresholds]
            for v in (values, neighbour)
        ]
        assert np.max(np.abs(np.subtract(*counts))) <= search().sensitivity

    def test_the_bound_is_reached(self):
        assert np.count_nonzero(np.array([9.0]) <= 0.5) + search().sensitivity == 1


class TestNoise:
    def test_every_look_asks_for_the_noise_that_is_priced(self):
        noise = RecordedNoise(0)
        mechanism = Drawing(search(thresholds=np.arange(64.0)), noise)
        mechanism.release(np.arange(50.0))
        assert len(noise.log) == mechanism.looks == 6
        assert {draw.method for draw in noise.log} == {"discrete_gaussian"}
        sigma = noise.log[0].parameters["scale"]
        # Sensitivity 16 in sixteenths of a count; 4 is what discreteness costs.
        assert sigma**2 >= (16 * mechanism.noise_multiplier) ** 2 + 4 - 1e-9


WORLD = SmallWorld(records=(0.0, 2.0, math.inf), n_users=3)
DELTA = 1e-3


def law_of(mechanism):
    def law(records):
        return enumerate_runs(
            lambda noise: Drawing(mechanism, noise).release(np.array(records)),
            cells=Cells(width=0.5, reach=4.0),
        )

    return law


class TestExactAudit:
    claim = Guarantee(
        epsilon=price(search().event, delta=DELTA), delta=DELTA, numerics=Numerics.VOID
    )

    def test_the_search_keeps_its_claim_in_a_small_world(self):
        audit = audit_exactly(law_of(search()), WORLD, self.claim)
        assert audit.holds, str(audit)
        assert audit.tightness > 0.4, "noise that buys nothing"

    def test_a_twin_with_a_third_of_the_noise_is_caught(self):
        assert not audit_exactly(
            law_of(search(noise_multiplier=1 / 3)), WORLD, self.claim, thorough=False
        ).holds

    def test_a_twin_that_takes_its_target_from_the_data_is_caught(self):
        def law(records):
            target = 8.0 * sum(r < 2 for r in records)
            return law_of(search(target=target))(records)

        assert not audit_exactly(law, WORLD, self.claim, thorough=False).holds

    def test_it_holds_for_add_or_remove_too(self):
        mechanism = search(relation=Relation.ADD_REMOVE)
        claim = dataclasses.replace(self.claim, relation=Relation.ADD_REMOVE)
        world = SmallWorld(records=(0.0, 2.0), n_users=3)
        assert audit_exactly(law_of(mechanism), world, claim).holds


class TestReplay:
    def test_neighbours_with_the_same_answers_take_the_same_way(self):
        values = np.arange(20.0)
        neighbour = values.copy()
        neighbour[3] = np.nan
        for seed in range(5):
            run = lambda v: release_by_hand(search(thresholds=np.arange(9.0), target=5), v)  # noqa: E731
            report = replay(run, values, neighbour, seed=seed)
            assert report.same, str(report)


class TestUtility:
    def test_the_threshold_found_holds_about_the_target(self):
        rng = np.random.default_rng(0)
        values = rng.exponential(size=2000)
        grid = np.geomspace(0.01, 100.0, 60)
        mechanism = search(thresholds=grid, target=1000.0, noise_multiplier=20.0)
        bound = mechanism.error_bound(FALSE_ALARM / 50)
        for seed in range(50):
            found = Drawing(mechanism, SeededNoise(seed)).release(values)
            assert np.count_nonzero(values <= grid[found]) >= 1000 - bound
            assert found == 0 or np.count_nonzero(values <= grid[found - 1]) < 1000 + bound

    def test_half_the_bound_would_fail(self):
        # The noise of one look exceeds half of its 1e-3 bound far more often than 1e-3.
        mechanism = search(noise_multiplier=20.0, thresholds=np.arange(2.0))
        draws = SeededNoise(1).discrete_gaussian(np.zeros(4000, np.int64), sigma=mechanism.sigma)
        share = np.mean(np.abs(draws) / 16 > mechanism.error_bound(1e-3) / 2)
        assert share > 0.02

    def test_the_number_of_looks_is_the_binary_logarithm(self):
        assert [looks_needed(k) for k in (1, 2, 3, 64, 65)] == [0, 1, 2, 6, 7]


class TestRefusal:
    @pytest.mark.parametrize(
        "change",
        [
            {"thresholds": np.array([])},
            {"thresholds": np.array([1.0, 1.0])},
            {"thresholds": np.array([1.0, np.nan])},
            {"noise_multiplier": 0.0},
            {"noise_multiplier": math.nan},
            {"target": math.nan},
        ],
    )
    def test_bad_parameters_are_refused(self, change):
        with pytest.raises(ParameterError):
            search(**change)

    def test_no_user_is_no_error(self):
        assert Drawing(search(), SeededNoise(0)).release(np.array([])) in range(4)


class TestCounts:
    def test_counts_of_parts_give_what_the_values_give(self):
        values = np.random.default_rng(0).exponential(size=400)
        thresholds = np.linspace(0.01, 5.0, 64)
        search = NoisySearch(thresholds=thresholds, target=200.0, noise_multiplier=3.0)
        parts = [counts_up_to(part, thresholds) for part in np.array_split(values, 7)]
        for seed in range(20):
            with use_noise(SeededNoise(seed)):
                whole = release_by_hand(search, values)
            with use_noise(SeededNoise(seed)):
                assert released_counts(search, sum(parts)) == whole

    @pytest.mark.parametrize("size", [2, 5, 64, 100])
    def test_looks_cost_at_most_what_the_event_says(self, size):
        thresholds = np.arange(float(size))
        values = np.linspace(0.0, size - 0.5, 40_000)
        search = NoisySearch(thresholds=thresholds, target=20_000.0, noise_multiplier=2.0)
        counts = counts_up_to(values, thresholds)
        with use_noise(SeededNoise(0)):
            account = gaussian_account(math.sqrt(search.looks / 4 + 1e-6))
        found = released_counts(search, counts, account=account)
        assert counts[found] >= 20_000 - 40
        assert found == 0 or counts[found - 1] <= 20_000 + 40
        assert float(account.square - account.square_left) <= search.looks / 4 * (1 + 1e-12)

    def test_other_thresholds_are_refused(self):
        search = NoisySearch(thresholds=np.arange(3.0), target=2.0, noise_multiplier=3.0)
        with pytest.raises(ParameterError, match="one count for each"):
            released_counts(search, np.arange(4))
