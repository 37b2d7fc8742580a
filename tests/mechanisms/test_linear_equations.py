"""Elimination over two elements, against all solutions found by trying."""

import itertools

import numpy as np
import pytest

from quorate.mechanisms.linear_equations import full_rank_probability, pack_bits, solve


def all_solutions(truth, labels):
    unknowns = truth.shape[1]
    return {
        secret
        for secret in range(2**unknowns)
        if all(
            sum(secret >> j & 1 for j in np.flatnonzero(row)) % 2 == label
            for row, label in zip(truth, labels, strict=True)
        )
    }


def test_all_systems_of_three_equations_with_two_unknowns():
    for bits in itertools.product([False, True], repeat=9):
        table = np.array(bits).reshape(3, 3)
        truth, labels = table[:, :2], table[:, 2]
        space = solve(pack_bits(truth), labels, unknowns=2)
        found = set() if space is None else {space.point(f) for f in range(2**space.dimension)}
        assert found == all_solutions(truth, labels)


@pytest.mark.parametrize("unknowns", [1, 5, 63, 64, 65, 130])
def test_points_satisfy_the_equations_and_differ(unknowns):
    rng = np.random.default_rng(unknowns)
    secret = rng.integers(0, 2, unknowns).astype(bool)
    truth = rng.integers(0, 2, (max(1, unknowns - 3), unknowns)).astype(bool)
    truth[-1] = truth[0]  # a repeated equation
    labels = (truth & secret).sum(axis=1) % 2 == 1
    space = solve(pack_bits(truth), labels, unknowns=unknowns)
    points = {space.point(free) for free in range(min(8, 2**space.dimension))}
    assert len(points) == min(8, 2**space.dimension)
    for point in points:
        bits = np.array([point >> j & 1 for j in range(unknowns)], dtype=bool)
        assert np.array_equal((truth & bits).sum(axis=1) % 2 == 1, labels)


def test_contradictions_are_none_and_not_an_error():
    zeros = pack_bits(np.zeros((2, 70), bool))
    assert solve(zeros, np.array([False, True]), unknowns=70) is None
    assert solve(zeros, np.array([False, False]), unknowns=70).dimension == 70
    assert solve(zeros[:0], np.zeros(0, bool), unknowns=70).dimension == 70


def test_the_input_is_not_changed():
    rows = pack_bits(np.eye(5, dtype=bool)[::-1])
    before = rows.copy()
    solve(rows, np.ones(5, bool), unknowns=5)
    assert np.array_equal(rows, before)


@pytest.mark.parametrize(("equations", "unknowns"), [(2, 2), (3, 2), (4, 3), (2, 3)])
def test_the_chance_of_full_rank_is_that_of_all_matrices(equations, unknowns):
    full = 0
    for bits in itertools.product([False, True], repeat=equations * unknowns):
        rows = pack_bits(np.array(bits).reshape(equations, unknowns))
        full += solve(rows, np.zeros(equations, bool), unknowns=unknowns).dimension == 0
    expected = full / 2 ** (equations * unknowns)
    assert full_rank_probability(equations, unknowns) == pytest.approx(expected, abs=1e-15)


def test_bits_are_packed_in_order():
    truth = np.random.default_rng(0).integers(0, 2, (4, 100)).astype(bool)
    packed = pack_bits(truth)
    assert packed.shape == (4, 2)
    for row, words in zip(truth, packed, strict=True):
        number = int(words[0]) | int(words[1]) << 64
        assert [number >> j & 1 for j in range(100)] == row.astype(int).tolist()
