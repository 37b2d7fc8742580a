"""One round of whitening, for few users."""

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.models.coordinates import one_round
from quorate.models.coordinates.one_round import Centred, release_in_one_round
from quorate.noise import SeededNoise, use_noise
from quorate.releases.user_releases import UserReleases
from quorate.users import UserData
from quorate.users.store import settled_users

RNG = np.random.default_rng(1)
MIX = np.array([[3.0, 0.0], [2.0, 0.5]])


def skewed(n=4000, m=3):
    rows = RNG.normal(size=(n * m, 2)) @ MIX.T + [50.0, -20.0]
    return UserData(rows, RNG.normal(size=n * m), offsets=np.arange(0, n * m + 1, m))


def released(data, *, mu=1.0, centred=True):
    with use_noise(SeededNoise(3)):
        run = UserReleases.start(data, gaussian_account(mu))
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
            found = Centred(centre)(people).X
            assert found.dtype == np.float32
            assert np.array_equal(found, (people.X - centre).astype(np.float32))


def test_no_number_of_one_person_shows_in_the_centred_records_of_others():
    rows, offsets = np.random.default_rng(2).normal(size=(90, 5)), np.arange(0, 91, 9)
    plain = Centred(np.zeros(5))(UserData(rows, offsets=offsets)).X.copy()
    rows[:9] = 1e308
    with np.errstate(all="raise"):
        found = Centred(np.full(5, -1e308))(UserData(rows, offsets=offsets)).X
        assert np.isinf(found[:9]).all()
        found = Centred(np.zeros(5))(UserData(rows, offsets=offsets)).X
    assert np.array_equal(found[9:], plain[9:])
