"""The three releases of a fit, and the budget that no branch can exceed."""

import math

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.core import people as core_people
from quorate.core.bounds.grid import Ball, Grid
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.data.engines import MemoryCrowd, UserMeans
from quorate.exceptions import NumericalFailure, SchemaError
from quorate.mechanisms.sums import choose_grid
from quorate.mechanisms.user_releases import (
    LARGEST_SEARCH,
    NARROW,
    WIDE,
    BoundedVectors,
    UserReleases,
    bounded_mean,
    cut_share,
    search_square,
)
from sealing import numbers_of, rows_of, start_run, total_of


def people(n=2000, d=3, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, d))
    return UserData(rows, offsets=np.arange(n + 1))


def started(data, mu=0.24, relation=Relation.REPLACE):
    return start_run(data, gaussian_account(mu, relation))


def means(users):
    return users.user_means()


# A function that is asked may keep nothing; a test that counts does so beside it.
def counted(users):
    return users.user_means()


class TestRadius:
    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
    def test_it_holds_the_planned_share_at_any_scale(self, scale):
        data = people()
        scaled = UserData(data.X * scale, offsets=data.offsets)
        with use_noise(SeededNoise(2)):
            radius = started(scaled).radius(means, WIDE, dimension=3)
        inside = np.mean(np.linalg.norm(scaled.X, axis=1) <= radius)
        wanted = 1 - cut_share(2000, 0.24)
        assert wanted - 0.1 < inside < wanted + 0.25

    def test_it_is_paid_for(self):
        with use_noise(SeededNoise(2)):
            run = started(people())
            before = run.account.square_left
            run.radius(means, WIDE, dimension=3)
        paid = float(before - run.account.square_left)
        assert paid == pytest.approx(search_square(WIDE.size, n_users=2000, mu=0.24))

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308, 0.0])
    def test_no_value_breaks_it(self, bad):
        def vectors(users):
            return np.full((users.n_users, 3), bad)

        with use_noise(SeededNoise(2)):
            radius = started(people()).radius(vectors, WIDE, dimension=3)
        assert 0 < radius < math.inf

    def test_narrow_candidates_surround_their_unit(self):
        assert NARROW.min() < -4
        assert NARROW.max() > 0
        assert 0.0 in NARROW


class TestForeseen:
    """Means whose noise is drawn ahead are the means that would be released anyway."""

    SQUARES = (0.001, 0.002, 0.003)

    def test_they_pay_when_they_are_released_and_the_same(self):
        ahead, later = started(people()), started(people())
        sums = ahead.draw_ahead(self.SQUARES, dimension=3, radius=2.0)
        assert ahead.account.square_left == ahead.account.square
        for square, mechanism in zip(self.SQUARES, sums, strict=True):
            mean = ahead.mean_by(mechanism, means)
            other = later.mean(means, dimension=3, radius=2.0, square=square)
            assert mean.noise == other.noise
            assert np.abs(mean.value - other.value).max() < 20 * mean.noise
            assert ahead.account.event == later.account.event
            assert ahead.account.square_left == later.account.square_left

    def test_the_noise_is_that_which_was_drawn(self):
        run = started(people())
        first, *_ = run.draw_ahead(self.SQUARES, dimension=3, radius=2.0)
        drawn = run.account._ahead._vectors[first.sigma] * first.grid.step
        totals = numbers_of(run.data.total(BoundedVectors(means, first.grid.bound), first.grid))
        mean = run.mean_by(first, means)
        assert mean.value == pytest.approx((totals * first.grid.step + drawn) / 2000, rel=1e-12)

    def test_a_double_releases_the_same_with_and_without(self):
        found = []
        for foreseen in (True, False):
            with use_noise(SeededNoise(3)):
                run = started(people())
            if foreseen:
                run.draw_ahead(self.SQUARES, dimension=3, radius=2.0)
            found.append(run.mean(means, dimension=3, radius=2.0, square=0.001).value.tolist())
        assert found[0] == found[1]

    def test_vectors_beyond_the_bound_are_clipped_as_ever(self):
        run = started(people())
        (mechanism,) = run.draw_ahead([0.05], dimension=3, radius=2.0)
        mean = run.mean_by(mechanism, lambda users: np.full((users.n_users, 3), 1e9))
        assert np.linalg.norm(mean.value) < 2.0 + 20 * mean.noise


