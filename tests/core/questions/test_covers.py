"""All pairs of few users: one user moves the cover by one, and it tells people apart."""

import numpy as np
import pytest

from crowds_of_shares import zipf
from quorate.core.bounds.trimmed import row_lengths
from quorate.core.questions import covers
from quorate.core.sealed import seal_rows
from quorate.distributions.categories.routes import _ALL_PAIRS
from quorate.guarantees import Relation
from sealing import numbers_of

K = 4


def users_in_the_way(rows, reach):
    sealed = covers.users_in_the_way(seal_rows(rows, Relation.REPLACE), reach)
    assert sealed.moves.largest == sealed.moves.l1 == 1
    return int(numbers_of(sealed)[0])


def far_pairs(rows, reach):
    """A broken twin: one user is in many pairs."""
    apart = np.array([row_lengths(rows - row, 1) > reach for row in rows])
    return int(apart.sum()) // 2


def moves(count):
    """Return by how much the count moves when one of few users is replaced, over many worlds."""
    rng = np.random.default_rng(0)
    found = []
    for world in range(150):
        rows = rng.dirichlet(np.full(K, (0.2, 1.0, 5.0)[world % 3]), size=rng.integers(2, 14))
        other = rows.copy()
        other[0] = np.eye(K)[world % K] if world % 2 else rng.dirichlet(np.ones(K))
        # The replacement may stand at another place.
        other = other[rng.permutation(len(rows))]
        reach = rng.uniform(0.2, 1.6)
        found.append(abs(count(rows, reach) - count(other, reach)))
    return np.array(found)


def test_one_user_moves_the_cover_by_one_at_most():
    found = moves(users_in_the_way)
    assert found.max() == 1
    assert np.mean(found) > 0.1


def test_somebody_who_comes_moves_the_cover_by_one_at_most():
    rng = np.random.default_rng(2)
    found = []
    for _ in range(60):
        rows, reach = rng.dirichlet(np.ones(K), size=12), rng.uniform(0.2, 1.6)
        found.append(users_in_the_way(rows, reach) - users_in_the_way(rows[1:], reach))
    assert set(found) == {0, 1}


def test_a_count_of_all_far_pairs_is_caught_by_the_same_worlds():
    assert moves(far_pairs).max() > 1


def test_rows_that_are_no_numbers_of_shares_count_as_well():
    rows = np.zeros((5, K))
    rows[1:3] = 0.25
    assert users_in_the_way(rows, 0.5) == 2
    assert users_in_the_way(rows, 1.0) == 0
    assert users_in_the_way(np.zeros((0, K)), 0.5) == 0
    assert users_in_the_way(np.zeros((1, K)), 0.5) == 0


@pytest.mark.filterwarnings("error")
def test_no_warning_tells_of_large_values():
    rows = np.array([[1e308], [-1e308], [np.inf], [np.inf], [np.nan]])
    assert users_in_the_way(rows, 1.0) == 2


@pytest.mark.parametrize("kinds", [2, 3])
def test_people_of_several_kinds_are_all_in_the_way(kinds):
    rows = np.eye(K)[np.arange(60) % kinds]
    assert users_in_the_way(rows, 1.0) == 30


def test_few_outsiders_are_as_many_as_they_are():
    rows = np.tile(zipf(K), (60, 1))
    rows[:7] = np.eye(K)[K - 1]
    assert users_in_the_way(rows, 0.5) == 7


def test_the_reach_tells_alike_people_from_those_who_are_half_as_alike():
    """Users at the question's distance from their mean are left, at twice the distance in the way.

    With 300 users and six categories: the share of the users who are left."""
    rng = np.random.default_rng(1)

    def left(records):
        rows = rng.multinomial(records, zipf(6), size=300) / records
        spread = float(np.median(row_lengths(rows - zipf(6), 1)))
        return spread, 1.0 - users_in_the_way(rows, _ALL_PAIRS * 0.25) / 150

    (near, alike), (far, unlike) = left(64), left(16)
    assert near < 0.25 < far
    assert alike > 0.65
    assert unlike < 0.2
