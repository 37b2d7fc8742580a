"""Trees against tables of all combinations: marginals, samples, fits."""

import itertools

import numpy as np
import pytest

from quorate.synth.tree import Forest, Tree, join_tables, spanning_forest

SIZES = (3, 2, 4, 2)
CHAIN = Forest((2, 0, 1, 3), (-1, 2, 0, 0))
TWO = Forest((2, 0, 1), (-1, 2, -1))
EACH = pytest.mark.parametrize(("forest", "hub"), [(CHAIN, -1), (TWO, 3)], ids=["chain", "hub"])


def some_tree(forest, hub, seed=0):
    rng = np.random.default_rng(seed)
    hubs = 1 if hub < 0 else SIZES[hub]
    given = []
    for node, parent in forest.pairs:
        above = 1 if parent < 0 else SIZES[parent]
        given.append(rng.dirichlet(np.ones(SIZES[node]), (hubs, above)))
    return Tree(forest, hub, rng.dirichlet(np.ones(hubs)), tuple(given))


def whole(tree):
    """Return the probability of every combination, one factor after the other."""
    table = np.zeros(SIZES)
    for levels in itertools.product(*map(range, SIZES)):
        hub = 0 if tree.hub < 0 else levels[tree.hub]
        chance = tree.shares[hub]
        for (node, parent), given in zip(tree.forest.pairs, tree.given, strict=True):
            chance *= given[hub, 0 if parent < 0 else levels[parent], levels[node]]
        table[levels] = chance
    return table


def summed(table, *kept):
    return table.sum(axis=tuple(set(range(table.ndim)) - set(kept)))


@EACH
def test_pairs_are_those_of_the_whole_table(forest, hub):
    tree = some_tree(forest, hub)
    table = whole(tree)
    assert table.sum() == pytest.approx(1.0)
    assert set(tree.pairs()) == set(itertools.combinations(range(4), 2))
    for pair, found in tree.pairs().items():
        assert np.allclose(found, summed(table, *pair))
    assert all(np.allclose(tree.marginal(node), summed(table, node)) for node in range(4))


@EACH
def test_another_root_changes_nothing_that_is_given_it(forest, hub):
    tree = some_tree(forest, hub)
    wanted = np.array([0.1, 0.2, 0.3, 0.4])
    table = whole(tree)
    expected = table / summed(table, 2)[:, None] * wanted[:, None]
    assert np.allclose(whole(tree.with_root(wanted)), expected)


@EACH
def test_samples_follow_the_law_whatever_is_known(forest, hub):
    """Some columns are kept, by coins that know nothing: each record keeps the law of the tree."""
    tree, rng = some_tree(forest, hub), np.random.default_rng(1)
    n = 60_000
    first = tree.draw(np.full((n, 4), -1), rng)
    kept = rng.random((n, 4)) < 0.5
    second = tree.draw(np.where(kept, first, -1), rng)
    assert (second[kept] == first[kept]).all()
    table = whole(tree)
    for found in (first, second):
        counts = np.zeros(SIZES)
        np.add.at(counts, tuple(found.T), 1)
        known = table > 0
        chi = ((counts[known] - n * table[known]) ** 2 / (n * table[known])).sum()
        assert chi < known.sum() + 6 * np.sqrt(2 * known.sum())


def tables_of(forest, hub, table):
    """Return the distribution of each node, and those of the hub, each parent and its node."""
    front = () if hub < 0 else (hub,)
    names = [(*front, *((p,) if p >= 0 else ()), n) for n, p in forest.pairs]
    found = {nodes: np.einsum(table, range(4), nodes) for nodes in names if len(nodes) > 1}
    return [summed(table, node) for node in range(4)], found


@EACH
def test_exact_tables_of_a_tree_give_it_back(forest, hub):
    table = whole(some_tree(forest, hub))
    alone, tables = tables_of(forest, hub, table)
    found = join_tables(forest, alone, tables, hub=hub)
    assert found.fits(SIZES)
    assert np.abs(whole(found) - table).sum() < 1e-6


@EACH
def test_tables_that_contradict_each_other_are_joined_with_the_marginals_of_columns(forest, hub):
    rng = np.random.default_rng(2)
    alone, tables = tables_of(forest, hub, whole(some_tree(forest, hub)))
    strange = {
        nodes: rng.dirichlet(np.ones(t.size)).reshape(t.shape) for nodes, t in tables.items()
    }
    found = join_tables(forest, alone, strange, hub=hub)
    assert found.fits(SIZES)
    for node in range(4):
        assert np.abs(found.marginal(node) - alone[node]).sum() < 0.01


def test_levels_that_nobody_has_are_drawn_from_something():
    alone = [np.array([1.0, 0.0]), np.array([0.5, 0.5])]
    found = join_tables(
        Forest((0, 1), (-1, 0)), alone, {(0, 1): np.array([[0.5, 0.5], [0.0, 0.0]])}
    )
    assert found.fits((2, 2))


def test_the_forest_has_the_largest_weight_of_all():
    rng = np.random.default_rng(5)
    weights = rng.normal(0.3, 1.0, (5, 5))
    weights = weights + weights.T
    edges = list(itertools.combinations(range(5), 2))

    def is_forest(chosen):
        of = list(range(5))
        for a, b in chosen:
            if of[a] == of[b]:
                return False
            of = [of[a] if each == of[b] else each for each in of]
        return True

    best = max(
        sum(weights[edge] for edge in chosen)
        for size in range(5)
        for chosen in itertools.combinations(edges, size)
        if is_forest(chosen)
    )
    found = spanning_forest(weights, [3, 0, 1, 2, 4])
    assert found.order[0] == 3
    assert sum(weights[n, p] for n, p in found.pairs if p >= 0) == pytest.approx(best)


@pytest.mark.parametrize("broken", ["order", "sums", "shape", "negative"])
def test_what_is_no_tree_is_seen(broken):
    tree = some_tree(CHAIN, -1)
    assert tree.fits(SIZES)
    given = list(tree.given)
    forest = CHAIN
    if broken == "order":
        forest, given = Forest((0, 2, 1, 3), (2, -1, 0, 0)), [given[1], given[0], *given[2:]]
    if broken == "sums":
        given[1] = given[1] * 1.1
    if broken == "shape":
        given[1] = given[1][:, :2]
    if broken == "negative":
        given[1] = given[1] - np.array([[[2.0, -2.0, 0.0]]])
    assert not Tree(forest, -1, tree.shares, tuple(given)).fits(SIZES)
