"""Theorem 4 of Levy et al. in the planner: its noise, its bounds, and the best number of steps."""

import math

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean
from quorate.planning.first_order import FirstOrder, first_order_error

KNOWN = {"records": 20, "epsilon": 1.0, "delta": 1e-6}


@pytest.mark.claim("U5: Theorem 4")
class TestNoise:
    @pytest.mark.parametrize("steps", [1, 16, 256])
    @pytest.mark.parametrize("d", [3, 8])
    def test_it_is_that_of_the_mechanism_at_published_constants(self, d, steps):
        loss, users = FirstOrder(dimension=d, failure=0.06), 10**7
        radius = loss.concentration(users=users, records=20)
        answers = RotatedWinsorizedMean(
            bound=math.sqrt(d),
            radius=radius,
            epsilon=1.0,
            delta=1e-6,
            n_users=users,
            dimension=d,
            gamma=0.02,
            queries=steps,
            constants="published",
        )
        assert answers.users_needed <= users
        # D coordinates with Laplace noise, whose variance is twice the squared scale.
        expected = 2 * answers.padded * answers.coordinate.noise_scale**2
        assert loss.squared_noise(users=users, steps=steps, **KNOWN) == pytest.approx(expected)

    def test_it_is_the_variance_that_is_printed(self):
        """8 c0 d T tau^2 log(3Tdn/gamma) log(2/delta) log(2T/delta) / (n eps)^2, c0 = 102400."""
        d, n, T, gamma = 8, 10**8, 64, 0.06
        loss = FirstOrder(dimension=d, failure=gamma)
        tau = loss.concentration(users=n, records=20)
        printed = 8 * 102_400 * d * T * tau**2 * math.log(3 * T * d * n / gamma)
        printed *= math.log(2e6) * math.log(2 * T * 1e6) / n**2
        assert loss.squared_noise(users=n, steps=T, **KNOWN) == pytest.approx(printed)

    def test_too_few_users_have_no_bound(self):
        loss = FirstOrder(dimension=8)
        assert loss.squared_noise(users=100, steps=4, **KNOWN) == math.inf
        assert first_order_error(loss, "convex", users=100, **KNOWN) == math.inf

    def test_gradients_of_people_who_are_alike_lie_within_the_radius(self):
        loss, rng = FirstOrder(dimension=3), np.random.default_rng(0)
        means = rng.normal(size=(500, 20, 3)).mean(axis=1)
        reach = np.linalg.norm(means - means.mean(axis=0), axis=1).max()
        assert reach <= loss.concentration(users=500, records=20)


@pytest.mark.claim("U5: Theorem 4", "U5: Proposition 3")
class TestBounds:
    LOSS = FirstOrder(dimension=4, radius=3.0, curvature=2.0, strength=0.5)

    def test_the_three_bounds_are_those_of_proposition_3(self):
        told = {"steps": 50, "squared_noise": 0.04}
        assert self.LOSS.excess("convex", **told) == pytest.approx(
            2.0 * 9.0 / 100.0 + 3.0 * 0.2 / math.sqrt(50.0)
        )
        assert self.LOSS.excess("strongly convex", **told) == pytest.approx(
            2.0 * 3.0 * math.exp(-0.5 * 50 / 2.0) + 0.04 / (0.5 * 50)
        )
        assert self.LOSS.excess("non-convex", **told) == pytest.approx(
            2 * 36.0 / 50 + 2 * 0.2 * 2.0 * 3.0 * math.sqrt(2 / 50)
        )
        assert FirstOrder(dimension=4).excess("strongly convex", **told) == math.inf

    @pytest.mark.parametrize("kind", ["convex", "strongly convex", "non-convex"])
    def test_steps_are_chosen_well(self, kind):
        users = 10**8
        best = min(
            self.LOSS.excess(
                kind, steps=T, squared_noise=self.LOSS.squared_noise(users=users, steps=T, **KNOWN)
            )
            for T in np.unique(np.geomspace(1, 10**6, 300).astype(int)).tolist()
        )
        assert best * 0.99 <= first_order_error(self.LOSS, kind, users=users, **KNOWN) <= 1.6 * best

    @pytest.mark.parametrize(("kind", "power"), [("convex", 1), ("strongly convex", 2)])
    def test_the_error_falls_as_the_theorem_says(self, kind, power):
        """R G sqrt(d) / (n sqrt(m) eps), or its square over mu, up to logarithms."""
        few, many = (first_order_error(self.LOSS, kind, users=n, **KNOWN) for n in (10**8, 10**10))
        assert few / many == pytest.approx(100**power, rel=0.6)

    def test_descent_on_a_quadratic_stays_below_the_bound(self):
        loss, rng, T, nu = FirstOrder(dimension=2), np.random.default_rng(0), 64, 0.3
        step, excesses = 1 / (1 + nu * math.sqrt(T) / 2.0), []
        for _ in range(200):
            theta, total = np.array([0.8, -0.6]), np.zeros(2)
            for _ in range(T):
                theta = theta - step * (theta + rng.normal(0, nu / math.sqrt(2), 2))
                theta /= max(1.0, np.linalg.norm(theta))
                total += theta / T
            excesses.append(0.5 * total @ total)
        assert np.mean(excesses) <= loss.excess("convex", steps=T, squared_noise=nu**2)

    def test_wrong_numbers_are_refused(self):
        with pytest.raises(ParameterError):
            FirstOrder(dimension=0)
        with pytest.raises(ParameterError):
            self.LOSS.excess("concave", steps=3, squared_noise=1.0)
