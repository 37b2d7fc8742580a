"""Scores of a caller: one user at a time, inside their bound, and nothing of what they raise."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.core.guarantees import Numerics, Relation
from quorate.core.users import UserData
from quorate.exceptions import ParameterError, SchemaError
from quorate.learners import ConceptLearner, ThresholdLearner
from quorate.learners.concepts import Thresholds
from quorate.learners.scores import (
    AdditiveScore,
    AnyMistake,
    Crossing,
    MoreThan,
    Score,
    TrustedScore,
)
from quorate.learners.scores.caller_scores import by_user
from rule_worlds import all_losses, table_losses

CUT_OFFS = Thresholds(0, 3)


class Relative(AdditiveScore):
    """Judges a user by who else is there, raises at some, and exceeds its bound."""

    name, bound = "relative", 3

    def contribution(self, mistakes, held):
        if np.any(held > 4):
            raise SystemExit("a user with 31337 records")
        if np.any(held == 4):
            return np.full(mistakes.shape, np.nan)
        return 10 * mistakes + len(np.unique(held)) * 0.6


class Plain(AdditiveScore):
    """Half of the mistakes, at most 2."""

    name, bound, record_cap = "plain", 2, 3

    def contribution(self, mistakes, held):
        return np.minimum(mistakes // 2, 2)


class Pairs(Score):
    """A score that adds up what it wants."""

    name = "pairs"

    def sensitivity(self, relation):
        return 1

    def tally(self, mistakes, held):
        return np.minimum(mistakes, 1).sum(axis=0)

    def losses(self, tally, *, n_users):
        return tally


def people(first, others=((0, 1), (2, 0), (2, 1, 1), (3,))):
    """Return users by the x of their records; labels alternate."""
    held = [first, *others]
    x = np.array([x for each in held for x in each], dtype=float)[:, None]
    y = np.concatenate([np.arange(len(each)) % 2 for each in held]).astype(float)
    offsets = np.cumsum([0, *map(len, held)])
    return UserData(x, y, offsets=offsets, ids=np.arange(len(held)))


def losses(score, users):
    """Return the losses on a table, and on the line: they are the same."""
    table = table_losses(score, CUT_OFFS, users)
    np.testing.assert_array_equal(all_losses(score, CUT_OFFS, users), table)
    return table


FIRST = [(0,), (), (1, 2, 3), (0, 1, 2, 3), (3,) * 9]


def spread_of(score):
    """Return how far replacing the first user moves any loss."""
    found = np.array([losses(score, people(first)) for first in FIRST])
    return int((found.max(axis=0) - found.min(axis=0)).max())


class TestOneByOne:
    def test_others_do_not_depend_on_the_first_user(self):
        score = by_user(Relative())
        rest = losses(score, people((0,)).take([1, 2, 3, 4]))
        for first in FIRST:
            users = people(first)
            alone = losses(score, users.take([0]))
            np.testing.assert_array_equal(losses(score, users) - alone, rest)

    def test_nobody_moves_a_loss_by_more_than_the_bound(self):
        assert spread_of(by_user(Relative())) <= Relative().bound

    def test_shown_everybody_it_would_follow_who_else_is_there(self):
        def of_others(first):
            users = people(first)
            both = (table_losses(Relative(), CUT_OFFS, u) for u in (users, users.take([0])))
            return np.subtract(*both).tolist()

        assert of_others((0,)) != of_others(())
        with pytest.raises(SchemaError, match="withheld"):
            of_others((3,) * 9)

    def test_what_raises_or_is_missing_is_nothing(self):
        for held in ((0,) * 4, (0,) * 9):
            assert losses(by_user(Relative()), people(held, others=())).tolist() == [0] * 5

    def test_a_score_that_keeps_the_rules_says_what_it_says(self):
        users = people((1, 2, 3, 0, 1))
        np.testing.assert_array_equal(losses(by_user(Plain()), users), losses(Plain(), users))

    def test_nobody_at_all(self):
        nobody = people((0,)).take([])
        assert losses(by_user(Plain()), nobody).tolist() == [0] * 5

    def test_the_bound_is_read_once(self):
        class Growing(Plain):
            looks = 0

            @property
            def bound(self):
                type(self).looks += 1
                return self.looks

        score = by_user(Growing())
        assert {score.bound, score.sensitivity(Relation.REPLACE), score.bound} == {1}

    @pytest.mark.parametrize("change", [{"bound": 0}, {"bound": 2.5}, {"record_cap": 0}])
    def test_a_bound_that_is_none_is_refused(self, change):
        broken = type("Broken", (Plain,), change)
        with pytest.raises(ParameterError):
            by_user(broken())


class TestLearners:
    @pytest.mark.parametrize(
        "learner",
        [
            ConceptLearner(CUT_OFFS, algorithm=Relative()),
            ThresholdLearner(domain=(0, 2**40), algorithm=Relative()),
        ],
        ids=["a table", "a line"],
    )
    def test_they_ask_about_one_user_at_a_time_and_stay_exact(self, learner):
        guarantee = learner.fit(people((3,) * 9)).guarantee_
        assert guarantee.numerics is Numerics.EXACT
        assert learner.algorithm_.name == "relative"

    def test_our_own_scores_are_left_alone(self):
        assert by_user(MoreThan(rate=0.3)) == MoreThan(rate=0.3)

    def test_a_subclass_of_ours_is_a_score_of_the_caller(self):
        class Louder(AnyMistake):
            def sensitivity(self, relation):
                return 0

        assert by_user(Louder()).sensitivity(Relation.REPLACE) == 1

    def test_what_cannot_be_cut_has_to_be_trusted_by_name(self):
        learner = ConceptLearner(CUT_OFFS, algorithm=Pairs())
        with pytest.raises(ParameterError, match="TrustedScore"):
            learner.fit(people((0,)))
        trusting = learner.set_params(algorithm=TrustedScore(Pairs())).fit(people((0,)))
        assert trusting.guarantee_.numerics is Numerics.IDEALIZED
        assert "Pairs saw many users at once" in str(trusting.guarantee_)
        assert trusting.algorithm_.name == "pairs"

    def test_trusting_what_is_no_score_is_refused(self):
        with pytest.raises(ParameterError, match="Score"):
            TrustedScore("mistakes")


class Below(AdditiveScore):
    """Says less than nothing about whoever errs."""

    name, bound = "below", 3

    def contribution(self, mistakes, held):
        return -7 * mistakes


def test_what_a_caller_says_lies_between_nothing_and_the_bound():
    """A sum of numbers from -3 to 3 would move by 6 where a user is replaced."""
    score = by_user(Below())
    people = UserData.from_arrays([[0], [2], [3]], [1, 0, 0], users=[0, 1, 1])
    assert table_losses(score, CUT_OFFS, people).tolist() == [0] * CUT_OFFS.size
    assert not all_losses(score, CUT_OFFS, people).any()


class Fickle(AdditiveScore):
    """Says something else about the same count the next time it is asked."""

    name, bound = "fickle", 3

    def contribution(self, mistakes, held):
        return np.arange(mistakes.size).reshape(mistakes.shape) % 2 * 3


def test_along_a_line_nobody_counts_more_than_the_bound_either():
    """Differences of what is said are added up, so what is said must go on where it stopped."""
    one = UserData.from_arrays([[0], [1], [2], [3]], [1, 1, 1, 1], users=[0, 0, 0, 0])
    for score in (by_user(Fickle()), Fickle()):
        found = all_losses(score, CUT_OFFS, one)
        assert 0 <= found.min() <= found.max() <= 3


def test_a_trusted_score_is_as_one_sided_as_it_says():
    assert not TrustedScore(Crossing()).one_sided
    assert TrustedScore(AnyMistake()).one_sided
