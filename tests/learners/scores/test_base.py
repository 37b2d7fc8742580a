"""Every score, on tables and on lines: the promised sensitivity is kept, reached and audited."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rule_worlds
from quorate.core.guarantees import Relation
from quorate.core.moves import Moves
from quorate.core.sealed import seal
from quorate.core.users import UserData
from quorate.exceptions import ParameterError, SealedError
from quorate.learners.concepts import Direction, FiniteTable, Thresholds
from quorate.learners.scores import (
    AdditiveScore,
    AnyMistake,
    CappedRegret,
    ClippedDifference,
    ClippedPairwise,
    Crossing,
    Duels,
    KolmogorovSmirnov,
    Mistakes,
    MoreThan,
    OwnBest,
    Surrogate,
)
from quorate.learners.scores.base import Along
from rule_worlds import (
    CUT_OFFS,
    LABELINGS,
    RELATIONS,
    audit_on_line,
    audit_score,
    largest_move,
    losses_of,
)
from sealing import numbers_of

SCORES = [
    Mistakes(records=1),
    Mistakes(records=2),
    AnyMistake(),
    MoreThan(rate=0.4),
    KolmogorovSmirnov(rates=(0.0, 0.25, 0.5)),
    OwnBest(),
    CappedRegret(),
    Duels(),
    Duels(loss=1, gain=1),
    Duels(loss=1, gain=0),
    ClippedPairwise(tau=2),
    ClippedDifference(reference=1, radius=2),
    Surrogate(target=LABELINGS),
    Surrogate(target=LABELINGS, rate=0.4, disagreements=1),
]
ON_LINES = [score for score in SCORES if not isinstance(score, Surrogate | ClippedDifference)]
every_score = pytest.mark.parametrize("score", SCORES, ids=repr)
every_score_on_lines = pytest.mark.parametrize("score", ON_LINES, ids=repr)
both_relations = pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)


def table_losses(score, data, concepts=LABELINGS):
    if score.record_cap is not None:
        data = data.cap(records=score.record_cap, random_state=0)
    return rule_worlds.table_losses(score, concepts, data)


@both_relations
@every_score
class TestPrivacyOfEveryScore:
    def test_the_exact_audit_finds_no_more_than_the_claim(self, score, relation, record_property):
        found = audit_score(score, relation)
        record_property("tightness", found.tightness)
        assert found.holds, str(found)
        assert found.tightness > 0.3, "the world is too small to say anything"

    def test_one_user_moves_no_loss_further_than_the_sensitivity(self, score, relation):
        move = largest_move(lambda data: table_losses(score, data), relation)
        assert move <= score.sensitivity(relation)

    def test_a_twin_that_claims_a_third_of_the_sensitivity_is_caught(self, score, relation):
        found = audit_score(with_sensitivity(score, 3), relation, thorough=False)
        assert not found.holds


@both_relations
@every_score_on_lines
def test_the_exact_audit_on_a_line_finds_no_more_than_the_claim(
    score, relation, monkeypatch, record_property
):
    if isinstance(score, Duels | ClippedPairwise) and relation is Relation.ADD_REMOVE:
        with pytest.raises(SealedError, match="number of users is private"):
            rule_worlds.line_losses(score, CUT_OFFS, rule_worlds.people(((),)), relation)
        return
    found = audit_on_line(score, relation, monkeypatch)
    record_property("tightness", found.tightness)
    assert found.holds, str(found)


def with_sensitivity(score, divisor):
    """Break a score: the same losses, of which one user is said to move a part only."""

    def sensitivity(self, relation):
        return Fraction(super(broken, self).sensitivity(relation), divisor)

    def losses_over(self, people, concepts):
        found = super(broken, self).losses_over(people, concepts)
        lengths = (Fraction(each, divisor) for each in astuple(found.moves)[:4])
        return seal(numbers_of(found), Moves(*lengths), found.relation)

    own = {"sensitivity": sensitivity, "losses_over": losses_over}
    broken = type("Broken", (type(score),), own)
    fields = {name: getattr(score, name) for name in score.__dataclass_fields__}
    return broken(**fields)


class TestOneSidedness:
    @pytest.mark.parametrize("score", [s for s in SCORES if s.one_sided], ids=repr)
    def test_one_more_user_never_lowers_a_loss(self, score):
        lowest = 0
        for extra in ((), ((0, 1),), ((0, 0), (1, 1)), ((0, 1), (0, 1), (1, 0))):
            from rule_worlds import HOLDINGS, people

            for others in ((), HOLDINGS[3:5], HOLDINGS):
                before = table_losses(score, people(others))
                after = table_losses(score, people((*others, extra)))
                lowest = min(lowest, int((after - before).min()))
        assert lowest == 0


@st.composite
def crowds(draw):
    """Draw users with few or many records over 0..7, ties and contradictions included."""
    n = draw(st.integers(1, 6))
    counts = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    total = sum(counts)
    x = draw(st.lists(st.integers(0, 7), min_size=total, max_size=total))
    y = draw(st.lists(st.integers(0, 1), min_size=total, max_size=total))
    return UserData(
        np.array(x, dtype=float).reshape(-1, 1),
        np.array(y, dtype=float),
        offsets=np.cumsum([0, *counts]),
    )


class TestLinesAgreeWithTables:
    @pytest.mark.parametrize("direction", list(Direction), ids=lambda d: d.name)
    @pytest.mark.parametrize("score", ON_LINES, ids=repr)
    @settings(max_examples=40)
    @given(data=crowds())
    def test_every_piece_has_the_losses_of_its_hypotheses(self, score, direction, data):
        concepts = Thresholds(0, 7, direction=direction)
        on_line = rule_worlds.all_losses(score, concepts, data)
        on_table = rule_worlds.table_losses(score, concepts, data)
        np.testing.assert_array_equal(on_line, on_table)

    @settings(max_examples=40)
    @given(data=crowds())
    def test_a_crossing_is_the_same_on_both(self, data):
        score = Crossing(rates=(0.0, 0.2, 0.4))
        walk = rule_worlds.asked(data).walk(Along(Thresholds(0, 7)))
        along = numbers_of(score.losses_of_rates_along(walk))
        np.testing.assert_array_equal(along, table_losses(score, data, Thresholds(0, 7)))


class TestTables:
    @pytest.mark.parametrize(
        "score", [s for s in SCORES if isinstance(s, AdditiveScore | ClippedDifference)], ids=repr
    )
    def test_tallies_of_parts_add_up_to_the_tally_of_all(self, score):
        rng = np.random.default_rng(0)
        mistakes, held = rng.integers(0, 5, (9, 6)).astype(np.int32), rng.integers(4, 8, 9)
        parts = [losses_of(score, mistakes[own], held[own]) for own in (slice(4), slice(4, 9))]
        np.testing.assert_array_equal(sum(parts), losses_of(score, mistakes, held))

    @every_score
    def test_nobody_at_all_gives_a_loss_for_every_hypothesis(self, score):
        empty = UserData(np.zeros((0, 1)), np.zeros(0), offsets=[0])
        assert table_losses(score, empty).shape == (4,)

    def test_blocks_of_users_give_the_same_losses(self, monkeypatch):
        rng = np.random.default_rng(1)
        data = UserData(
            rng.integers(0, 2, (60, 1)).astype(float),
            rng.integers(0, 2, 60).astype(float),
            offsets=np.arange(0, 61, 3),
        )
        whole = table_losses(Duels(), data)
        monkeypatch.setattr("quorate.learners.concepts.base._BLOCK_CELLS", 8)
        np.testing.assert_array_equal(table_losses(Duels(), data), whole)

    def test_odd_labels_and_values_are_ignored_and_never_raise(self):
        data = UserData(
            np.array([[np.nan], [np.inf], [0.0], [1.0]]),
            np.array([1.0, 7.0, np.nan, 1.0]),
            offsets=[0, 2, 4],
        )
        for score in SCORES:
            assert table_losses(score, data).dtype == np.int64


class TestGuards:
    def test_a_contribution_beyond_its_bound_is_clipped(self):
        @dataclass(frozen=True)
        class Liar(AdditiveScore):
            name = "liar"
            bound = 1

            def contribution(self, mistakes, held):
                return 100 * mistakes - 50

        assert losses_of(Liar(), np.array([[0, 3]]), np.array([3])).tolist() == [0, 1]

    def test_a_score_without_a_line_says_what_to_use(self):
        data = UserData(np.zeros((1, 1)), np.zeros(1), offsets=[0, 1])
        with pytest.raises(ParameterError, match="median"):
            rule_worlds.line_losses(ClippedDifference(reference=0, radius=1), CUT_OFFS, data)

    def test_a_large_table_is_fine_and_stays_small(self):
        wide = FiniteTable(np.random.default_rng(0).integers(0, 2, (300, 8)))
        data = UserData(np.zeros((4, 1)), np.ones(4), offsets=[0, 2, 4])
        assert table_losses(AnyMistake(), data, wide).size == 300


def test_relations_have_no_third_member():
    assert set(RELATIONS) == set(Relation)