class TestMean:
    def test_it_is_right_up_to_its_noise(self):
        data = people()
        with use_noise(SeededNoise(5)):
            noisy = started(data).mean(means, dimension=3, radius=10.0, square=0.05)
        error = np.abs(noisy.value - data.X.mean(axis=0))
        # Three coordinates beyond six standard deviations: a chance below 1e-8.
        assert np.all(error < 6 * noisy.noise)
        assert noisy.noise == pytest.approx(2 * 10.0 / math.sqrt(0.05) / 2000, rel=1e-3)

    def test_the_noise_scales_with_the_radius(self):
        small = started(people()).mean(means, dimension=3, radius=1.0, square=0.01)
        large = started(people()).mean(means, dimension=3, radius=8.0, square=0.01)
        assert large.noise == pytest.approx(8 * small.noise, rel=1e-6)

    def test_one_user_moves_the_sum_by_at_most_the_diameter(self):
        data, grid = people(50), choose_grid(Ball(1.0, dimension=3), n_users=64)
        statistic = BoundedVectors(means, grid.bound)
        total = total_of(data, statistic, grid)
        for value in (np.nan, 1e300, -1e300, 0.0):
            rows = np.array(data.X)
            rows[7] = value
            other = UserData(rows, offsets=data.offsets)
            change = total_of(other, statistic, grid) - total
            moved = sum(int(c) ** 2 for c in change)
            assert moved <= grid.l2_sensitivity_squared(Relation.REPLACE)

    def test_the_same_check_sees_a_sum_without_a_clip(self):
        data = people(50)
        grid = choose_grid(Ball(1.0, dimension=3), n_users=64)
        loose = Grid(Ball(100.0, dimension=3), step=grid.step)
        rows = np.array(data.X)
        rows[7] = 50.0
        other = UserData(rows, offsets=data.offsets)
        broken = BoundedVectors(means, loose.bound)
        change = total_of(other, broken, loose) - total_of(data, broken, loose)
        moved = sum(int(c) ** 2 for c in change)
        assert moved > grid.l2_sensitivity_squared(Relation.REPLACE)

    def test_add_remove_halves_the_noise(self):
        statistic = UserMeans(Ball(1.0, dimension=3))
        replaced, added = (
            bounded_mean(
                People(people(), relation),
                statistic,
                multiplier=3.0,
                account=gaussian_account(1 / 3, relation),
                n_users=2000.0,
            ).noise
            for relation in (Relation.REPLACE, Relation.ADD_REMOVE)
        )
        assert replaced == pytest.approx(2 * added, rel=1e-3)


class TestBudget:
    def test_asking_for_more_than_is_left_is_refused(self):
        run = started(people())
        run.mean(means, dimension=3, radius=1.0, square=0.05)
        with pytest.raises(NumericalFailure, match="nothing was drawn"):
            run.mean(means, dimension=3, radius=1.0, square=0.05)

    def test_few_users_spend_no_more_than_the_cap_on_a_search(self):
        assert search_square(128, n_users=10, mu=0.24) <= LARGEST_SEARCH * 0.24**2

    def test_under_add_remove_the_number_of_users_is_bought(self):
        with use_noise(SeededNoise(4)):
            run = started(people(), relation=Relation.ADD_REMOVE)
        assert run.n_users != 2000
        assert abs(run.n_users - 2000) < 6 / (0.24 * math.sqrt(0.03))
        assert run.account.square_left < 0.98 * 0.24**2

    def test_a_huge_budget_is_fine_under_add_remove(self):
        with use_noise(SeededNoise(4)):
            run = started(people(), mu=1e4, relation=Relation.ADD_REMOVE)
        assert run.n_users == pytest.approx(2000, abs=0.1)

    def test_nobody_at_all_is_fine_under_add_remove(self):
        nobody = UserData(np.empty((0, 3)), offsets=[0])
        with use_noise(SeededNoise(4)):
            run = started(nobody, relation=Relation.ADD_REMOVE)
            assert run.n_users >= 1
            assert run.radius(means, WIDE, dimension=3) > 0
            assert run.mean(means, dimension=3, radius=1.0, square=0.01).value.shape == (3,)

    def test_a_released_count_that_is_far_too_small_raises_nothing(self):
        data = people(5000)
        noisy = bounded_mean(
            People(data, Relation.ADD_REMOVE),
            BoundedVectors(means, Ball(1.0, dimension=3)),
            multiplier=1.0,
            account=gaussian_account(1.0, Relation.ADD_REMOVE),
            n_users=1.0,
        )
        assert np.all(np.isfinite(noisy.value))


