"""Noise of the longest of several vectors: its law, its norm, all small neighbours, twins."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import Drawing
from goodness import FALSE_ALARM, p_value
from quorate._validate import pure_loss
from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Ball, Box, Grid
from quorate.core.guarantees import Pure, Relation
from quorate.core.noise import SecureNoise, SeededNoise
from quorate.exceptions import GridOverflowError, ParameterError
from quorate.mechanisms.blocks import BlockSum, block_deviation, block_quantile
from quorate.mechanisms.laplace import LaplaceSum

every_relation = pytest.mark.parametrize("relation", Relation, ids=lambda r: r.name)
PAIR = Blocks((Ball(1.0, dimension=2, norm=1, signed=False), Ball(1.0, dimension=2, norm=1)))
SMALL = Grid(PAIR, step=0.5)
REACH = 3


def norm(z, parts=2):
    return max(sum(abs(int(v)) for v in block) for block in np.reshape(z, (parts, -1)))


def kinds():
    """Number the points of a window by both lengths and by their first two coordinates."""
    axis = np.arange(-REACH, REACH + 1)
    a, b, c, d = np.meshgrid(axis, axis, axis, axis, indexing="ij")
    one, two = np.abs(a) + np.abs(b), np.abs(c) + np.abs(d)
    seen = np.stack([one, two, a == 0, c > 0], axis=-1).reshape(-1, 4)
    return np.maximum(one, two).ravel(), np.unique(seen, axis=0, return_inverse=True)[1]


def joint_law(scale):
    """Return the mass of each kind of point, given that all coordinates lie in the window."""
    longest, kind = kinds()
    weights = np.bincount(kind, weights=np.exp(-longest / scale))
    return weights / weights.sum()


class Halved(BlockSum):
    """A twin that pays for half of the longest vector."""

    sensitivity = property(lambda self: BlockSum.sensitivity.fget(self) // 2)


class Apart(SeededNoise):
    """A twin whose coordinates know nothing of each other."""

    def _blocks(self, values, scale):
        noise = self._add("discrete_laplace", np.zeros(values.size, np.int64), scale)
        return values + noise.reshape(values.shape)


class TestLaw:
    @pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(3)])
    def test_noise_has_the_stated_joint_mass(self, source):
        assert self.fit(source, 1000, scale=0.9) > FALSE_ALARM

    @pytest.mark.parametrize(("drawn", "tested"), [(0.9, 1.4), (0.9, 0.6)])
    def test_another_scale_is_noticed(self, drawn, tested):
        assert self.fit(SeededNoise(3), 1000, scale=drawn, law=tested) < FALSE_ALARM

    def test_independent_noise_is_noticed(self):
        assert self.fit(Apart(3), 1000, scale=0.9) < FALSE_ALARM

    def fit(self, source, draws, *, scale, law=None):
        size = 2 * REACH + 1
        counts = np.zeros(size**4, dtype=int)
        zeros = np.zeros((2, 2), dtype=np.int64)
        for _ in range(draws):
            places = source.blocks_laplace(zeros, scale=scale).ravel() + REACH
            if places.min() >= 0 and places.max() < size:
                counts[np.ravel_multi_index(places, (size,) * 4)] += 1
        found = np.bincount(kinds()[1], weights=counts).astype(int)
        return p_value(found, joint_law(law or scale))

    @pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(1)])
    def test_it_is_added_to_the_values_and_saturates(self, source):
        values = np.array([[-(10**12), 10**12], [2**63 - 1, 0]])
        noisy = source.blocks_laplace(values, scale=3.0)
        assert np.abs(noisy[0] - values[0]).max() < 1000
        assert noisy[1, 0] > 2**63 - 1000

    def test_what_is_no_table_of_blocks_is_refused(self):
        for values, scale in ((np.zeros(2, np.int64), 1.0), (np.zeros((1, 2), np.int64), 2.0**49)):
            with pytest.raises(ParameterError):
                SecureNoise().blocks_laplace(values, scale=scale)
        with pytest.raises(ParameterError):
            BlockSum(grid=Grid(Box([0.0], [1.0]), step=0.5), epsilon=1.0)
        with pytest.raises(GridOverflowError):
            BlockSum(grid=Grid(PAIR, step=2.0**-40), epsilon=2.0**-10)


class TestPrivacy:
    @every_relation
    @settings(max_examples=60, deadline=None)
    @given(
        rows=st.lists(
            st.lists(st.floats(allow_nan=True), min_size=4, max_size=4), min_size=2, max_size=2
        )
    )
    def test_no_user_moves_the_sum_farther_than_is_paid_for(self, relation, rows):
        grid = Grid(PAIR, step=2.0**-12)
        mine, theirs = grid.encode(np.array(rows))
        other = theirs if relation is Relation.REPLACE else np.zeros_like(theirs)
        paid = BlockSum(grid=grid, epsilon=1.0, relation=relation).sensitivity
        assert norm(mine - other) <= paid

    @every_relation
    def test_somebody_moves_it_as_far(self, relation):
        grid = Grid(PAIR, step=2.0**-20)
        people = grid.encode(np.array([[9.0, 0, -9, 0], [0.0, 9, 9, 0]]))
        others = people if relation is Relation.REPLACE else np.zeros((1, 4), dtype=np.int64)
        worst = max(norm(a - b) for a, b in product(people, others))
        paid = BlockSum(grid=grid, epsilon=1.0, relation=relation).sensitivity
        assert 0.999 * paid < worst <= paid

    @pytest.mark.parametrize("kind", [BlockSum, Halved])
    @every_relation
    def test_no_output_is_likelier_than_epsilon_allows(self, kind, relation):
        """Over all that two users can add, in steps, and all outputs near them."""
        mechanism = kind(grid=SMALL, epsilon=0.8, relation=relation)
        world = [
            np.array(z)
            for z in product([0, 1, 2], [0, 1, 2], [-2, -1, 0, 1, 2], [-2, -1, 0, 1, 2])
            if z[0] + z[1] <= 2 and abs(z[2]) + abs(z[3]) <= 2
        ]
        others = world if relation is Relation.REPLACE else [np.zeros(4, dtype=np.int64)]
        outputs = np.stack(np.meshgrid(*[np.arange(-3, 4)] * 4), axis=-1).reshape(-1, 2, 2)

        def logs(totals):
            away = np.abs(outputs - totals.reshape(2, 2)).sum(axis=2).max(axis=1)
            return -away / mechanism.scale

        known = [logs(z) for z in world]
        against = known if relation is Relation.REPLACE else [logs(z) for z in others]
        worst = max(np.abs(a - b).max() for a, b in product(known, against))
        if kind is BlockSum:
            assert worst == pytest.approx(0.8, abs=1e-9)
        else:
            assert worst > 0.8 + 1e-6

    def test_it_is_priced_as_it_is_drawn(self):
        mechanism = BlockSum(grid=SMALL, epsilon=0.3)
        assert mechanism.event == Pure(0.3)
        assert pure_loss(mechanism.sensitivity, mechanism.scale) <= 0.3


class TestUtility:
    def drawn(self, parts, groups, runs=1500):
        bound = Blocks((Ball(1.0, dimension=groups, norm=1),) * parts)
        mechanism = BlockSum(
            grid=Grid(bound, step=2.0**-12), epsilon=1.0, relation=Relation.ADD_REMOVE
        )
        zeros, source = np.zeros(parts * groups, np.int64), SeededNoise(0)
        drawing = Drawing(mechanism, source)
        return mechanism, np.array([drawing.release(zeros, count=0.0) for _ in range(runs)])

    @pytest.mark.parametrize(("parts", "groups"), [(1, 3), (3, 1), (3, 2), (2, 5)])
    def test_the_noise_is_as_wide_as_is_said(self, parts, groups):
        mechanism, noise = self.drawn(parts, groups)
        assert noise.std() == pytest.approx(mechanism.standard_error, rel=0.06)
        assert mechanism.standard_error == pytest.approx(block_deviation(parts, groups), rel=1e-2)
        assert np.mean(np.abs(noise) > block_quantile(0.05, parts, groups)) == pytest.approx(
            0.05, abs=0.012
        )

    def test_one_vector_has_laplace_noise(self):
        for groups in (1, 4):
            assert block_deviation(1, groups) == pytest.approx(np.sqrt(2.0))
            assert block_quantile(0.01, 1, groups) == pytest.approx(np.log(100), rel=0.01)

    def test_it_is_smaller_than_independent_noise(self):
        bound = Blocks((Ball(1.0, dimension=2, norm=1),) * 3)
        joint, plain = (
            kind(grid=Grid(bound, step=2.0**-20), epsilon=1.0) for kind in (BlockSum, LaplaceSum)
        )
        assert joint.standard_error == pytest.approx(0.72 * plain.standard_error, rel=0.01)

    def test_error_bounds_hold_and_are_not_loose(self):
        mechanism, noise = self.drawn(3, 2)
        worst = np.abs(noise).max(axis=1)
        assert np.mean(worst > mechanism.error_bound(0.1)) <= 0.1
        assert np.mean(worst > 0.8 * mechanism.error_bound(0.1)) > 0.1
