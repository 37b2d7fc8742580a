"""Nobody leaves the radius: whatever they hold, whenever, whoever else is there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.guarantees import Relation
from quorate.series.factors import NAMES, Factor
from quorate.series.spending import Entries, HorizonBall, Lookup, bounded_period

HORIZON, CELLS = 5, 3
both = pytest.mark.parametrize("name", NAMES)
values = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-50.0, 50.0),
    st.sampled_from([0.0, 1e308, -1e308, 1e-300, 2.0**40]),
)
periods = st.lists(
    st.lists(st.tuples(st.integers(0, CELLS - 1), values), max_size=4),
    min_size=HORIZON,
    max_size=HORIZON,
)


def run(factor, ball, histories):
    """Return what each period adds up to, for people with lists of (cell, value) by period."""
    spent, lengths, totals = Lookup.empty(), [], []
    for place in range(factor.horizon):
        held = [(who, cell, v) for who, h in enumerate(histories) for cell, v in h[place]]
        entries = Entries(
            np.array([7 * who + 3 for who in range(len(histories))], np.uint64),
            np.array([who for who, _, _ in held], np.int64),
            np.array([cell for _, cell, _ in held], np.int64),
            np.array([v for _, _, v in held], float),
        )
        found = bounded_period(
            entries,
            spent,
            () if factor.independent else tuple(lengths),
            gram=factor.gram(place),
            ball=ball,
        )
        spent = found.spent
        lengths.append(found.lengths)
        totals.append(found.totals)
    return factor.matrix @ np.array(totals)


def squared(difference):
    return sum(int(x) ** 2 for x in difference.ravel())


@both
@pytest.mark.parametrize("signed", [False, True])
@settings(max_examples=25, deadline=None)
@given(one=periods, other=periods)
def test_one_person_moves_all_releases_by_at_most_the_sensitivity(name, signed, one, other):
    factor = Factor(name, HORIZON)
    ball = HorizonBall(40 * int(factor.coefficients[0]), CELLS, HORIZON, signed)
    alone, together = run(factor, ball, [other]), run(factor, ball, [other, one])
    changed = {
        Relation.ADD_REMOVE: together - alone,
        Relation.REPLACE: run(factor, ball, [one]) - alone,
    }
    for relation, difference in changed.items():
        assert squared(difference) <= ball.change_in_steps(1.0, relation)[1]
        assert np.abs(difference).sum() <= ball.change_in_steps(1.0, relation)[0]


@both
def test_the_sensitivity_is_reached(name):
    """By who holds far too much in every period, in the first alone, and in opposite signs."""
    factor, radius = Factor(name, HORIZON), 2**26
    ball = HorizonBall(radius, CELLS, HORIZON, signed=True)
    always = run(factor, ball, [[[(0, 1e9)]] * HORIZON])
    assert 0.999 * radius**2 < squared(always) <= radius**2
    opposite = run(factor, ball, [[[(0, -1e9)]] * HORIZON])
    assert squared(always - opposite) > 0.999 * 4 * radius**2


def test_who_holds_little_is_not_changed():
    factor = Factor("independent", HORIZON)
    ball = HorizonBall(100, CELLS, HORIZON, signed=False)
    found = run(factor, ball, [[[(0, 3.0), (2, 4.0)]] * HORIZON])
    assert found.tolist() == [[3, 0, 4]] * HORIZON


def test_later_periods_are_scaled_to_what_is_left():
    factor = Factor("independent", HORIZON)
    ball = HorizonBall(5, CELLS, HORIZON, signed=False)
    found = run(factor, ball, [[[(0, 4.0)], [(1, 9.0)], [(1, 9.0)], [], []]])
    # 25 - 16 = 9 is left, of which 2 squared is taken (rounded towards zero), then the rest.
    assert [int(row.sum()) for row in found] == [4, 2, 2, 0, 0]


@both
def test_nobody_else_changes_what_a_person_adds(name):
    factor = Factor(name, HORIZON)
    ball = HorizonBall(10**6, CELLS, HORIZON, signed=True)
    rng = np.random.default_rng(3)
    crowd = [
        [[(int(rng.integers(CELLS)), float(rng.normal() * 1e6))] for _ in range(HORIZON)]
        for _ in range(40)
    ]
    alone = [run(factor, ball, [each]) for each in crowd]
    assert np.array_equal(run(factor, ball, crowd), sum(alone))


def test_sums_of_lookups_are_those_of_dictionaries():
    rng = np.random.default_rng(0)
    found, expected = Lookup.empty(), {}
    for size in (0, 5, 40, 1, 300):
        people = np.unique(rng.integers(0, 400, size).astype(np.uint64))
        added = rng.integers(0, 9, len(people))
        found = found.plus(people, added)
        for who, more in zip(people.tolist(), added.tolist(), strict=True):
            expected[who] = expected.get(who, 0) + more
        assert dict(zip(found.people.tolist(), found.values.tolist(), strict=True)) == expected
        assert (np.diff(found.people.astype(np.int64)) > 0).all()
    asked = np.arange(500, dtype=np.uint64)
    assert found.of(asked).tolist() == [expected.get(int(who), 0) for who in asked]


def test_two_ids_with_one_hash_are_one_person():
    ball = HorizonBall(10, CELLS, HORIZON, signed=False)
    same = Entries(
        np.array([4, 4], np.uint64), np.array([0, 1]), np.array([0, 1]), np.array([10.0, 10.0])
    )
    found = bounded_period(same, Lookup.empty(), (), gram=np.array([1]), ball=ball)
    assert squared(found.totals) <= 100
    assert found.spent.people.tolist() == [4]
