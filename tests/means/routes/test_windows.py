"""Windows of one feature: which is the best, how far one user moves it, how narrow it is."""

import math

import numpy as np
import pytest

from corner_worlds import corner, scores_of_neighbours
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.core.sealed import seal_rows
from quorate.exceptions import ParameterError, SealedError
from quorate.means.routes import expected_errors
from quorate.means.routes.windows import Windows
from quorate.mechanisms.choices.choose import ChooseBest
from sealing import numbers_of, vectors_of


def windows(users, size):
    return Windows.of(users.column(0), size=size)


def of(values, size):
    return Windows.of(seal_rows(values, Relation.REPLACE), size=size)


def above_of(people, asked):
    width, share, alike = asked
    found = people.above(width, share, alike=alike)
    assert found.moves.largest == 64
    return int(numbers_of(found)[0])


class TestWindows:
    @pytest.mark.parametrize("width", [0.3, 0.01, 1e-4])
    @pytest.mark.parametrize("alike", [0.0, 0.4])
    def test_the_best_window_is_found_as_one_by_one(self, width, alike):
        rng = np.random.default_rng(0)
        values = np.r_[rng.normal(0.2, 0.02, size=60), np.full(30, 0.21), np.full(20, -1.0)]
        cells = np.floor((values + 1.0) / expected_errors.POINT).astype(int)
        length = math.floor(width / expected_errors.POINT)
        best = -math.inf
        for start in range(cells.min() - 3, cells.max() + 3) if length < 30 else np.unique(cells):
            inside = cells[(cells >= start) & (cells < start + length)]
            fullest = max([6, *np.unique(inside, return_counts=True)[1].tolist()])
            best = max(best, inside.size - alike * fullest)
        above = above_of(of(values, 110.0), (width, 0.5, alike))
        assert abs(above / 64 - (best - 55.0)) < 0.5

    def test_nobody_is_in_no_window(self):
        assert above_of(of(np.empty(0), 40.0), (0.2, 0.5, 0.0)) == -1280

    @pytest.mark.parametrize("many", [math.inf, math.nan, 2**60, -1])
    @pytest.mark.parametrize("values", [(), (0.1, 0.1)])
    @pytest.mark.parametrize("alike", [0, 64])
    def test_other_numbers_are_refused_whoever_is_there(self, many, values, alike):
        with pytest.raises(ParameterError):
            of(np.array(values), 3.0).cells.fullest(width=0.2, alike=alike, many=many)

    @pytest.mark.parametrize("row", [(2,), (1, 2)])
    def test_a_user_has_one_number_in_them(self, row):
        """A row of two numbers would move a window by two."""
        with pytest.raises(SealedError):
            of(np.full((3, *row), 0.1), 3.0)

    @pytest.mark.parametrize("alike", [0.0, 0.4, 1.0])
    def test_the_first_user_moves_it_by_one_where_many_were_told_of(self, alike):
        asked = (0.2, 0.5, alike)
        nobody, somebody = (above_of(of(np.full(k, 0.3), 900.0), asked) for k in (0, 1))
        assert 0 <= somebody - nobody <= 64

    def test_one_user_moves_it_by_one_whoever_holds_the_same(self):
        rng, moved = np.random.default_rng(1), 0
        for seed in range(60):
            rows = corner(30, inside=0.5, seed=seed)
            rows[: 8 * (seed % 3)] = 0.42
            before = [
                above_of(windows(vectors_of(rows), 30.0), (width, 0.5, alike))
                for width in (0.2, 0.01)
                for alike in (0.0, 0.4, 1.0)
            ]
            rows[rng.integers(30)] = rng.choice([-1.0, 0.42, 1.0, np.nan])
            after = [
                above_of(windows(vectors_of(rows), 30.0), (width, 0.5, alike))
                for width in (0.2, 0.01)
                for alike in (0.0, 0.4, 1.0)
            ]
            moved = max(moved, int(np.abs(np.subtract(before, after)).max()))
        assert moved == 64

    @pytest.mark.parametrize("alike", [0.4, 1.0])
    def test_one_who_joins_a_crowd_elsewhere_moves_it_by_one(self, alike):
        """A number that many share counts against the windows that hold it, and no others."""
        near, crowd = np.linspace(0.1, 0.25, 20), np.full(15, -0.9)
        asked = (0.2, 0.5, alike)
        before, after = (
            above_of(of(np.r_[near[gone:], crowd, np.full(gone, -0.9)], 35.0), asked)
            for gone in (0, 1)
        )
        assert before - after == 64


class TestWidth:
    @pytest.mark.parametrize("size", [0.05, 2e-3, 1e-4])
    def test_a_window_fits_them(self, size):
        rng = np.random.default_rng(0)
        users = vectors_of(0.2 + size * rng.uniform(-0.5, 0.5, (300, 1)))
        for seed in range(20):
            account = Account.open(epsilon=1.0, noise=SeededNoise(seed))
            found = windows(users, 300.0).how_narrow(epsilon=0.3, account=account)
            assert 0.5 * size < found < 4.0 * size

    @pytest.mark.parametrize("same", [0.3, 0.7, 0.75, 0.97])
    def test_who_holds_the_same_number_does_not_speak_for_the_others(self, same):
        rng = np.random.default_rng(0)
        rows = np.where(rng.random((1000, 1)) < same, 0.1, rng.uniform(0.0, 0.2, (1000, 1)))
        for seed in range(20):
            account = Account.open(epsilon=1.0, noise=SeededNoise(seed))
            people = windows(vectors_of(rows), 1000.0)
            found = people.how_narrow(epsilon=0.2, account=account)
            assert found is None if same > 0.9 else found >= 0.09

    def test_one_user_moves_a_score_by_one_at_most(self, monkeypatch):
        def ask(users, account):
            windows(users, 30.0).how_narrow(epsilon=0.3, account=account)

        before, after = scores_of_neighbours(monkeypatch, ask)
        assert before.shape == (40, len(expected_errors.widths()) + 2)
        assert np.abs(before - after).max() == 64

    def test_from_a_window_to_the_point_of_others(self, monkeypatch):
        seen = []

        def watch(self, scores, *, account):
            seen.append(numbers_of(scores))
            assert self.sensitivity == 64
            return 0

        monkeypatch.setattr(ChooseBest, "release", watch)
        rows = np.r_[np.full(10, -0.9), np.linspace(0.42, 0.48, 15)][:, None]
        for _ in range(2):
            people = windows(vectors_of(rows), 25.0)
            people.how_narrow(epsilon=0.3, account=Account.open(epsilon=1.0))
            rows[-1] = -0.9
        # The windows of the others lose one user; that their point is elsewhere adds nothing to it.
        assert np.abs(np.subtract(*seen)).max() == 64

    @pytest.mark.parametrize("relation", list(Relation))
    def test_it_costs_what_it_says(self, relation):
        account = Account.open(epsilon=1.0, relation=relation, noise=SeededNoise(0))
        users = vectors_of(corner(40), relation=relation)
        windows(users, 40.0).how_narrow(epsilon=0.25, account=account)
        assert math.isclose(float(account.left), 0.75)
