"""What a compiled program adds for a user lies in the ball and its lift, to the last integer."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from quorate.core.bounds.grid import Ball, Grid
from quorate.core.bounds.lifted_ball import LiftedBall
from quorate.core.compiled import LARGEST_STEPS, CompiledProgram, CompiledSums
from quorate.core.placed import Batch, PlacedSum, Places
from quorate.core.users import UserData
from quorate.exceptions import SchemaError

pytest.importorskip("jax", reason="JAX is not installed: quorate[jax]")

SIZES = (3, 4)
WIDTH = 4


def first_record(weights, rows, targets, present):
    """Say that the gradient of a user is the first record, as it is."""
    return [rows[0, :3], rows[0, 3:]]


SUMS = CompiledSums(first_record, SIZES)


def grid(radius=1.0, *, cone=False, steps=LARGEST_STEPS):
    bound = LiftedBall(radius, centre=np.zeros(7), cone=cone)
    return Grid(bound, 2.0 ** np.ceil(np.log2(radius / steps)))


def program(gradient=first_record):
    sums = SUMS if gradient is first_record else CompiledSums(gradient, SIZES)
    return CompiledProgram(sums, [np.zeros(1, np.float32)], lambda batch: batch.rows[:, 0])


def added(vectors, grid, which=None):
    """Return the integers that each of some vectors adds, one micro-batch for each."""
    which = program() if which is None else which
    found = []
    for vector in np.atleast_2d(vectors):
        rows = np.zeros((WIDTH, 1, 7), np.float32)
        with np.errstate(all="ignore"):
            rows[1, 0] = vector
        batch = Batch(rows, np.zeros((WIDTH, 1), np.float32), np.ones((WIDTH, 1), bool))
        taken = np.arange(WIDTH) == 1
        found.append(which.total(batch, taken, 1, grid, width=WIDTH))
    return np.array(found)


def beyond(integers, grid):
    """Return which of the points lie beyond the lifted ball, by exact arithmetic."""
    reach = Fraction(grid.bound.radius) / Fraction(grid.step)
    found = []
    for place, row in enumerate(integers.tolist()):
        square, height = sum(x * x for x in row[:-1]), row[-1]
        if grid.bound.cone:
            inside = 0 <= height <= reach and square <= (reach - height) ** 2
        else:
            left = 3 * reach**2 - square - height**2
            inside = height >= 0 and left >= 0 and 4 * reach**2 * square <= left**2
        if not inside:
            found.append(place)
    return found


def adversarial():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(60, 7)) * 10.0 ** rng.uniform(-9, 9, (60, 1))
    units = np.eye(7)[:3] * np.array([[1.0], [1.0 - 2.0**-24], [1.0 + 2.0**-23]])
    odd = np.zeros((8, 7))
    odd[0], odd[1, 2], odd[2, 3], odd[3] = np.nan, np.inf, -np.inf, 3e38
    odd[4], odd[5, 0], odd[6], odd[7, :2] = 1e-45, 1e-30, 1e19, (1e30, 1e-30)
    near = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    return np.concatenate([plain, near, near * (1.0 + 1e-7), units, odd])


@pytest.mark.parametrize("cone", [False, True])
class TestBall:
    @pytest.mark.parametrize("radius", [1.0, 0.7, 3e-5, 1e6])
    @pytest.mark.parametrize("steps", [LARGEST_STEPS, 2**12])
    def test_whatever_somebody_holds_stays_in_the_ball(self, radius, steps, cone):
        held = grid(radius, cone=cone, steps=steps)
        assert SUMS.fits(held, width=WIDTH)
        vectors = adversarial() * radius
        assert beyond(added(vectors, held), held) == []

    def test_it_is_reached(self, cone):
        """The largest vector is as long as the radius, and the lift of nothing is the whole."""
        held = grid(cone=cone)
        far, none = added([[9.0, *[0.0] * 6], [0.0] * 7], held)
        assert 1.0 - far[0] * held.step < 2.0**-17
        assert far[1:7].tolist() == [0] * 6
        assert none[:-1].tolist() == [0] * 7
        assert none[-1] * held.step == pytest.approx(1.0 if cone else 3**0.5, rel=2.0**-18)

    def test_it_is_the_clip_of_64_bits_up_to_rounding(self, cone):
        held = grid(cone=cone)
        vectors = np.random.default_rng(1).normal(size=(40, 7)) * 0.4
        exact = held.encode(np.column_stack([vectors.astype(np.float32), np.zeros(40)]))
        assert np.abs(added(vectors, held)[:, :-1] - exact[:, :-1]).max() <= 8

    def test_what_is_not_finite_adds_nothing(self, cone):
        odd = np.zeros((3, 7))
        odd[0], odd[1, 2], odd[2] = np.nan, np.inf, 3e38
        assert not added(odd, grid(cone=cone)).any()

    def test_a_twin_that_does_not_clip_is_caught(self, cone, monkeypatch):
        held = grid(cone=cone)
        monkeypatch.setattr("quorate.core.compiled._UNIT", 0.0)
        monkeypatch.setattr("quorate.core.compiled._ROUNDINGS", -1e-3)
        fresh = CompiledProgram(CompiledSums(first_record, SIZES), [np.zeros(1)], None)
        assert beyond(added(adversarial(), held, fresh), held) != []


def people(counts):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(sum(counts), 7)) * 0.3
    offsets = np.r_[0, np.cumsum(counts)]
    return UserData(X, np.zeros(len(X)), offsets=offsets, ids=np.arange(len(counts)))


COUNTS = [1, 2, 3, 0, 1, 9, 1, 1, 5, 2] * 7


def total(users, *, width, ranked=False, handed=None, lengths=(1, 4)):
    held = program()
    if handed is not None:
        held = CompiledProgram(Handing(first_record, SIZES), held.weights, held.rows)
        object.__setattr__(held.sums, "many", handed)
    ranks = np.sort(users.keys()) if ranked else None
    return PlacedSum(held, grid(), Places(width=width, lengths=lengths), ranks)(users)


class Handing(CompiledSums):
    """Hands over another number of micro-batches at once."""

    def together(self, **_):
        return self.many


class TestSums:
    def test_sizes_of_batches_decide_nothing(self):
        users = people(COUNTS)
        expected = total(users, width=4).tolist()
        for width, handed in ((1, None), (16, None), (4, 1), (4, 3)):
            assert grid().join(np.array(total(users, width=width, handed=handed))).tolist() == (
                grid().join(np.array(expected)).tolist()
            )

    def test_it_is_the_sum_of_what_everybody_adds(self):
        users = people([1, 2, 3, 0, 4] * 7)
        firsts = [
            users.X[start] if start < stop else np.zeros(7)
            for start, stop in itertools.pairwise(users.offsets)
        ]
        together = grid().join(total(users, width=4))
        assert np.array_equal(added(firsts, grid()).sum(axis=0), together)

    def test_a_network_that_raises_is_not_quoted(self):
        def raising(*_):
            raise ValueError("31337")

        held = PlacedSum(program(raising), grid(), Places(width=4, lengths=(1,)), None)
        with pytest.raises(SchemaError, match="withheld") as caught:
            held(people([1]))
        assert "31337" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None

    def test_nobody_adds_nothing(self):
        assert not total(people(COUNTS).take(np.array([], dtype=int)), width=4).any()

    def test_what_it_is_not_proved_for_is_clipped_in_64_bits(self):
        assert not SUMS.fits(Grid(Ball(1.0, dimension=7), 2.0**-20), width=WIDTH)
        assert not SUMS.fits(Grid(LiftedBall(1.0, centre=np.ones(7)), 2.0**-20), width=WIDTH)
        assert not SUMS.fits(Grid(LiftedBall(1.0, centre=np.zeros(7)), 2.0**-40), width=WIDTH)
        assert not SUMS.fits(Grid(LiftedBall(2.0**-90, centre=np.zeros(7)), 2.0**-110), width=WIDTH)
        assert SUMS.fits(grid(), width=1024)
        assert not SUMS.fits(grid(), width=1025)
        many = CompiledSums(first_record, [2**22])
        assert not many.fits(Grid(LiftedBall(1.0, centre=np.zeros(2**22)), 2.0**-20), width=WIDTH)

    def test_sums_fit_into_32_bits(self):
        for width in (1, 32, 512):
            for length in (1, 64):
                few = SUMS.together(width=width, length=length, features=7)
                assert few * width * 1.75 * LARGEST_STEPS < 2**31
