"""Paper G, written from its text: bounds by its formulas, laws by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from printed_laws import exponential
from quorate.auditing import enumerate_runs
from quorate.core.guarantees import Relation
from quorate.learners.concepts import FiniteTable
from quorate.local.randomizers.hashed import HashedResponse
from quorate.mechanisms.choices.stable_choice import StableHistogram
from quorate.mechanisms.choices.universe import ChooseKey
from quorate.papers.queries.statistical import StatisticalQuery
from quorate.papers.stability.correlated_sampling import choose_together
from quorate.papers.stability.from_learner import LearnerRepresentation
from quorate.papers.stability.proved_lists import ProvedListLearner
from quorate.papers.stability.query_rule import RoundedOracle, query_records
from quorate.papers.stability.shared_seed import SharedSeed
from quorate.papers.stability.softmax import published_records, published_sharpness
from quorate.planning.tasks.agreement import AgreementTask, LocalAgreementTask
from sealing import release_by_hand


@pytest.mark.parametrize("seed", range(3))
def test_two_users_differ_with_at_most_twice_their_distance(seed):
    """Theorem 8, and the constant that an exponential race has: 2 TV / (1 + TV)."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(5))
    q = 0.9 * p + 0.1 * rng.dirichlet(np.ones(5))
    far = 0.5 * np.abs(p - q).sum()
    draws = 3000
    differ = np.mean(
        [
            len(set(choose_together(np.log([p, q]), np.arange(5), SharedSeed(s)))) > 1
            for s in range(draws)
        ]
    )
    assert 2 * far / (1 + far) <= 2 * far
    assert differ <= 2 * far / (1 + far) + 4 * math.sqrt(far / draws)


@pytest.mark.parametrize(("size", "epsilon", "delta"), [(2**14, 1.0, 1e-6), (2**60, 0.3, 1e-9)])
def test_users_are_of_the_order_of_theorems_25_29_and_30(size, epsilon, delta):
    """ln(1/(delta beta))/eps, (d + ln(1/beta))/eps and (d + ln(1/beta))/eps^2, d bits."""
    beta, d = 0.1, math.log2(size)
    known = {"epsilon": epsilon, "error": 0.03}
    pure = AgreementTask(size=size).upper(**known)
    assert pure.users == pytest.approx((d + math.log(1 / beta)) / epsilon)
    assert pure.theorem == "Theorem 30"
    either = AgreementTask(size=size, delta=delta).upper(**known)
    stable = math.log(1 / (delta * beta)) / epsilon
    assert either.users == pytest.approx(min(stable, pure.users))
    local = LocalAgreementTask(size=size).upper(**known)
    assert local.users == pytest.approx((d + math.log(1 / beta)) / epsilon**2)


@pytest.mark.parametrize(("d", "alpha", "beta"), [(8, 0.1, 0.1), (3, 0.02, 0.5)])
def test_theorem_26_prints_gamma_and_records(d, alpha, beta):
    gamma = 2 * (d + math.log(1 / beta) + 10) / alpha
    known = {"log2_size": d, "alpha": alpha, "beta": beta}
    assert published_sharpness(**known) == pytest.approx(gamma)
    records = 1e6 * gamma**2 * d * math.log(1 / beta) / beta**4
    assert published_records(**known) == pytest.approx(records)


class TestLemma11:
    """G9: noise cut off at k, a threshold of k + 1: nothing fails, and the error is 2 k."""

    @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (2.0, 1e-3)])
    def test_the_error_is_of_order_log_of_one_over_delta_over_epsilon(self, epsilon, delta):
        found = StableHistogram(epsilon=epsilon, delta=delta, relation=Relation.ADD_REMOVE)
        q = math.exp(-epsilon)

        def end(k):  # P[Z = k] for masses proportional to e^(-epsilon |z|), |z| <= k
            return q**k * (1 - q) / (1 + q - 2 * q ** (k + 1))

        assert end(found.reach) <= delta < end(found.reach - 1)
        assert found.reach <= 1 + math.log(1 / delta) / epsilon

    def test_no_noise_at_all_makes_it_fail(self):
        """Every pair of noises of two keys: the winner is within 2 k, or nobody has 2 k + 2."""
        k = StableHistogram(epsilon=1.5, delta=0.05, relation=Relation.ADD_REMOVE).reach
        for counts in itertools.product(range(2 * k + 5), repeat=2):
            for noise in itertools.product(range(-k, k + 1), repeat=2):
                noisy = [c + z for c, z in zip(counts, noise, strict=True)]
                kept = [u for u in (0, 1) if counts[u] and noisy[u] > k + 1]
                if kept:
                    winner = max(kept, key=lambda u: noisy[u])
                    assert counts[winner] >= max(counts) - 2 * k
                else:
                    assert max(counts) < 2 * k + 2