class TestOnce:
    def released(self, run, vectors):
        radius = run.radius(vectors, WIDE, dimension=3)
        return (radius, *run.mean(vectors, dimension=3, radius=radius, square=0.01).value)

    def test_vectors_that_are_kept_release_the_same(self, monkeypatch):
        found, asked, honest = [], [], UserData.user_means

        def user_means(self):  # a statistic that counts its calls would be refused
            asked.append(self.n_users)
            return honest(self)

        monkeypatch.setattr(UserData, "user_means", user_means)
        for kept in (0, 2**20):
            monkeypatch.setattr(core_people, "_KEPT", kept)
            with use_noise(SeededNoise(7)):
                run = started(people(500))
                found.append(self.released(*run.once(counted, dimension=3)))
        assert found[0] == found[1]
        # Beside a few made-up users, on whom it is tried.
        assert [n for n in asked if n > 3] == [500] * 3

    def test_many_records_are_asked_a_few_at_a_time(self, monkeypatch):
        run = started(people(500))
        held, kept = run.once(means, dimension=3)
        whole = rows_of(held.data.each(kept))
        monkeypatch.setattr(core_people, "_PART", 64)
        held, kept = run.once(means, dimension=3)
        assert np.array_equal(rows_of(held.data.each(kept)), whole)

    def test_an_error_is_told_where_the_vectors_are_asked_for(self):
        def broken(users):
            raise ValueError("31337")

        run, vectors = started(people(20)).once(broken, dimension=3)
        with pytest.raises(SchemaError, match="withheld"):
            run.radius(vectors, WIDE, dimension=3)


class TestParts:
    def test_the_sum_does_not_depend_on_the_parts(self, monkeypatch):
        data, grid = people(500), choose_grid(Ball(1.0, dimension=3), n_users=512)
        statistic = BoundedVectors(means, grid.bound)
        whole = total_of(data, statistic, grid)
        monkeypatch.setattr(core_people, "_PART", 100)
        sizes = []
        core_people._InBatches(lambda users: sizes.append(users.n_users) or np.array([0]), 3)(data)
        assert len(sizes) > 10
        assert max(sizes) <= 100 // 3
        assert np.array_equal(total_of(data, statistic, grid), whole)

    def test_a_crowd_in_parts_releases_the_same(self):
        data = people(500)
        for n_parts in (1, 8, 64):
            found = []
            for crowd in (data, MemoryCrowd(data, n_parts=n_parts)):
                with use_noise(SeededNoise(7)):
                    account = gaussian_account(1.0, Relation.ADD_REMOVE)
                    run = start_run(crowd, account)
                    radius = run.radius(means, WIDE, dimension=3)
                    mean = run.mean(means, dimension=3, radius=radius, square=0.1)
                found.append((run.n_users, radius, *mean.value))
            assert found[0] == found[1]


@pytest.mark.parametrize("n_users", [1.0, 40.0, 2.0**30])
def test_a_sum_has_room_for_many_more_users_than_were_released(n_users):
    """Whether a sum fits must not depend on how many there really are."""
    run = UserReleases(
        data=people(9), account=gaussian_account(1.0, Relation.ADD_REMOVE), n_users=n_users
    )
    for dimension, radius in ((1, 1.0), (50, 1e-9), (3, 1e9)):
        grid = run.noisy_sum(dimension=dimension, radius=radius, square=0.01).grid
        grid.check_sum(2**27)
        grid.check_sum(math.ceil(n_users))
