"""Laws of crowds: the same integers and the same releases, however and wherever users lie."""

import importlib

import pytest

import quorate
from crowd_worlds import (
    COLUMNS,
    ESTIMATORS,
    EVERY,
    FAMILIES,
    RUNS,
    Reversed,
    digest,
    known,
    released,
    visits,
    write,
)
from quorate import _FOLDERS
from quorate.core.users import UserData
from quorate.data.engines import MemoryCrowd
from quorate.data.engines.files import FileCrowd
from quorate.estimators import UserEstimator
from quorate.means import UserQueries

every_estimator = pytest.mark.parametrize("name", list(ESTIMATORS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(visits(), tmp_path_factory.mktemp("visits"))


@pytest.fixture(scope="module")
def whole(folder):
    return UserData.from_parquet(folder, **COLUMNS)


@pytest.fixture(scope="module")
def in_files(folder):
    return FileCrowd.from_parquet(folder, n_parts=5, **COLUMNS)


@pytest.mark.parametrize("n_parts", [1, 8, 64])
def test_parts_in_memory_have_the_integers_of_the_whole(whole, n_parts):
    assert digest(MemoryCrowd(whole, n_parts=n_parts, threads=2)) == digest(whole)


@pytest.mark.parametrize("n_parts", [1, 8, 64])
def test_parts_in_files_have_the_integers_of_the_whole(whole, folder, n_parts):
    assert digest(FileCrowd.from_parquet(folder, n_parts=n_parts, **COLUMNS)) == digest(whole)


def test_another_order_of_a_users_records_would_be_seen(whole):
    """The control: a statistic that adds up records backwards has other integers."""
    assert digest(whole, Reversed) != digest(whole)
    assert digest(MemoryCrowd(whole, n_parts=8), Reversed) == digest(whole, Reversed)


@every_estimator
def test_every_estimator_releases_the_same_about_parts(name, whole, in_files):
    expected = known(name, whole)
    for n_parts in (1, 8, 64) if EVERY else (1, 64) if name in FAMILIES else (8,):
        assert released(name, MemoryCrowd(whole, n_parts=n_parts)) == expected
    assert released(name, in_files) == expected


# Rules that so many users agree on that noise hardly ever changes them.
CERTAIN = {"concise rules", "parity by one record", "parity by votes", "parity by stable votes"}


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in CERTAIN])
def test_other_noise_releases_something_else(name, whole):
    """The control: what is compared above does depend on the noise."""
    first = known(name, whole)
    assert any(released(name, whole, seed) != first for seed in range(1, 20))


def test_every_public_estimator_is_compared():
    """A new estimator has to say here what it releases about a crowd."""
    compared = {type(make()) for make, _ in ESTIMATORS.values() if make not in RUNS}
    compared |= {UserQueries}  # asked by a run
    assert public_estimators() <= compared
    assert all(kind._takes_crowds for kind in public_estimators())


def public_estimators():
    """Return the estimators that some folder of the package lists among its names."""
    rooms = [importlib.import_module(f"quorate.{folder}") for folder in _FOLDERS]
    names = [
        getattr(room, name) for room in (quorate, *rooms) for name in getattr(room, "__all__", ())
    ]
    return {kind for kind in names if isinstance(kind, type) and issubclass(kind, UserEstimator)}


def test_other_records_release_something_else(whole):
    """The control: what is compared above does depend on the data."""
    other = UserData.from_frame(visits(seed=1), **COLUMNS)
    assert digest(other) != digest(whole)
    assert released("mean by a ball", other) != released("mean by a ball", whole)
