"""One made-up world for every engine: text ids, decimal numbers on rounding ties, shuffled files.

The numbers are tenths. One grid of :func:`digest` has steps of a half: sums of tenths lie on its
points, give or take a last bit, which decides to which side they fall. The other grid is so fine
that it shows almost every bit. Whatever changes a bit changes an integer somewhere.
"""

import hashlib
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quorate.grid import Bound, Box, Grid
from quorate.users import UserData
from quorate.users.statistics import UserMeans, encode_users

BOX = Box(np.full(3, -64.0), np.full(3, 64.0))
GRIDS = (Grid(BOX, 0.5), Grid(BOX, 2.0**-46))
COLUMNS = {"user": "id", "features": ["a", "b", "c"], "target": "y"}


def visits(rows=6000, users=250, seed=0):
    """Return a table with ids that are text, some missing, and features in tenths."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, users, rows)
    ids = pa.array([f"pätient {u}" if u else None for u in who])
    X = rng.integers(-40, 41, (rows, 3)) / 10.0
    X[rng.random(rows) < 0.02, 1] = np.nan
    y = (X[:, 0] + rng.standard_normal(rows) > 0).astype(np.int64)
    return pa.table({"id": ids, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})


def write(table, folder, files=4):
    """Write a table as several files, of unequal sizes and several row groups."""
    cuts = np.linspace(0, 1, files + 1) ** 1.5 * table.num_rows
    for i, (start, stop) in enumerate(
        zip(cuts[:-1].astype(int), cuts[1:].astype(int), strict=True)
    ):
        path = Path(folder) / f"part-{i}.parquet"
        pq.write_table(table.slice(start, stop - start), path, row_group_size=600)
    return folder


@dataclass(frozen=True)
class Bent:
    """A statistic of floats whose last bits depend on the order of a user's records."""

    bound: Bound

    def __call__(self, users):
        weighted = users.X * 0.3 * (1.0 - 0.1 * users.y)[:, None]
        index, size = users.user_index(), users.n_users
        return np.stack([np.bincount(index, column, minlength=size) for column in weighted.T], 1)


@dataclass(frozen=True)
class Reversed(Bent):
    """The control: the same sums, added up in the opposite order."""

    def __call__(self, users):
        order = np.concatenate(
            [
                np.arange(a, b)[::-1]
                for a, b in zip(users.offsets[:-1], users.offsets[1:], strict=True)
            ]
            or [np.empty(0, np.int64)]
        )
        turned = UserData(users.X[order], users.y[order], offsets=users.offsets)
        return Bent.__call__(self, turned)


@dataclass(frozen=True)
class Everything:
    """Every user's integers on both grids, under their key, in one pass over a part."""

    kind: type

    def __call__(self, users):
        votes = [
            encode_users(users, statistic, grid)
            for grid, statistic in product(GRIDS, (UserMeans(BOX), self.kind(BOX)))
        ]
        return np.hstack([users.keys().view(np.int64)[:, None], *votes])


def digest(crowd, kind=Bent):
    """Return a hash of exact integers: totals, counts, every user's own and under a cap."""
    found = hashlib.sha256()
    found.update(crowd.total(kind(BOX), GRIDS[1]).tobytes())
    found.update(crowd.counts(UserData.record_counts, np.arange(60.0)).tobytes())
    for data in (crowd, crowd.cap(5, random_state=3)):
        rows = np.concatenate(data.map(Everything(kind)))
        found.update(rows[np.argsort(rows[:, 0].view(np.uint64))].tobytes())
    return found.hexdigest()
