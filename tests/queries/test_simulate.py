"""Local answers by queries alone: exact laws under every adversary, joint laws of two questions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from quorate import UserData
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.mechanisms.local.randomizers import (
    BinaryResponse,
    FiniteRandomizer,
    GaussianResponse,
    KaryResponse,
    LaplaceResponse,
)
from quorate.queries import Population
from quorate.queries.oracles import EmpiricalOracle, ExactOracle, MovedOracle
from quorate.queries.simulate import RecordRandomizer, Simulation

X = np.arange(4.0)[:, np.newaxis]
WORLD = Population(X, np.zeros(4), np.array([0.4, 0.3, 0.2, 0.1]))
CALLS, BETA = 100, 0.1


def record(X, y):
    return X[:, 0]


TABLE = FiniteRandomizer(
    {
        0: {"a": Fraction(1, 2), "b": Fraction(1, 4), "c": Fraction(1, 4)},
        1: {"a": Fraction(1, 4), "b": Fraction(1, 2), "c": Fraction(1, 4)},
        2: {"a": Fraction(1, 4), "b": Fraction(1, 4), "c": Fraction(1, 2)},
        3: {"a": Fraction(1, 3), "b": Fraction(1, 3), "c": Fraction(1, 3)},
    },
    epsilon=0.7,
)
RANDOMIZERS = [
    RecordRandomizer(record, KaryResponse(1.0, categories=3)),
    RecordRandomizer(record, TABLE),
    RecordRandomizer(record, BinaryResponse(2.0)),
]


def true_law(randomizer, history=()):
    """Return the law of the next answer of a user who gave the answers of the history."""
    weights = WORLD.probabilities.copy()
    for each, answer in history:
        weights = weights * each.chances(answer, WORLD.X, WORLD.y)
    weights /= weights.sum()
    return np.array([weights @ randomizer.chances(w, WORLD.X, WORLD.y) for w in randomizer.answers])


def simulated_law(randomizer, moves, history=()):
    """Return law and mean number of rounds of one call, if answer w is always moved alike."""
    accepted = []
    for answer, move in zip(randomizer.answers, moves, strict=True):
        oracle = MovedOracle(WORLD, moves=move)
        user = Simulation(oracle, calls=CALLS, beta=BETA).user()
        user.history = history
        accepted.append(user.acceptance(randomizer, answer))
    assert max(accepted) <= 1.0
    weights = randomizer.proposals() * accepted
    return weights / weights.sum(), 1 / weights.sum()


def distance(p, q):
    return np.abs(np.asarray(p) - np.asarray(q)).sum() / 2


@pytest.mark.claim("K8: Lemma 5.8", "K8: Claim 5.9")
class TestOneCall:
    @pytest.mark.parametrize("randomizer", RANDOMIZERS)
    def test_every_adversary_stays_within_its_share_of_beta(self, randomizer):
        truth = true_law(randomizer)
        worst, most = 0.0, 0.0
        for signs in itertools.product((-1.0, 1.0), repeat=len(randomizer.answers)):
            law, rounds = simulated_law(randomizer, [[sign] for sign in signs])
            worst, most = max(worst, distance(law, truth)), max(most, rounds)
        assert 0 < worst <= BETA / CALLS
        phi = BETA / (3 * CALLS)
        assert most <= (1 + phi) / (1 - phi) * math.exp(randomizer.epsilon) + 1e-9

    def test_exact_answers_give_the_exact_law(self):
        law, rounds = simulated_law(RANDOMIZERS[0], [[0.0]] * 3)
        assert distance(law, true_law(RANDOMIZERS[0])) < 1e-12
        assert rounds == pytest.approx((1 + BETA / (3 * CALLS)) * math.e)

    def test_a_tolerance_ten_times_as_large_is_caught(self):
        """The broken twin: queries are answered with ten times the tolerance."""
        truth = true_law(RANDOMIZERS[0])
        slack = Simulation.slack
        try:
            Simulation.slack = lambda self, first: 20 * slack(self, first=first)
            worst = max(
                distance(simulated_law(RANDOMIZERS[0], [[s] for s in signs])[0], truth)
                for signs in itertools.product((-1.0, 1.0), repeat=3)
            )
        finally:
            Simulation.slack = slack
        assert worst > BETA / CALLS


@pytest.mark.claim("K8: Claim 5.10")
class TestSeveralQuestions:
    def test_the_joint_law_of_two_answers_under_every_adversary(self):
        """Two questions to one user: enumerate answers and the signs of all queries."""
        first, second = (
            RANDOMIZERS[2],
            RecordRandomizer(lambda X, y: X[:, 0] >= 2, BinaryResponse(1.0)),
        )
        truth = {
            (a, b): true_law(first)[a] * true_law(second, ((first, a),))[b]
            for a in (0, 1)
            for b in (0, 1)
        }
        worst = 0.0
        for signs in itertools.product((-1.0, 1.0), repeat=2):
            start, _ = simulated_law(first, [[sign] for sign in signs])
            for more in itertools.product((-1.0, 1.0), repeat=4):
                joint = {}
                for a in (0, 1):
                    law, _ = simulated_law(second, [more[:2], more[2:]], ((first, a),))
                    joint |= {(a, b): start[a] * law[b] for b in (0, 1)}
                worst = max(worst, distance(list(joint.values()), [truth[k] for k in joint]))
        assert 0 < worst <= 2 * BETA / CALLS

    def test_answers_of_one_user_hang_together(self):
        """The same bit twice: a simulated user is one person, two users are two."""
        simulation = Simulation(ExactOracle(WORLD), calls=4000, random_state=1)
        bit = RecordRandomizer(lambda X, y: X[:, 0] >= 1, BinaryResponse(1.5))
        pairs = []
        for _ in range(300):
            user = simulation.user()
            pairs.append((user.ask(bit), user.ask(bit)))
        same = np.mean([a == b for a, b in pairs])
        truth = sum(
            p * (c**2 + (1 - c) ** 2)
            for p, c in zip(WORLD.probabilities, bit.chances(1, WORLD.X, WORLD.y), strict=True)
        )
        assert abs(same - truth) < 5 * math.sqrt(truth * (1 - truth) / 300)


class TestRefusals:
    def test_a_sample_is_refused(self):
        people = UserData.from_arrays([[1.0]], [0], users=["a"])
        with pytest.raises(ParameterError, match="knows the distribution"):
            Simulation(EmpiricalOracle(people), calls=100)

    def test_calls_are_counted(self):
        simulation = Simulation(ExactOracle(WORLD), calls=1, random_state=0)
        simulation.user().ask(RANDOMIZERS[0])
        with pytest.raises(ParameterError, match="calls=1"):
            simulation.user().ask(RANDOMIZERS[0])

    @pytest.mark.parametrize("randomizer", [LaplaceResponse(1.0), GaussianResponse(1.0, 1e-3)])
    def test_endless_answers_are_refused(self, randomizer):
        with pytest.raises(ParameterError, match="finitely many"):
            RecordRandomizer(record, randomizer)

    def test_the_number_of_rounds_is_capped(self):
        simulation = Simulation(ExactOracle(WORLD), calls=10)
        user = simulation.user()
        user.acceptance = lambda randomizer, answer: 0.0
        with pytest.raises(NumericalFailure, match="136 rounds"):
            user.ask(RANDOMIZERS[0])
