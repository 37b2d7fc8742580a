"""Caps that weigh noise against what they cut: private for every length, and well chosen."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs
from quorate.exceptions import ParameterError, SchemaError
from quorate.guarantees import Relation
from quorate.mechanisms.choices.choose import permute_and_flip_probabilities
from quorate.mechanisms.choices.private_cap import PrivateCap
from quorate.noise import SeededNoise, use_noise
from sealing import release_by_hand

relations = pytest.mark.parametrize("relation", list(Relation))
LENGTHS = st.floats(min_value=0.0) | st.sampled_from([0.0, 1.0, 2.0, 1e308, np.inf, np.nan])
CAPS = (1.0, 2.0, 3.0, 7.5, 1e6)
PART = 2**20


def look(relation=Relation.REPLACE, **changes):
    return PrivateCap(
        **({"caps": CAPS, "aim": 2.0, "epsilon": 1.0, "relation": relation} | changes)
    )


@given(LENGTHS, LENGTHS)
@example(1.9, 9.0)
def test_whoever_is_replaced_moves_all_scores_one_way_by_a_part_at_most(one, other):
    first, second = (look().excess(np.array([length])) for length in (one, other))
    moved = second - first
    assert np.all(moved >= 0) or np.all(moved <= 0)
    assert np.abs(moved).max() <= PART
    assert first.min() >= 0
    assert first.max() <= PART


@relations
def test_the_worst_loss_over_small_worlds_is_the_claim(relation):
    world = SmallWorld(records=(0.0, 1.5, 2.5, 9.0), n_users=3, ordered=False)
    mechanism = look(relation, caps=(1.0, 2.0, 5.0))

    def audit(kind):
        return audit_exactly(
            lambda held: enumerate_runs(lambda _: kind(np.array(held, dtype=float))),
            world,
            mechanism.guarantee,
            thorough=True,
        )

    assert audit(lambda held: release_by_hand(mechanism, mechanism.excess(held))).holds

    def unbounded(held):
        """The twin: what is cut is not cut off at one person."""
        over = [np.floor(np.maximum(held / c - 1, 0) * PART).sum() for c in mechanism.caps]
        return release_by_hand(mechanism, np.array(over, dtype=np.int64))

    assert not audit(unbounded).holds


@dataclass(frozen=True, kw_only=True)
class Halved(PrivateCap):
    """The twin: half of the noise."""

    @property
    def scale(self):
        return super().scale / 2


@relations
def test_one_person_against_none_attains_the_claim_and_half_the_noise_breaks_it(relation):
    def loss(kind):
        mechanism = kind(caps=(1.0, 4.0), aim=0.0, epsilon=1.0, relation=relation)
        laws = [
            permute_and_flip_probabilities(-mechanism.excess(np.array(held)) / mechanism.scale)
            for held in ([9.0, 0.0] * 20, [9.0, 2.0] + [9.0, 0.0] * 19)
        ]
        return np.abs(np.log(laws[0] / laws[1])).max()

    assert 0.5 < loss(PrivateCap) <= 1.0 + 1e-9
    assert loss(Halved) > 1.0 + 1e-3


def test_everybody_alike_is_met_exactly_and_hardly_ever_missed_by_much():
    mechanism = look(
        caps=tuple(map(float, (1, 2, 5, 10, 15, 20, 25, 30, 50, 100))), aim=40.0, epsilon=0.1
    )
    excess, found = mechanism.excess(np.full(2000, 20.0)), []
    for seed in range(300):
        with use_noise(SeededNoise(seed)):
            found.append(release_by_hand(mechanism, excess))
    assert min(found) == 20.0
    assert np.mean(np.array(found) == 20.0) > 0.5
    assert np.mean(np.array(found) > 50.0) < 0.02


def test_about_as_many_as_planned_are_above():
    lengths = np.random.default_rng(0).pareto(2.0, 20_000) + 1.0
    mechanism = look(caps=tuple(1.25 ** np.arange(60)), aim=50.0, epsilon=1.0)
    for seed in range(10):
        with use_noise(SeededNoise(seed)):
            cap = release_by_hand(mechanism, mechanism.excess(lengths))
        assert 12 < np.sum(lengths > cap) < 200


def test_the_score_is_as_near_the_best_as_it_says():
    lengths, mechanism = np.random.default_rng(0).pareto(1.5, 500) * 3, look(aim=5.0)
    scores = -mechanism.excess(lengths) / PART - 5.0 * np.log(CAPS)
    missed = []
    for seed in range(400):
        with use_noise(SeededNoise(seed)):
            found = release_by_hand(mechanism, mechanism.excess(lengths))
        missed.append(scores.max() - scores[CAPS.index(found)])
    assert np.mean(np.array(missed) > mechanism.error_bound(0.1)) <= 0.1


@pytest.mark.parametrize(
    "mistake",
    [
        {"caps": ()},
        {"caps": (2.0, 1.0)},
        {"caps": (0.0, 1.0)},
        {"caps": (1.0, np.inf)},
        {"aim": -1.0},
        {"aim": 1e300},
        {"epsilon": 0.0},
        {"epsilon": 1e-320},
        {"relation": "replace"},
    ],
)
def test_wrong_parameters_are_refused(mistake):
    with pytest.raises((ParameterError, ValueError, TypeError)):
        look(**mistake)


def test_wrong_numbers_are_refused():
    with pytest.raises(SchemaError):
        release_by_hand(look(), np.zeros(2, np.int64))
    with pytest.raises((SchemaError, TypeError, ValueError)):
        release_by_hand(look(), np.zeros(5))
