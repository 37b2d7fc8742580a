"""One row a user: the same in every company, whatever anybody sends."""

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.distributions.normal.rows import WhitenedMeans, WithinCovariances, matrix_of, vector_of

LIMITS = {"lower": (-50.0, -50.0), "upper": (50.0, 50.0)}
WORKS = [WhitenedMeans(((2.0, 0.1), (0.0, 0.7)), **LIMITS), WithinCovariances(**LIMITS)]


def people(lists):
    rows = np.concatenate([np.reshape(mine, (-1, 2)) for mine in lists])
    return UserData(rows, offsets=np.cumsum([0, *map(len, lists)]), ids=np.arange(len(lists)))


def random_lists(count, seed=0):
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(rng.integers(0, 7), 2)) * 10.0 ** rng.integers(-3, 300)
        for _ in range(count)
    ]


@pytest.mark.parametrize("work", WORKS, ids=lambda w: type(w).__name__)
class TestRows:
    def test_a_user_is_the_same_in_every_company(self, work):
        lists = random_lists(30)
        together = work(people(lists))
        alone = np.concatenate([work(people([mine])).X for mine in lists])
        assert np.array_equal(together.X, alone)

    def test_nobody_has_two_rows_and_keys_stay(self, work):
        data = people(random_lists(20, seed=1))
        made = work(data)
        assert set(made.record_counts().tolist()) <= {0, 1}
        assert np.array_equal(made.keys(), data.keys())

    def test_every_row_is_finite(self, work):
        assert np.isfinite(work(people([[[1e308, -1e308]] * 5, [[1e308, 1e308]] * 3])).X).all()


def test_the_rows_are_means_and_covariances():
    rng = np.random.default_rng(2)
    mine = rng.normal(size=(40, 2))
    means = WhitenedMeans(((2.0, 0.1), (0.0, 0.7)), **LIMITS)(people([mine])).X[0]
    assert means == pytest.approx(np.array([[2.0, 0.1], [0.0, 0.7]]) @ mine.mean(axis=0))
    within = WithinCovariances(**LIMITS)(people([mine])).X[0]
    assert matrix_of(within, 2) == pytest.approx(np.cov(mine.T), abs=1e-9)


def test_vectors_keep_the_norm():
    matrix = np.array([[1.0, -2.0, 3.0], [-2.0, 0.5, 0.1], [3.0, 0.1, 4.0]])
    assert np.linalg.norm(vector_of(matrix)) == pytest.approx(np.linalg.norm(matrix))
    assert matrix_of(vector_of(matrix), 3) == pytest.approx(matrix)
