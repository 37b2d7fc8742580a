"""The distribution function of people's numbers, as callers use it."""

import numpy as np
import pytest

from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.distributions import EmpiricalCDF
from quorate.distributions.numeric.cdf import (
    as_edges_column,
    log_density,
    quantile_of,
    sample_cells,
)
from quorate.exceptions import ParameterError, SchemaError


@pytest.fixture(scope="module")
def fitted():
    ages = np.random.default_rng(0).normal(40, 10, 8000)
    with use_noise(SeededNoise(0)):
        return EmpiricalCDF(1.0, bounds=(0.0, 120.0)).fit(ages, users=np.arange(8000) // 4)


class TestReleased:
    def test_it_rises_from_zero_to_one_and_is_close(self, fitted):
        from scipy.stats import norm

        assert fitted.cdf_[0] == 0.0
        assert fitted.cdf_[-1] == 1.0
        assert np.all(np.diff(fitted.cdf_) >= 0)
        assert fitted.algorithm_.name == "hierarchy"
        truth = norm(40, 10).cdf(fitted.edges_)
        assert np.abs(fitted.cdf_ - truth)[1:-1].max() <= fitted.error_.bound + 0.03

    def test_quantiles_invert_it(self, fitted):
        for q in (0.1, 0.5, 0.9):
            assert fitted.cdf(fitted.quantile(q)) == pytest.approx(q, abs=1e-9)
        assert fitted.quantile([0.25, 0.75]).shape == (2,)
        with pytest.raises(ParameterError):
            fitted.quantile(1.5)

    def test_samples_scores_and_figure(self, fitted, tmp_path):
        drawn = fitted.sample(5000, random_state=1)
        assert np.median(drawn) == pytest.approx(40.0, abs=3.0)
        scores = fitted.score_samples([[40.0], [500.0]])
        assert scores[0] > -6
        assert scores[1] == -np.inf
        fitted.plot(tmp_path / "curve.png")
        assert (tmp_path / "curve.png").stat().st_size > 1000

    def test_a_crowd_means_the_same_as_arrays(self, fitted):
        ages = np.random.default_rng(0).normal(40, 10, 8000)
        crowd = UserData.from_arrays(ages[:, None], users=np.arange(8000) // 4)
        with use_noise(SeededNoise(0)):
            again = EmpiricalCDF(1.0, bounds=(0.0, 120.0)).fit(crowd)
        assert np.array_equal(again.cdf_, fitted.cdf_)


class TestParts:
    def test_quantiles_of_flat_pieces(self):
        edges, curve = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 0.5, 0.5, 1.0])
        assert quantile_of(0.5, edges, curve) == 1.0
        assert quantile_of(0.75, edges, curve) == 2.5
        assert quantile_of(0.0, edges, curve) == 0.0

    def test_density_integrates_to_one(self):
        shares, edges = np.array([0.2, 0.5, 0.3]), np.array([0.0, 1.0, 1.5, 4.0])
        grid = np.linspace(0, 4, 40_001)
        assert np.exp(log_density(shares, edges, grid)).mean() * 4 == pytest.approx(1, abs=1e-3)
        drawn = sample_cells(shares, edges, 9000, 0)
        assert np.mean((drawn >= 1.0) & (drawn < 1.5)) == pytest.approx(0.5, abs=0.03)

    def test_columns_are_vectors(self):
        assert as_edges_column([[1.0]]).shape == (1,)
        with pytest.raises(SchemaError):
            as_edges_column([[1.0, 2.0]])
