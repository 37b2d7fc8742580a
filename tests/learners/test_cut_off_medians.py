"""Medians of users' own cut-offs: audits, slack, both directions, the largest domain."""

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.learners import cut_off_medians
from quorate.learners.concepts import Constant, Direction, Thresholds
from quorate.learners.cut_off_medians import choose_by_median
from quorate.learners.scores import MistakeLine
from rule_worlds import CUT_OFFS, RELATIONS, asked, audit, cut_people

both_relations = pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
EITHER = Thresholds(0, 1, direction=Direction.EITHER)


class TestMedian:
    @both_relations
    @pytest.mark.parametrize("concepts", [CUT_OFFS, EITHER], ids=["above", "either"])
    def test_the_exact_audit_finds_no_more_than_the_claim(
        self, concepts, relation, record_property
    ):
        def choose(data):
            account = Account.open(epsilon=1.0, relation=relation)
            return choose_by_median(concepts, asked(data, relation), account=account)

        found = audit(choose, relation)
        record_property("tightness", found.tightness)
        assert found.holds, str(found)
        assert found.tightness > 0.4

    @both_relations
    def test_the_exact_audit_of_the_slack_median_holds(self, relation, monkeypatch):
        # Slack from one record on: one's own best and everything within one mistake of it.
        monkeypatch.setattr(cut_off_medians, "_SLACK_FROM", 1)
        monkeypatch.setattr(cut_off_medians, "_SLACK_PER_ROOT", 1)

        def choose(data):
            account = Account.open(epsilon=1.0, relation=relation)
            return choose_by_median(CUT_OFFS, asked(data, relation), account=account, slack=True)

        assert audit(choose, relation).holds

        def greedy(data):
            account = Account.open(epsilon=2.5, relation=relation)
            return choose_by_median(CUT_OFFS, asked(data, relation), account=account, slack=True)

        assert not audit(greedy, relation, epsilon=1.0, thorough=False).holds

    def test_slack_depends_on_the_own_records_alone(self):
        held = np.array([0, 15, 16, 64, 256])
        assert cut_off_medians._slack(held).tolist() == [0, 0, 1, 2, 4]
        assert cut_off_medians._slack(held[2:3]).tolist() == [1]

    def test_slack_widens_what_a_user_is_content_with(self):
        concepts, data = Thresholds(0, 2**32), cut_people(500, n=20, m=64)
        line = MistakeLine(concepts=concepts, users=data)
        first, last = cut_off_medians._Hulls(concepts.size, False)(line).T
        wide_first, wide_last = cut_off_medians._Hulls(concepts.size, True)(line).T
        assert np.all(wide_first < first)
        assert np.all(wide_last > last)

    def test_a_twin_without_the_second_half_of_the_budget_is_caught(self):
        def greedy(data):
            return choose_by_median(CUT_OFFS, asked(data), account=Account.open(epsilon=2.5))

        assert not audit(greedy, Relation.REPLACE, epsilon=1.0, thorough=False).holds

    @pytest.mark.parametrize("above", [True, False])
    def test_either_direction_is_found(self, above):
        concepts = Thresholds(0, 2**32, direction=Direction.EITHER)
        data = cut_people(400, above=above)
        with use_noise(SeededNoise(1)):
            index = choose_by_median(concepts, asked(data), account=Account.open(epsilon=4.0))
        rule = concepts.concept(index)
        assert rule.above is above
        assert abs(rule.cut - 400) < 60

    def test_every_index_of_a_direction_maps_to_the_same_rule(self):
        below = Thresholds(0, 3, direction=Direction.BELOW)
        either = Thresholds(0, 3, direction=Direction.EITHER)
        x = np.arange(4.0).reshape(-1, 1)
        for index in range(below.size):
            mapped = 4 - index if index in (0, 4) else 4 + index
            np.testing.assert_array_equal(either.predict(mapped, x), below.predict(index, x))
        assert isinstance(either.concept(0), Constant)

    def test_the_largest_domain_works(self):
        concepts = Thresholds(-(2**62), 2**62 - 1)
        data = cut_people(500, low=0, high=1000)
        with use_noise(SeededNoise(0)):
            index = choose_by_median(concepts, asked(data), account=Account.open(epsilon=4.0))
        assert abs(concepts.cut_off(index) - 500) < 60


def middles(concepts, data):
    """Return where the middle of each user's records begins and ends."""
    line = MistakeLine(concepts=concepts, users=data)
    return cut_off_medians.Middles(concepts.size)(line).T + concepts.size // 2


class TestMiddles:
    def test_the_place_follows_the_records_whatever_their_labels_say(self):
        concepts = Thresholds(0, 2**32)
        data = cut_people(-1, low=2**31, high=2**31 + 1000)
        first, last = middles(concepts, data)
        assert np.all((first > 2**31) & (first <= last) & (last <= 2**31 + 1000))
        turned = UserData(data.X, 1.0 - data.y, offsets=data.offsets)
        np.testing.assert_array_equal(middles(concepts, turned), (first, last))

    def test_the_middle_is_from_a_quarter_to_three_quarters_of_the_own_records(self):
        x = np.array([[5.0], [9.0], [1.0], [7.0], [3.0], [40.0]])
        data = UserData(x, np.zeros(6), offsets=[0, 5, 5, 6])
        first, last = middles(Thresholds(0, 50), data)
        assert first.tolist() == [4, 0, 41]
        assert last.tolist() == [8, 51, 41]
