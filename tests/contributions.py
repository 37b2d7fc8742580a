"""Contributions of users on a grid, held against the sensitivity that it claims."""

import math
from itertools import product

import numpy as np

from quorate.core.bounds.grid import Grid, Interval
from quorate.core.guarantees import Relation


def fine_grid(bound):
    """A grid of some hundred steps: coarse enough for the bound to be met exactly."""
    return Grid(bound, 2.0 ** (math.frexp(bound.largest_offset)[1] - 8))


def violations(grid, integers, *, changes=None):
    """Return the relations whose exact integer sensitivity these contributions break."""
    if changes is None:
        changes = {r: grid.bound.change_in_steps(grid.step, r) for r in Relation}
    rows = [[int(z) for z in row] for row in integers]
    zero = [0] * grid.bound.dimension
    pairs = {
        Relation.ADD_REMOVE: product(rows, [zero]),
        Relation.REPLACE: product(rows, rows),
    }
    broken = set()
    for relation, neighbours in pairs.items():
        l1, l2_squared = changes[relation]
        for mine, theirs in neighbours:
            moves = [abs(a - b) for a, b in zip(mine, theirs, strict=True)]
            if sum(moves) > l1 or sum(move * move for move in moves) > l2_squared:
                broken.add(relation)
    return broken


class UnclippedInterval(Interval):
    """A twin that forgets to clip."""

    def offsets_in_steps(self, values, step, *, out):
        np.multiply(np.nan_to_num(values, posinf=0, neginf=0) - self.centre, 1 / step, out=out)
