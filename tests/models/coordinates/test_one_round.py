"""One round of whitening, for few users."""

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.core.users.store import settled_users
from quorate.models.coordinates import one_round
from quorate.models.coordinates.geometry import whitens_in_rounds
from quorate.models.coordinates.one_round import Centred, _own_means, release_in_one_round
from sealing import start_run

RNG = np.random.default_rng(1)
MIX = np.array([[3.0, 0.0], [2.0, 0.5]])


def skewed(n=4000, m=3):
    rows = RNG.normal(size=(n * m, 2)) @ MIX.T + [50.0, -20.0]
    return UserData(rows, RNG.normal(size=n * m), offsets=np.arange(0, n * m + 1, m))


def released(data, *, mu=1.0, centred=True):
    with use_noise(SeededNoise(3)):
        run = start_run(data, gaussian_account(mu))
        return release_in_one_round(run, centred=centred)[0]


def test_the_features_become_round():
    data = skewed()
    shape = released(data, mu=4.0)
    moved = (data.X - shape.centre) @ shape.whitening
    spread = np.linalg.eigvalsh(moved.T @ moved / len(moved))
    assert 0.5 < spread.min() <= spread.max() < 2.0


def test_spread_that_drowns_in_noise_is_left_at_the_size_of_the_noise():
    data = skewed(n=200)
    shape = released(data, mu=0.1)
    moved = (data.X - shape.centre) @ shape.whitening
    assert np.linalg.eigvalsh(moved.T @ moved / len(moved)).max() < 20.0


def test_without_an_intercept_there_is_no_centre():
    assert not released(skewed(), centred=False).centre.any()


@pytest.mark.parametrize("at_once", [1, 90, 2**18])
@pytest.mark.parametrize("by_count", [False, True])
def test_records_are_centred_number_by_number_wherever_they_lie(monkeypatch, at_once, by_count):
    monkeypatch.setattr(one_round, "_AT_ONCE", at_once)
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 40, size=30)
    owners = np.repeat(np.arange(30), counts)
    rows, centre = rng.normal(size=(len(owners), 7)) + 1e6, rng.normal(size=7) + 1e6
    for came in (np.arange(len(rows)), rng.permutation(len(rows))):
        for table in (rows[came], np.asfortranarray(rows[came])):
            people = UserData.from_arrays(table, users=owners[came])
            people = settled_users(people, None, np.copy, by_count=by_count)
            narrow = Centred(None)(people)  # before anybody asks for all records in their order
            found = Centred(centre)(people).X
            assert found.dtype == np.float32
            assert np.array_equal(found, (people.X - centre).astype(np.float32))
            assert narrow.X.dtype == np.float32
            assert np.array_equal(narrow.X, people.X.astype(np.float32))
            assert np.array_equal(people.order_of_addition(), narrow.order_of_addition())


def test_no_number_of_one_person_shows_in_the_centred_records_of_others():
    rows, offsets = np.random.default_rng(2).normal(size=(90, 5)), np.arange(0, 91, 9)
    plain = Centred(np.zeros(5))(UserData(rows, offsets=offsets)).X.copy()
    rows[:9] = 1e308
    with np.errstate(all="raise"):
        found = Centred(np.full(5, -1e308))(UserData(rows, offsets=offsets)).X
        assert np.isinf(found[:9]).all()
        found = Centred(np.zeros(5))(UserData(rows, offsets=offsets)).X
    assert np.array_equal(found[9:], plain[9:])


class TestFarFromZero:
    """Records are rounded before the centre is known, and its noise is far larger than that."""

    @pytest.mark.parametrize("away", [0.0, 3e3, 1e6, 1e9])
    @pytest.mark.parametrize("features", [17, 90])
    @pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ADD_REMOVE])
    def test_rounded_records_are_turned_as_the_records_themselves(self, away, features, relation):
        rng = np.random.default_rng(5)
        rows = rng.normal(size=(10_000, features)) + away * np.linspace(-1.0, 1.0, features)
        people = UserData(rows, rng.normal(size=10_000), offsets=np.arange(0, 10_001, 10))
        mu = 14.9 * (features + 1) / 1000  # with more there are rounds
        assert not whitens_in_rounds(n_users=1000, mu=mu, n_features=features)
        with use_noise(SeededNoise(3)):
            run = start_run(people, gaussian_account(mu, relation=relation))
            geometry, turned = release_in_one_round(run, centred=True)
        rows = turned._held_crowd().X
        exact = (people.X - geometry.centre) @ geometry.whitening
        # What noise left of the way to the centre is seen as spread.
        assert np.abs(rows - exact).max() < 1e-4 * max(1.0, np.sqrt(np.mean(exact**2)))


class TestOwnMeans:
    def test_they_are_the_means_of_each_users_records(self):
        rng = np.random.default_rng(2)
        counts = np.array([0, 1, 2, 40, 40, 2000, 7])
        rows = rng.normal(size=(counts.sum(), 20)) + 3.0
        people = Centred(None)(UserData(rows, offsets=np.append(0, np.cumsum(counts))))
        wanted = np.nan_to_num(people.user_means())
        np.testing.assert_allclose(_own_means(people), wanted, rtol=1e-6, atol=1e-6)

    def test_no_product_is_large_enough_for_several_threads(self, monkeypatch):
        sizes, product = [], np.matmul

        def watched(left, right, **keywords):
            sizes.append(right.shape[-2] * right.shape[-1])
            return product(left, right, **keywords)

        monkeypatch.setattr(np, "matmul", watched)
        rows = np.ones((5000, 20))
        assert np.array_equal(_own_means(UserData(rows, offsets=[0, 5000])), np.ones((1, 20)))
        assert max(sizes) <= 2**13
        assert len(sizes) > 10

    def test_what_is_too_large_for_32_bits_is_nobody_elses(self):
        rows = np.random.default_rng(2).normal(size=(90, 5))
        offsets = np.arange(0, 91, 9)
        plain = _own_means(Centred(None)(UserData(rows, offsets=offsets)))
        rows[:9] = 1e308
        with np.errstate(all="raise"):
            found = _own_means(Centred(None)(UserData(rows, offsets=offsets)))
        assert np.array_equal(found[1:], plain[1:])
