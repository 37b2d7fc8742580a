"""An offset or a vote: one user never moves a sum by more than the bound says."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowds_of_shares import crowd_of
from quorate.core.bounds.grid import Grid
from quorate.core.bounds.trimmed import Trimmed
from quorate.core.guarantees import Relation
from quorate.distributions.categories.trimming import TrimmedRows
from quorate.distributions.shares import CategoryCodes
from quorate.exceptions import ParameterError
from sealing import total_of

CENTRE = np.array([0.5, 0.3, 0.2])
BOUNDS = [Trimmed(r, CENTRE, norm=norm) for r in (0.05, 0.4, 2.0) for norm in (1, 2)]
every_bound = pytest.mark.parametrize("bound", BOUNDS, ids=repr)


class LongVote(Trimmed):
    """A twin whose votes are longer than is free."""

    @property
    def vote(self):
        return 1.8 * self.radius


class LongShares(Trimmed):
    """A twin whose shares outside are longer than is free."""

    @property
    def whole(self):
        return 1.9 * self.radius


class Unclipped(Trimmed):
    """A twin that forgets to leave anybody out."""

    def offsets_in_steps(self, values, step, *, out):
        out[:] = (values - self.centre) / step


def violations(grid, integers):
    """Return the relations whose sensitivity, in the norm of the ball, is broken."""
    rows = [[int(z) for z in row] for row in integers]
    zero = [0] * grid.bound.dimension
    broken = set()
    for relation, others in ((Relation.REPLACE, rows), (Relation.ADD_REMOVE, [zero])):
        l1, squared = Trimmed.change_in_steps(grid.bound, grid.step, relation)
        for mine, theirs in product(rows, others):
            moves = [abs(a - b) for a, b in zip(mine, theirs, strict=True)]
            if sum(moves) > l1 or sum(m * m for m in moves) > squared:
                broken.add(relation)
            # In the norm of balanced noise: the larger of all rises and all falls, twice.
            joint = Trimmed.joint_in_steps(grid.bound, grid.step, relation)
            split, change = (0, l1) if joint is None else (joint[1][0], joint[2])
            offsets = [a - b for a, b in zip(mine, theirs, strict=True)][:split]
            sides = [sum(max(sign * o, 0) for o in offsets) for sign in (1, -1)]
            if 2 * max(sides) + sum(moves[split:]) > change:
                broken.add(relation)
    return broken


class OneSided(Trimmed):
    """A twin that looks at the sum of all offsets only, so that rises alone may be too long."""

    def offsets_in_steps(self, values, step, *, out):
        super().offsets_in_steps(values, step, out=out)
        inner = self.categories
        offsets = values[:, :inner] - self.centre[:inner]
        close = np.abs(offsets[:, :-1]).sum(axis=1) <= self.radius
        out[close, : inner - 1] = offsets[close, :-1] / step
        out[close, inner:] = 0.0


def rows_of(rng, bound, count):
    shares = rng.dirichlet(np.full(3, 0.3), size=count)
    near = CENTRE + (shares - CENTRE) * rng.random((count, 1)) * bound.radius
    rows = np.zeros((2 * count, 8))
    rows[:count, :3], rows[count:, :3] = shares, near
    rows[::5, 7] = 1.0
    return rows


class TestSensitivity:
    @every_bound
    def test_no_two_users_are_farther_apart_than_the_bound_says(self, bound):
        rows = rows_of(np.random.default_rng(0), bound, 40)
        for step in (2.0**-6, 2.0**-12, 2.0**-30):
            if bound.radius / step >= 1:
                grid = Grid(bound, step)
                assert violations(grid, grid.encode(rows)) == set()

    @every_bound
    @settings(max_examples=40)
    @given(
        values=st.lists(
            st.lists(st.floats(allow_nan=True), min_size=8, max_size=8), min_size=2, max_size=4
        )
    )
    def test_not_even_for_hostile_rows(self, bound, values):
        grid = Grid(bound, 2.0**-12)
        assert violations(grid, grid.encode(np.array(values))) == set()

    @pytest.mark.parametrize("norm", [1, 2])
    def test_some_pair_comes_close(self, norm):
        grid = Grid(Trimmed(0.5, CENTRE, norm=norm), 2.0**-20)
        rows = np.zeros((2, 8))
        rows[:, :3] = CENTRE
        length = 0.499 if norm == 2 else 0.249
        rows[0, 0] += length
        rows[1, 0] -= length
        change = np.abs(np.diff(grid.encode(rows), axis=0))
        claimed = grid.bound.change_in_steps(grid.step, Relation.REPLACE)
        # What is missing to 0 is not written, and counts as much.
        reached = 2 * change.sum() if norm == 1 else (change.astype(object) ** 2).sum()
        assert reached > 0.99 * claimed[norm - 1]

    @pytest.mark.parametrize("norm", [1, 2])
    @pytest.mark.parametrize("twin", [LongVote, LongShares])
    def test_a_vote_or_a_whole_that_is_too_long_is_caught(self, norm, twin):
        rows = np.zeros((4, 8))
        rows[1, 0] = rows[2, 2] = 1.0
        rows[3, 7] = 1.0
        rows[0, :3] = CENTRE
        rows[0, :2] += [0.14, -0.14] if norm == 1 else [0.29, 0.0]
        honest = Grid(Trimmed(0.3, CENTRE, norm=norm), 2.0**-20)
        found = Grid(twin(0.3, CENTRE, norm=norm), 2.0**-20).encode(rows).astype(object)
        change = honest.l1_sensitivity(Relation.REPLACE)
        squared = honest.l2_sensitivity_squared(Relation.REPLACE)
        moves = [np.abs(mine - theirs) for mine in found for theirs in found]
        if norm == 1:
            assert max(move.sum() for move in moves) > change
        else:
            assert max((move**2).sum() for move in moves) > squared

    def test_forgetting_to_leave_out_is_caught(self):
        grid = Grid(Unclipped(0.05, CENTRE, norm=2), 2.0**-12)
        assert violations(grid, grid.encode([[1.0] + [0] * 7, [0, 0, 1.0] + [0] * 5]))

    def test_rises_that_are_too_long_are_caught(self):
        rows = np.zeros((2, 8))
        rows[:, :3] = [[0.95, 0.3, 0.2], [0.05, 0.3, 0.2]]
        honest, twin = (Grid(kind(0.5, CENTRE, norm=1), 2.0**-12) for kind in (Trimmed, OneSided))
        assert violations(honest, honest.encode(rows)) == set()
        assert violations(twin, twin.encode(rows))


class TestMeaning:
    @pytest.mark.parametrize("norm", [1, 2])
    def test_users_inside_add_offsets_and_the_others_their_shares(self, norm):
        crowd = crowd_of([[0, 0, 1, 2], [2, 2, 2, 1], [], [0, 1]])
        grid = Grid(Trimmed(0.5, CENTRE, norm=norm), 2.0**-30)
        work = TrimmedRows(CategoryCodes(3), grid.bound)
        totals = grid.decode(total_of(crowd, work, grid), count=0)
        votes = totals[-2:] / grid.bound.vote
        assert votes == pytest.approx([1.0 if norm == 2 else 0.0, 1.0], abs=1e-6)
        assert totals[3:6] / grid.bound.whole == pytest.approx([0.0, 0.25, 0.75], abs=1e-6)
        inside = np.array([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]]) - CENTRE
        written = inside.sum(axis=0) * ([1, 1, 0] if norm == 1 else [1, 1, 1])
        assert totals[:3] == pytest.approx(written, abs=1e-6)

    def test_a_user_is_the_same_in_every_company(self):
        rng = np.random.default_rng(1)
        lists = [rng.integers(0, 3, size=rng.integers(0, 9)) for _ in range(30)]
        grid = Grid(Trimmed(0.37, CENTRE, norm=1), 2.0**-30)
        work = TrimmedRows(CategoryCodes(3), grid.bound)
        together = total_of(crowd_of(lists), work, grid)
        alone = sum(total_of(crowd_of([mine]), work, grid) for mine in lists)
        assert np.array_equal(together, alone)

    @pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, 3.0])
    def test_radii_that_make_no_sense_are_refused(self, radius):
        with pytest.raises(ParameterError):
            Trimmed(radius, CENTRE, norm=2)
