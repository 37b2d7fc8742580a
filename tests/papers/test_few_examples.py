"""Paper F, written from its text: choices by enumeration, translations by its formulas."""

import itertools
import math

import numpy as np
import pytest

from printed_laws import exponential, permute_and_flip
from quorate import UserData
from quorate.auditing import enumerate_runs
from quorate.core.noise import SeededNoise, use_noise
from quorate.distributions import ProductDistribution
from quorate.distributions.categories import product
from quorate.distributions.hypotheses.clip import Clip
from quorate.distributions.hypotheses.covers import product_cover, simplex_cover
from quorate.distributions.hypotheses.families import DiscreteFamily
from quorate.distributions.hypotheses.selection import HypothesisSelector, choose_member
from quorate.learners import ConceptLearner
from quorate.learners.concepts import FiniteTable
from quorate.papers.conversion.perfect_generalisation import calibrated_radius
from quorate.papers.conversion.translation import (
    corollary_3_users,
    deletion_reach,
    item_to_user,
    item_to_user_users,
    solved_users,
    theorem_11_users,
)
from quorate.planning.limits import fano_users

RULES = np.array([[0, 0], [0, 1], [1, 1]])
EPSILON = 1.3
# Records of a user, as (x, label): right for all, wrong for one, nine against one rule, mixed.
HOLDINGS = [
    ((0, 0), (1, 1)),
    ((0, 1),),
    ((1, 0),) * 9,
    ((0, 1),) * 4 + ((1, 1),) * 5,
]
CROWDS = list(itertools.combinations_with_replacement(HOLDINGS, 3))[::3]


def law(held, **options):
    rows = [(x, y, user) for user, records in enumerate(held) for x, y in records]
    x, y, users = np.array(rows).T
    data = UserData.from_arrays(x[:, None].astype(float), y, users=users)
    learner = ConceptLearner(FiniteTable(RULES), EPSILON, random_state=0, **options)
    found = enumerate_runs(lambda noise: learner.fit(data).index_)
    return [found.get(h, 0.0) for h in range(len(RULES))]


def mistakes(held):
    """Return the mistakes of each user under each rule."""
    return np.array([[sum(int(rule[x] != y) for x, y in one) for rule in RULES] for one in held])


class TestTheorem4:
    """F4: how many users a rule errs on at all; one user moves it by one."""

    @pytest.mark.parametrize("held", CROWDS)
    def test_the_exponential_mechanism_on_users_with_any_mistake(self, held):
        losses = (mistakes(held) > 0).sum(axis=0)
        found = law(held, algorithm="any_mistake", constants="published")
        np.testing.assert_allclose(found, exponential(losses, rate=EPSILON / 2), rtol=1e-9)

    @pytest.mark.parametrize("held", CROWDS)
    def test_permute_and_flip_on_users_with_any_mistake(self, held):
        losses = (mistakes(held) > 0).sum(axis=0)
        found = law(held, algorithm="any_mistake")
        np.testing.assert_allclose(found, permute_and_flip(losses, rate=EPSILON / 2), rtol=1e-9)


class TestTheorems37And40:
    """F5 and F6: psi = 1[c(x) != y] - 1[c'(x) != y], added up by user, clipped, worst rival.

    A replaced user moves a clipped sum by 2 tau.
    """

    ALPHA, RECORDS = 0.2, 9

    def losses(self, held, tau):
        wrong = mistakes(held)
        return [
            max(
                np.clip(wrong[:, c] - wrong[:, other], -tau, tau).sum()
                for other in range(len(RULES))
                if other != c
            )
            for c in range(len(RULES))
        ]

    @pytest.mark.parametrize("held", CROWDS)
    def test_weights_are_those_of_the_worst_clipped_rival(self, held):
        m, alpha = self.RECORDS, self.ALPHA
        tau = math.ceil(alpha * m + math.sqrt(m * math.log(1 / alpha)))
        assert tau < m  # somebody is clipped
        found = law(
            held,
            algorithm="clipped_pairwise",
            constants="published",
            records=m,
            excess=alpha,
        )
        expected = exponential(self.losses(held, tau), rate=EPSILON / (2 * 2 * tau))
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    @pytest.mark.parametrize("held", CROWDS)
    def test_duels_clip_at_one_and_weigh_a_loss_more_than_a_gain(self, held):
        """Each user says for each pair which rule errs less: 2 against it, 1 for it.

        A replaced user moves the worst sum by 3, and permute-and-flip chooses.
        """
        wrong = mistakes(held)
        losses = [
            max(
                np.sum(2 * (wrong[:, c] > wrong[:, other]) - (wrong[:, c] < wrong[:, other]))
                for other in range(len(RULES))
                if other != c
            )
            for c in range(len(RULES))
        ]
        found = law(held, algorithm="duels", records=self.RECORDS)
        expected = permute_and_flip(losses, rate=EPSILON / (2 * 3))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(("n", "epsilon", "beta"), [(6, 0.4, 0.9), (9, 0.2, 0.5), (3, 0.5, 0.01)])
