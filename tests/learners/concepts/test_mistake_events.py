"""Changes of mistakes: equal to the full matrix wherever the matrix can be written down."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.users.grouping import group_by_user
from quorate.exceptions import ParameterError
from quorate.learners.concepts import Direction, MistakeEvents, Thresholds
from quorate.learners.concepts.mistake_events import BestRanges

RECORD = st.tuples(st.integers(-1, 7), st.sampled_from([0, 1, 0, 1, 2]))
PEOPLE = st.lists(st.lists(RECORD, max_size=8), max_size=5)
DIRECTION = st.sampled_from(list(Direction))


def both(people, upper, direction, make_users):
    """Return the events, the matrix of mistakes, and a function from pieces to hypotheses."""
    users = make_users(people, 1)
    concepts = Thresholds(0, upper, direction=direction)
    events = concepts.mistake_events(users)
    lengths = events.lengths.astype(int)
    return events, concepts.mistakes(users), lambda values: np.repeat(values, lengths)


class TestPieces:
    @given(people=PEOPLE, upper=st.integers(0, 6), direction=DIRECTION)
    def test_pieces_cover_every_hypothesis_once(self, people, upper, direction, make_users):
        events, mistakes, _ = both(people, upper, direction, make_users)
        assert events.size == mistakes.shape[1]
        assert events.n_users == len(people)
        assert events.lengths.min() >= 1
        assert int(events.lengths.sum()) == events.size
        assert len(events.lengths) == events.n_pieces

    @given(people=PEOPLE, upper=st.integers(0, 6), direction=DIRECTION)
    def test_following_the_changes_gives_every_count(self, people, upper, direction, make_users):
        events, mistakes, _ = both(people, upper, direction, make_users)
        assert set(np.abs(events.after - events.before).tolist()) <= {1}
        current = events.initial.copy()
        event = 0
        for index in range(events.size):
            while event < events.positions.size and events.positions[event] <= index:
                assert current[events.user[event]] == events.before[event]
                current[events.user[event]] = events.after[event]
                event += 1
            np.testing.assert_array_equal(current, mistakes[:, index])
        assert event == events.positions.size

    @given(people=PEOPLE, upper=st.integers(0, 6), direction=DIRECTION, t=st.integers(0, 9))
    def test_users_above_t_are_counted_on_every_piece(
        self, people, upper, direction, t, make_users
    ):
        events, mistakes, spread = both(people, upper, direction, make_users)
        np.testing.assert_array_equal(spread(events.users_above(t)), (mistakes > t).sum(axis=0))

    @given(people=PEOPLE, upper=st.integers(0, 6), direction=DIRECTION, cap=st.integers(1, 9))
    def test_totals_are_cut_per_user(self, people, upper, direction, cap, make_users):
        events, mistakes, spread = both(people, upper, direction, make_users)
        np.testing.assert_array_equal(spread(events.total()), mistakes.sum(axis=0))
        np.testing.assert_array_equal(
            spread(events.total(cap=cap)), np.minimum(mistakes, cap).sum(axis=0)
        )

    @given(people=PEOPLE, upper=st.integers(0, 6), direction=DIRECTION, levels=st.integers(1, 10))
    def test_one_sort_gives_the_fewest_users_for_all_t(
        self, people, upper, direction, levels, make_users
    ):
        events, mistakes, _ = both(people, upper, direction, make_users)
        expected = [(mistakes > t).sum(axis=0).min() for t in range(levels)]
        np.testing.assert_array_equal(events.fewest_users_above(levels), expected)

    def test_a_count_between_two_changes_at_one_position_belongs_to_nobody(self, make_users):
        # At 3 one user loses a mistake and another one gains it: never is nobody wrong.
        people = [[(3, 0)], [(3, 1)]] * 3
        events, mistakes, _ = both(people, 6, Direction.ABOVE, make_users)
        assert (mistakes > 0).sum(axis=0).min() == 3
        assert events.fewest_users_above(1).tolist() == [3]

    def test_many_levels_take_the_other_sort(self, make_users):
        events, mistakes, _ = both([[(2, 0), (5, 1)]], 6, Direction.ABOVE, make_users)
        assert events.fewest_users_above(2**16 + 1)[:2].tolist() == [
            (mistakes > 0).sum(axis=0).min(),
            (mistakes > 1).sum(axis=0).min(),
        ]

    @pytest.mark.parametrize(
        "call",
        [
            lambda e: e.users_above(-1),
            lambda e: e.users_above(0.5),
            lambda e: e.total(cap=0),
            lambda e: e.fewest_users_above(0),
        ],
    )
    def test_levels_outside_are_refused(self, call, make_users):
        with pytest.raises(ParameterError, match="Expected"):
            call(Thresholds(0, 5).mistake_events(make_users([], 1)))


class TestBestRanges:
    @given(people=PEOPLE, upper=st.integers(0, 6), direction=DIRECTION)
    def test_they_hold_exactly_the_best_hypotheses_of_each_user(
        self, people, upper, direction, make_users
    ):
        events, mistakes, _ = both(people, upper, direction, make_users)
        ranges = events.best_ranges()
        marked = np.zeros(mistakes.shape, dtype=int)
        for user, first, last in zip(ranges.user, ranges.first, ranges.last, strict=True):
            marked[user, int(first) : int(last) + 1] += 1
        if people:
            best = mistakes == mistakes.min(axis=1, keepdims=True)
            np.testing.assert_array_equal(marked, best)

    @given(people=PEOPLE, upper=st.integers(0, 6), direction=DIRECTION)
    def test_two_ranges_of_a_user_never_touch(self, people, upper, direction, make_users):
        ranges = both(people, upper, direction, make_users)[0].best_ranges()
        same = ranges.user[1:] == ranges.user[:-1]
        assert np.all(ranges.first[1:][same] > ranges.last[:-1][same] + np.uint64(1))

    @given(people=PEOPLE, upper=st.integers(0, 6))
    def test_the_hull_and_the_middle_of_each_user(self, people, upper, make_users):
        events, mistakes, _ = both(people, upper, Direction.ABOVE, make_users)
        ranges = events.best_ranges()
        low, high = ranges.hull()
        first, last = ranges.middle()
        assert len(low) == len(first) == len(people)
        for user in range(len(people)):
            best = np.flatnonzero(mistakes[user] == mistakes[user].min())
            assert (low[user], high[user]) == (best[0], best[-1])
            assert set(range(int(first[user]), int(last[user]) + 1)) <= set(best.tolist())

    def test_without_users_there_are_none(self):
        none = np.zeros(0, dtype=np.uint64)
        ranges = BestRanges(user=none.astype(np.int64), first=none, last=none)
        assert [part.size for part in (*ranges.hull(), *ranges.middle())] == [0, 0, 0, 0]


class TestGrouping:
    @given(user=st.lists(st.integers(0, 5)))
    def test_the_order_is_stable(self, user):
        user = np.array(user, dtype=np.int64)
        expected = np.argsort(user, kind="stable")
        np.testing.assert_array_equal(group_by_user(user, n_users=6), expected)

    def test_more_than_65536_users_need_a_second_digit(self):
        user = np.random.default_rng(0).integers(0, 200_000, 5_000)
        expected = np.argsort(user, kind="stable")
        np.testing.assert_array_equal(group_by_user(user, n_users=200_000), expected)


def test_events_without_changes_are_one_piece():
    none = np.zeros(0, dtype=np.int64)
    events = MistakeEvents(
        size=2**63 + 1,
        positions=none.astype(np.uint64),
        user=none,
        before=none,
        after=none,
        initial=np.array([4, 0]),
    )
    assert int(events.lengths[0]) == 2**63 + 1
    assert events.users_above(3).tolist() == [1]
    assert events.total().tolist() == [4]
    assert events.best_ranges().hull()[1].tolist() == [2**63, 2**63]
