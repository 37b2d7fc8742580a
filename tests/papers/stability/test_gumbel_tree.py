"""The lazily drawn tree is one fixed vector of Gumbel numbers, and the search finds its best."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import gumbel_r, kstest

from quorate.core.users import UserData
from quorate.learners.concepts import Direction, Thresholds
from quorate.papers.stability.gumbel_tree import GumbelTree, Staircase, staircases
from quorate.papers.stability.shared_seed import SharedSeed


def random_steps(rng, size, steps):
    starts = np.unique(rng.integers(1, size, size=steps)) if size > 1 else np.zeros(0, int)
    return Staircase([0, *starts.tolist()], rng.integers(0, 12, size=len(starts) + 1))


def leaves(tree):
    return np.array([tree.top(tree.depth, leaf) for leaf in range(tree.size)])


class TestNumbers:
    @pytest.mark.parametrize("size", [1, 2, 3, 100, 1000, 1024])
    def test_every_node_holds_the_maximum_of_its_leaves(self, size):
        tree = GumbelTree(size, SharedSeed(size))
        numbers = leaves(tree)
        for level in range(tree.depth + 1):
            shift = tree.depth - level
            for place in range(math.ceil(size / (1 << shift))):
                inside = numbers[place << shift : (place + 1) << shift]
                assert tree.top(level, place) == inside.max()

    def test_the_leaves_are_standard_gumbel_numbers(self):
        numbers = np.concatenate([leaves(GumbelTree(300, SharedSeed(s))) for s in range(20)])
        assert kstest(numbers, gumbel_r.cdf).pvalue > 1e-6
        assert kstest(numbers + 0.1, gumbel_r.cdf).pvalue < 1e-6

    def test_the_order_of_looking_does_not_matter(self):
        there, back = GumbelTree(64, SharedSeed(1)), GumbelTree(64, SharedSeed(1))
        forward = [there.top(6, leaf) for leaf in range(64)]
        assert forward[::-1] == [back.top(6, leaf) for leaf in reversed(range(64))]

    def test_all_leaves_are_equally_likely_to_be_best(self):
        best = [GumbelTree(12, SharedSeed(s)).choose(Staircase([0], np.zeros(1, int)), rate=1.0)
                for s in range(3000)]  # fmt: skip
        from goodness import FALSE_ALARM, p_value

        assert p_value(np.bincount(best, minlength=12), np.full(12, 1 / 12)) > FALSE_ALARM


class TestSearch:
    @pytest.mark.parametrize("rate", [0.3, 2.0, math.inf])
    def test_it_equals_a_look_at_everything(self, rate):
        rng = np.random.default_rng(5)
        for trial in range(120):
            size = int(rng.choice([2, 7, 300, 1024]))
            tree, steps = GumbelTree(size, SharedSeed(trial)), random_steps(rng, size, 20)
            place = np.searchsorted(steps.starts, np.arange(size), side="right") - 1
            mistakes = steps.heights[place]
            numbers = leaves(tree)
            if rate == math.inf:
                scores = np.where(mistakes == mistakes.min(), numbers, -np.inf)
            else:
                scores = numbers - rate * mistakes
            assert tree.choose(steps, rate=rate) == int(np.argmax(scores))

    def test_it_looks_at_few_nodes_of_a_huge_tree(self):
        rng = np.random.default_rng(6)
        tree = GumbelTree(2**63, SharedSeed(0))
        for _ in range(20):
            x = np.sort(rng.integers(0, 2**63, size=200))
            heights = np.abs(np.arange(201) - 100)
            assert 0 <= tree.choose(Staircase([0, *x.tolist()], heights), rate=2.0) < 2**63
        assert len(tree._tops) < 20 * 400


class TestStaircases:
    @pytest.mark.parametrize("direction", list(Direction))
    def test_they_are_the_mistakes_of_each_user(self, direction):
        rng = np.random.default_rng(7)
        x, y = rng.integers(0, 15, size=60), rng.integers(0, 2, size=60)
        data = UserData.from_arrays(x[:, None], y, users=rng.integers(0, 5, size=60))
        cuts = Thresholds(0, 14, direction=direction)
        table = cuts.mistakes(data)
        for row, steps in zip(table, staircases(cuts.mistake_events(data)), strict=True):
            place = np.searchsorted(steps.starts, np.arange(cuts.size), side="right") - 1
            assert steps.heights[place].tolist() == row.tolist()

    def test_the_lowest_step_of_every_range(self):
        rng = np.random.default_rng(8)
        steps = random_steps(rng, 50, 12)
        place = np.searchsorted(steps.starts, np.arange(50), side="right") - 1
        heights = steps.heights[place]
        for low in range(50):
            for high in range(low + 1, 51):
                assert steps.lowest(low, high) == heights[low:high].min()