def test_two_samples_have_laws_within_the_calibrated_radius(n, epsilon, beta):
    """F3: McDiarmid's t with 2 |O| e^(-t^2 / (n epsilon^2)) = beta, and group privacy's n epsilon.

    A choice of 0 or 1 with weights e^(epsilon votes / 2): one record moves a log ratio by epsilon.
    """
    radius = calibrated_radius(epsilon=epsilon, records=n, outputs=2, beta=beta)
    assert radius == pytest.approx(
        min(epsilon * math.sqrt(n * math.log(2 * 2 / beta)), n * epsilon)
    )
    if radius < n * epsilon:
        assert 2 * 2 * math.exp(-((radius / epsilon) ** 2) / n) == pytest.approx(beta)
    laws = [np.log(exponential([ones, n - ones], rate=epsilon / 2)) for ones in range(n + 1)]
    chances = [math.comb(n, ones) / 2**n for ones in range(n + 1)]
    far = sum(
        chances[a] * chances[b]
        for a, b in itertools.product(range(n + 1), repeat=2)
        if np.abs(laws[a] - laws[b]).max() > radius + 1e-12
    )
    assert far <= beta


@pytest.mark.parametrize(
    ("kl", "m", "epsilon", "term"),
    [(0.02, 1, 0.5, "sampling"), (2e-4, 4, 1e-3, "privacy"), (0.5, 50, 0.01, "packing")],
)
def test_fano_has_three_terms_with_the_constants_of_its_source(kl, m, epsilon, term):
    """F9: W distributions of m records each, KL at most m kl, TV at most sqrt(m kl / 2).

    Fano: failure >= 1 - (n m kl + ln 2) / ln W and >= 0.4 min(1, W e^(-10 eps n TV)). Packing: the
    W - 1 other answers have chance e^(-eps n) (1 - beta) each, which is beta at the most.
    """
    log_w, beta = 200.0, 0.1
    users = {
        "sampling": ((1 - beta) * log_w - math.log(2)) / (m * kl),
        "privacy": (log_w + math.log(0.4 / beta))
        / (10 * epsilon * min(1.0, math.sqrt(m * kl / 2))),
        "packing": (log_w + math.log((1 - beta) / beta)) / epsilon,
    }
    assert max(users, key=users.__getitem__) == term
    found = fano_users(log_alternatives=log_w, divergence=kl, records=m, epsilon=epsilon, beta=beta)
    assert found == pytest.approx(users[term])


class TestTheorem41:
    """F7: psi(z) = P(W) - 1[z in W], W where P > P', added up by user and clipped."""

    PMF = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.125, 0.75, 0.125]])
    HELD = ((0, 0, 0, 0), (0, 1), (2, 2, 1, 0, 2, 2, 2, 2, 2), (1,), (0, 2, 0))

    def law(self, clip):
        rows = [(z, user) for user, records in enumerate(self.HELD) for z in records]
        z, users = np.array(rows).T
        selector = HypothesisSelector(DiscreteFamily(self.PMF), EPSILON, clip=clip)
        found = enumerate_runs(
            lambda noise: selector.fit(z[:, None].astype(float), users=users).index_
        )
        return [found.get(member, 0.0) for member in range(3)]

    def losses(self, tau, scale):
        worst = []
        for p in self.PMF:
            duels = []
            for other in self.PMF:
                w = p > other
                terms = [scale(len(z)) * sum(p[w].sum() - w[each] for each in z) for z in self.HELD]
                duels.append(np.clip(terms, -tau, tau).sum())
            worst.append(max(duels))
        return worst

    def test_published_clips_all_users_alike(self):
        m, alpha = 3, 0.09
        tau = alpha * m + math.sqrt(m * math.log(1 / alpha))
        assert tau < 4  # somebody is clipped
        expected = permute_and_flip(self.losses(tau, lambda m: 1), rate=EPSILON / (4 * tau))
        np.testing.assert_allclose(self.law(Clip.published(m, alpha=alpha)), expected, atol=1e-4)

    def test_calibrated_clips_each_user_at_half_of_what_chance_does_to_their_own_records(self):
        expected = permute_and_flip(
            self.losses(0.5, lambda m: 1 / math.sqrt(m)), rate=EPSILON / (4 * 0.5)
        )
        np.testing.assert_allclose(self.law(None), expected, atol=5e-3)


