"""One procedure: right on average, as noisy as it says, and bounds that hold what caps cut."""

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.data.by_group.person_cells import ValueColumn
from quorate.mechanisms.blocks import BlockSum
from quorate.tabulate.procedure import Procedure, number_of_users
from quorate.tabulate.released import COVERS_UNSEEN, totals
from sealing import numbers_of

COLUMN, BINARY = ValueColumn(2, 0.0, 8.0), ValueColumn(2, 0.0, 1.0)


def account(*, delta=1e-6, epsilon=1.0, relation=Relation.ADD_REMOVE, seed=0):
    return Account.open(epsilon=epsilon, delta=delta, relation=relation, noise=SeededNoise(seed))


def people(n=3000, groups=4, seed=0, alike=False):
    """Return cells of people of different activity, and their records, people and sums."""
    rng = np.random.default_rng(seed)
    rows, offsets = [], [0]
    for _ in range(n):
        held = np.sort(rng.choice(groups, size=rng.integers(1, min(groups, 3) + 1), replace=False))
        for group in held:
            count = 2.0 if alike else np.ceil(rng.lognormal(1.0, 0.7))
            value = rng.uniform(-1.0, 3.0)
            rows.append([group, count, np.rint(value * count / COLUMN.step)])
        offsets.append(len(rows))
    cells = np.array(rows)
    by = cells[:, 0].astype(int)
    sums = np.bincount(by, cells[:, 2] * COLUMN.step + 4.0 * cells[:, 1], groups)
    truth = {
        "rows": np.bincount(by, cells[:, 1], groups),
        "people": np.bincount(by, minlength=groups),
        0: sums,
    }
    return UserData(cells, offsets=offsets), truth


def procedure(crowd, purse, kind=Procedure, **options):
    return kind(People(crowd, purse.relation), purse, **options)


class Careless(Procedure):
    """Forgets what caps cut when it states bounds."""

    def _bounded(self, *released):
        self.tails = {}
        return super()._bounded(*released)


def run(crowd, groups, purse, **options):
    known = {"columns": (COLUMN,), "records": True, "count_people": True}
    table = procedure(crowd, purse, groups=groups, **(known | options))
    return table, table.run()


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", Relation)
def test_stated_caps_leave_noise_alone_and_it_is_as_large_as_stated(groups, delta, relation):
    crowd, truth = people(300, groups)
    caps, scores, inside = {"rows": 1e3, 0: 1e4}, [], []
    for seed in range(40):
        purse = account(epsilon=3.0, delta=delta, relation=relation, seed=seed)
        kind = "gaussian" if delta else "laplace"
        _, found = run(crowd, groups, purse, caps=caps, held=groups, algorithm=kind)
        centre = found[0].centre
        exact = truth | {0: truth[0] - centre * truth["rows"]}
        for name, each in found.items():
            scores.append((each.values - exact[name]) / each.errors)
            inside.append(np.abs(each.values - exact[name]) <= each.bounds)
        assert (purse.left if delta == 0 else purse.square_left) < 1e-9
    assert abs(np.mean(scores)) < 0.15
    assert np.sqrt(np.mean(np.square(scores))) == pytest.approx(1.0, abs=0.12)
    assert 0.92 < np.mean(inside) < 0.98


@pytest.mark.parametrize("groups", [1, 4, 30])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", Relation)
def test_bounds_hold_what_caps_cut(groups, delta, relation):
    crowd, truth = people(2000, groups)
    inside = []
    for seed in range(60 if groups == 1 else 12):
        purse = account(delta=delta, relation=relation, seed=seed)
        _, found = run(crowd, groups, purse)
        exact = truth | {0: truth[0] - found[0].centre * truth["rows"]}
        inside += [np.abs(f.values - exact[n]) <= f.bounds for n, f in found.items()]
    assert np.mean(inside) > 0.93


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("relation", Relation)
def test_every_part_pays_for_what_one_person_moves_it(monkeypatch, relation, groups):
    """From one end of every part to the other is no further than the noise is for, and as far."""
    seen = []
    monkeypatch.setattr(
        BlockSum,
        "_add_noise",
        lambda self, sums, account: (
            seen.append((self, numbers_of(sums))) or np.zeros(sums.shape, np.int64)
        ),
    )
    low, high = (
        UserData([[place * (groups - 1.0), 5.0, side * 5 * 4.0 / COLUMN.step]], offsets=[0, 1])
        for place, side in ((0, -1), (1, 1))
    )
    for crowd in (low, high):
        run(
            crowd,
            groups,
            account(delta=0.0, relation=relation),
            caps={"rows": 5.0, 0: 0.01},
            held=1.0,
        )
    (mechanism, first), (_, second) = seen
    change = first - second if relation is Relation.REPLACE else second
    moved = np.abs(change.reshape(3, -1)).sum(axis=1)
    assert 0.99 * mechanism.sensitivity <= moved.max() <= mechanism.sensitivity
    # Who is replaced by somebody alike in one group moves neither records nor people.
    if groups > 1 or relation is Relation.ADD_REMOVE:
        assert moved.min() >= 0.99 * mechanism.sensitivity


