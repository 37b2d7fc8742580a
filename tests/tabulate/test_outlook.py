"""The outlook is what a fit pays and adds, to the last look."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from quorate import Relation, UserTable
from quorate.noise import SeededNoise, use_noise
from quorate.tabulate import user_table
from quorate.tabulate.outlook import outlook

RELATIONS = (Relation.REPLACE, Relation.ADD_REMOVE)


def people(n, groups, columns):
    rng = np.random.default_rng(0)
    rows = 4 * n
    held = {"who": np.arange(rows) % n, "group": rng.integers(0, groups, rows)}
    return pa.table(held | {f"x{j}": rng.gamma(2.0, 0.1, rows) for j in range(columns)})


@pytest.mark.parametrize(
    ("groups", "columns", "delta"), [*itertools.product((1, 12), (0, 1, 2), (0.0, 1e-6))]
)
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_fit_pays_what_was_foreseen(monkeypatch, groups, columns, delta, relation):
    """With so many people every look is taken; the noise over the length is then the same."""
    blocks, n = [], 9000
    release = user_table.release_block
    monkeypatch.setattr(
        user_table, "release_block", lambda *a, **k: blocks.append(release(*a, **k)) or blocks[-1]
    )
    sums = {f"x{j}": "sum" for j in range(columns)}
    table = UserTable(
        2.0,
        delta=delta,
        by="group",
        keys=list(range(groups)),
        statistics={"records": "count", **sums},
        bounds=1.0,
        relation=relation,
    )
    with use_noise(SeededNoise(0)):
        table.fit(people(n, groups, columns), users="who")
    seen = outlook(
        users=n, epsilon=2.0, delta=delta, relation=relation, groups=groups, columns=columns
    )
    (block,) = blocks
    noise = block.count_errors[0] * block.shape.weights[0] / block.length
    assert block.shape.norm == seen.norm
    # People are counted privately under addition and removal, which moves a price a little.
    assert noise == pytest.approx(seen.noise, rel=1e-3 if relation is Relation.REPLACE else 0.02)
    assert block.cut == pytest.approx(seen.cut, rel=1e-3 if relation is Relation.REPLACE else 0.02)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_looking_costs_little_and_never_more_for_more_people(delta):
    given = {"epsilon": 1.0, "delta": delta, "relation": RELATIONS[1], "groups": 20, "columns": 2}
    found = [outlook(users=n, **given) for n in (1, 30, 900, 27_000, 10**7)]
    assert all(a.noise >= b.noise for a, b in itertools.pairwise(found))
    assert all(a.stated < a.noise < 1.5 * a.stated for a in found[2:])
    # Few people: a search that saw less would answer anything.
    assert all(a.stated < a.noise < 2.5 * a.stated for a in found[:2])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n", [60, 3000])
def test_very_many_columns_leave_a_budget_for_the_table(n, delta):
    """Looks for each of them would cost more than there is if each cost what one may cost."""
    columns, rng = 40, np.random.default_rng(0)
    held = {"who": np.arange(n)} | {f"x{j}": rng.random(n) for j in range(columns)}
    statistics = {"records": "count"} | {f"x{j}": "sum" for j in range(columns)}
    table = UserTable(1.0, delta=delta, statistics=statistics, bounds=1.0)
    assert table.fit(pa.table(held), users="who").guarantee_.epsilon == 1.0
    given = {"epsilon": 1.0, "delta": delta, "relation": RELATIONS[0], "groups": 1}
    assert (
        outlook(users=n, columns=columns, **given).noise
        < 2 * outlook(users=n, columns=1, **given).noise * columns
    )
