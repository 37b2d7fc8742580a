"""Paper U, written from its text: widths and radii by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.optimize import brentq
from scipy.stats import norm

from quorate import UserData
from quorate.core.account.compose import price
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.sealed import SealedRows
from quorate.means import UserQueries
from quorate.mechanisms.means.private_range import PrivateRange
from quorate.mechanisms.means.rotation import Rotation
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean, WinsorizedMean
from quorate.mechanisms.search.random_restarts import RandomRestarts
from quorate.models.optimization.phased import PhasedMinimizer
from sealing import release_by_hand


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


@pytest.mark.parametrize(("n", "epsilon", "tau"), [(400, 1.0, 1.0), (30, 0.2, 0.5)])
def test_algorithm_1_gives_half_to_the_range_and_adds_laplace_noise(n, epsilon, tau):
    """U2: bins of 2 tau with epsilon / 2, then Lap(8 tau / (epsilon n)), the width of 4 tau."""
    mean = WinsorizedMean(
        lower=-16.0, upper=16.0, radius=tau, epsilon=epsilon, n_users=n, constants="published"
    )
    assert [float(share) for share in mean.epsilons] == pytest.approx([epsilon / 2] * 2)
    assert mean.noise_scale == pytest.approx(8 * tau / (epsilon * n))
    assert mean.range.half_width == pytest.approx(2 * tau)


class TestAlgorithm4:
    """U6: n_t = n / 2^t users, pulled by 4^t lambda, in the phases of the proof of Theorem 5."""

    KNOWN = {  # noqa: RUF012
        "epsilon": 0.8,
        "delta": 1e-6,
        "gradient_bound": 6.0,
        "gradient_spread": 6.0,
        "smoothness": 3.0,
        "radius": 2.0,
        "records": 4,
    }

    def pull(self, n, d, size):
        g, sigma, m, epsilon = 6.0, 6.0, 4, 0.8
        smaller = min(g, sigma * math.sqrt(d))
        return math.sqrt(g * smaller / (n * m) + (sigma * d / (n * epsilon)) ** 2 / m) / size

    def test_published(self):
        n, d = 4096, 9
        phases = PhasedMinimizer(**self.KNOWN, constants="published").schedule(
            n_users=n, dimension=d
        )
        # As printed, more than log2 n phases leave one without anybody; not so here.
        count = math.ceil(math.log2(6.0 * n * 2.0 * 0.8 / (6.0 * d)))
        assert [phase.n_users for phase in phases] == [n // 2**t for t in range(1, count + 1)]
        pulls = [4.0**t * self.pull(n, d, 4.0) for t in range(1, count + 1)]  # the diameter
        assert [phase.strength for phase in phases] == pytest.approx(pulls)

    @pytest.mark.parametrize(("n", "count"), [(150, 1), (450, 3), (100_000, 5)])
    def test_calibrated(self, n, count):
        """Phases until fewer than fifty users are left, at most so many; R is the radius."""
        plan = PhasedMinimizer(**self.KNOWN, phases=5).schedule(n_users=n, dimension=9)
        assert [phase.n_users for phase in plan] == [n // 2**t for t in range(1, count + 1)]
        assert plan[-1].n_users >= 50
        pulls = [4.0**t * self.pull(n, 9, 2.0) for t in range(1, count + 1)]
        assert [phase.strength for phase in plan] == pytest.approx(pulls)


class TestAlgorithm5:
    """U7: uniform candidates with epsilon / 3 each, stop with alpha / (5 K), keep the best."""

    def test_the_law_of_the_choice(self, monkeypatch):
        """With exact losses: all N visits at candidates no better than j, N geometric."""
        losses, alpha, epsilon = np.array([0.2, 0.4, 0.6]), 0.9, 3.0
        asked = []

        def release(mean, values, *, account):
            asked.append(float(mean.epsilon))
            return losses[int(values[0])]

        monkeypatch.setattr(WinsorizedMean, "release", release)
        monkeypatch.setattr(SealedRows, "column", lambda rows, place: [place], raising=False)
        restarts = RandomRestarts(
            lower=0.0, upper=1.0, epsilon=epsilon, n_users=4, records=9, failure=alpha
        )
        table, draws = np.tile(losses, (4, 1)), 1000
        with use_noise(SeededNoise(0)):
            chosen = np.array([release_by_hand(restarts, table)[0] for _ in range(draws)])
        assert set(asked) == {epsilon / 3}
        # The code stops once in a whole number of visits.
        stop = 1 / math.ceil(5 * 3 / alpha)
        assert stop == pytest.approx(alpha / (5 * 3), rel=0.03)

        def none_below(j):
            share = (3 - j) / 3
            return stop * share / (1 - (1 - stop) * share)

        expected = [none_below(j) - none_below(j + 1) for j in range(3)]
        found = np.bincount(chosen, minlength=3) / draws
        assert np.abs(found - expected).max() < 4 * 0.5 / math.sqrt(draws)
        assert len(asked) / draws == pytest.approx(1 / stop, rel=0.15)
