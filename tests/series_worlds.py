"""Small series for tests: people with a history, noise that is known, and one design in memory."""

import itertools

import numpy as np
import pyarrow as pa

from quorate import UserSeries
from quorate.core.guarantees import Numerics
from quorate.core.noise import SeededNoise
from quorate.series.spending import Entries, Lookup, bounded_period

PEOPLE = ("ann", "bob")
HELD = (0, 1, 9)
"""What somebody may hold in a week: nothing, one record, far more than anybody counts for."""
WEEKS = 3
HISTORIES = tuple(itertools.product(HELD, repeat=WEEKS))


class Repeatable(SeededNoise):
    """Seeded noise that a ledger takes for real: for tests of what is written down."""

    numerics = Numerics.EXACT


class NoNoise(SeededNoise):
    """Adds nothing, and keeps what it was asked for: the totals and the scale of every draw."""

    numerics = Numerics.EXACT

    def __init__(self):
        super().__init__(0)
        self.drawn = []

    def _add(self, law, values, scale):
        assert law == "discrete_gaussian"
        self.drawn.append((values.copy(), scale))
        return values


def week(*held, groups=None):
    """Return the rows of one week: how many records each person has, all in group "a"."""
    ids = [who for who, count in zip(PEOPLE, held, strict=False) for _ in range(count)]
    return pa.table(
        {
            "who": pa.array(ids, pa.string()),
            "group": pa.array(["a"] * len(ids) if groups is None else groups, pa.string()),
            "value": pa.array([1.0] * len(ids), pa.float64()),
        }
    )


def small_series(folder, **changes):
    parameters = {
        "epsilon": 1.0,
        "delta": 0.05,
        "horizon": WEEKS,
        "statistics": {"records": "count"},
        "touched": 1,
        "count_cut": False,
        "store": folder / "small.sqlite",
    }
    return UserSeries(**(parameters | changes))


def exact_totals(series, *histories):
    """Return what gets noise, week by week: the bounding of the series, its state in memory."""
    design = series.design
    factor, spent, totals, lengths = design.factor, Lookup.empty(), [], []
    step = design.step(design.parts[0])
    for place in range(design.factor.horizon):
        held = [(who, h[place]) for who, h in enumerate(histories) if h[place]]
        entries = Entries(
            np.array([who + 5 for who, _ in held], np.uint64),
            np.arange(len(held)),
            np.zeros(len(held), np.int64),
            np.array([count / step for _, count in held], float),
        )
        before = () if factor.independent else tuple(lengths)
        found = bounded_period(
            entries,
            spent,
            before,
            gram=factor.gram(place),
            ball=design.ball,
        )
        spent = found.spent
        lengths.append(found.lengths)
        totals.append(found.totals)
    return factor.matrix @ np.array(totals)
