"""U1, the private range: the published law exactly, the erratum, and its failure bound."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawing import Drawing
from quorate.auditing import SmallWorld, audit_exactly, replay
from quorate.core.guarantees import Guarantee, Numerics, Relation
from quorate.core.noise import SeededNoise
from quorate.exceptions import ParameterError
from quorate.mechanisms.means.private_range import PrivateRange
from sealing import release_by_hand

RANGE = PrivateRange(lower=-4.0, upper=4.0, radius=1.0, epsilon=1.0)
WORLD = SmallWorld(records=(-100.0, -0.5, 0.5, 3.9), n_users=3)


def published_law(values, mechanism):
    """Algorithm 6, word by word: every bin, its cost, its weight."""
    bins = mechanism.bins
    chosen = mechanism.bin_of(np.array(values))
    costs = [max(np.sum(chosen < b), np.sum(chosen > b)) for b in range(bins)]
    weights = np.exp(-mechanism.epsilon * np.array(costs) / 2)
    return weights / weights.sum()


@pytest.mark.claim("U1: Algorithm 6")
class TestLaw:
    @given(
        values=st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=12),
        epsilon=st.floats(0.1, 3.0),
    )
    def test_bins_are_chosen_with_the_published_probabilities(self, values, epsilon):
        mechanism = dataclasses.replace(RANGE, epsilon=epsilon)
        chances = mechanism.choice.probabilities(mechanism.bin_of(np.array(values)))
        assert np.allclose(chances, published_law(values, mechanism), rtol=1e-9)


class TestExactAudit:
    claim = Guarantee(epsilon=1.0, numerics=Numerics.VOID)

    @pytest.mark.parametrize("relation", list(Relation))
    def test_the_claim_holds_and_is_nearly_reached(self, relation):
        mechanism = dataclasses.replace(RANGE, relation=relation)
        claim = dataclasses.replace(self.claim, relation=relation)

        def law(records):
            values = np.array(records, dtype=float)
            return mechanism.choice.probabilities(mechanism.bin_of(values))

        audit = audit_exactly(law, WORLD, claim)
        assert audit.holds, str(audit)
        assert audit.tightness > 0.4

    def test_a_twin_that_spends_twice_as_much_is_caught(self):
        twin = dataclasses.replace(RANGE, epsilon=2.0)
        audit = audit_exactly(
            lambda r: twin.choice.probabilities(twin.bin_of(np.array(r))), WORLD, self.claim
        )
        assert not audit.holds

    def test_a_twin_with_bins_from_the_data_is_caught(self):
        def law(records):
            twin = dataclasses.replace(RANGE, lower=min(-4.0, *records))
            return twin.choice.probabilities(twin.bin_of(np.array(records)))

        assert not audit_exactly(law, WORLD, self.claim, thorough=False).holds


class TestUtility:
    def test_concentrated_users_are_inside_as_often_as_promised(self):
        mechanism = PrivateRange(lower=-1e4, upper=1e4, radius=1.0, epsilon=0.5)
        values = 77.7 + np.linspace(-1.0, 1.0, 120)
        assert mechanism.failure(120) < 0.01
        misses = 0
        for seed in range(200):
            low, high = Drawing(mechanism, SeededNoise(seed)).release(values)
            misses += not (low <= values.min() and values.max() <= high)
        # 200 runs at a failure of at most 1 %: more than 14 have probability below 1e-6.
        assert misses <= 14

    def test_the_published_width_can_cut_concentrated_users(self):
        # Half of the users at each side of a bin's edge: erratum 1.
        values = np.where(np.arange(400) % 2 == 0, -0.99, 0.99)
        mechanism = PrivateRange(
            lower=-8.0, upper=8.0, radius=1.0, epsilon=1.0, constants="published"
        )
        cut = kept = 0
        for seed in range(40):
            low, high = Drawing(mechanism, SeededNoise(seed)).release(values)
            cut += not (low <= -0.99 and high >= 0.99)
            calibrated = Drawing(
                dataclasses.replace(mechanism, constants="calibrated"), SeededNoise(seed)
            )
            low, high = calibrated.release(values)
            kept += low <= -0.99 and high >= 0.99
        assert cut > 0 or mechanism.half_width < 2.99
        assert kept == 40

    def test_huge_ranges_are_no_trouble(self):
        mechanism = Drawing(
            PrivateRange(lower=-1e9, upper=1e9, radius=1e-4, epsilon=2.0), SeededNoise(0)
        )
        low, high = mechanism.release(np.full(200, 123.456))
        assert low <= 123.456 <= high


class TestReplay:
    def test_neighbours_with_the_same_answer_look_the_same(self):
        def run(values):
            return release_by_hand(
                PrivateRange(lower=-4.0, upper=4.0, radius=0.1, epsilon=1.0), values
            )

        report = replay(run, np.array([0.0, 1.0, math.nan]), np.array([0.0, 1e300, math.nan]))
        assert report.same, str(report)


class TestRefusal:
    @pytest.mark.parametrize(
        "change",
        [
            {"radius": 0.0},
            {"upper": -9.0},
            {"epsilon": math.nan},
            {"constants": "tuned"},
            {"radius": 1e-30},
        ],
    )
    def test_bad_parameters_are_refused(self, change):
        with pytest.raises(ParameterError):
            dataclasses.replace(RANGE, **change)
