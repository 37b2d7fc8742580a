r"""An exact distribution over several columns whose dependences form a forest.

All columns may depend on one column, the *hub*; there may be none. Given the hub, each column
depends on at most one other, its parent. Marginals of all pairs, and the conditional distribution
of some columns given the others, are computed exactly, by message passing.

The distribution is stored as one table per column: its conditional distribution given its parent.
Tables of the edges determine it if they agree on the columns they share. It is the distribution of
largest entropy with these tables. [1]_ Everything here is computed from released numbers.

References
----------
.. [1] Chow, Liu. Approximating discrete probability distributions with dependence trees. IEEE
   Trans. Inf. Theory 14(3), 1968.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.synth.shrinkage import fitted_to

__all__ = ["Forest", "Measured", "Tree", "join_tables", "spanning_forest"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Records at once, times levels, stay below this number of entries.
_BLOCK = 2**20


@dataclass(frozen=True)
class Forest:
    """Nodes in an order in which parents come before their children.

    Attributes
    ----------
    order : tuple of int
    parents : tuple of int
        For each node in this order, its parent; -1 for roots.
    """

    order: tuple[int, ...]
    parents: tuple[int, ...]

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Each node with its parent, -1 for a root."""
        return tuple(zip(self.order, self.parents, strict=True))


def spanning_forest(weights: Floats, nodes: Sequence[int]) -> Forest:
    """Return the maximum-weight forest of ``nodes``; it has only edges of positive weight.

    The first of the nodes is a root.

    >>> weights = np.array([[0.0, 5.0, 4.0], [5.0, 0.0, 9.0], [4.0, 9.0, 0.0]])
    >>> spanning_forest(weights, [2, 0, 1])
    Forest(order=(2, 1, 0), parents=(-1, 2, 1))
    >>> spanning_forest(-weights, [0, 1, 2]).parents
    (-1, -1, -1)
    """
    left = list(nodes)
    order: list[int] = []
    parents: list[int] = []
    while left:
        edges = [
            (weights[p, node], node, p) for p in order for node in left if weights[p, node] > 0
        ]
        _, node, parent = max(edges) if edges else (0.0, left[0], -1)
        order.append(node)
        parents.append(parent)
        left.remove(node)
    return Forest(tuple(order), tuple(parents))


