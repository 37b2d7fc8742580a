"""ChooseBest keeps its promise: privacy by exact laws, utility by exact worst cases."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import Drawing
from goodness import FALSE_ALARM, p_value
from quorate.auditing import RecordedNoise, SmallWorld, audit_exactly
from quorate.core.guarantees import Numerics, Pure, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.choices.choose import (
    ChoiceError,
    ChooseBest,
    Selection,
    permute_and_flip_probabilities,
)
from sealing import release_by_hand

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE
LARGEST, SMALLEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
every_selection = pytest.mark.parametrize("selection", list(Selection), ids=lambda s: s.name)


def loss_between(first, second):
    return float(np.max(np.abs(np.log(first) - np.log(second))))


def votes(ballots, n=3):
    return np.bincount(np.array(ballots, dtype=int), minlength=n)


class TestPrivacy:
    @every_selection
    @settings(max_examples=150)
    @given(data=st.data())
    def test_scores_that_move_by_the_sensitivity_move_the_law_by_epsilon(self, selection, data):
        n = data.draw(st.integers(1, 6))
        sensitivity = data.draw(st.integers(1, 4))
        epsilon = data.draw(st.floats(0.01, 4.0))
        scores = np.array(data.draw(st.lists(st.integers(-30, 30), min_size=n, max_size=n)))
        moves = st.integers(-sensitivity, sensitivity)
        other = scores + np.array(data.draw(st.lists(moves, min_size=n, max_size=n)))
        choose = ChooseBest(
            candidates=n, epsilon=epsilon, sensitivity=sensitivity, selection=selection
        )
        loss = loss_between(choose.probabilities(scores), choose.probabilities(other))
        assert loss <= epsilon * (1 + 1e-9)

    @every_selection
    @settings(max_examples=150)
    @given(data=st.data())
    def test_one_sided_scores_cost_half(self, selection, data):
        n = data.draw(st.integers(1, 6))
        scores = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n)))
        added = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
        choose = ChooseBest(
            candidates=n,
            epsilon=1.0,
            sensitivity=2,
            relation=ADD_REMOVE,
            one_sided=True,
            selection=selection,
        )
        loss = loss_between(choose.probabilities(scores), choose.probabilities(scores + added))
        assert loss <= 1.0 + 1e-9

    def test_permute_and_flip_reaches_epsilon(self):
        choose = ChooseBest(candidates=2, epsilon=1.5, sensitivity=2)
        behind, further = choose.probabilities([0, 10]), choose.probabilities([-2, 12])
        assert loss_between(behind, further) == pytest.approx(1.5, rel=1e-9)

    def test_gumbel_comes_close_to_epsilon(self):
        choose = ChooseBest(candidates=2, epsilon=1.5, selection=Selection.GUMBEL)
        assert loss_between(choose.probabilities([0, 20]), choose.probabilities([-1, 21])) > 1.49

    WORLD = SmallWorld(records=(0, 1, 2), n_users=5)

    @every_selection
    @pytest.mark.parametrize(("relation", "one_sided"), [(REPLACE, False), (ADD_REMOVE, True)])
    def test_an_audit_of_all_elections_confirms_the_claim(self, selection, relation, one_sided):
        choose = ChooseBest(
            candidates=3, epsilon=4.0, relation=relation, one_sided=one_sided, selection=selection
        )
        audit = audit_exactly(
            lambda b: choose.probabilities(votes(b)), self.WORLD, choose.guarantee
        )
        assert audit.holds
        assert audit.tightness > 0.95

    @every_selection
    def test_broken_twins_are_caught(self, selection):
        claim = ChooseBest(candidates=3, epsilon=1.0, selection=selection).guarantee
        one_sided = ChooseBest(
            candidates=3, epsilon=1.0, relation=ADD_REMOVE, one_sided=True, selection=selection
        )
        too_small = ChooseBest(
            candidates=3, epsilon=1.0, sensitivity=Fraction(1, 2), selection=selection
        )
        halved = ChooseBest(candidates=3, epsilon=2.0, selection=selection)
        twins = {
            "wrong relation": one_sided,
            "sensitivity too small": too_small,
            "noise halved": halved,
        }
        for name, twin in twins.items():
            audit = audit_exactly(
                lambda b, twin=twin: twin.probabilities(votes(b)), self.WORLD, claim
            )
            assert not audit.holds, name

    def test_an_off_by_one_in_the_score_is_caught(self):
        choose = ChooseBest(candidates=3, epsilon=1.0)
        audit = audit_exactly(
            lambda b: choose.probabilities(2 * votes(b)), self.WORLD, choose.guarantee
        )
        assert not audit.holds

    def test_the_scale_is_rounded_up(self):
        for epsilon in (0.1, 0.3, 1 / 3, 0.7, 3.0):
            scale = ChooseBest(candidates=2, epsilon=epsilon, sensitivity=Fraction(1, 3)).scale
            assert Fraction(scale) * Fraction(epsilon) >= Fraction(2, 3)


class TestLaw:
    @settings(max_examples=50)
    @given(st.lists(st.integers(-12, 0), min_size=1, max_size=6))
    def test_the_formula_is_permute_and_flip_by_definition(self, exponents):
        exponents = np.array(exponents, dtype=float)
        flips = np.exp(exponents - exponents.max())
        law = np.zeros(len(flips))
        for order in permutations(range(len(flips))):
            alive = 1 / math.factorial(len(flips))
            for i in order:
                law[i] += alive * flips[i]
                alive *= 1 - flips[i]
        assert permute_and_flip_probabilities(exponents) == pytest.approx(law, rel=1e-11)

    def test_the_formula_is_stable_for_many_candidates(self):
        law = permute_and_flip_probabilities(np.r_[0.0, np.full(299, -3.0)])
        assert law.sum() == pytest.approx(1.0, abs=1e-12)
        assert law[1:] == pytest.approx(law[1], rel=1e-12)

    @every_selection
    def test_releases_follow_the_law(self, selection):
        """2000 secure draws; chi-squared with a false alarm of 1e-7."""
        scores = np.array([2, 0, 3, 3])
        choose = ChooseBest(candidates=4, epsilon=1.0, selection=selection)
        drawn = [release_by_hand(choose, scores) for _ in range(2000)]
        law = choose.probabilities(scores)
        assert p_value(np.bincount(drawn, minlength=4), law) > FALSE_ALARM

    @every_selection
    def test_half_the_noise_is_caught(self, selection):
        class Halved(SeededNoise):
            def _choose(self, law, scores, scale):
                return super()._choose(law, scores, scale / 2)

        scores = np.array([2, 0, 3, 3])
        choose = Drawing(ChooseBest(candidates=4, epsilon=1.0, selection=selection), Halved(1))
        drawn = [choose.release(scores) for _ in range(2000)]
        law = choose.probabilities(scores)
        assert p_value(np.bincount(drawn, minlength=4), law) < FALSE_ALARM


class TestReplay:
    @every_selection
    @settings(max_examples=30)
    @given(scores=st.lists(st.integers(SMALLEST, LARGEST), min_size=4, max_size=4))
    def test_any_scores_ask_for_the_same_noise(self, selection, scores):
        recorded = RecordedNoise(1)
        Drawing(ChooseBest(candidates=4, epsilon=1.0, selection=selection), recorded).release(
            np.zeros(4, np.int64)
        )
        replayed = recorded.replay()
        choose = Drawing(ChooseBest(candidates=4, epsilon=1.0, selection=selection), replayed)
        assert choose.release(np.array(scores)) in range(4)
        replayed.finish()

    def test_a_double_voids_the_guarantee(self):
        assert ChooseBest(candidates=2, epsilon=1.0).guarantee.numerics is Numerics.EXACT
        with use_noise(SeededNoise(0)):
            assert not ChooseBest(candidates=2, epsilon=1.0).guarantee.holds

    def test_the_guarantee_says_what_was_asked_for(self):
        choose = ChooseBest(candidates=2, epsilon=0.7, relation=ADD_REMOVE)
        assert choose.event == Pure(0.7)
        assert choose.guarantee.relation is ADD_REMOVE
        assert choose.guarantee.events == (Pure(0.7),)


class TestUtility:
    @every_selection
    @pytest.mark.parametrize("candidates", [2, 3, 40, 400])
    @pytest.mark.parametrize("beta", [0.3, 0.01, 1e-5])
    @pytest.mark.parametrize("epsilon", [0.2, 2.0])
    def test_the_bound_is_the_smallest_that_holds(self, selection, candidates, beta, epsilon):
        choose = ChooseBest(candidates=candidates, epsilon=epsilon, selection=selection)
        bound = choose.error_bound(beta)
        worst = np.full(candidates, -(bound + 1))
        worst[0] = 0
        assert choose.probabilities(worst)[1:].sum() <= beta * (1 + 1e-9)
        if bound > 0:
            worst[1:] = -bound
            assert choose.probabilities(worst)[1:].sum() > beta

    @every_selection
    @settings(max_examples=100)
    @given(scores=st.lists(st.integers(-60, 0), min_size=5, max_size=5))
    def test_no_scores_exceed_the_bound(self, selection, scores):
        choose = ChooseBest(candidates=5, epsilon=0.5, selection=selection)
        scores = np.array(scores)
        far = scores < scores.max() - choose.error_bound(0.05)
        assert choose.probabilities(scores)[far].sum() <= 0.05

    def test_permute_and_flip_never_needs_more_than_the_exponential_mechanism(self):
        for candidates in (2, 10, 10**6):
            bounds = [
                ChooseBest(candidates=candidates, epsilon=0.1, selection=s).error_bound(0.01)
                for s in (Selection.PERMUTE_AND_FLIP, Selection.GUMBEL)
            ]
            assert bounds[0] <= bounds[1]

    def test_tiny_chances_and_many_candidates_stay_finite(self):
        choose = ChooseBest(candidates=10**6, epsilon=1.0)
        assert choose.error_bound(1e-300) == pytest.approx(2 * math.log(10**6 / 2 / 1e-300), abs=2)

    def test_a_single_candidate_has_no_error(self):
        assert ChooseBest(candidates=1, epsilon=1.0).error_bound(0.5) == 0
        assert release_by_hand(ChooseBest(candidates=1, epsilon=1.0), np.array([-7])) == 0


class TestRefusals:
    @pytest.mark.parametrize(
        "change",
        [
            {"candidates": 0},
            {"candidates": 2.0},
            {"epsilon": 0.0},
            {"epsilon": math.nan},
            {"epsilon": math.inf},
            {"epsilon": -1.0},
            {"epsilon": 1e-320},
            {"sensitivity": 0},
            {"sensitivity": 0.5},
            {"relation": "replace"},
            {"one_sided": True},
            {"one_sided": 1, "relation": ADD_REMOVE},
            {"selection": "gumbel"},
        ],
        ids=str,
    )
    def test_bad_parameters_are_refused(self, change):
        with pytest.raises(ParameterError):
            ChooseBest(**{"candidates": 3, "epsilon": 1.0, **change})

    @pytest.mark.parametrize(
        "scores", [[1, 2], [1, 2, 3, 4], [[1, 2, 3]], [1.0, 2.0, math.nan], [True, False, True]]
    )
    def test_scores_of_another_shape_or_type_are_refused(self, scores):
        with pytest.raises(SchemaError):
            release_by_hand(ChooseBest(candidates=3, epsilon=1.0), np.array(scores))

    @pytest.mark.parametrize("beta", [0.0, 1.0, -1.0, math.nan])
    def test_bad_chances_are_refused(self, beta):
        with pytest.raises(ParameterError, match="beta"):
            ChooseBest(candidates=3, epsilon=1.0).error_bound(beta)

    def test_extreme_scores_are_a_users_business_and_never_an_error(self):
        choose = ChooseBest(candidates=3, epsilon=1.0)
        assert release_by_hand(choose, np.array([SMALLEST, LARGEST, 0])) == 1


class TestChoiceError:
    """How much worse than the best it may be, in people or in shares, or why not."""

    def test_people_and_their_share(self):
        error = ChoiceError.of_people(30, counts="votes", n_users=120)
        assert (error.bound, error.worst, error.share) == (30.0, 30.0, 0.25)
        assert error.coordinates == (30.0,)
        assert "measured by votes" in error.covers
        assert ChoiceError.of_people(300, counts="votes", n_users=120).share == 1.0

    def test_without_a_public_number_there_is_no_share(self):
        error = ChoiceError.of_people(30, counts="votes", n_users=None)
        assert error.share is None
        assert str(error) == "at most 30 people worse than the best, with probability 95%"

    def test_a_bound_is_printed_rounded_up(self):
        error = ChoiceError.of_people(2.42, counts="capped regret", n_users=None)
        assert str(error).startswith("at most 3 people")

    def test_a_smaller_bound_names_its_assumption_and_keeps_the_worst(self):
        proved = ChoiceError.of_people(80, counts="votes", n_users=200)
        usual = proved.assuming(10, "all is as usual", n_users=200)
        assert (usual.bound, usual.worst, usual.share) == (10.0, 80.0, 0.05)
        assert usual.coordinates == (10.0,)
        assert usual.covers.endswith("The bound assumes that all is as usual; worst, nothing.")

    def test_one_candidate_cannot_be_worse(self):
        assert ChoiceError.of_people(0, counts="votes", n_users=9).coordinates == ()

    def test_a_share_has_its_unit_and_confidence(self):
        error = ChoiceError.of_share(0.1, unit="of records", confidence=0.9, covers="All of it.")
        assert str(error) == "at most 0.1 (of records), with probability 90%"

    def test_nothing_is_stated_with_a_reason(self):
        error = ChoiceError.unknown("It was too dark.")
        assert not error.stated
        assert error.bound == error.worst == math.inf
        assert str(error) == "No error is stated: it was too dark."

    def test_it_is_frozen(self):
        with pytest.raises(AttributeError):
            ChoiceError.unknown("No.").bound = 1.0
