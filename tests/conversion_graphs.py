"""A pair of neighbouring graphs on which a greedy vertex cover, the broken twin, jumps by three."""

import numpy as np

JUMP = [
    (0, 1), (1, 4), (1, 6), (1, 8), (1, 9), (1, 11), (2, 3), (2, 5), (2, 9), (2, 11), (3, 4),
    (3, 7), (3, 8), (3, 11), (4, 5), (4, 6), (4, 9), (4, 11), (5, 6), (5, 8), (6, 8), (6, 9),
    (7, 11), (8, 9), (9, 10),
]  # fmt: skip
"""A graph on twelve users, and what user 0 is joined to after a change: greedy goes from 6 to 9."""
NEW_EDGES_OF_USER_0 = [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]


def graph(pairs, n=12):
    edges = np.zeros((n, n), dtype=bool)
    for i, j in pairs:
        edges[i, j] = edges[j, i] = True
    return edges


def jump_graphs():
    before = graph(JUMP)
    after = graph([pair for pair in JUMP if 0 not in pair] + [(0, j) for j in NEW_EDGES_OF_USER_0])
    return before, after


def greedy_cover(edges):
    """Return the cover that takes the vertex of most edges until none is left.

    One vertex can change its size by 3, so a noisy limit for it hides nobody.
    """
    left, members = edges.copy(), np.zeros(len(edges), dtype=bool)
    while left.any():
        vertex = int(left.sum(axis=0).argmax())
        members[vertex] = True
        left[vertex, :] = left[:, vertex] = False
    return members
