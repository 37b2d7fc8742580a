"""One noisy sum of everybody's vector: right on average, as noisy as it says."""

import numpy as np
import pytest

from quorate.accounting.account import Account
from quorate.guarantees import Relation
from quorate.noise import SeededNoise
from quorate.tabulate.blocks import noisy_sum, presence_of, release_block, tail_factor
from quorate.tabulate.gathering.cells import ValueColumn
from quorate.tabulate.lengths import Lengths
from quorate.tabulate.looks import Shape
from quorate.users import UserData

COLUMN = ValueColumn(2, 0.0, 8.0)


def cells(n=300):
    rng = np.random.default_rng(0)
    rows, offsets = [], [0]
    for _ in range(n):
        for group in np.sort(rng.choice(3, size=rng.integers(0, 4), replace=False)):
            count = rng.integers(1, 4)
            total = np.rint(rng.uniform(-4, 4, count) / COLUMN.step).sum()
            rows.append([group, count, total])
        offsets.append(len(rows))
    return UserData(np.array(rows, dtype=float), offsets=offsets)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", Relation)
def test_noise_is_as_large_as_stated_and_the_sum_is_right(delta, relation):
    crowd, norm = cells(), 2 if delta else 1
    shape = Shape(
        columns=(COLUMN,),
        centres=(3.0,),
        units=(2.0,),
        weights=np.array([1.0, 2.0, 0.5]),
        norm=norm,
    )
    exact = np.array([crowd.X[crowd.X[:, 0] == g, 1].sum() for g in range(3)])
    about = [
        (crowd.X[crowd.X[:, 0] == g, 2] * COLUMN.step).sum() + exact[g] * (COLUMN.middle - 3.0)
        for g in range(3)
    ]
    scores = []
    for seed in range(60):
        purse = Account.open(epsilon=3.0, delta=delta, relation=relation, noise=SeededNoise(seed))
        block = release_block(crowd, shape, account=purse, n_users=300.0, length=1e4)
        scores.append((block.counts - exact) / block.count_errors)
        scores.append((block.sums[0] - about) / block.sum_errors[0])
        assert (purse.left if delta == 0 else purse.square_left) < 1e-9
    assert abs(np.mean(scores)) < 0.2
    assert np.sqrt(np.mean(np.square(scores))) == pytest.approx(1.0, abs=0.15)


def test_a_length_that_is_too_short_loses_the_same_part_of_sums_and_counts():
    busy = UserData([[0.0, 100.0, 100.0 / COLUMN.step]], offsets=[0, 1])
    shape = Shape(columns=(COLUMN,), centres=(4.0,), units=(1.0,), weights=np.ones(1))
    purse = Account.open(epsilon=500.0, delta=1e-6, noise=SeededNoise(0))
    block = release_block(busy, shape, account=purse, n_users=1.0, length=10.0)
    assert block.counts[0] == pytest.approx(10 / np.sqrt(2), abs=3)
    assert block.sums[0, 0] / block.counts[0] == pytest.approx(1.0, abs=0.5)


def test_presence_counts_cells_once():
    crowd = cells()
    assert np.array_equal(presence_of(crowd).X[:, 0], crowd.X[:, 0])
    assert set(presence_of(crowd).X[:, 1]) == {1.0}


def test_tails_and_mechanisms():
    assert tail_factor(gaussian=True, beta=0.3173) == pytest.approx(1.0, abs=1e-3)
    rng = np.random.default_rng(0)
    draws = rng.laplace(size=100_000) / np.sqrt(2)
    assert np.mean(np.abs(draws) > tail_factor(gaussian=False, beta=0.05)) == pytest.approx(
        0.05, abs=0.003
    )
    purse = Account.open(epsilon=1.0, delta=1e-6)
    bound = Lengths(1.0, 3, norm=2, signed=True)
    assert type(noisy_sum(bound, account=purse, n_users=5)).__name__ == "GaussianSum"
