"""Paper F, written from its text: choices by enumeration, translations by its formulas."""

import itertools
import math

import numpy as np
import pytest

from printed_laws import exponential, permute_and_flip
from quorate import UserData
from quorate.auditing import enumerate_runs
from quorate.concepts import FiniteTable
from quorate.conversion.translation import (
    corollary_3_users,
    deletion_reach,
    item_to_user,
    item_to_user_users,
    theorem_11_users,
)
from quorate.learners import ConceptLearner

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
