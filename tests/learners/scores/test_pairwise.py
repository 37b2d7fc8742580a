"""Duels and clipped pairwise scores (F5, F6): against the definition, their sign, their limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.guarantees import Relation
from quorate.core.questions.pairs import BySign, count_defeats
from quorate.exceptions import ParameterError
from quorate.learners.concepts import FiniteTable
from quorate.learners.scores import ClippedPairwise, Duels
from quorate.learners.scores.pairwise import MAX_DUELLISTS, published_clip
from rule_worlds import audit_score, losses_of

tables = st.integers(0, 6).flatmap(
    lambda n: st.lists(
        st.lists(st.integers(0, 70_000), min_size=4, max_size=4), min_size=n, max_size=n
    )
)


def by_definition(mistakes, judge):
    """Theorem 37: for each h the worst over h' of the sum over users of clipped differences."""
    users, size = mistakes.shape
    return np.array(
        [
            max(
                sum(judge(int(mistakes[i, h]) - int(mistakes[i, g])) for i in range(users))
                for g in range(size)
                if g != h
            )
            for h in range(size)
        ]
    )


@pytest.mark.claim("F5: Theorem 37")
class TestTheDefinition:
    @settings(max_examples=60)
    @given(rows=tables, loss=st.integers(1, 3), gain=st.integers(0, 3))
    def test_duels_are_the_worst_sum_of_verdicts(self, rows, loss, gain):
        mistakes = np.array(rows, dtype=np.int64).reshape(-1, 4)
        score = Duels(loss=loss, gain=gain)
        losses = losses_of(score, mistakes, np.zeros(len(rows)))
        worst = by_definition(mistakes, lambda d: loss * (d > 0) - gain * (d < 0))
        np.testing.assert_array_equal(losses, 2 * worst - (loss - gain) * len(rows))

    @settings(max_examples=60)
    @given(rows=tables, tau=st.integers(1, 9))
    def test_the_clipped_score_is_that_of_theorem_37(self, rows, tau):
        mistakes = np.array(rows, dtype=np.int64).reshape(-1, 4)
        score = ClippedPairwise(tau=tau)
        losses = losses_of(score, mistakes, np.zeros(len(rows)))
        worst = by_definition(mistakes, lambda d: max(-tau, min(tau, d)))
        np.testing.assert_array_equal(losses, 2 * worst)

    def test_clip_one_is_the_sign_score(self):
        mistakes = np.random.default_rng(0).integers(0, 9, (30, 8))
        sign, clipped = Duels(loss=1, gain=1), ClippedPairwise(tau=1)
        held = np.full(30, 9)
        found = [losses_of(each, mistakes, held) for each in (sign, clipped)]
        np.testing.assert_array_equal(*found)
        assert sign.sensitivity(Relation.REPLACE) == clipped.sensitivity(Relation.REPLACE) == 4

    @pytest.mark.claim("F6: Theorem 40")
    def test_the_better_hypothesis_has_the_smaller_loss(self):
        # Theorem 40 prints the opposite sign of psi; with it this would fail.
        mistakes = np.array([[0, 2]] * 10)
        for score in (Duels(), Duels(loss=1, gain=1), ClippedPairwise(tau=5)):
            losses = losses_of(score, mistakes, np.full(10, 4))
            assert losses[0] < losses[1]


class TestCounting:
    def test_more_than_a_byte_of_users_and_wide_counts(self):
        rng = np.random.default_rng(0)
        for top in (2, 200, 1000, 10**6):
            mistakes = rng.integers(0, top, (600, 5))
            expected = (mistakes[:, :, None] > mistakes[:, None, :]).sum(axis=0)
            np.testing.assert_array_equal(count_defeats(mistakes), expected)

    def test_nobody_gives_zeros(self):
        assert not count_defeats(np.zeros((0, 3), dtype=np.int32)).any()
        # Bytes have no sign: whoever else is there, -1 is less than 0.
        for other in ([0, 0], [300, 300]):
            assert count_defeats(np.array([[-1, 0], other])).tolist() == [[0, 0], [1, 0]]


@pytest.mark.claim("F5: Theorem 37")
class TestPrivacy:
    @pytest.mark.parametrize("relation", list(Relation), ids=lambda r: r.name)
    def test_a_twin_with_the_sensitivity_of_a_single_count_is_caught(self, relation, monkeypatch):
        # What one unclipped vote would have, in these doubled units.
        monkeypatch.setattr(BySign, "sensitivity", lambda self, relation: 2)
        assert not audit_score(Duels(loss=2, gain=1), relation, thorough=False).holds

    def test_two_hypotheses_reach_the_claim(self):
        pair = FiniteTable([[0, 1], [1, 0]])
        found = audit_score(Duels(loss=1, gain=1), Relation.REPLACE, concepts=pair)
        assert found.holds
        assert found.tightness > 0.8


class TestRefusals:
    def test_too_many_duellists_are_refused_with_an_alternative(self):
        wide = np.zeros((1, MAX_DUELLISTS + 1), dtype=np.int8)
        for score in (Duels(), ClippedPairwise(tau=1)):
            with pytest.raises(ParameterError, match="crossing"):
                losses_of(score, wide, np.zeros(1))

    @pytest.mark.parametrize("bad", [{"loss": 0}, {"gain": -1}, {"loss": 1.5}])
    def test_weights_that_are_no_integers_are_refused(self, bad):
        with pytest.raises(ParameterError):
            Duels(**bad)

    def test_the_published_clip_grows_like_the_root_of_the_records(self):
        assert published_clip(6400, 0.01) < 14 * published_clip(64, 0.01)
        with pytest.raises(ParameterError):
            published_clip(0, 0.1)