@pytest.mark.parametrize(("q", "tau", "beta"), [(9, 0.25, 0.1), (100, 0.01, 0.05)])
def test_lemma_32_prints_the_records_of_a_query(q, tau, beta):
    """With beta^4 below, as the proof needs; calibrated from I |u - u'| <= beta / q."""
    printed = 1e6 * q**2 / (beta**4 * tau**2) * math.log(q**2 / (beta**4 * tau**2))
    known = {"queries": q, "tolerance": tau, "beta": beta}
    assert query_records(**known, constants="published") == pytest.approx(printed)
    steps = math.ceil(3 / tau)
    m = query_records(**known)
    # Hoeffding: a mean of m values leaves (beta / (q I)) with chance 2 e^(-2 m (beta/(qI))^2).
    assert 2 * q * math.exp(-2 * m * (beta / (q * steps)) ** 2) <= beta * (1 + 1e-9)


@pytest.mark.parametrize(("records", "alpha"), [(300, 0.2), (60, 0.1)])
def test_theorem_18_has_an_eta_that_counts_every_concept(records, alpha):
    """G3: each concept but the target's counts its mistakes right, with its own binomial.

    Theorem 18 asks for Omega(1/d) from (d/alpha)^O(1) records. The proved eta is a union bound:
    below it no product of the concepts' chances may fall, whatever their errors are.
    """
    learner = ProvedListLearner(FiniteTable(np.tri(8, 7, -1).astype(int)), alpha=alpha)
    d, others = 3, 7
    assert learner.dimension == d
    worst = 0.0
    for level in range(d + 1):  # err at most level / (d + 1), or more than the next level
        kept = math.floor((level + 0.5) / (d + 1) * records + 1e-9)
        worst = max(
            worst,
            1 - binom.cdf(kept, records, level / (d + 1)),
            binom.cdf(kept, records, (level + 1) / (d + 1)),
        )
    assert learner.eta(records) == pytest.approx(max(0.0, 1 - others * worst))
    if records == 300:
        assert learner.eta(records) >= 1 / d


@pytest.mark.parametrize("tau", [0.3, 0.07])
def test_algorithm_5_rounds_up_or_down_on_a_grid_of_three_over_tau(tau):
    """G10: floor(I u) / I or the next with the chance of the rest; I = ceil(3 / tau)."""
    steps = math.ceil(3 / tau)
    query = StatisticalQuery(function=lambda X, y: X[:, 0] > 0, tolerance=tau, boolean=True)
    for ones in (0, 1, 37, 99):
        records, value = np.repeat([[1.0], [0.0]], [ones, 100 - ones], axis=0), ones / 100
        answers = np.array(
            [
                RoundedOracle(records, np.zeros(100), offsets=np.array([u])).ask(query)
                for u in (np.arange(400) + 0.5) / 400
            ]
        )
        low = math.floor(value * steps + 1e-12)
        assert set(np.round(answers * steps, 9)) <= {low, low + 1}
        up = np.mean(answers > (low + 0.5) / steps)
        assert up == pytest.approx(value * steps - low, abs=4e-3)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_report_of_three_candidates_costs_exactly_epsilon(epsilon):
    """All messages and all pairs of candidates: the ratio of chances is e^epsilon and no more."""
    response = HashedResponse(candidates=3, epsilon=epsilon, width=1)
    laws = [response.law(candidate) for candidate in range(3)]
    messages = set().union(*laws)
    worst = max(
        math.log(first[message] / second[message])
        for first, second in itertools.permutations(laws, 2)
        for message in messages
    )
    assert worst == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("relation", list(Relation), ids=lambda r: r.name)
@pytest.mark.parametrize("held", [(), (0,), (3, 3, 1), (2, 2, 2, 2, 0)])
def test_theorem_30_chooses_among_all_keys_by_their_votes(relation, held):
    """G8: weights e^(epsilon votes / 2), also of keys that nobody has; without the half where one
    more user only adds.
    """
    size, epsilon = 5, 1.3
    choice = ChooseKey(size=size, epsilon=epsilon, relation=relation)
    rate = epsilon / 2 if relation is Relation.REPLACE else epsilon
    expected = exponential([-held.count(key) for key in range(size)], rate=rate)
    found = enumerate_runs(lambda noise: release_by_hand(choice, list(held)))
    np.testing.assert_allclose([found.get(key, 0.0) for key in range(size)], expected, rtol=1e-9)


class TestLemma4:
    """G12: what a learner's outputs on public data represent."""

    @pytest.mark.parametrize(("epsilon", "users"), [(1.0, 3), (0.5, 4)])
    def test_the_outputs_are_a_hundred_times_e_to_the_epsilon_n(self, epsilon, users):
        outputs = LearnerRepresentation(lambda noise: None, epsilon=epsilon, users=users)
        assert outputs.size == 100 * math.ceil(math.exp(epsilon * users))

    @pytest.mark.parametrize("delta", [0.0, 1e-4, 1e-2, 0.2])
    def test_a_failure_is_stated_where_group_privacy_proves_it(self, delta):
        """An output is good on n users with 1/2; on nobody with e^(-n eps) (1/2 - lost)."""
        epsilon, users = 1.0, 3
        outputs = LearnerRepresentation(
            lambda noise: None, epsilon=epsilon, users=users, delta=delta
        )
        # Group privacy: P(good) <= e^eps P'(good) + delta, one user after the other.
        good = 0.5
        for _ in range(users):
            good = max(0.0, (good - delta) / math.exp(epsilon))
        none = (1 - good) ** outputs.size
        if outputs.beta < 1:
            assert none <= outputs.beta == 0.01
        else:
            assert good * outputs.size < 10
