"""Paper K, written from its text: laws by enumeration, sizes by its formulas."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, laplace

from printed_laws import exponential, permute_and_flip
from quorate import UserData
from quorate.auditing import enumerate_runs
from quorate.exceptions import QueriesExhaustedError
from quorate.learners import ConceptLearner
from quorate.learners.concepts import FiniteTable, Intervals, PointFunctions, Thresholds
from quorate.learners.parity_plan import run_success
from quorate.local.oracle import LocalOracle, Report
from quorate.local.randomizers.known_laws import BinaryResponse, KaryResponse, LaplaceResponse
from quorate.mechanisms.linear_equations import pack_bits
from quorate.mechanisms.parity import AmplifiedParity, SolveParity
from quorate.papers.queries import Population
from quorate.papers.queries.oracles import ExactOracle, MovedOracle, RandomlyMovedOracle
from quorate.papers.queries.oracles.local import published_users, users_for_tolerance
from quorate.papers.queries.simulate import RecordRandomizer, Simulation
from quorate.papers.queries.statistical import StatisticalQuery

RULES = np.array([[0, 0], [0, 1], [1, 1]])
RECORDS = [(x, y) for x in (0, 1) for y in (0, 1)]


class TestTheorem34:
    """K1: one record a user, choose with weights by the number of mistakes."""

    EPSILON = 1.7

    def law(self, held, **options):
        x, y = np.array(held).T
        data = UserData.from_arrays(x[:, None].astype(float), y, users=np.arange(len(held)))
        learner = ConceptLearner(
            FiniteTable(RULES), self.EPSILON, algorithm="mistakes", records=1, **options
        )
        law = enumerate_runs(lambda noise: learner.fit(data).index_)
        return [law.get(h, 0.0) for h in range(len(RULES))]

    def mistakes(self, held):
        return [sum(int(rule[x] != y) for x, y in held) for rule in RULES]

    @pytest.mark.parametrize("held", list(itertools.product(RECORDS, repeat=2))[::3])
    def test_weights_are_exp_of_minus_epsilon_mistakes_over_two(self, held):
        expected = exponential(self.mistakes(held), rate=self.EPSILON / 2)
        np.testing.assert_allclose(self.law(held, constants="published"), expected, rtol=1e-9)

    @pytest.mark.parametrize("held", list(itertools.product(RECORDS, repeat=2))[::3])
    def test_calibrated_is_permute_and_flip_at_the_same_rate(self, held):
        losses = self.mistakes(held)
        np.testing.assert_allclose(
            self.law(held), permute_and_flip(losses, rate=self.EPSILON / 2), rtol=1e-9
        )


class TestParity:
    """K3: keep rows, solve, draw a solution; everything by brute force over {0, 1}^d."""

    D = 2

    def law(self, world, *, keep, stop):
        """Return the law of the answer; the last place is "nothing"."""
        points = list(itertools.product((0, 1), repeat=self.D))
        found = np.zeros(len(points) + 1)
        found[-1] = stop
        for kept in itertools.product((0, 1), repeat=len(world)):
            chance = math.prod(keep if k else 1 - keep for k in kept)
            fits = [
                index
                for index, r in enumerate(points)
                if all(
                    sum(a * b for a, b in zip(r, x, strict=True)) % 2 == y
                    for k, (x, y) in zip(kept, world, strict=True)
                    if k
                )
            ]
            if fits:
                found[fits] += (1 - stop) * chance / len(fits)
            else:
                found[-1] += (1 - stop) * chance
        return found

    def compare(self, mechanism, *, keep, stop):
        rows = [(x, y) for x in itertools.product((0, 1), repeat=self.D) for y in (0, 1)]
        for world in itertools.product(rows, repeat=2):
            bits = np.array([x for x, _ in world], dtype=bool)
            labels = np.array([y for _, y in world], dtype=bool)
            told = mechanism.probabilities(pack_bits(bits), labels)
            expected = self.law(world, keep=keep, stop=stop)
            # The points of the code are numbers of which bit j is coordinate j.
            order = [
                sum(bit << j for j, bit in enumerate(r))
                for r in itertools.product((0, 1), repeat=self.D)
            ]
            np.testing.assert_allclose(told[[*order, -1]], expected, atol=1e-12)

    @pytest.mark.parametrize("epsilon", [0.1, 0.5])
    def test_published_coins_are_a_half_and_a_quarter_of_epsilon(self, epsilon):
        mechanism = SolveParity(features=self.D, epsilon=epsilon, published=True)
        self.compare(mechanism, keep=epsilon / 4, stop=0.5)

    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    def test_calibrated_coins_spend_all_of_epsilon(self, epsilon):
        mechanism = SolveParity(features=self.D, epsilon=epsilon)
        keep, stop = math.tanh(epsilon / 2), 1 / (math.exp(epsilon) + 2)
        assert (1 + keep) / (1 - keep) == pytest.approx(math.exp(epsilon))
        assert (1 - stop) * keep / stop == pytest.approx(math.expm1(epsilon))
        self.compare(mechanism, keep=keep, stop=stop)


@pytest.mark.parametrize(("features", "rows"), [(1, 4), (4, 12), (6, 18)])
def test_a_run_succeeds_with_the_chance_of_full_rank(features, rows):
    """Of k uniform rows over GF(2) the rank is d with chance prod (1 - 2^(i-k)), i < d."""
    epsilon = 1.0
    keep, stop = math.tanh(epsilon / 2), 1 / (math.exp(epsilon) + 2)
    chance = sum(
        binom.pmf(k, rows, keep) * math.prod(1 - 2.0 ** (i - k) for i in range(features))
        for k in range(features, rows + 1)
    )
    found = run_success(SolveParity(features=features, epsilon=epsilon), rows)
    assert found == pytest.approx((1 - stop) * chance, rel=1e-9)


class TestAmplifiedParity:
    """K4: two runs on one row each, then a private choice by the mistakes on the rest."""

    PARTS = np.array([0, 1, 2, 2, 2])  # two parts of one row, three rows of test

    @pytest.mark.parametrize("labels", list(itertools.product((0, 1), repeat=5))[::5])
    def test_one_choice_among_the_answers_in_place_of_noisy_errors(self, labels):
        epsilon, rows = 1.5, [(0, 1), (1, 1), (1, 0), (1, 1), (0, 1)]
        keep, stop = math.tanh(epsilon / 2), 1 / (math.exp(epsilon) + 2)
        points = list(itertools.product((0, 1), repeat=2))

        def fits(r, x, y):
            return sum(a * b for a, b in zip(r, x, strict=True)) % 2 == y

        world = list(zip(rows, labels, strict=True))
        runs = [TestParity().law([each], keep=keep, stop=stop) for each in world[:2]]
        wrong = [sum(not fits(r, x, y) for x, y in world[2:]) for r in points]
        expected = np.zeros(5)
        for first, second in itertools.product(range(5), repeat=2):
            chance = runs[0][first] * runs[1][second]
            answered = [answer for answer in (first, second) if answer < 4]
            if not answered:
                expected[4] += chance
                continue
            # A replaced user of the test moves each count by one.
            choice = permute_and_flip([wrong[a] for a in answered], rate=epsilon / 2)
            for answer, share in zip(answered, choice, strict=True):
                expected[answer] += chance * share
        mechanism = AmplifiedParity(features=2, epsilon=epsilon, runs=2)
        found = enumerate_runs(
            lambda noise: mechanism.release(
                pack_bits(np.array(rows, dtype=bool)),
                np.array(labels, dtype=bool),
                parts=self.PARTS,
            )
        )
        order = [sum(bit << j for j, bit in enumerate(r)) for r in points]
        np.testing.assert_allclose(
            [found.get(answer, 0.0) for answer in (*order, None)], expected, atol=1e-9
        )


class TestLabelings:
    """K2: a class is the set of its restrictions to the domain, each once."""

    DOMAIN = (0, 1, 3, 4)

    def restricted(self, rules):
        return {tuple(int(rule(x)) for x in self.DOMAIN) for rule in rules}

    @pytest.mark.parametrize(
        ("concepts", "rules", "vc"),
        [
            (Thresholds(0, 4), [lambda x, t=t: x >= t for t in range(6)], 1),
            (
                Intervals(5),
                [lambda x, a=a, b=b: a <= x < b for a in range(6) for b in range(a, 6)],
                2,
            ),
            (PointFunctions(5), [lambda x, a=a: x == a for a in range(5)], 1),
        ],
        ids=["thresholds", "intervals", "points"],
    )
    def test_the_labelings_are_those_of_the_definition(self, concepts, rules, vc):
        found = concepts.distinct_labelings(np.array(self.DOMAIN, dtype=float)[:, None]).table
        listed = list(map(tuple, found.tolist()))
        assert sorted(listed) == sorted(self.restricted(rules))
        assert concepts.vc_dimension == vc
        assert len(listed) <= (math.e * len(self.DOMAIN) / vc) ** vc


def keeps(epsilon, categories):
    """Return how often randomized response tells the truth: e^epsilon to 1 for each other."""
    return math.exp(epsilon) / (math.exp(epsilon) + categories - 1)


class TestLocalModel:
    """K5: Definitions 5.1 and 5.2 on randomized response, whose law is written out."""

    @pytest.mark.parametrize("epsilon", [0.3, 1.0])
    @pytest.mark.parametrize("categories", [2, 3, 5])
    def test_a_report_has_the_law_whose_worst_ratio_is_e_to_the_epsilon(self, epsilon, categories):
        binary = categories == 2
        response = (
            BinaryResponse(epsilon) if binary else KaryResponse(epsilon, categories=categories)
        )
        truth = keeps(epsilon, categories)
        lie = (1 - truth) / (categories - 1)
        assert truth / lie == pytest.approx(math.exp(epsilon))
        for value in range(categories):
            told = [response.probability(answer, value) for answer in range(categories)]
            expected = [truth if answer == value else lie for answer in range(categories)]
            np.testing.assert_allclose(told, expected, rtol=1e-9)

    def test_a_transcript_is_the_product_of_its_answers_and_charges_their_epsilons(self):
        people = UserData.from_arrays([[0.0], [1.0]], users=[0, 1])
        oracle = LocalOracle(people, epsilon=1.0)
        asked = [0.6, 0.4]
        answers = [
            oracle.ask([0, 1], Report(lambda users: users.user_means()[:, 0], BinaryResponse(each)))
            for each in asked
        ]
        expected = sum(
            math.log(keeps(each, 2) if bit == place else 1 - keeps(each, 2))
            for each, told in zip(asked, answers, strict=True)
            for place, bit in enumerate(told)
        )
        assert oracle.transcript.log_probability(people) == pytest.approx(expected)
        with pytest.raises(QueriesExhaustedError):  # nothing of an entry's budget is left
            oracle.ask([0], Report(lambda users: users.user_means()[:, 0], BinaryResponse(0.01)))


@pytest.mark.parametrize(("epsilon", "calls", "beta"), [(1.0, 40, 0.1), (0.4, 7, 0.02)])
def test_claim_59_asks_queries_of_its_tolerance_and_accepts_by_its_rule(epsilon, calls, beta):
    """K8: tau = phi / e^(2 epsilon), phi = beta / (3 t); accept with p / (q (1 + phi) e^epsilon).

    Step 1 proposes an answer about the entry 0, which it has with probability q.
    """
    oracle = ExactOracle(Population(np.arange(2.0)[:, None], np.zeros(2), np.array([0.8, 0.2])))
    user = Simulation(oracle, calls=calls, beta=beta).user()
    randomizer = RecordRandomizer(lambda X, y: X[:, 0], BinaryResponse(epsilon))
    accepted = [user.acceptance(randomizer, place) for place in (0, 1)]
    phi = beta / (3 * calls)
    tolerances = {query.tolerance for batch in oracle.asked for query in batch}
    kept = keeps(epsilon, 2)
    law = np.array([0.8 * kept + 0.2 * (1 - kept), 0.2 * kept + 0.8 * (1 - kept)])
    proposals = np.array([kept, 1 - kept])  # R(0)
    np.testing.assert_allclose(accepted, law / (proposals * (1 + phi) * math.exp(epsilon)))
    assert sorted(tolerances) == pytest.approx([phi * math.exp(-2 * epsilon)])


@pytest.mark.parametrize("tolerance", [0.3, 0.01])
def test_every_oracle_answers_every_query_within_its_tolerance(tolerance):
    """Definition 5.4 on all functions from three points to {-1, 0, 1}."""
    chances = np.array([0.5, 0.3, 0.2])
    population = Population(np.arange(3.0)[:, None], np.zeros(3), chances)
    for values in itertools.product((-1.0, 0.0, 1.0), repeat=3):
        table = np.array(values)
        query = StatisticalQuery(
            function=lambda X, y, table=table: table[X[:, 0].astype(int)],
            tolerance=tolerance,
            low=-1.0,
            high=1.0,
        )
        truth = float(chances @ table)
        assert ExactOracle(population).ask(query) == pytest.approx(truth)
        for sign in (-1.0, 1.0):
            moved = MovedOracle(population, moves=[sign]).ask(query)
            assert moved == pytest.approx(truth + sign * tolerance)
        for seed in range(5):
            drawn = RandomlyMovedOracle(population, random_state=seed).ask(query)
            assert abs(drawn - truth) <= tolerance + 1e-12


class TestLemma56:
    """K7: queries with values in [0, 1], that is b = 1/2 around the middle."""

    KNOWN = {"tolerance": 0.05, "epsilon": 0.7, "queries": 9, "beta": 0.02}  # noqa: RUF012

    def test_users_and_noise_are_those_of_the_print(self):
        b, tau, epsilon = 0.5, 0.05, 0.7
        logarithm = math.log(4 * 9 / 0.02)
        users = max(8 * b**2 / tau**2, 64 * b**2 / (epsilon * tau) ** 2) * logarithm
        assert published_users(**self.KNOWN) == math.ceil(users)
        # Each answer is g(u) + Lap(2 b / epsilon), on a grid of steps of 1 / 1024.
        scale = 2 * b / epsilon
        for answer, value in itertools.product((-3.0, 0.25, 2.0), (0.0, 0.5, 1.0)):
            mass = laplace.pdf(answer, value, scale) / 1024
            found = LaplaceResponse(epsilon).probability(answer, value)
            assert found == pytest.approx(mass, rel=1e-3)

    def test_randomized_response_needs_what_hoeffding_says(self):
        n = users_for_tolerance(**self.KNOWN)
        contrast = math.tanh(0.35)
        assert 2 * math.exp(-2 * n * (0.05 * contrast) ** 2) <= 0.02 / 9
        assert 2 * math.exp(-2 * (n - 1) * (0.05 * contrast) ** 2) > 0.02 / 9
        # Exactly, where the answers vary most: a mean of n fair bits kept with e^eps/(1+e^eps).
        within = math.floor(n * 0.05 * contrast)
        miss = 1 - binom.cdf(n // 2 + within, n, 0.5) + binom.cdf(n // 2 - within - 1, n, 0.5)
        assert miss <= 0.02 / 9
