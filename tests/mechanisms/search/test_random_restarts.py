"""Random restarts (U7 as published): the corrected constants, and an exact audit of the rule."""

import math
from fractions import Fraction

import numpy as np
import pytest

from drawing import Drawing
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.exceptions import SealedError
from quorate.mechanisms.search.random_restarts import RandomRestarts

KNOWN = {"lower": 0.0, "upper": 1.0, "epsilon": 3.0, "n_users": 300, "records": 400}


@pytest.mark.claim("U7: Algorithm 5")
class TestUtility:
    def test_a_clear_winner_wins(self):
        table = np.tile([0.9, 0.2, 0.8], (300, 1))
        index, value = Drawing(RandomRestarts(**KNOWN), SeededNoise(0)).release(table)
        assert index == 1
        assert abs(value - 0.2) < 0.1

    def test_the_corrected_stopping_visits_every_candidate(self):
        # Stopping with alpha/(5K) misses a given candidate with probability below alpha/5.
        restarts = RandomRestarts(**KNOWN)
        assert restarts.expected_visits(100) == pytest.approx(5000)

    def test_the_radius_is_that_of_theorem_7_and_never_wider_than_the_range(self):
        half = 0.5 * math.sqrt(2 * (math.log(10 * 300) + math.log(100)) / 400)
        assert RandomRestarts(**KNOWN).radius(10) == pytest.approx(half)
        assert RandomRestarts(**{**KNOWN, "records": 1}).radius(10) == 0.5

    @pytest.mark.claim("U7: Lemma 1")
    def test_all_users_lie_inside_the_radius_as_often_as_the_proof_needs(self):
        # Coins are the losses that spread most. Allowed are alpha/5 = 2 % of the runs with anybody
        # outside; more than 12 of 200 would have a probability below 1e-3 if that were true.
        candidates, n, m = 20, 200, 100
        restarts = RandomRestarts(lower=0.0, upper=1.0, epsilon=1.0, n_users=n, records=m)
        rng = np.random.default_rng(0)
        farthest = np.array(
            [np.abs(rng.binomial(m, 0.5, (n, candidates)) / m - 0.5).max() for _ in range(200)]
        )
        assert np.count_nonzero(farthest > restarts.radius(candidates)) <= 12
        # As printed, without the root of 2, somebody is outside in most runs.
        assert np.mean(farthest > restarts.radius(candidates) / math.sqrt(2)) > 0.5


@pytest.mark.claim("U7: Theorem 7")
class TestPrivacy:
    def test_one_visit_costs_a_third_to_the_last_digit(self):
        restarts = RandomRestarts(**{**KNOWN, "epsilon": Fraction(1, 7)})
        assert sum(restarts.mean(4).epsilons) * 3 == Fraction(1, 7)

    def test_the_best_of_a_geometric_number_of_visits_costs_three_times_one(self):
        # The law of the best of T visits, T geometric: its generating function is exact, so the
        # claim of 3 x epsilon can be checked for any two laws of one visit that are close.
        stop, epsilon = 0.05, 0.4
        rng = np.random.default_rng(0)
        worst = 0.0
        for _ in range(200):
            p = rng.dirichlet(np.ones(6))
            tilt = np.exp(rng.uniform(-epsilon / 2, epsilon / 2, 6))
            q = p * tilt / np.sum(p * tilt)
            if np.abs(np.log(p / q)).max() > epsilon:
                continue
            first, second = best_of_geometric(p, stop), best_of_geometric(q, stop)
            worst = max(worst, np.abs(np.log(first / second)).max())
        assert epsilon < worst <= 3 * epsilon

    def test_what_is_found_does_not_decide_how_many_visits_there_are(self):
        restarts = RandomRestarts(**KNOWN)
        visits = math.ceil(restarts.expected_visits(3))

        class Scripted(SeededNoise):
            """Stops after the ninth visit."""

            coins = 0

            def _uniform_below(self, upper):
                if upper != visits:
                    return super()._uniform_below(upper)
                self.coins += 1
                return int(self.coins < 9)

        for table in (np.zeros((300, 3)), np.tile([0.9, 0.2, 0.8], (300, 1))):
            noise = Scripted(0)
            Drawing(restarts, noise).release(table)
            assert noise.coins == 9

    def test_each_visit_gets_a_third(self):
        restarts = RandomRestarts(**KNOWN)
        assert restarts.guarantee.epsilon == 3.0
        assert restarts.guarantee.relation is Relation.REPLACE


def best_of_geometric(law, stop):
    """Return the law of the smallest of T draws, P(T = k) = stop (1 - stop)^(k - 1)."""
    above = 1 - np.cumsum(law)  # P(one draw is worse than outcome j)
    above = np.r_[1.0, np.clip(above, 0, 1)]
    at_least = stop * above / (1 - (1 - stop) * above)
    return at_least[:-1] - at_least[1:]


def test_tables_in_the_open_are_refused():
    with pytest.raises(SealedError, match="Make a query to People"):
        RandomRestarts(**KNOWN).release(np.zeros((2, 2)))
