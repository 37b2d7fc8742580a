"""Local answers by queries alone: exact laws under every adversary, joint laws of two questions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from quorate import UserData
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.learners import ParityLearner
from quorate.learners.concepts import Conjunctions, Constant, Parities
from quorate.local.randomizers.known_laws import (
    BinaryResponse,
    FiniteRandomizer,
    GaussianResponse,
    KaryResponse,
    LaplaceResponse,
)
from quorate.papers.queries import Population
from quorate.papers.queries.algorithms import ConjunctionQueries, DecisionListQueries
from quorate.papers.queries.oracles import EmpiricalOracle, ExactOracle, MovedOracle
from quorate.papers.queries.simulate import RecordRandomizer, SimulatedOracle, Simulation
from quorate.papers.queries.statistical import OneRound, StatisticalQuery

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
    for place, move in enumerate(moves):
        oracle = MovedOracle(WORLD, moves=move)
        user = Simulation(oracle, calls=CALLS, beta=BETA).user()
        user.history = history
        accepted.append(user.acceptance(randomizer, place))
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


@pytest.mark.claim("K8: Claim 5.9")
class TestOneRound:
    def test_questions_that_do_not_depend_on_answers_take_one_round(self):
        """Fifty took 131 rounds, and an oracle of one round refused the second."""
        oracle = OneRound(ExactOracle(WORLD))
        answers = Simulation(oracle, calls=50, random_state=0).ask_all([RANDOMIZERS[0]] * 50)
        assert oracle.n_rounds == 1
        assert set(answers) <= set(RANDOMIZERS[0].answers)

    @pytest.mark.parametrize("randomizer", RANDOMIZERS)
    @pytest.mark.parametrize("sign", [-1.0, 0.0, 1.0])
    def test_the_law_is_that_of_questions_one_by_one(self, randomizer, sign):
        moves = [sign * (-1) ** place for place in range(len(randomizer.answers))]
        simulation = Simulation(MovedOracle(WORLD, moves=moves), calls=4000, random_state=3)
        told = simulation.ask_all([randomizer] * 4000)
        seen = np.array([told.count(answer) for answer in randomizer.answers]) / 4000
        assert distance(seen, true_law(randomizer)) < 0.03

    def test_different_values_are_different_queries(self):
        """Two randomizers that compare equal may look at different things."""
        high = RecordRandomizer(lambda X, y: X[:, 0] >= 3, BinaryResponse(3.0))
        low = RecordRandomizer(lambda X, y: X[:, 0] >= 0, BinaryResponse(3.0))
        simulation = Simulation(ExactOracle(WORLD), calls=2000, random_state=4)
        told = np.array(simulation.ask_all([high, low] * 1000)).reshape(-1, 2)
        assert told[:, 0].mean() < 0.25
        assert told[:, 1].mean() > 0.75

    def test_calls_are_counted(self):
        simulation = Simulation(ExactOracle(WORLD), calls=3)
        simulation.ask_all([RANDOMIZERS[0]] * 2)
        with pytest.raises(ParameterError, match="calls=3"):
            simulation.ask_all([RANDOMIZERS[0]] * 2)

    def test_proposals_are_capped(self, monkeypatch):
        monkeypatch.setattr(Simulation, "accepted", lambda *_, **__: 0.0)
        with pytest.raises(NumericalFailure, match="136 rounds"):
            Simulation(ExactOracle(WORLD), calls=1).ask_all([RANDOMIZERS[0]])


@pytest.mark.claim("K8: Theorem 5.14")
class TestThereAndBack:
    """Queries by local users by queries: the same rules, and no more rounds than before."""

    @pytest.mark.parametrize(
        ("algorithm", "rule"),
        [
            (ConjunctionQueries(4), Conjunctions(4).concept(1)),
            (DecisionListQueries(3, length=2, tolerance=0.05), Conjunctions(3).concept(1)),
        ],
        ids=["one round", "adaptive"],
    )
    def test_learners_survive_both_simulations(self, algorithm, rule):
        population = Population.uniform_cube(algorithm.n_features, rule)
        once = ExactOracle(population)
        algorithm.run(once)
        exact = ExactOracle(population)
        oracle = SimulatedOracle(
            exact, users=3000, queries=algorithm.max_queries, epsilon=1.5, random_state=0
        )
        assert population.error(algorithm.run(oracle)) == 0.0
        assert exact.n_rounds == oracle.n_rounds <= len(algorithm.rounds)

    def test_answers_keep_the_tolerance_of_randomized_response(self):
        mean = StatisticalQuery(function=record, tolerance=0.1, low=0.0, high=3.0)
        oracle = SimulatedOracle(ExactOracle(WORLD), users=20_000, queries=1, random_state=2)
        assert abs(oracle.ask(mean) - WORLD.mean(mean)) < 3 * 4 * 1.09 / math.sqrt(20_000)


@pytest.mark.claim("K8: Corollary 5.15")
class TestLocalIsLessThanPrivate:
    """Parities are learned with a curator, and no local learner sees them."""

    SIZE = 6

    def cube(self, rule):
        return Population.uniform_cube(self.SIZE, rule)

    def test_a_query_sees_few_parities(self):
        """Parseval: of 2^d parities at most 1/tau^2 move an answer by more than tau."""
        tau = 2.0 ** (-self.SIZE / 3)
        parities = [Parities(self.SIZE).concept(index) for index in range(2**self.SIZE)]
        cubes = [self.cube(parity) for parity in parities]
        coin = self.cube(Constant(0))
        rng = np.random.default_rng(7)
        for _ in range(40):
            table = rng.choice([-1.0, 1.0], size=(2, 2**self.SIZE))

            def value(X, y, table=table):
                row = (X @ (1 << np.arange(self.SIZE))).astype(int)
                return table[y.astype(int), row]

            query = StatisticalQuery(function=value, tolerance=tau, low=-1.0, high=1.0)
            # What an answer is if labels are fair coins: it says nothing about the parity.
            both = [value(coin.X, np.full(len(coin.X), label)).mean() for label in (0.0, 1.0)]
            blind = sum(both) / 2
            seen = sum(abs(cube.mean(query) - blind) > tau for cube in cubes)
            assert seen <= tau**-2

    def test_a_curator_learns_them_privately(self):
        target = Parities(self.SIZE).concept(0b101101)
        rng = np.random.default_rng(8)
        X = rng.integers(0, 2, size=(400, self.SIZE)).astype(float)
        learner = ParityLearner(epsilon=2.0, random_state=0)
        learner.fit(X, target.predict(X), users=np.arange(400))
        assert self.cube(target).error(learner.concept_) == 0.0


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