@dataclass(frozen=True, eq=False)
class Tree:
    """A distribution over the levels of several nodes.

    Parameters
    ----------
    forest : Forest
        The forest of all nodes except the hub.
    hub : int
        The node of the hub; -1 without a hub.
    shares : array of shape (H,)
        The distribution of the hub; a single number without a hub.
    given : tuple of arrays of shape (H, levels of the parent, levels)
        For each node in the order of the forest, its distribution given the hub and the parent.

    Examples
    --------
    >>> copy = np.array([[[0.9, 0.1], [0.2, 0.8]]])
    >>> tree = Tree(Forest((0, 1), (-1, 0)), -1, np.ones(1), (np.array([[[0.5, 0.5]]]), copy))
    >>> tree.pairs()[0, 1].tolist()
    [[0.45, 0.05], [0.1, 0.4]]
    """

    forest: Forest
    hub: int
    shares: Floats
    given: tuple[Floats, ...]

    @property
    def nodes(self) -> int:
        """The number of nodes, including the hub."""
        return len(self.given) + (self.hub >= 0)

    def fits(self, sizes: Sequence[int]) -> bool:
        """Return whether this is a distribution over nodes with this many levels."""
        nodes = sorted([*self.forest.order, *([self.hub] if self.hub >= 0 else [])])
        if nodes != list(range(len(sizes))) or len(self.given) != len(self.forest.order):
            return False
        hubs, seen = sizes[self.hub] if self.hub >= 0 else 1, {-1}
        for (node, parent), table in zip(self.forest.pairs, self.given, strict=True):
            above = sizes[parent] if parent >= 0 else 1
            whole = table.shape == (hubs, above, sizes[node]) and parent in seen
            if not whole or (table < 0).any() or not np.allclose(table.sum(axis=2), 1.0):
                return False
            seen.add(node)
        return bool(self.shares.shape == (hubs,) and np.isclose(self.shares.sum(), 1.0))

    def pairs(self) -> dict[tuple[int, int], Floats]:
        """Return the marginal of every pair of nodes, the lower one first."""
        alone: dict[int, Floats] = {}
        joint: dict[tuple[int, int], Floats] = {}
        for (node, parent), table in zip(self.forest.pairs, self.given, strict=True):
            above = alone[parent] if parent >= 0 else np.ones((len(self.shares), 1))
            for other in alone:
                if other == parent:
                    both = above[:, :, None] * table
                elif parent < 0:
                    both = alone[other][:, :, None] * table
                else:
                    both = joint[other, parent] @ table
                joint[other, node], joint[node, other] = both, both.swapaxes(1, 2)
            alone[node] = np.einsum("hp,hpv->hv", above, table)
        found = {
            (a, b): np.einsum("h,hab->ab", self.shares, each)
            for (a, b), each in joint.items()
            if a < b
        }
        if self.hub >= 0:
            for node, each in alone.items():
                table = self.shares[:, None] * each
                low, high = sorted((self.hub, node))
                found[low, high] = table if low == self.hub else table.T
        return found

    def marginal(self, node: int) -> Floats:
        """Return the distribution of one node."""
        if node == self.hub:
            return self.shares
        other = next(n for n in (self.hub, *self.forest.order) if n not in (-1, node))
        table = self.pairs()[min(node, other), max(node, other)]
        return np.asarray(table.sum(axis=1 if node < other else 0))

    def with_root(self, shares: Floats) -> Tree:
        """Return the tree with another distribution of its first root; conditionals are unchanged.

        >>> copy = np.array([[[0.9, 0.1], [0.2, 0.8]]])
        >>> tree = Tree(Forest((0, 1), (-1, 0)), -1, np.ones(1), (np.array([[[0.5, 0.5]]]), copy))
        >>> tree.with_root(np.array([1.0, 0.0])).marginal(1).tolist()
        [0.9, 0.1]
        """
        table = self.shares[:, None] * self.given[0][:, 0]
        whole = table.sum(axis=0)
        hubs = np.where(whole > 0, table / np.where(whole > 0, whole, 1.0), self.shares[:, None])
        table = hubs * shares
        total = table.sum(axis=1)
        root = np.where(
            total[:, None] > 0, table / np.where(total > 0, total, 1.0)[:, None], shares
        )
        return Tree(self.forest, self.hub, total, (root[:, None], *self.given[1:]))

    def draw(self, known: Integers, generator: Any) -> Integers:
        """Return one level of each node for each row, given the levels that are not -1.

        >>> copy = np.array([[[1.0, 0.0], [0.0, 1.0]]])
        >>> tree = Tree(Forest((0, 1), (-1, 0)), -1, np.ones(1), (np.array([[[0.5, 0.5]]]), copy))
        >>> tree.draw(np.array([[-1, 1], [0, -1]]), np.random.default_rng(0)).tolist()
        [[1, 1], [0, 0]]
        """
        widest = max(table.shape[2] for table in self.given) * len(self.shares)
        few = max(1, _BLOCK // (widest * self.nodes))
        parts = [
            self._drawn(known[start : start + few], generator)
            for start in range(0, len(known), few)
        ]
        return np.concatenate([np.empty((0, self.nodes), np.int64), *parts])

    def _drawn(self, known: Integers, generator: Any) -> Integers:
        rows, size = len(known), len(self.shares)
        # How likely what is known below a node is, for each of its levels.
        below = {}
        for node, table in zip(self.forest.order, self.given, strict=True):
            held, width = known[:, node], table.shape[2]
            fits = (held[:, None] < 0) | (held[:, None] == np.arange(width))
            below[node] = np.repeat(fits[:, None].astype(np.float64), size, axis=1)
        hubs = np.tile(self.shares, (rows, 1))
        for (node, parent), table in reversed(
            list(zip(self.forest.pairs, self.given, strict=True))
        ):
            message = np.einsum("rhv,hpv->rhp", below[node], table)
            if parent >= 0:
                below[parent] *= message
            else:
                hubs *= message[:, :, 0]
        found = np.empty((rows, self.nodes), dtype=np.int64)
        if self.hub >= 0:
            held = known[:, self.hub]
            hubs = np.where(held[:, None] < 0, hubs, held[:, None] == np.arange(size))
        hub = _choices(hubs, generator)
        if self.hub >= 0:
            found[:, self.hub] = hub
        each = np.arange(rows)
        for (node, parent), table in zip(self.forest.pairs, self.given, strict=True):
            above = found[:, parent] if parent >= 0 else np.zeros(rows, np.int64)
            weights = table[hub, above] * below[node][each, hub]
            held = known[:, node]
            # What is known stays, however unlikely it is here.
            found[:, node] = np.where(held >= 0, held, _choices(weights, generator))
        return found


def _choices(weights: Floats, generator: Any) -> Integers:
    """Return an index for each row, drawn by its weights; any index if all weights are 0."""
    sums = np.cumsum(weights, axis=1)
    whole = sums[:, -1:]
    even = np.arange(1, weights.shape[1] + 1) / weights.shape[1]
    sums = np.where(whole > 0, sums / np.where(whole > 0, whole, 1.0), even)
    return np.asarray((generator.random((len(sums), 1)) >= sums[:, :-1]).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Measured:
    """A noisy table of counts: its nodes, the counts, and the standard deviation of their noise.

    >>> Measured((0, 1), np.array([[40.0, 10.0], [-1.0, 51.0]]), noise=2.0).counts.sum()
    np.float64(100.0)
    """

    nodes: tuple[int, ...]
    counts: Floats
    noise: float


def join_tables(
    forest: Forest,
    alone: Sequence[Floats],
    tables: Mapping[tuple[int, ...], Floats],
    *,
    hub: int = -1,
) -> Tree:
    """Return the distribution with these tables, each made to agree with those before it.

    Parameters
    ----------
    forest : Forest
    alone : sequence of arrays
        The distribution of each node.
    tables : dict
        The joint distribution of each node with its parent; with the hub, of the hub, the parent
        and the node, or of the hub and a root.
    hub : int, default=-1

    Examples
    --------
    >>> table = np.array([[0.4, 0.1], [0.0, 0.5]])
    >>> shares = [np.array([0.5, 0.5]), np.array([0.5, 0.5])]
    >>> tree = join_tables(Forest((0, 1), (-1, 0)), shares, {(0, 1): table})
    >>> tree.pairs()[0, 1].round(2).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    hubs = alone[hub] if hub >= 0 else np.ones(1)
    found: dict[int, Floats] = {}  # the hub and each node
    given = []
    for node, parent in forest.pairs:
        above = found[parent] if parent >= 0 else hubs[:, None]
        nodes = tuple(each for each in (hub, parent, node) if each >= 0)
        shape = (*above.shape, len(alone[node]))
        table = tables[nodes].reshape(shape) if len(nodes) > 1 else alone[node].reshape(shape)
        own = fitted_to(table.sum(axis=1), [(1,), (0,)], [alone[node], hubs])
        table = fitted_to(table, [(0, 2), (0, 1)], [own, above])
        whole = table.sum(axis=2, keepdims=True)
        even = np.full(shape, 1.0 / shape[2])
        each = np.where(whole > 0, table / np.where(whole > 0, whole, 1.0), even)
        given.append(each)
        found[node] = np.einsum("hp,hpv->hv", above, each)
    return Tree(forest, hub, hubs / hubs.sum(), tuple(given))
