"""Trees against tables of all combinations: marginals, samples, fits."""

import itertools

import numpy as np
import pytest

from quorate.synth.tree import Forest, Measured, Tree, fit_tree, spanning_forest

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


@EACH
def test_exact_tables_of_a_tree_give_it_back(forest, hub):
    tree = some_tree(forest, hub)
    table, front = whole(tree), () if hub < 0 else (hub,)
    names = [(*front, *((p,) if p >= 0 else ()), n) for n, p in forest.pairs]
    exact = [np.einsum(table, range(4), names[place]) for place in range(len(names))]
    measured = [Measured(nodes, each, 1e-3) for nodes, each in zip(names, exact, strict=True)]
    found = fit_tree(forest, SIZES, measured, total=1.0, hub=hub)
    assert np.abs(whole(found) - table).sum() < 0.02


def test_a_fit_is_nearer_to_the_truth_than_what_was_measured():
    tree, rng = some_tree(CHAIN, -1), np.random.default_rng(3)
    pairs = tree.pairs()
    names = [(2, 0), (0, 1), (0, 3)]
    exact = [pairs[0, 2].T, pairs[0, 1], pairs[0, 3]]
    noisy = [each + rng.normal(0.0, 0.03, each.shape) for each in exact]
    measured = [Measured(n, each, 0.03) for n, each in zip(names, noisy, strict=True)]
    found = fit_tree(CHAIN, SIZES, measured, total=1.0).pairs()
    mine = [found[0, 2].T, found[0, 1], found[0, 3]]
    off = sum(np.abs(a - b).sum() for a, b in zip(mine, exact, strict=True))
    assert off < 0.8 * sum(np.abs(a - b).sum() for a, b in zip(noisy, exact, strict=True))
    assert all((each >= 0).all() and each.sum() == pytest.approx(1.0) for each in mine)


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
