"""Tails: where people are seen, what a cap cuts of them, and bounds that hold in 19 of 20 cases."""

import numpy as np
import pytest

from quorate.tabulate.tails import Tail, ladder, noise_odds, whole_ladder

EDGES = ladder(1.0, 2.0**20, 1)


def tally(lengths, edges=EDGES):
    places = np.minimum(np.searchsorted(edges, lengths), len(edges) - 1)
    return np.bincount(places, minlength=len(edges)).astype(float)


def drawn(lengths, *, size, seed, edges=EDGES, **known):
    noise = np.random.default_rng(seed).laplace(0, size, len(edges))
    return Tail(edges=edges, counts=tally(lengths, edges) + noise, size=size, **known)


def test_edges_are_at_most_doublings_and_reach_their_ends():
    assert ladder(0.5, 3.0, 1).tolist() == [0.5, 1.0, 2.0, 4.0]
    assert ladder(0.5, 3.0, 2)[::2].tolist() == [0.5, 1.0, 2.0, 4.0]
    for high in (2, 3, 7, 100, 1000):
        for steps in (1, 2, 4):
            edges = whole_ladder(high, steps)
            assert edges[0] == 1
            assert edges[-1] == high
            assert np.all(np.diff(edges) > 0)
            assert np.all(edges[1:] <= 2 * edges[:-1])


@pytest.mark.parametrize("rows", [1, 20, 1000])
def test_everybody_alike_is_cut_by_nobody(rows):
    caps = [drawn(np.full(2000, rows), size=8.0, seed=seed).cap(9.0) for seed in range(100)]
    assert min(caps) >= rows
    assert np.mean(np.array(caps) < 2 * rows + 0.5) > 0.9


