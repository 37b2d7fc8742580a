"""Released coordinates in which steps need no tuning."""

from itertools import pairwise

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from drawing import gaussian_account
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.models.class_losses import SoftmaxLoss
from quorate.models.coordinates import geometry as module
from quorate.models.coordinates.geometry import (
    Geometry,
    SecondMoments,
    inward,
    release_in_rounds,
    whitens_in_rounds,
)
from quorate.models.coordinates.one_round import release_in_one_round
from quorate.models.regression_losses import SquaredLoss
from sealing import start_run

RNG = np.random.default_rng(1)
MIX = np.array([[3.0, 0.0], [2.0, 0.5]])


def skewed(n=4000, m=3):
    rows = RNG.normal(size=(n * m, 2)) @ MIX.T + [50.0, -20.0]
    return UserData(rows, RNG.normal(size=n * m), offsets=np.arange(0, n * m + 1, m))


def released(data, *, mu=1.0, centred=True, seed=3):
    with use_noise(SeededNoise(seed)):
        run = start_run(data, gaussian_account(mu))
        rounds = whitens_in_rounds(n_users=run.n_users, mu=mu, n_features=data.n_features)
        if centred and rounds:
            return release_in_rounds(run)[0]
        return release_in_one_round(run, centred=centred)[0]


class TestCoordinates:
    def test_predictions_are_those_of_the_new_coordinates(self):
        shape = Geometry(np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.5, 1.0]]))
        theta, rows = RNG.normal(size=3), RNG.normal(size=(5, 2))
        outer = shape.outward(theta, SquaredLoss())
        inside = (rows - shape.centre) @ shape.whitening @ theta[:2] + theta[2]
        np.testing.assert_allclose(rows @ outer[:2] + outer[2], inside)

    @pytest.mark.parametrize(
        "loss", [SquaredLoss(), SoftmaxLoss(classes=3), SquaredLoss(intercept=False)]
    )
    def test_inward_undoes_outward(self, loss):
        centre = np.array([1.0, -2.0]) if loss.intercept else np.zeros(2)
        shape = Geometry(centre, np.array([[2.0, 0.5], [0.5, 1.0]]))
        theta = RNG.normal(size=loss.dimension(2))
        np.testing.assert_allclose(inward(shape, shape.outward(theta, loss), loss), theta)

    def test_what_was_not_seen_is_unsure(self):
        """Spreads far below the noise of a round are, those far above it are not."""
        shape = released(narrow(), mu=1.0)
        moved = spreads(narrow(), shape)
        assert shape.unsure.shape == (4,)
        assert shape.unsure.max() < 1.0 or moved.min() < 0.5
        assert released(narrow(), mu=20.0).unsure.max() < shape.unsure.max()


class TestRelease:
    def test_the_features_become_round(self):
        data = skewed()
        shape = released(data, mu=4.0)
        moved = (data.X - shape.centre) @ shape.whitening
        spread = np.linalg.eigvalsh(moved.T @ moved / len(moved))
        assert 0.5 < spread.min() <= spread.max() < 2.0

    def test_one_scale_for_all_features_acts_as_a_matrix_of_it(self):
        shape = Geometry(np.array([1.0, -2.0]), np.asarray(0.7))
        whole = Geometry(shape.centre, 0.7 * np.eye(2))
        loss, theta = SquaredLoss(), np.array([1.0, -2.0, 0.5])
        for way in (Geometry.outward, inward):
            np.testing.assert_allclose(way(shape, theta, loss), way(whole, theta, loss))
        np.testing.assert_allclose(shape.stretched, whole.stretched)

    @pytest.mark.parametrize("value", [0.0, 1e150, -1e150])
    def test_extreme_features_do_no_harm(self, value):
        data = UserData(np.full((300, 2), value), offsets=np.arange(301))
        shape = released(data)
        assert np.all(np.isfinite(shape.whitening))


# Spreads from 1 down to a thousandth of it, far from zero.
ALONG = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0] * [1.0, 0.3, 0.1, 0.03]


def narrow(n=5000, m=3):
    rows = RNG.normal(size=(n * m, 4)) @ ALONG.T + 5.0
    return UserData(rows, offsets=np.arange(0, n * m + 1, m))


def spreads(data, shape):
    moved = (data.X - shape.centre) @ shape.whitening
    return np.linalg.eigvalsh(np.cov(moved.T))


class TestRounds:
    def test_small_spreads_are_found_in_the_coordinates_of_the_round_before(self, monkeypatch):
        data = narrow()
        found = spreads(data, released(data, mu=0.24))
        assert found.max() / found.min() < 4.0
        monkeypatch.setattr(module, "_ROUND_SHARES", (0.16,))
        once = spreads(data, released(data, mu=0.24))
        assert once.max() / once.min() > 10.0, "one round with the whole allowance does not do it"

    def test_the_centre_moves_with_the_rounds(self):
        data = narrow()
        shape = released(data, mu=0.24)
        assert np.abs((data.X.mean(axis=0) - shape.centre) @ shape.whitening).max() < 0.2

    def test_rounds_end_when_everything_is_seen(self):
        account = gaussian_account(1.0)
        round_people = UserData(RNG.normal(size=(9000, 2)), offsets=np.arange(0, 9001, 3))
        with use_noise(SeededNoise(1)):
            release_in_rounds(start_run(round_people, account))
        assert float(account.square_left / account.square) > 0.94, "one round, and no more"

    def test_few_users_take_one_round(self):
        assert not whitens_in_rounds(n_users=300, mu=0.2367, n_features=14)
        assert not whitens_in_rounds(n_users=10**6, mu=0.2367, n_features=97)

    def test_moments_turn_with_the_coordinates(self):
        data = UserData(RNG.normal(size=(7, 3)), offsets=[0, 2, 2, 7])
        whitening, moved = RNG.normal(size=(3, 3)), RNG.normal(size=3)
        turn = np.eye(4)
        turn[:3, :3], turn[:3, 3] = whitening, -whitening @ moved
        moments = SecondMoments(np.zeros(3), mean=True)
        inside = UserData((data.X - moved) @ whitening.T, offsets=data.offsets)
        turned = module._Turned(moments, moments, turn)(data)
        np.testing.assert_allclose(turned, moments(inside), atol=1e-12)
        assert not turned[1].any()


