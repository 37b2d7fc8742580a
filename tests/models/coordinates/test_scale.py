"""One scale and a centre: what few users pay for."""

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.models.coordinates.scale import release_scale
from sealing import start_run

MU = 0.2367


def scale_of(rows, mu=1.0, seed=0, **options):
    data = UserData(rows, offsets=np.arange(0, len(rows) + 1, 4))
    with use_noise(SeededNoise(seed)):
        run = start_run(data, gaussian_account(mu, **options))
        return run, release_scale(run, centred=True)[0]


@pytest.mark.parametrize("size", [1e-4, 1.0, 3e3])
@pytest.mark.parametrize("relation", list(Relation))
def test_a_typical_record_has_unit_coordinates(size, relation):
    rows = size * np.random.default_rng(1).normal(size=(1600, 3))
    _, shape = scale_of(rows, relation=relation)
    assert 0.5 < float(shape.whitening) * size < 1.3


def test_a_centre_is_found_where_it_can_be_seen():
    rows = np.random.default_rng(1).normal(5.0, 1.0, size=(1600, 3))
    _, shape = scale_of(rows)
    assert np.abs(shape.centre - 5.0).max() < 1.0
    assert 0.3 < float(shape.whitening) < 1.3


def test_few_users_pay_for_none():
    rows = np.random.default_rng(1).normal(5.0, 1.0, size=(800, 20))
    run, shape = scale_of(rows, mu=MU)
    assert not shape.centre.any()
    assert float(run.account.square_left / run.account.square) > 0.85


@pytest.mark.parametrize("value", [0.0, np.nan, 1e308, -np.inf])
def test_extreme_features_do_no_harm(value):
    _, shape = scale_of(np.full((400, 2), value))
    assert 0.0 < float(shape.whitening) < np.inf
    assert np.all(np.isfinite(shape.centre))


def test_nobody_is_told_how_features_hang_together():
    rows = np.random.default_rng(1).normal(size=(800, 2))
    assert scale_of(rows)[1].unsure.tolist() == [1.0, 1.0]
