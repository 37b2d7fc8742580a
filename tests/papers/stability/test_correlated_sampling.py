"""Shared choices have exact marginals and agree as often as the formula says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from goodness import FALSE_ALARM, p_value
from quorate.papers.stability.correlated_sampling import (
    agreement_probability,
    choose_best,
    choose_together,
    outcome_id,
)
from quorate.papers.stability.shared_seed import SharedSeed

SEEDS = 4000


def together(laws, ids, *, seeds=SEEDS):
    """Let one user per law choose, for many seeds; what was chosen, by id."""
    with np.errstate(divide="ignore"):
        weights = np.log(np.array(laws))
    return np.array([ids[choose_together(weights, ids, SharedSeed(seed))] for seed in range(seeds)])


@pytest.mark.claim("G1: Definition 7")
class TestMarginals:
    def test_each_user_alone_draws_from_the_own_law(self):
        laws = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.0, 0.25, 0.75]]
        chosen = together(laws, np.array([5, 17, 2**63], dtype=np.uint64))
        for user, law in enumerate(laws):
            counts = [np.count_nonzero(chosen[:, user] == i) for i in (5, 17, 2**63)]
            assert p_value(counts, law) > FALSE_ALARM

    def test_weights_need_not_add_up(self):
        law = np.array([[0.2, 0.3, 0.5]])
        seed, ids = SharedSeed(3), np.arange(3)
        same = choose_together(np.log(law), ids, seed)
        assert np.array_equal(choose_together(np.log(7 * law), ids, seed), same)

    def test_a_wrong_law_is_seen(self):
        chosen = together([[0.5, 0.3, 0.2]], np.arange(3))
        assert p_value(np.bincount(chosen[:, 0], minlength=3), [0.4, 0.4, 0.2]) < FALSE_ALARM


@pytest.mark.claim("G1: Theorem 8")
class TestAgreement:
    @pytest.mark.parametrize("seed", range(4))
    def test_it_is_the_probability_jaccard_similarity(self, seed):
        rng = np.random.default_rng(seed)
        p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        p[seed] = 0.0  # the supports differ
        chosen = together([p, q], np.arange(4))
        share = np.mean(chosen[:, 0] == chosen[:, 1])
        expected = agreement_probability(dict(enumerate(p)), dict(enumerate(q)))
        assert abs(share - expected) < 5 * 0.5 / np.sqrt(SEEDS)

    def test_the_formula_equals_its_definition(self):
        rng = np.random.default_rng(0)
        for size in (1, 2, 5, 9):
            p, q = rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))
            q[0] = 0.0 if size > 1 else 1.0
            q /= q.sum()
            direct = sum(
                1 / sum(max(p[v] / p[w], q[v] / q[w]) for v in range(size))
                for w in range(size)
                if p[w] > 0 and q[w] > 0
            )
            first, second = dict(enumerate(p)), dict(enumerate(q))
            assert agreement_probability(first, second) == pytest.approx(direct, rel=1e-12)
            far = 0.5 * np.abs(p - q).sum()
            assert agreement_probability(first, second) >= (1 - far) / (1 + far) - 1e-12

    def test_equal_users_always_agree_and_strangers_never(self):
        assert agreement_probability({"a": 2.0, "b": 1.0}, {"a": 4.0, "b": 2.0}) == pytest.approx(1)
        assert agreement_probability({"a": 1.0}, {"b": 1.0}) == 0.0

    def test_numbers_by_position_instead_of_outcome_are_caught(self):
        """The broken twin: users list the same outcomes in another order, or leave some out."""
        law = {3: 0.4, 8: 0.3, 11: 0.3}
        first, second = [3, 8, 11], [11, 3, 8]

        def agree(ids_of):
            same = 0
            for seed in range(500):
                picks = [
                    held[
                        choose_together(
                            np.log([[law[i] for i in held]]), ids_of(held), SharedSeed(seed)
                        )[0]
                    ]
                    for held in (first, second)
                ]
                same += picks[0] == picks[1]
            return same / 500

        assert agree(lambda held: np.array(held)) == 1.0
        assert agree(lambda held: np.arange(len(held))) < 0.7


class TestTies:
    def test_best_outcomes_are_chosen_alike(self):
        """The agreement is that of two sets: their common part in all of both."""
        losses = np.array([[0, 0, 0, 1], [1, 0, 0, 0]])
        chosen = np.array(
            [choose_best(losses, np.arange(4), SharedSeed(seed)) for seed in range(SEEDS)]
        )
        assert set(chosen[:, 0]) == {0, 1, 2}
        assert abs(np.mean(chosen[:, 0] == chosen[:, 1]) - 0.5) < 0.04
        assert p_value(np.bincount(chosen[:, 0], minlength=4), [1 / 3] * 3 + [0]) > FALSE_ALARM

    def test_rows_do_not_meet(self):
        rng = np.random.default_rng(1)
        losses = rng.integers(0, 3, size=(50, 20))
        seed, ids = SharedSeed(4), np.arange(20)
        alone = [choose_best(row[None], ids, seed)[0] for row in losses]
        assert choose_best(losses, ids, seed).tolist() == alone


class TestIds:
    def test_long_outcomes_have_different_ids(self):
        outcomes = [*range(300), *(2**200 + i for i in range(300)), b"", b"a", b"b"]
        assert len({outcome_id(outcome) for outcome in outcomes}) == 603

    def test_streams_and_tasks_are_apart(self):
        ids = np.arange(64)
        words = [
            SharedSeed(seed, task=task).words(stream, ids).tobytes()
            for seed, task, stream in itertools.product((0, 1), ("a", "b"), ("x", "y"))
        ]
        assert len(set(words)) == 8
