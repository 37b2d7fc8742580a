"""Covariance and variances of user means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.auditing import replay
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.means import UserCovariance
from quorate.means.covariance import nearest_covariance, outer_products

RNG = np.random.default_rng(0)
MIX = np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.5]])
TRUE = MIX @ MIX.T
VECTORS = RNG.normal(size=(5000, 3)) @ MIX.T + 20.0


def people(means):
    return UserData(means, offsets=np.arange(len(means) + 1))


class TestVectors:
    @given(st.lists(st.floats(-100, 100), min_size=1, max_size=5))
    def test_a_product_is_as_long_as_the_squared_row(self, row):
        offsets = np.array([row])
        assert np.linalg.norm(outer_products(offsets)) == pytest.approx(np.sum(offsets**2))

    def test_a_covariance_is_read_back(self):
        mean = outer_products(VECTORS - 20.0).mean(axis=0)
        plain = (VECTORS - 20.0).T @ (VECTORS - 20.0) / len(VECTORS)
        assert np.allclose(nearest_covariance(mean, 3), plain)

    def test_negative_directions_are_cut(self):
        noisy = np.array([1.0, 5.0, 1.0])
        assert np.linalg.eigvalsh(nearest_covariance(noisy, 2)).min() >= -1e-12


class TestUtility:
    @pytest.mark.parametrize("shape", ["full", "diagonal"])
    def test_it_is_near_the_truth(self, shape):
        with use_noise(SeededNoise(0)):
            fitted = UserCovariance(1.0, delta=1e-6, bounds=500.0, shape=shape).fit(people(VECTORS))
        assert np.allclose(fitted.variance_, np.diag(TRUE), rtol=0.35, atol=0.4)
        assert np.linalg.norm(fitted.mean_ - 20.0) < 0.5
        if shape == "full":
            assert np.linalg.norm(fitted.covariance_ - TRUE) < 2.0

    @pytest.mark.parametrize("shape", ["full", "diagonal"])
    def test_users_without_records_do_not_count(self, shape):
        vectors = VECTORS.copy()
        vectors[: len(vectors) // 10] = np.nan
        with use_noise(SeededNoise(0)):
            fitted = UserCovariance(2.0, delta=1e-6, bounds=500.0, shape=shape).fit(people(vectors))
        assert np.allclose(fitted.variance_, np.diag(TRUE), rtol=0.35, atol=0.4)
        assert np.linalg.norm(fitted.mean_ - 20.0) < 0.5

    def test_add_or_remove_works(self):
        with use_noise(SeededNoise(0)):
            fitted = UserCovariance(
                4.0, delta=1e-6, bounds=40.0, shape="diagonal", relation=Relation.ADD_REMOVE
            ).fit(people(VECTORS))
        assert np.all(fitted.variance_ >= 0)


class TestPrivacy:
    @pytest.mark.parametrize("shape", ["full", "diagonal"])
    def test_neighbours_with_the_same_answers_look_the_same(self, shape):
        vectors = VECTORS[:400]
        neighbour = vectors.copy()
        neighbour[3] = 1e300

        def run(means):
            return UserCovariance(6.0, delta=1e-6, bounds=100.0, shape=shape).fit(people(means))

        report = replay(run, vectors, neighbour)
        assert report.same, str(report)

    def test_the_guarantee_is_the_declared_one(self):
        guarantee = UserCovariance(0.7, delta=1e-7, bounds=9.0).fit(people(VECTORS)).guarantee_
        assert (guarantee.epsilon, guarantee.delta) == (0.7, 1e-7)
        assert guarantee.holds


class TestRefusal:
    @pytest.mark.parametrize("options", [{"shape": "round"}, {"delta": 0.0}, {"delta": 1.0}])
    def test_bad_parameters_are_refused(self, options):
        with pytest.raises(ParameterError):
            UserCovariance(1.0, bounds=10.0, **options).fit(people(VECTORS))

    def test_a_missing_bound_is_refused(self):
        with pytest.raises(UnboundedContributionError):
            UserCovariance(1.0).fit(people(VECTORS))
