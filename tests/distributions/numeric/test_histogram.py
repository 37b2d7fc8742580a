"""Histograms of people's numbers on public and on found edges."""

import numpy as np
import pytest

from quorate.auditing import replay
from quorate.core.noise import SeededNoise, use_noise
from quorate.distributions import Histogram
from quorate.exceptions import ParameterError, UnboundedContributionError

PEOPLE = np.arange(9000) // 3


@pytest.fixture(scope="module")
def wages():
    return np.random.default_rng(0).lognormal(3.0, 0.5, size=9000)


class TestPublicEdges:
    def test_shares_densities_and_the_function_agree(self, wages, tmp_path):
        with use_noise(SeededNoise(0)):
            bars = Histogram(1.0, edges=[0, 10, 20, 40, 100]).fit(wages, users=PEOPLE)
        assert bars.pmf_ == pytest.approx(bars.density_ * np.diff(bars.edges_))
        assert bars.cdf(40.0) == pytest.approx(bars.pmf_[:3].sum())
        assert bars.cdf(bars.quantile(0.3)) == pytest.approx(0.3)
        counts = np.histogram(wages, [0, 10, 20, 40, 1e9])[0] / 9000
        assert 0.5 * np.abs(bars.pmf_ - counts).sum() <= bars.error_.bound < 0.02
        assert np.median(bars.sample(4000, random_state=0)) == pytest.approx(20, abs=3)
        assert np.exp(bars.score_samples([15.0])) == pytest.approx(bars.density_[1])
        bars.plot(tmp_path / "bars.png")
        assert (tmp_path / "bars.png").stat().st_size > 1000


class TestFoundEdges:
    @pytest.mark.parametrize("reach", [200.0, 1e7])
    def test_bins_hold_about_the_same_however_loose_the_range(self, wages, reach):
        held = 0
        for seed in range(6):
            with use_noise(SeededNoise(seed)):
                bars = Histogram(1.0, edges="quantiles", bounds=(0.0, reach), bins=5)
                bars.fit(wages, users=PEOPLE)
            counts = np.histogram(wages, [*bars.edges_[:-1], 1e9])[0] / 9000
            assert np.abs(counts - 0.2).max() < 0.08
            held += 0.5 * np.abs(bars.pmf_ - counts).sum() <= bars.error_.bound
        assert held >= 5

    def test_neighbours_look_the_same(self):
        others = np.linspace(0, 50, 240)

        def run(mine):
            users = [*np.arange(240) // 2, *[999] * len(mine)]
            bars = Histogram(1.0, edges="quantiles", bounds=(-10.0, 1e4), bins=4)
            bars.fit(np.concatenate([others, mine]), users=users)
            return bars.edges_, bars.pmf_, bars.error_, bars.guarantee_

        for mine in ([1e308], [np.nan], [3.0] * 400, [-np.inf, np.inf, 7.0]):
            report = replay(run, [5.0], mine)
            assert report.same, str(report)

    def test_edges_from_the_data_are_seen(self):
        others = np.linspace(0, 50, 240)

        def run(mine):
            values = np.concatenate([others, mine])
            users = [*np.arange(240) // 2, *[999] * len(mine)]
            bars = Histogram(1.0, edges=np.quantile(values, [0, 0.5, 1]))
            return bars.fit(values, users=users).pmf_, bars.edges_

        assert not replay(run, [5.0], [400.0]).same


def test_wrong_edges_are_refused():
    for wrong in (
        {"edges": "medians", "bounds": (0, 1)},
        {"edges": "quantiles", "bounds": (0, 1), "bins": 1},
        {"bounds": (0, 1), "bins": 0},
    ):
        with pytest.raises(ParameterError):
            Histogram(1.0, **wrong).fit([1.0], users=[1])
    with pytest.raises(UnboundedContributionError):
        Histogram(1.0, edges="quantiles").fit([1.0], users=[1])
