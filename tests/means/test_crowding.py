"""In how small a corner are users? What is counted, how far one user moves it, who errs."""

import math

import numpy as np
import pytest

from quorate.accounting.account import Account
from quorate.guarantees import Relation
from quorate.means.auto_route import _Cells, fullest_cell, how_crowded
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


class TestAnswer:
    def test_all_but_a_few_of_the_answers_are_right(self):
        wrong = 0
        for seed in range(200):
            account = Account.open(epsilon=1.0, noise=SeededNoise(seed))
            users = WeightedUsers(corner(100, inside=0.95 if seed % 2 else 0.5))
            found = how_crowded(users, widths=[0.15], at_least=[75], epsilon=0.2, account=account)
            wrong += found != seed % 2
        assert wrong <= 8

    @pytest.mark.parametrize(("size", "answer"), [(2.0, 0), (0.1, 1), (0.02, 2), (0.001, 3)])
    def test_the_smallest_corner_that_holds_them_is_told(self, size, answer):
        rng = np.random.default_rng(0)
        users = WeightedUsers(np.clip(0.2 + size * rng.uniform(-0.5, 0.5, (300, 1)), -1.0, 1.0))
        told = {"widths": [0.2, 0.04, 0.004], "at_least": [240] * 3, "epsilon": 0.3}
        found = [
            how_crowded(users, account=Account.open(epsilon=1.0, noise=SeededNoise(seed)), **told)
            for seed in range(20)
        ]
        assert found == [answer] * 20

    def test_one_user_moves_each_score_by_one(self, monkeypatch):
        seen = []

        def watch(self, scores, *, account):
            seen.append(scores)
            return 0

        monkeypatch.setattr(ChooseBest, "release", watch)
        rng = np.random.default_rng(1)
        for seed in range(40):
            rows = corner(30, inside=0.5, seed=seed)
            for _ in range(2):
                how_crowded(
                    WeightedUsers(rows.copy()),
                    widths=[0.4, 0.15, 0.01],
                    at_least=[20, 15, 10],
                    epsilon=0.3,
                    account=Account.open(epsilon=1.0),
                )
                rows[rng.integers(30)] = rng.choice([-1.0, 0.42, 1.0, np.nan])
        moved = np.abs(np.subtract(seen[::2], seen[1::2]))
        assert moved.shape == (40, 4)
        assert moved.max() == 1
        # From the fullest small cell into the fullest large one, which is elsewhere.
        rows = np.r_[np.full(10, -0.9), np.linspace(0.42, 0.58, 15)][:, None]
        for _ in range(2):
            how_crowded(
                WeightedUsers(rows.copy()),
                widths=[0.4, 0.01],
                at_least=[15, 9],
                epsilon=0.3,
                account=Account.open(epsilon=1.0),
            )
            rows[0] = 0.506
        assert np.abs(np.subtract(seen[-2], seen[-1])).max() == 1

    @pytest.mark.parametrize("relation", list(Relation))
    def test_it_costs_what_it_says(self, relation):
        account = Account.open(epsilon=1.0, relation=relation, noise=SeededNoise(0))
        how_crowded(
            WeightedUsers(corner(40)), widths=[0.15], at_least=[30], epsilon=0.25, account=account
        )
        assert math.isclose(float(account.left), 0.75)