@pytest.mark.parametrize(("groups", "joint"), [(4, True), (3000, False)])
def test_joint_noise_is_drawn_where_its_stated_error_is_smaller(monkeypatch, groups, joint):
    drawn, add_noise = [], BlockSum._add_noise
    monkeypatch.setattr(
        BlockSum, "_add_noise", lambda self, *given: drawn.append(self) or add_noise(self, *given)
    )
    crowd, truth = people(300, groups)
    purse = account(delta=0.0)
    _, found = run(crowd, groups, purse, caps={"rows": 1e3, 0: 1e4}, held=3.0)
    assert bool(drawn) == joint
    assert purse.left < 1e-9
    scores = (found["rows"].values - truth["rows"]) / found["rows"].errors
    if groups > 4:
        assert np.std(scores) == pytest.approx(1.0, abs=0.05)
        inside = np.abs(found["rows"].values - truth["rows"]) <= found["rows"].bounds
        assert 0.94 < np.mean(inside) < 0.96


def test_everybody_alike_is_met_and_cut_by_nobody():
    crowd, truth = people(2000, 1, alike=True)
    caps, far = [], []
    for seed in range(40):
        table = procedure(crowd, account(delta=0.0, seed=seed), groups=1, records=True)
        found = table.run()["rows"]
        caps.append(found.cap)
        far.append(abs(found.values[0] - truth["rows"][0]) / found.bounds[0])
    assert min(caps) == 2.0
    # Noise beyond the top lengthens a cap by an edge in some fits.
    assert np.mean(np.array(caps) == 2.0) > 0.6
    assert np.mean(np.array(caps) <= 3.0) > 0.9
    assert np.mean(np.array(far) <= 1.0) > 0.9


def test_bounds_without_what_caps_cut_would_not_hold():
    """Of people who differ by factors of a hundred: the control leaves out what is cut."""
    counts = np.ceil(np.random.default_rng(0).pareto(1.6, 4000))
    crowd = UserData(np.column_stack([np.zeros(4000), counts]), offsets=range(4001))
    inside, without = [], []
    for seed in range(100):
        for kind, held in ((Procedure, inside), (Careless, without)):
            purse = account(delta=0.0, epsilon=0.3, seed=seed)
            found = procedure(crowd, purse, kind=kind, groups=1, records=True).run()["rows"]
            held.append(abs(found.values[0] - counts.sum()) <= found.bounds[0])
    assert np.mean(inside) > 0.93
    assert np.mean(without) < 0.9


