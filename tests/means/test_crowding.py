"""In how small a corner are users? What is counted, how far one user moves it, who errs."""

import math

import numpy as np
import pytest

from corner_worlds import CORNERS, corner, scores_of_neighbours
from quorate.accounting.account import Account
from quorate.core.people import People
from quorate.engines import MemoryCrowd
from quorate.guarantees import Relation
from quorate.means.routes.auto_route import _Cells, are_in_a_corner, fullest_cell
from quorate.means.weighted_users import PeopleVectors, WeightedUsers
from quorate.noise import SeededNoise
from quorate.users import UserData
from sealing import numbers_of, vectors_of


def fullest(rows, width=0.15):
    found = fullest_cell(vectors_of(rows), width)
    assert found.moves.largest == found.moves.l1 == 1
    return int(numbers_of(found)[0])


class TestFullestCell:
    @pytest.mark.parametrize("d", [1, 2])
    @pytest.mark.parametrize("place", [-1.0, -0.93, 0.0, 0.31, 0.9])
    def test_a_cluster_is_in_one_cell_wherever_it_lies(self, d, place):
        rng = np.random.default_rng(0)
        rows = np.clip(place + rng.uniform(0.0, 0.11, size=(50, d)), -1.0, 1.0)
        assert fullest(rows) == 50

    def test_absent_users_are_in_no_cell(self):
        rows = np.array([[0.1], [np.nan], [0.1], [np.nan]])
        assert fullest(rows) == 2

    def test_parts_of_a_crowd_answer_as_one(self):
        from quorate.grid import Box

        rows = corner(300, 2, inside=0.4)
        crowd = MemoryCrowd(UserData(rows, offsets=np.arange(301)), n_parts=7)
        people = People(crowd, Relation.REPLACE)
        users = PeopleVectors.of(people, UserData.user_means, Box([-1.0, -1.0], [1.0, 1.0]))
        assert numbers_of(fullest_cell(users, 0.15)) == fullest(rows)

    @pytest.mark.parametrize("d", [1, 2])
    def test_one_user_moves_it_by_one_and_a_twin_that_adds_up_shifts_by_more(self, d):
        def all_shifts(rows):
            labels = _Cells(0.15, d)(WeightedUsers(rows)).ravel()
            return int(np.bincount(labels[labels >= 0]).max())

        def farthest(count):
            rng, moved = np.random.default_rng(1), 0
            for seed in range(40):
                rows = corner(30, d, inside=0.5, seed=seed)
                before = count(rows)
                rows[rng.integers(30)] = rng.choice([-1.0, 0.42, 1.0, np.nan])
                moved = max(moved, abs(count(rows) - before))
            return moved

        assert farthest(fullest) == 1
        assert farthest(all_shifts) > 1


class TestCorner:
    @pytest.mark.parametrize("inside", [0.5, 0.95])
    def test_all_but_a_few_of_the_answers_are_right(self, inside):
        users = vectors_of(corner(100, inside=inside))
        found = [
            are_in_a_corner(
                users,
                CORNERS,
                size=100.0,
                epsilon=0.2,
                account=Account.open(epsilon=1.0, noise=SeededNoise(seed)),
            )
            for seed in range(100)
        ]
        assert sum(answer != (inside > 0.9) for answer in found) <= 6

    def test_one_user_moves_each_score_by_one_and_two_corners_together_by_more(self, monkeypatch):
        def ask(users, account):
            are_in_a_corner(users, CORNERS, size=30.0, epsilon=0.3, account=account)

        before, after = scores_of_neighbours(monkeypatch, ask)
        assert np.abs(before - after).max() == 1
        rows = corner(30, inside=0.5)
        both = [
            sum(fullest(people, each.width) for each in CORNERS)
            for people in (rows, np.r_[rows[1:], [[0.9]]])
        ]
        assert abs(both[0] - both[1]) == 2

    @pytest.mark.parametrize("relation", list(Relation))
    def test_it_costs_what_it_says(self, relation):
        account = Account.open(epsilon=1.0, relation=relation, noise=SeededNoise(0))
        users = vectors_of(corner(40), relation=relation)
        are_in_a_corner(users, CORNERS, size=40.0, epsilon=0.25, account=account)
        assert math.isclose(float(account.left), 0.75)
