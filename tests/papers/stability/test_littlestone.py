"""Dimensions and the optimal learner against brute force, on all small classes."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts.dimensions import TooMuchWork, littlestone_dimension
from quorate.papers.stability.littlestone import VersionSpaces, space_of


@cache
def by_definition(members):
    """The depth of the deepest full tree, straight from the definition."""
    if not members:
        return -1
    deepest = 0
    for point in range(len(members[0])):
        sides = [tuple(h for h in members if h[point] == label) for label in (0, 1)]
        if all(sides):
            deepest = max(deepest, 1 + min(map(by_definition, sides)))
    return deepest


def all_classes(points, largest):
    functions = list(product((0, 1), repeat=points))
    for size in range(1, largest + 1):
        yield from combinations(functions, size)


class TestDimension:
    @pytest.mark.parametrize(("points", "largest"), [(1, 2), (2, 4), (3, 6)])
    def test_all_small_classes(self, points, largest):
        for members in all_classes(points, largest):
            spaces = VersionSpaces(np.array(members))
            assert spaces.dimension(spaces.everything) == by_definition(members)

    def test_classes_on_four_points_and_all_their_version_spaces(self):
        rng = np.random.default_rng(0)
        functions = list(product((0, 1), repeat=4))
        for _ in range(60):
            members = tuple(functions[i] for i in sorted(rng.choice(16, size=6, replace=False)))
            spaces = VersionSpaces(np.array(members))
            for space in range(1 << 6):
                kept = tuple(h for i, h in enumerate(members) if space >> i & 1)
                assert spaces.dimension(space) == by_definition(kept)

    def test_it_agrees_with_the_other_implementation_on_larger_classes(self):
        rng = np.random.default_rng(1)
        for _ in range(10):
            table = rng.integers(0, 2, size=(40, 8))
            spaces = VersionSpaces(table)
            assert spaces.dimension(spaces.everything) == littlestone_dimension(table)


class TestOptimalLearner:
    def test_predictions_are_those_of_the_larger_side(self):
        for members in all_classes(3, 5):
            spaces = VersionSpaces(np.array(members))
            for point in range(3):
                zeros = tuple(h for h in members if h[point] == 0)
                ones = tuple(h for h in members if h[point] == 1)
                wanted = int(by_definition(ones) > by_definition(zeros))
                assert spaces.predict(spaces.everything, point) == wanted
                assert spaces.optimal(spaces.everything) >> point & 1 == wanted

    def test_it_never_errs_more_often_than_the_dimension(self):
        """Every class of up to four hypotheses, every target, every sequence of four points."""
        for members in all_classes(3, 4):
            spaces = VersionSpaces(np.array(members))
            dimension = spaces.dimension(spaces.everything)
            for target, sequence in product(members, product(range(3), repeat=4)):
                space, mistakes = spaces.everything, 0
                for point in sequence:
                    mistakes += spaces.predict(space, point) != target[point]
                    ones = spaces.ones[point]
                    space &= ones if target[point] else ~ones
                assert mistakes <= dimension

    def test_a_learner_that_predicts_the_smaller_side_errs_more_often(self):
        """The broken twin."""
        spaces = VersionSpaces(np.tri(8, 7, -1))
        worst = 0
        for target in range(8):
            space, mistakes = spaces.everything, 0
            for point in range(7):
                label = int(spaces.table[target, point])
                mistakes += 1 - spaces.predict(space, point) != label
                space &= spaces.ones[point] if label else ~spaces.ones[point]
            worst = max(worst, mistakes)
        assert worst > spaces.dimension(spaces.everything)


class TestSplits:
    def test_a_split_lowers_the_dimension_on_both_sides(self):
        for members in all_classes(3, 5):
            spaces = VersionSpaces(np.array(members))
            depth = spaces.dimension(spaces.everything)
            sides = spaces.splits(spaces.everything)
            exists = any(
                0 < (spaces.ones[p] & spaces.everything).bit_count() < len(members)
                and all(
                    by_definition(tuple(h for h in members if h[p] == label)) < depth
                    for label in (0, 1)
                )
                for p in range(3)
            )
            assert (sides is not None) is exists
            if sides is not None:
                assert max(map(spaces.dimension, sides)) < depth
                assert sides[0] | sides[1] == spaces.everything


class TestRefusals:
    def test_what_is_no_table_is_refused(self):
        for bad in (np.zeros((0, 3)), np.array([[0, 2]]), np.zeros(3)):
            with pytest.raises(ParameterError):
                VersionSpaces(bad)
        with pytest.raises(ParameterError, match="at most"):
            VersionSpaces(np.zeros((5000, 2)))

    def test_too_much_work_is_refused(self):
        spaces = VersionSpaces(np.random.default_rng(0).integers(0, 2, (64, 32)), max_steps=10)
        with pytest.raises(TooMuchWork):
            spaces.dimension(spaces.everything)

    def test_sets_are_bits(self):
        assert space_of([0, 1, 1]) == 6
        assert VersionSpaces(np.eye(3)).dimension(0) == -1