def test_no_cell_is_further_off_than_ten_bounds():
    """One in a thousand people holds most of what there is, in one of thirty groups."""
    furthest = {Procedure: 0.0, Careless: 0.0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        counts = np.minimum(np.ceil(rng.pareto(1.0, 2000) + 0.5), 2.0**20)
        by = rng.choice(30, 2000, p=np.arange(1, 31) ** -1.0 / np.sum(np.arange(1, 31) ** -1.0))
        crowd = UserData(np.column_stack([by, counts]), offsets=range(2001))
        for kind in furthest:
            purse = account(delta=0.0, epsilon=3.0, seed=seed)
            found = procedure(crowd, purse, kind=kind, groups=30, records=True).run()["rows"]
            off = np.abs(found.values - np.bincount(by, counts, 30)) / found.bounds
            furthest[kind] = max(furthest[kind], off.max())
    assert furthest[Procedure] <= 10.0
    assert furthest[Careless] > 10.0


def test_a_value_that_few_hold_is_not_cut_to_nothing():
    """One child in eight is ill: the shortest cap had won, and cut all of them a hundred times."""
    ill = np.random.default_rng(0).random((540, 4)) < np.repeat([0.02, 0.5], [450, 90])[:, None]
    rows, offsets = [], np.arange(541) * 4
    for own in ill:
        rows += [[group, 1.0, (own[group] - 0.5) / BINARY.step] for group in range(4)]
    crowd, truth = UserData(np.array(rows), offsets=offsets), ill.sum(axis=0)
    inside = []
    for seed in range(30):
        _, made = run(crowd, 4, account(seed=seed), columns=(BINARY,))
        found = totals(made[0], made["rows"])
        inside.append(np.abs(found.values - truth) <= found.bounds)
    assert np.mean(inside) > 0.93


def test_hardly_anybody_is_no_confident_zero():
    """7 of 900 people hold 80 records each of what is asked for: "at most x", and not zero.

    Nobody can know how many records so few people hold, so that their bound is infinite; with a
    stated cap it is not.
    """
    held = np.r_[np.ones(7, int), np.zeros(893, int)]
    crowd = UserData(np.tile([0.0, 80.0], (7, 1)), offsets=np.r_[0, np.cumsum(held)])
    inside, nowhere = [], []
    for seed in range(60):
        table, found = run(crowd, 1, account(seed=seed), columns=())
        nowhere.append(found["rows"].bounds[0] == np.inf)
        assert nowhere[-1] == (table.covers == COVERS_UNSEEN)
        inside.append(abs(found["people"].values[0] - 7) <= found["people"].bounds[0] < 100)
        _, stated = run(crowd, 1, account(seed=seed), columns=(), caps={"rows": 100.0})
        inside.append(abs(stated["rows"].values[0] - 560) <= stated["rows"].bounds[0] < 5000)
        assert found["people"].values[0] + found["people"].bounds[0] > 0
    assert np.mean(inside) > 0.9
    # Noise looks like people in one fit of twenty.
    assert np.mean(nowhere) > 0.9


def test_a_table_whose_groups_outnumber_people_says_so():
    """400 people in up to 500 groups each: most of what they hold is cut, and bounds know it."""
    rng = np.random.default_rng(0)
    held = [np.sort(rng.choice(900, size=rng.integers(20, 500), replace=False)) for _ in range(400)]
    cells = np.column_stack([np.concatenate(held), np.ones(sum(map(len, held)))])
    crowd = UserData(cells, offsets=np.r_[0, np.cumsum([len(each) for each in held])])
    truth, inside = np.bincount(cells[:, 0].astype(int), minlength=900), []
    for seed in range(4):
        _, found = run(crowd, 900, account(seed=seed), columns=())
        inside += [np.abs(found[n].values - truth) <= found[n].bounds for n in ("rows", "people")]
    assert np.mean(inside) > 0.93


def test_groups_a_person_are_found_and_decide_the_noise():
    few, _ = people(3000, 40)
    wide = UserData(
        np.column_stack([np.tile(np.arange(40.0), 500), np.ones(20_000)]),
        offsets=np.arange(501) * 40,
    )
    made = [
        [
            procedure(crowd, account(epsilon=2.0, seed=seed), groups=40, count_people=True)
            for seed in range(9)
        ]
        for crowd in (few, wide)
    ]
    narrow, broad = ([table.held for table in tables] for tables in made)
    assert 2.0 <= np.median(narrow) <= 4.0
    assert np.median(broad) == 40.0
    assert np.median([table.gaussian for table in made[1]]) == 1
    assert np.median([table.gaussian for table in made[0]]) == 0
    assert not procedure(wide, account(delta=0.0), groups=40, count_people=True).gaussian


def test_the_number_of_people_is_public_or_paid_for():
    crowd, _ = people(500, 2)
    public = account(relation=Relation.REPLACE)
    assert number_of_users(People(crowd, public.relation), public) == 500.0
    assert public.left == 1
    private = account()
    assert abs(number_of_users(People(crowd, private.relation), private) - 500.0) < 400
    assert private.left < 1


def test_nobody_at_all_is_a_table_too():
    nobody = UserData(np.empty((0, 3)), offsets=[0])
    for groups in (1, 3):
        for delta in (0.0, 1e-6):
            _, found = run(nobody, groups, account(delta=delta))
            assert all(np.isfinite(each.values).all() for each in found.values())
            assert all(np.all(each.bounds > 0) for each in found.values())


def test_what_is_stated_is_not_looked_for():
    crowd, _ = people(300, 4)
    for caps, held, looks in (({"rows": 9.0, 0: 9.0}, 2.0, 0), ({"rows": 9.0}, None, 2)):
        table, found = run(crowd, 4, account(), caps=caps, held=held)
        assert table.terms.looks == looks
        assert found["rows"].cap == 9.0
        assert len(table.tails) == looks
