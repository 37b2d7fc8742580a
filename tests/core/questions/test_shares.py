"""A user's shares never add up to more than a whole, whatever the user holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowds_of_shares import crowd_of
from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Box, Grid
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions.shares import ShareSet, ShareTotals, held, share_totals
from quorate.distributions.shares import CategoryCodes, IntervalCodes
from quorate.exceptions import ParameterError, SchemaError, SealedError
from sealing import numbers_of

LABELS = st.sampled_from([0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 7.0, 1e300])
USERS = st.lists(st.lists(LABELS, max_size=9), min_size=1, max_size=5)


def one_set(categories, *, steps, cap=1, kind=ShareTotals):
    return kind((ShareSet(CategoryCodes(categories), categories, absent=True),), steps, cap)


class RoundedShares(ShareTotals):
    """A twin that rounds shares up."""

    def __call__(self, part):
        (each,) = self.sets
        users, places, counts, records = held(part, each.coder, each.categories)
        totals = np.zeros(each.categories + 1, dtype=np.int64)
        wholes = np.maximum(records, self.cap)[users]
        np.add.at(totals, places, -(-counts * self.steps // wholes))
        return totals


def broken(work, lists):
    """Whether some user alone leaves the simplex of ``steps``."""
    found = [work(crowd_of([mine])) for mine in lists]
    return any((alone < 0).any() or alone.sum() > work.steps for alone in found)


class TestSensitivity:
    @settings(max_examples=150)
    @given(lists=USERS, steps=st.sampled_from([1, 7, 64, 2**30]), cap=st.sampled_from([1, 2, 5]))
    def test_nobody_leaves_the_simplex(self, lists, steps, cap):
        work = one_set(4, steps=steps, cap=cap)
        assert not broken(work, lists)

    def test_rounding_up_is_caught(self):
        assert broken(one_set(4, steps=64, kind=RoundedShares), [[0, 1, 2]])

    @settings(max_examples=60)
    @given(lists=USERS)
    def test_totals_are_sums_over_users_alone(self, lists):
        work = one_set(4, steps=2**30, cap=3)
        alone = sum(work(crowd_of([mine])) for mine in lists)
        assert np.array_equal(work(crowd_of(lists)), alone)

    def test_some_pair_reaches_the_diameter(self):
        work = one_set(2, steps=64)
        first, second = work(crowd_of([[0, 0]])), work(crowd_of([[1]]))
        assert np.abs(first - second).sum() == 2 * 64


class TestShares:
    def test_people_count_once_and_absent_people_last(self):
        crowd = crowd_of([[0, 0, 1, 1], [1], [], [9.0]])
        assert one_set(2, steps=4)(crowd).tolist() == [2, 6, 8]

    def test_records_count_up_to_the_cap(self):
        crowd = crowd_of([[0] * 8, [1], []])
        assert one_set(2, steps=4, cap=4)(crowd).tolist() == [4, 1, 3 + 4]

    def test_a_giant_user_overflows_nothing(self):
        crowd = crowd_of([np.zeros(200_000), [1]])
        totals = one_set(2, steps=2**30)(crowd)
        assert totals.tolist() == [2**30, 2**30, 0]

    def test_each_set_is_what_it_would_be_alone(self):
        crowd = crowd_of([[0, 1, 2, 2], [], [1.0], [7.0]])
        first = ShareSet(CategoryCodes(3), 3, absent=True)
        second = ShareSet(IntervalCodes((0.0, 1.5, 9.0)), 2)
        both = ShareTotals((first, second), steps=100, cap=2)(crowd)
        alone = [ShareTotals((each,), steps=100, cap=2)(crowd).tolist() for each in (first, second)]
        assert both.tolist() == alone[0] + alone[1]


@pytest.mark.parametrize("relation", list(Relation))
class TestQuestion:
    def test_what_is_sealed_is_exact_and_moves_as_the_simplex_does(self, relation):
        people = People(crowd_of([[0, 0, 1, 1], [1], [], [9.0]]), relation)
        grid = Grid(Simplex(3), 0.25)
        sealed = share_totals(people, [ShareSet(CategoryCodes(2), 2, absent=True)], grid)
        assert numbers_of(sealed).tolist() == [2, 6, 8]
        known = grid.l1_sensitivity(relation), grid.l2_sensitivity_squared(relation)
        assert (sealed.moves.l1, sealed.moves.l2_squared) == known

    @settings(max_examples=40)
    @given(lists=USERS, mine=st.lists(LABELS, max_size=9))
    def test_one_user_moves_it_by_no_more_than_the_seal_says(self, relation, lists, mine):
        grid = Grid(Blocks((Simplex(5), Simplex(2))), 2.0**-6)
        sets = [
            ShareSet(CategoryCodes(4), 4, absent=True),
            ShareSet(IntervalCodes((0.0, 1.5, 9.0)), 2),
        ]
        lists = [[0.0], *lists]
        other = [mine, *lists[1:]] if relation is Relation.REPLACE else lists[1:]
        one, two = (
            share_totals(People(crowd_of(each), relation), sets, grid) for each in (lists, other)
        )
        change = np.abs(numbers_of(one) - numbers_of(two))
        assert change.sum() <= one.moves.l1
        assert (change**2).sum() <= one.moves.l2_squared

    def test_a_coder_cannot_leave_its_categories(self, relation):
        people = People(crowd_of([[0.0, 1.0, 2.0]]), relation)
        far = ShareSet(lambda part: np.array([0, 5, -9]), 2, absent=True)
        assert numbers_of(share_totals(people, [far], Grid(Simplex(3), 0.25))).tolist() == [4, 0, 0]

    @pytest.mark.parametrize(
        "coder",
        [lambda part: part.X[:, 0], lambda part: np.zeros(9, int), lambda part: 1 // 0, None],
        ids=["floats", "another length", "raises", "no function"],
    )
    def test_what_a_coder_says_wrong_is_withheld(self, relation, coder):
        people = People(crowd_of([[31337.0]]), relation)
        with pytest.raises(SchemaError, match="withheld") as refused:
            share_totals(people, [ShareSet(coder, 2)], Grid(Simplex(2), 0.25))
        assert "31337" not in str(refused.value)
        assert refused.value.__context__ is None

    def test_a_coder_keeps_nothing(self, relation):
        people, seen = People(crowd_of([[31337.0]]), relation), []

        def coder(part):
            seen.append(part.X)
            return np.zeros(part.n_records, int)

        with pytest.raises(SealedError, match="stored something"):
            share_totals(people, [ShareSet(coder, 2)], Grid(Simplex(2), 0.25))

    @pytest.mark.parametrize(
        "grid",
        [
            Grid(Simplex(2), 0.25),
            Grid(Blocks((Simplex(3), Simplex(1))), 0.25),
            Grid(Box(-np.ones(3), np.ones(3)), 0.25),
            Grid(Simplex(3), 2.0**-31),
        ],
        ids=["too few", "two sets", "a box", "too fine"],
    )
    def test_grids_that_do_not_prove_the_moves_are_refused(self, relation, grid):
        people = People(crowd_of([[0.0]]), relation)
        with pytest.raises(ParameterError):
            share_totals(people, [ShareSet(CategoryCodes(2), 2, absent=True)], grid)
