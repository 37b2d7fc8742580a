"""Outputs of a private learner on public data represent what it learns."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts import Concept, CutOff, Thresholds
from quorate.mechanisms import ChooseBest
from quorate.papers.stability.from_learner import FixedConcepts, LearnerRepresentation
from quorate.papers.stability.representations import ListedConcepts, Majority
from quorate.papers.stability.shared_seed import SharedSeed
from sealing import release_by_hand

CUTS = Thresholds(0, 3)


def learner(epsilon):
    """The exponential mechanism over five cut-offs, on no data at all."""

    def run(noise):
        account = Account.open(epsilon=epsilon, noise=noise)
        choice = ChooseBest(candidates=CUTS.size, epsilon=epsilon)
        return CUTS.concept(
            release_by_hand(choice, np.zeros(CUTS.size, dtype=np.int64), account=account)
        )

    return run


@pytest.mark.claim("G12: Algorithm 6", "G12: Lemma 4")
class TestRepresentation:
    def test_nearly_every_draw_holds_a_good_hypothesis_for_every_target_and_law(self):
        outputs = LearnerRepresentation(learner(0.5), epsilon=0.5, users=2, alpha=0.1)
        points = np.arange(4.0)[:, None]
        targets = np.array([CUTS.concept(t).predict(points) for t in range(CUTS.size)])
        rng, fails = np.random.default_rng(0), []
        for seed in range(20):
            tables = {tuple(c.predict(points)) for c in outputs.draw(SharedSeed(seed)).concepts}
            wrong = np.array([[np.not_equal(t, table) for table in tables] for t in targets])
            for law in [*np.eye(4), *rng.dirichlet(np.ones(4), size=10)]:
                fails.append((wrong @ law).min(axis=1) > 0.1)
        assert np.mean(fails) <= 0.01

    def test_the_number_of_outputs_is_that_of_the_paper(self):
        outputs = LearnerRepresentation(learner(1.0), epsilon=1.0, users=3)
        assert outputs.size == 100 * math.ceil(math.exp(3)) == 2100
        assert outputs.bits == pytest.approx(math.log2(2100))
        assert outputs.holds

    def test_a_large_delta_breaks_the_lemma(self):
        assert not LearnerRepresentation(learner(1.0), epsilon=1.0, users=3, delta=0.05).holds

    def test_too_many_outputs_are_refused(self):
        with pytest.raises(ParameterError):
            LearnerRepresentation(learner(1.0), epsilon=1.0, users=20)
        with pytest.raises(ParameterError):
            LearnerRepresentation(learner(1.0), epsilon=1.0, users=10)

    def test_coins_are_those_of_the_seed(self):
        outputs = LearnerRepresentation(learner(0.5), epsilon=0.5, users=1)
        assert outputs.draw(SharedSeed(1)).concepts == outputs.draw(SharedSeed(1)).concepts
        assert outputs.draw(SharedSeed(1)).concepts != outputs.draw(SharedSeed(2)).concepts


def test_repeated_rules_are_counted_once_and_listed_each():
    rules = FixedConcepts(tuple(CutOff(c, above=True) for c in (1, 3, 1)))
    data = UserData.from_arrays([[0], [2], [3]], [0, 1, 1], users=[0, 0, 1])
    assert rules.mistakes(data).tolist() == [[0, 1, 0], [0, 0, 0]]


class Together(Concept):
    """A rule of the caller that counts how many records it is shown, and cannot read some."""

    def predict(self, X):
        if np.any(X > 90):
            raise ValueError("31337")
        return np.full(len(X), len(X) > 1, dtype=np.int64)

    def __str__(self):
        return "Predict 1 in company."


@pytest.mark.parametrize("wrap", [tuple, lambda rules: (Majority(tuple(rules)),)])
def test_rules_of_a_caller_see_one_user_at_a_time(wrap):
    rules = FixedConcepts(wrap([Together()]))
    data = UserData.from_arrays([[1.0], [2.0], [99.0], [3.0]], np.zeros(4, int), users=[0, 1, 2, 3])
    for concepts in (rules, ListedConcepts((CUTS, rules))):
        assert concepts.mistakes(data)[:, -1].tolist() == [0, 0, 1, 0]
        assert not concepts.keeps_users_apart
    assert FixedConcepts((CutOff(3, above=True),)).keeps_users_apart


def test_where_the_lemma_says_nothing_no_failure_probability_is_stated():
    """It was .01 whether or not delta is small enough."""
    loose = LearnerRepresentation(lambda noise: None, epsilon=1.0, users=3, delta=0.4)
    assert not loose.holds
    assert loose.beta == 1.0
    assert LearnerRepresentation(lambda noise: None, epsilon=1.0, users=3).beta == 0.01
