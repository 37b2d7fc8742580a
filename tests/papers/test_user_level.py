"""Paper U, written from its text: widths and radii by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.optimize import brentq
from scipy.stats import norm

from quorate import UserData
from quorate.accounting.compose import price
from quorate.means import UserQueries
from quorate.mechanisms.means.private_range import PrivateRange
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean
from quorate.rotation import Rotation


class TestAlgorithm6:
    """U1: bins of width 2 tau; the users' interval of width 2 tau meets at most two of them."""

    def worst(self, constants):
        """Return how far a user may lie outside of the interval of a bin of median cost."""
        mechanism = PrivateRange(
            lower=-8.0, upper=8.0, radius=1.0, epsilon=1.0, constants=constants
        )
        far = 0.0
        for start in np.linspace(-5.0, 3.0, 97):
            for offsets in itertools.combinations_with_replacement((0.0, 0.7, 1.3, 2.0), 3):
                values = start + np.array(offsets)
                bins = mechanism.bin_of(values)
                median = int(np.sort(bins)[1])  # no bin has a smaller max(left, right)
                middle = -8.0 + 2.0 * (median + 0.5)
                far = max(far, np.abs(values - middle).max() - mechanism.half_width)
        return far

    def test_published_intervals_of_two_tau_may_cut_users(self):
        mechanism = PrivateRange(
            lower=-8.0, upper=8.0, radius=1.0, epsilon=1.0, constants="published"
        )
        assert mechanism.half_width == pytest.approx(2.0)
        assert self.worst("published") == pytest.approx(1.0, abs=0.1)

    def test_calibrated_intervals_of_three_tau_hold_every_concentrated_user(self):
        assert self.worst("calibrated") <= 1e-12


@pytest.mark.parametrize("d", [4, 8])
def test_a_rotated_coordinate_stays_within_the_root_of_two_by_all_signs(d):
    """Hoeffding over all 2^d signs: P[|coordinate| > t] <= 2 exp(-t^2 d / (2 tau^2))."""
    tau, gamma, n = 3.0, 0.2, 5
    known = {"bound": 100.0, "radius": tau, "epsilon": 1.0, "delta": 1e-6, "gamma": gamma}
    mechanism = RotatedWinsorizedMean(dimension=d, n_users=n, **known)
    printed = tau * math.sqrt(2 * math.log(2 * d * n / gamma)) / math.sqrt(d)
    assert mechanism.coordinate_radius == pytest.approx(printed)
    vectors = np.vstack([np.eye(d)[0], np.full(d, 1 / math.sqrt(d)), np.eye(d)[1], -np.eye(d)[0],
                         (np.eye(d)[0] + np.eye(d)[1]) / math.sqrt(2)]) * tau  # fmt: skip
    matrix = hadamard(d) / math.sqrt(d)
    missed = 0
    for signs in itertools.product((-1.0, 1.0), repeat=d):
        turned = (vectors * signs) @ matrix
        code = Rotation(np.array(signs), d).apply(vectors)
        np.testing.assert_allclose(code, turned, atol=1e-12)
        missed += np.abs(turned).max() > printed
    assert missed / 2**d <= gamma


@pytest.mark.parametrize("queries", [1, 5])
def test_answers_share_a_gaussian_budget_by_its_square(queries):
    """K answers, each with mu / sqrt(K): delta = Phi(-e/mu + mu/2) - e^e Phi(-e/mu - mu/2)."""
    epsilon, delta = 2.0, 1e-6
    values = np.random.default_rng(0).normal(size=(400, 2))
    people = UserData.from_arrays(values, users=np.repeat(np.arange(200), 2))
    desk = UserQueries(
        epsilon=epsilon, delta=delta, bounds=5.0, dimension=2, queries=queries, algorithm="clip"
    ).fit(people)

    def mu_of(cost):
        def slip(mu):
            return norm.cdf(-cost / mu + mu / 2) - math.exp(cost) * norm.cdf(-cost / mu - mu / 2)

        return brentq(lambda mu: slip(mu) - delta, 1e-3, 10.0)

    whole = mu_of(epsilon)
    for asked in range(1, queries + 1):
        desk.ask(lambda records: records.mean(axis=0))
        [event] = desk.guarantee_.events
        found = mu_of(price(event, delta=delta))
        assert found <= whole * (1 + 1e-9)
        assert found == pytest.approx(whole * math.sqrt(asked / queries), rel=0.02)