@pytest.mark.parametrize("index", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("pressure", [2.0, 200.0])
def test_bounds_hold_what_a_cap_cuts(index, pressure):
    inside = []
    for seed in range(100):
        lengths = np.ceil(np.random.default_rng(seed).pareto(index, 3000) + 1.0)
        tail = drawn(lengths, size=6.0, seed=1000 + seed)
        cap = tail.cap(pressure)
        inside.append(np.maximum(lengths - cap, 0).sum() <= tail.worst(cap)[0])
        assert tail.known
        assert tail.cut(cap) <= tail.worst(cap)[0]
    assert np.mean(inside) >= 0.93


def test_a_twin_that_takes_the_tail_for_what_it_expects_does_not_hold():
    inside = []
    for seed in range(100):
        lengths = np.ceil(np.random.default_rng(seed).pareto(1.5, 3000) + 1.0)
        tail = drawn(lengths, size=6.0, seed=1000 + seed)
        cap = tail.cap(200.0)
        inside.append(np.maximum(lengths - cap, 0).sum() <= tail.cut(cap))
    assert np.mean(inside) < 0.9


def test_more_noise_in_the_cells_takes_a_shorter_cap():
    lengths = np.ceil(np.random.default_rng(0).lognormal(1.0, 1.0, 20_000))
    tail = drawn(lengths, size=5.0, seed=1)
    caps = [tail.cap(pressure) for pressure in (1.0, 100.0, 10_000.0)]
    assert caps == sorted(caps, reverse=True)
    assert caps[0] > caps[2]
    assert all(cap in EDGES for cap in caps)


def test_nobody_seen_is_not_known_and_noise_is_no_tail():
    tops, known = [], []
    for seed in range(200):
        tail = drawn(np.empty(0), size=9.0, seed=seed)
        known.append(tail.known)
        tops.append(tail.top)
        closed = drawn(np.empty(0), size=9.0, seed=seed, closed=True, unseen=20)
        tops.append(20 - closed.top)
    assert np.mean(np.array(tops) > 0) <= 0.1
    assert np.mean(known) <= 0.1


@pytest.mark.parametrize("people", [100, 2000])
@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("law", [0.5, 1.0, 1.3])
def test_few_people_with_the_slowest_tails_have_a_bound_that_holds(law, steps, people):
    """A hundred people are 8 times the noise: nobody can tell how their tail falls."""
    edges, inside, without, far = whole_ladder(2.0**20, steps), [], [], []
    for seed in range(100):
        lengths = np.ceil(np.random.default_rng(seed).pareto(law, people) + 0.5)
        lengths = np.minimum(lengths, 2.0**20)
        known = {"edges": edges, "steps": steps, "whole": True, "shortest": 0.5}
        tail = drawn(lengths, size=12.0, seed=1000 + seed, **known)
        lost = np.maximum(lengths - tail.cap(10.0), 0).sum()
        infinite = np.inf if not tail.known else 0.0
        inside.append(lost <= tail.worst(tail.cap(10.0))[0] + infinite)
        far.append(lost <= tail.worst(tail.cap(10.0), far=True)[0] + infinite)
        # The twin takes every tail for one with a finite mean, as if that were known.
        twin = drawn(lengths, size=12.0, seed=1000 + seed, least=1.5, **known)
        without.append(lost <= twin.worst(twin.cap(10.0))[0] + infinite)
    # Where the mean itself is infinite, one person in twenty holds most of what there is.
    assert np.mean(inside) >= {0.5: 0.85, 1.0: 0.9, 1.3: 0.93}[law]
    assert np.mean(far) >= 0.99
    if law == 0.5 and people == 2000:
        assert np.mean(without) < 0.5


@pytest.mark.parametrize("law", [0.5, 1.0, 2.0, 4.0])
def test_the_least_index_is_not_above_the_true_one(law):
    """Of exact Pareto laws, where every window is as steep as the tail."""
    above = {0.05: [], 0.5: []}
    for seed in range(200):
        lengths = np.random.default_rng(seed).pareto(law, 3000) + 1.0
        tail = drawn(lengths, size=5.0, seed=1000 + seed, edges=ladder(1.0, 2.0**20, 2), steps=2)
        for level, found in above.items():
            found.append(tail.index(level) > law)
    assert np.mean(above[0.05]) <= 0.05
    # The twin, which leaves less to noise, is above it more often.
    assert np.mean(above[0.5]) > 0.05


def test_a_few_who_hold_three_hundred_times_as_much_are_in_the_bound():
    """A cap does not follow them, for noise looks like them too often; the bound has to."""
    lengths, inside, caps, near = np.r_[np.full(4000, 6.0), np.full(90, 2000.0)], [], [], []
    for seed in range(60):
        tail = drawn(lengths, size=6.0, seed=seed, edges=whole_ladder(2.0**20, 2), steps=2)
        caps.append(tail.cap(200.0))
        lost = np.maximum(lengths - caps[-1], 0).sum()
        inside.append(lost <= tail.worst(caps[-1])[0])
        near.append(lost <= tail.cut(caps[-1]))
    assert np.mean(inside) > 0.93
    assert np.median(caps) < 20.0
    # The control does not look beyond the top.
    assert np.mean(near) < 0.5


def test_the_odds_of_noise_are_those_of_sums_of_laplace_variables():
    drawn_sums = np.random.default_rng(0).laplace(size=(400_000, 8))
    for count in (1, 2, 4, 8):
        for total in (2.0, 4.0, 8.0):
            share = np.mean(drawn_sums[:, :count].sum(axis=1) > total)
            odds = np.exp(noise_odds(count, total))
            assert share == pytest.approx(odds, rel=0.05, abs=2e-4)


def test_few_who_hold_much_are_seen_beside_many_who_hold_nothing():
    """One in eight of 540 is ill: people without anything do not hide them."""
    edges = ladder(2.0**-8, 4.0, 1)
    seen = []
    for seed in range(40):
        tail = drawn(np.full(70, 1.0), size=9.0, seed=seed, edges=edges, closed=True)
        assert tail.known
        seen.append(tail.edges[tail.top] >= 1.0)
    assert np.mean(seen) > 0.9


def test_where_the_last_edge_is_all_there_is_nothing_is_beyond():
    edges = whole_ladder(4.0, 2)
    tail = Tail(edges=edges, counts=np.array([0.0, 0.0, 0.0, 900.0]), size=5.0, closed=True)
    assert tail.cut(4.0) == 0.0
    assert tail.worst(4.0)[0] == 0.0
    assert tail.cut(2.0) == pytest.approx(1350.0)
    assert tail.worst(2.0)[0] > 1800.0
