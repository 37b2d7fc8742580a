"""The relaxed vertex cover: right, integral, and never moved by more than one by one user."""

import numpy as np
import pytest
from scipy.optimize import linprog

from conversion_graphs import JUMP, graph, greedy_cover, jump_graphs
from quorate.core import vertex_cover
from quorate.core.vertex_cover import half_integral_cover
from quorate.exceptions import NumericalFailure, SchemaError


def random_graph(rng):
    n = int(rng.integers(2, 14))
    edges = np.triu(rng.random((n, n)) < rng.uniform(0.05, 0.7), 1)
    return edges | edges.T


def one_user_changed(edges, rng):
    other = edges.copy()
    user = int(rng.integers(len(edges)))
    joined = rng.random(len(edges)) < rng.uniform(0, 1)
    joined[user] = False
    other[user, :] = other[:, user] = joined
    return other


def test_the_value_is_that_of_the_linear_program():
    rng = np.random.default_rng(0)
    for _ in range(60):
        edges = random_graph(rng)
        pairs = np.argwhere(np.triu(edges))
        cover = half_integral_cover(edges)
        if len(pairs) == 0:
            assert cover.value == 0
            continue
        rows = np.zeros((len(pairs), len(edges)))
        rows[np.arange(len(pairs))[:, None], pairs] = -1
        best = linprog(np.ones(len(edges)), A_ub=rows, b_ub=-np.ones(len(pairs)), bounds=(0, 1))
        assert cover.doubled.sum() == pytest.approx(2 * best.fun, abs=1e-6)


def largest_move(size, n_pairs=1500):
    rng = np.random.default_rng(1)
    moves = [abs(size(e) - size(f)) for e, f in [jump_graphs()]]
    for _ in range(n_pairs):
        edges = random_graph(rng)
        moves.append(abs(size(edges) - size(one_user_changed(edges, rng))))
    return max(moves)


def test_one_user_moves_the_value_by_at_most_one():
    assert largest_move(lambda edges: half_integral_cover(edges).value) == 1


def test_the_same_test_catches_the_greedy_cover():
    assert largest_move(lambda edges: int(greedy_cover(edges).sum()), n_pairs=0) == 3


def test_members_are_a_cover_of_at_most_twice_the_value():
    rng = np.random.default_rng(2)
    for _ in range(300):
        edges = random_graph(rng)
        cover = half_integral_cover(edges)
        assert not edges[np.ix_(~cover.members, ~cover.members)].any()
        assert cover.members.sum() <= 2 * cover.value


def test_no_users_and_no_edges():
    assert half_integral_cover(np.zeros((0, 0), dtype=bool)).value == 0
    assert half_integral_cover(np.zeros((5, 5), dtype=bool)).value == 0


def test_a_matching_that_is_not_the_largest_is_noticed(monkeypatch):
    monkeypatch.setattr(vertex_cover, "_matching", lambda e: np.full(len(e), -1, dtype=np.int64))
    with pytest.raises(NumericalFailure, match="not the smallest"):
        half_integral_cover(graph(JUMP))


def test_what_is_no_graph_is_refused():
    with pytest.raises(SchemaError, match="square matrix of bool"):
        half_integral_cover(np.zeros((2, 3), dtype=bool))
    with pytest.raises(SchemaError, match="without loops"):
        half_integral_cover(np.eye(2, dtype=bool))
