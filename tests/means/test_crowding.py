"""In how small a corner are users? What is counted, how far one user moves it, who errs."""

import math

import numpy as np
import pytest

from quorate.accounting.account import Account
from quorate.guarantees import Relation
from quorate.means import ways
from quorate.means.auto_route import _Cells, are_in_a_corner, fullest_cell, how_narrow
from quorate.means.weighted_users import CrowdVectors, WeightedUsers
from quorate.mechanisms.choose import ChooseBest
from quorate.noise import SeededNoise
from quorate.users import UserData


def corner(n, d=1, *, inside=1.0, seed=0):
    """Return users of whom a share lies in a corner, the others anywhere."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1.0, 1.0, size=(n, d))
    rows[: round(inside * n)] = 0.4 + rng.uniform(0.0, 0.05, size=(round(inside * n), d))
    return rows


class TestFullestCell:
    @pytest.mark.parametrize("d", [1, 2])
    @pytest.mark.parametrize("place", [-1.0, -0.93, 0.0, 0.31, 0.9])
    def test_a_cluster_is_in_one_cell_wherever_it_lies(self, d, place):
        rng = np.random.default_rng(0)
        rows = np.clip(place + rng.uniform(0.0, 0.11, size=(50, d)), -1.0, 1.0)
        assert fullest_cell(WeightedUsers(rows), 0.15) == 50

    def test_absent_users_are_in_no_cell(self):
        rows = np.array([[0.1], [np.nan], [0.1], [np.nan]])
        assert fullest_cell(WeightedUsers(rows), 0.15) == 2

    def test_parts_of_a_crowd_answer_as_one(self):
        from quorate.bounds import Box

        rows = corner(300, 2, inside=0.4)
        crowd = UserData(rows, offsets=np.arange(301))
        users = CrowdVectors.of(crowd, UserData.user_means, Box([-1.0, -1.0], [1.0, 1.0]))
        assert fullest_cell(users, 0.15) == fullest_cell(WeightedUsers(rows), 0.15)

    @pytest.mark.parametrize("d", [1, 2])
    def test_one_user_moves_it_by_one_and_a_twin_that_adds_up_shifts_by_more(self, d):
        def all_shifts(users, width):
            counts = _Cells(width)(users).reshape(4**d, -1)
            return int(counts.sum(axis=0).max())

        def farthest(count):
            rng, moved = np.random.default_rng(1), 0
            for seed in range(40):
                rows = corner(30, d, inside=0.5, seed=seed)
                before = count(WeightedUsers(rows), 0.15)
                rows[rng.integers(30)] = rng.choice([-1.0, 0.42, 1.0, np.nan])
                moved = max(moved, abs(count(WeightedUsers(rows), 0.15) - before))
            return moved

        assert farthest(fullest_cell) == 1
        assert farthest(all_shifts) > 1


CORNERS = (ways.Corner(0.4, 0.9), ways.Corner(0.15, 0.75))


def scores_of_neighbours(monkeypatch, ask, *, pairs=40):
    """Return the scores of pairs of neighbours, as the choice sees them."""
    seen = []

    def watch(self, scores, *, account):
        seen.append(scores)
        return 0

    monkeypatch.setattr(ChooseBest, "release", watch)
    rng = np.random.default_rng(1)
    for seed in range(pairs):
        rows = corner(30, inside=0.5, seed=seed)
        rows[:8] = 0.42
        for _ in range(2):
            ask(WeightedUsers(rows.copy()), account=Account.open(epsilon=1.0))
            rows[rng.integers(30)] = rng.choice([-1.0, 0.42, 1.0, np.nan])
    return np.array(seen[::2]), np.array(seen[1::2])


class TestCorner:
    @pytest.mark.parametrize("inside", [0.5, 0.95])
    def test_all_but_a_few_of_the_answers_are_right(self, inside):
        users = WeightedUsers(corner(100, inside=inside))
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
            sum(fullest_cell(WeightedUsers(people), each.width) for each in CORNERS)
            for people in (rows, np.r_[rows[1:], [[0.9]]])
        ]
        assert abs(both[0] - both[1]) == 2

    @pytest.mark.parametrize("relation", list(Relation))
    def test_it_costs_what_it_says(self, relation):
        account = Account.open(epsilon=1.0, relation=relation, noise=SeededNoise(0))
        users = WeightedUsers(corner(40))
        are_in_a_corner(users, CORNERS, size=40.0, epsilon=0.25, account=account)
        assert math.isclose(float(account.left), 0.75)


class TestWidth:
    @pytest.mark.parametrize("size", [0.05, 2e-3, 1e-4])
    def test_a_window_fits_them(self, size):
        rng = np.random.default_rng(0)
        users = WeightedUsers(0.2 + size * rng.uniform(-0.5, 0.5, (300, 1)))
        for seed in range(20):
            account = Account.open(epsilon=1.0, noise=SeededNoise(seed))
            found = how_narrow(users, first=0.3, size=300.0, epsilon=0.3, account=account)
            assert 0.5 * size < found < 4.0 * size

    @pytest.mark.parametrize("same", [0.3, 0.7, 0.8, 0.97])
    def test_who_holds_the_same_number_does_not_speak_for_the_others(self, same):
        rng = np.random.default_rng(0)
        rows = np.where(rng.random((1000, 1)) < same, 0.1, rng.uniform(0.0, 0.2, (1000, 1)))
        for seed in range(20):
            account = Account.open(epsilon=1.0, noise=SeededNoise(seed))
            found = how_narrow(
                WeightedUsers(rows), first=0.3, size=1000.0, epsilon=0.2, account=account
            )
            assert found is None if same > 0.9 else found >= 0.09

    def test_one_user_moves_a_score_by_seven_at_most(self, monkeypatch):
        def ask(users, account):
            how_narrow(users, first=0.3, size=30.0, epsilon=0.3, account=account)

        before, after = scores_of_neighbours(monkeypatch, ask)
        assert before.shape == (40, 11)
        assert 5 <= np.abs(before - after).max() <= 7

    def test_from_the_fullest_window_to_the_point_of_others(self, monkeypatch):
        seen = []

        def watch(self, scores, *, account):
            seen.append(scores)
            assert self.sensitivity == 7
            return 0

        monkeypatch.setattr(ChooseBest, "release", watch)
        rows = np.r_[np.full(10, -0.9), np.linspace(0.42, 0.48, 15)][:, None]
        for _ in range(2):
            account = Account.open(epsilon=1.0)
            how_narrow(
                WeightedUsers(rows.copy()), first=0.3, size=25.0, epsilon=0.3, account=account
            )
            rows[-1] = -0.9
        assert np.abs(np.subtract(*seen)).max() == 7

    @pytest.mark.parametrize("relation", list(Relation))
    def test_it_costs_what_it_says(self, relation):
        account = Account.open(epsilon=1.0, relation=relation, noise=SeededNoise(0))
        users = WeightedUsers(corner(40))
        how_narrow(users, first=0.3, size=40.0, epsilon=0.25, account=account)
        assert math.isclose(float(account.left), 0.75)