class TestTheorems43To45:
    """F8: masses in multiples of 1 / ceil(10 k / alpha); a product has alpha / d a coordinate."""

    @pytest.mark.parametrize(("k", "alpha"), [(2, 0.3), (3, 0.5)])
    @pytest.mark.parametrize(("constants", "factor"), [("published", 10), ("calibrated", 2.5)])
    def test_the_grid_of_a_simplex(self, k, alpha, constants, factor):
        steps = math.ceil(factor * k / alpha)
        found = simplex_cover(k, alpha, constants=constants)
        grid = [
            each for each in itertools.product(range(steps + 1), repeat=k) if sum(each) == steps
        ]
        assert found.steps == steps
        assert sorted(map(tuple, found.masses.tolist())) == grid
        # Masses rounded down and the rest handed out: at most k / (4 steps) away, by the grid.
        assert k / (4 * steps) <= 0.1 * alpha * (1 + 1e-9)

    def test_a_product_is_chosen_coordinate_by_coordinate(self, monkeypatch):
        """Theorem 44: covers with alpha / d; d choices of epsilon / d each, on their columns."""
        asked = []

        def choose(crowd, family, *, clip, epsilon, account):
            asked.append((family.column, family.steps, epsilon, clip))
            return choose_member(crowd, family, clip=clip, epsilon=epsilon, account=account)

        monkeypatch.setattr(product, "choose_member", choose)
        points = np.array([[0, 1]] * 9 + [[1, 2]] * 3)
        learner = ProductDistribution(
            4.0, categories=[range(2), range(3)], algorithm="cover", error=0.6
        )
        with use_noise(SeededNoise(0)):
            learner.fit(points, users=np.arange(12) // 3)
        assert asked == [
            (0, math.ceil(2.5 * 2 / 0.3), 2.0, Clip(0.5)),
            (1, math.ceil(2.5 * 3 / 0.3), 2.0, Clip(0.5)),
        ]
        covers = product_cover([2, 3], 0.4, constants="published")
        assert [each.steps for each in covers] == [math.ceil(10 * k / 0.2) for k in (2, 3)]


class TestTranslation:
    """F2: Theorems 10 and 11 and Corollary 3, constants 1."""

    @pytest.mark.parametrize(("epsilon", "delta", "m"), [(1.0, 1e-6, 100), (0.3, 1e-9, 7)])
    def test_theorem_10(self, epsilon, delta, m):
        inner, slip = item_to_user(epsilon=epsilon, delta=delta, records=m)
        spread = math.log(1 / delta)
        assert inner == pytest.approx(epsilon**2 / (spread * math.sqrt(m * math.log(m / delta))))
        assert slip == pytest.approx(delta * epsilon / (m * spread))
        users = item_to_user_users(item_records=5e4, epsilon=epsilon, delta=delta, records=m)
        assert users == pytest.approx(spread / epsilon + 5e4 / m)

    @pytest.mark.parametrize(("epsilon", "delta", "m"), [(1.0, 1e-6, 50), (0.5, 1e-9, 7)])
    def test_the_inequality_of_the_proof_holds_and_with_one_user_less_it_does_not(
        self, epsilon, delta, m
    ):
        """(e^eps'' - 1) n_1 / N <= e^eps'(N/m + 4 kappa) - 1, eps' of Lemma 19, constants 1."""
        spread = math.log(1 / delta)
        target = epsilon**2 / (spread * math.sqrt(m * math.log(m / delta)))
        needed = 30 / target + 1000
        # Algorithm 1: kappa = 1 + ceil(ln(1 / delta') / eps'), each a third of epsilon.
        third = epsilon / 3
        slip = delta / (math.exp(2 * third) + math.exp(third) + 2)
        kappa = 1 + math.ceil(math.log(1 / slip) / third)

        def holds(n):
            inner = epsilon / (kappa * math.sqrt(m * math.log(n * m / delta)))
            return math.expm1(target) * needed / ((n - 4 * kappa) * m) <= math.expm1(inner)

        found = solved_users(lambda e, d: 30 / e + 1000, epsilon=epsilon, delta=delta, records=m)
        assert holds(found)
        assert not holds(found - 1)

    @pytest.mark.parametrize(("epsilon", "delta", "m"), [(1.0, 1e-6, 100), (0.3, 1e-9, 7)])
    def test_theorem_11_and_corollary_3(self, epsilon, delta, m):
        spread = math.log(1 / delta)
        known = {"epsilon": epsilon, "delta": delta, "records": m}
        aside = 4 * deletion_reach(epsilon=epsilon, delta=delta)
        found = theorem_11_users(lambda e, d: 700 / e, **known)
        assert found == pytest.approx(
            aside + spread**1.5 / (epsilon * math.sqrt(m)) * 700 / epsilon
        )
        found = corollary_3_users(
            private_records=50.0, statistical_records=2000.0, power=1.0, **known
        )
        printed = (
            spread / epsilon
            + spread**1.5 / (epsilon**2 * math.sqrt(m)) * 50.0 * spread
            + 2000.0 / m
        )
        assert found == pytest.approx(printed)
