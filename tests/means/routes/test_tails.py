"""How far to clip: what is guessed of a tail from two points of it."""

import math

import numpy as np
import pytest

from quorate.means.routes.tails import Tail


def tail_of(survival, *, inner=0.5, outer=0.05, users=10_000, farthest=1000.0):
    """Return the tail of users whose distances have this inverse survival function."""
    return Tail(
        inner=survival(inner),
        outer=survival(outer),
        inner_share=inner,
        outer_share=outer,
        farthest=farthest,
        users=users,
    )


class TestExcess:
    @pytest.mark.parametrize(
        ("survival", "excess"),
        [
            (lambda s: -math.log(s), lambda r: math.exp(-r)),
            (lambda s: s**-0.5 - 1.0, lambda r: 1.0 / (1.0 + r) - 1e-3),
        ],
        ids=["exponential", "power 2"],
    )
    def test_it_is_within_a_few_times_the_truth(self, survival, excess):
        tail = tail_of(survival)
        radii, told = tail.candidates, tail.excess()
        near = radii < 2.5 * tail.outer
        true = 10_000 * np.array([excess(r) for r in radii[near]])
        assert np.all(told[near] < 8 * true)
        assert np.all(told[near] > true / 8)

    def test_it_falls_to_nothing_at_the_end(self):
        told = tail_of(lambda s: -math.log(s)).excess()
        assert np.all(np.diff(told) <= 0)
        assert told[-1] == 0

    def test_a_stated_error_is_more_cautious(self):
        tail = tail_of(lambda s: -math.log(s))
        middle = tail.candidates.size // 3
        assert tail.excess(cautious=True)[middle] > tail.excess()[middle]

    def test_nobody_is_beyond_the_end(self):
        tail = Tail(
            inner=0.5, outer=2.0, inner_share=0.5, outer_share=0.1, farthest=2.0, users=100.0
        )
        assert tail.candidates.tolist() == [2.0]
        assert tail.excess().tolist() == [0.0]

    def test_points_that_noise_has_swapped_are_no_error(self):
        tail = Tail(
            inner=2.0, outer=1.0, inner_share=0.5, outer_share=0.1, farthest=9.0, users=100.0
        )
        assert np.all(np.isfinite(tail.excess()))