class TestSecondMoments:
    def test_they_are_what_they_say(self):
        data = UserData(RNG.normal(size=(7, 3)), offsets=[0, 2, 2, 7])
        moments = SecondMoments(np.array([0.5, 0.0, -1.0]))
        found = [moments.matrix(row) for row in moments(data)]
        centred = data.X - moments.centre
        np.testing.assert_allclose(found[0], centred[:2].T @ centred[:2] / 2)
        assert not found[1].any()
        np.testing.assert_allclose(found[2], centred[2:].T @ centred[2:] / 5)

    def test_no_product_is_large_enough_for_several_threads(self, monkeypatch):
        """How BLAS shares out a product among threads, and so its last bits, is not ours to say."""
        data = UserData(RNG.normal(size=(9007, 65)), offsets=[0, 3, 7, 9007])
        moments = SecondMoments(RNG.normal(size=65), mean=True)
        turn = RNG.normal(size=(66, 66))
        plain, turned = moments(data), module._Turned(moments, moments, turn)(data)
        largest, matmul = [], np.matmul

        def spy(left, right, **keywords):
            largest.append(left.shape[-2] * left.shape[-1] * right.shape[-1])
            return matmul(left, right, **keywords)

        monkeypatch.setattr(np, "matmul", spy)
        assert np.array_equal(moments(data), plain)
        assert np.array_equal(module._Turned(moments, moments, turn)(data), turned)
        assert 2**17 < max(largest) <= 2**18
        z = np.column_stack([data.X[7:] - moments.centre, np.ones(9000)])
        np.testing.assert_allclose(
            moments.matrix(plain[2]), z.T @ z / 9000 - np.diag(np.eye(66)[65]), atol=1e-9
        )

    def test_no_product_with_a_vector_is_large_enough_for_several_threads(self, monkeypatch):
        rng = np.random.default_rng(3)
        data = UserData(rng.normal(size=(5000, 17)), offsets=[0, 5000])
        moments = SecondMoments(rng.normal(size=17), mean=True)
        with threadpool_limits(1):
            alone = moments(data)
        largest, matmul = [], np.matmul

        def spy(left, right, **keywords):
            largest.extend([left.shape[-2] * left.shape[-1]] if right.ndim == 1 else [])
            return matmul(left, right, **keywords)

        monkeypatch.setattr(np, "matmul", spy)
        assert np.array_equal(moments(data), alone)
        assert 2**12 < max(largest) <= 2**13

    @pytest.mark.parametrize("features", [17, 20, 32, 33, 50, 96])
    @pytest.mark.parametrize("mean", [False, True])
    def test_strips_of_rows_hold_the_whole_triangle(self, features, mean):
        """What lies below the diagonal is not computed, and nothing of it is seen."""
        rng, counts = np.random.default_rng(features), np.array([1, 40, 0, 40, 3, 100])
        data = UserData(rng.normal(size=(184, features)), offsets=np.cumsum([0, *counts]))
        moments = SecondMoments(rng.normal(size=features), mean=mean)
        with np.errstate(all="raise"):
            found = moments(data)
        for user, (a, b) in enumerate(pairwise(data.offsets)):
            z = np.column_stack([data.X[a:b] - moments.centre, *[np.ones((b - a, 1))] * mean])
            exact = z.T @ z / max(1, b - a)
            if mean:
                exact[-1, -1] = 0.0
            np.testing.assert_allclose(moments.matrix(found[user]), exact, atol=1e-12)
            assert np.array_equal(moments(data.take([user]))[0], found[user])

    def test_lengths_are_those_of_the_matrix(self):
        data = UserData(RNG.normal(size=(4, 3)), offsets=[0, 4])
        moments = SecondMoments(np.zeros(3))
        row = moments(data)[0]
        assert np.linalg.norm(row) == pytest.approx(np.linalg.norm(moments.matrix(row)))

    def test_nobody_moves_the_bits_of_somebody_with_two_records(self):
        """Products that are added up without rounding between know which record comes first."""
        rng, moments = np.random.default_rng(5), SecondMoments(np.zeros(20))
        for _ in range(20):
            own, two, three = (rng.normal(size=(held, 20)) for held in (2, 2, 3))
            rows = [
                moments(UserData(np.concatenate([own, others]), offsets=[0, 2, 2 + len(others)]))[0]
                for others in (two, three)
            ]
            assert np.array_equal(*rows)
