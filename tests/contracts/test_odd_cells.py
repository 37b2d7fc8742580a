"""One person's odd cell is one person's: at every door, for every estimator and every task.

What a cell means follows from the declared type of its column and from the cell itself, and a
reader never raises after the charge. So a cell is replaced by whatever a door lets through, and
nothing but its own person's contribution may change (:mod:`odd_cells`). Every door meets every odd
cell and every case, every estimator meets every kind of trouble; the whole product is not tried
here, and Dask and Spark are not among the doors.
"""

from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import odd_tasks
from fitting_worlds import ROUTES, public_estimators
from odd_cells import Baseline, watched
from odd_doors import CASES, DOORS, RouteDoor, from_octets
from quorate.app.catalogue import TASKS
from quorate.core.users import UserData
from quorate.distributions import DiscreteDistribution
from quorate.means import UserMean
from quorate.models import LogisticRegression
from quorate.tabulate import UserTable

# What may differ all the same, and why; at most five.
EXCEPTIONS = {
    "users from CSV: a line feed in a cell": (
        "one physical line is one row, by the public rule of quorate.data.files.csv_lines: two "
        "lines are two rows, whatever stands in them"
    ),
}

# Of a door and a case so many cells are tried at least, others with the next case.
FEWEST = 2


def test_the_list_of_exceptions_stays_short():
    assert len(EXCEPTIONS) <= 5


def differences(usual, run, tried):
    """Return by what fits with odd cells can be told apart from the usual one, cell by cell."""
    found = {(column, name): usual.apart(run(column, cell)) for column, name, cell in tried}
    return {cell: apart for cell, apart in found.items() if apart}


def dealt(door):
    """Deal the cells of a door out to its cases: every cell to one, and at least a few to each."""
    cells = {word: list(door.cells(case)) for word, case in CASES.items() if door.takes(case)}
    cells = {word: every for word, every in cells.items() if every}
    left, met = Counter(name for every in cells.values() for _, name, _ in every), Counter()
    for place, (word, every) in enumerate(cells.items()):
        few = max(FEWEST, -(-max(len(left), len(every)) // len(cells)))
        start = place * few % len(every)
        some = sorted(every[start:] + every[:start], key=lambda cell: met[cell[1]])
        left.subtract(name for _, name, _ in every)
        # What no later case has is not put off.
        some = some[:few] + [each for each in some[few:] if not met[each[1]] and not left[each[1]]]
        met.update(name for _, name, _ in some)
        yield word, some


@pytest.mark.parametrize("name", DOORS)
def test_every_door(name):
    door = DOORS[name]
    taken = [case for case in CASES.values() if door.takes(case)]
    owed = {name for case in taken for _, name, _ in door.cells(case)}
    assert owed, "no odd cell came through this door"
    for word, some in dealt(door):
        case = CASES[word]
        usual = Baseline(door.run(case), private_labels=case.private_labels)
        assert differences(usual, partial(door.run, case), some) == {}, word
        owed -= {name for _, name, _ in some}
    assert owed == set()


@pytest.mark.parametrize("word", CASES)
def test_every_case_comes_through_a_door(word):
    """The control: what is refused everywhere would be compared with nothing."""
    case = CASES[word]
    doors = [DOORS["list"], DOORS["Arrow, text as string"]]
    usual = [Baseline(door.run(case)) for door in doors if door.takes(case)]
    assert any(each.refused is None for each in usual)


# One route of each estimator; the others differ in what they do with numbers.
ESTIMATORS = {}
for _route in ROUTES.values():
    ESTIMATORS.setdefault(_route.name, _route)
# The law of its coins has too many paths; tests/mechanisms/test_parity.py enumerates it.
ESTIMATORS["ParityLearner"] = ROUTES["ParityLearner, votes"]


def test_every_public_estimator_is_listed():
    assert ESTIMATORS.keys() == public_estimators()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator(name):
    for kind in ("list", "labels as objects", "Arrow"):
        door = RouteDoor(ESTIMATORS[name], kind)
        usual = Baseline(door.run(), private_labels=name == "PopularPhrases")
        assert differences(usual, door.run, door.cells()) == {}, kind


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("task", TASKS)
def test_every_task(task, suffix):
    usual = Baseline(odd_tasks.fit_of(task, suffix), keys=2)
    assert usual.refused is None
    for column in odd_tasks.read_columns(task):
        for name, cell in odd_tasks.odd(suffix, column).items():
            apart = usual.apart(odd_tasks.fit_of(task, suffix, column, cell))
            assert apart == [], (column, name)


class TestDemonstrations:
    """What a hostile review did to the release before, each with one cell of one person."""

    N = 60

    def rows(self, usual, odd, kind=object):
        cells = np.empty(self.N, dtype=object)
        cells[:] = [usual[i % len(usual)] for i in range(self.N)]
        cells[0] = odd
        return cells if kind is object else cells.astype(kind)

    def table(self, cells, keys):
        frame = pd.DataFrame({"drink": cells, "who": range(self.N)})
        given = {"epsilon": 40.0, "delta": 1e-3, "random_state": 0}
        return UserTable(by="drink", keys=keys, statistics={"n": "count"}, **given).fit(
            frame, users="who"
        )

    def apart(self, run, usual, *odd, private_labels=False):
        baseline = Baseline(lambda: run(usual), private_labels=private_labels)
        assert baseline.refused is None
        return [found for each in odd if (found := baseline.apart(partial(run, each)))]

    def test_a_number_among_texts_takes_no_popular_key_away(self):
        cells = [self.rows(["tea"], odd) for odd in ("tea", 7, b"tea", 2.5, None)]
        run = partial(self.table, keys="popular")
        assert self.apart(run, *cells, private_labels=True) == []
        assert [run(each).keys_[0] for each in cells] == [("tea",)] * 5

    def test_a_number_among_texts_does_not_end_a_table_of_numbers(self):
        run = partial(self.table, keys=[1, 2])
        cells = [self.rows([1, 2], odd) for odd in (1, 7, "tea", b"\xff", ["tea"])]
        assert self.apart(run, *cells) == []
        assert self.table(self.rows(["1", "2"], 7), [1, 2]).table_["n"][0].as_py() > 20

    @pytest.mark.parametrize("usual", [[0, 1], [False, True]], ids=["numbers", "truths"])
    def test_octets_or_a_text_in_a_list_leave_everybody_else_a_category(self, usual):
        def run(cells):
            return DiscreteDistribution(4.0, categories=[0, 1]).fit(cells, users=range(self.N))

        cells = [list(self.rows(usual, odd)) for odd in (usual[0], b"x", "x", 1j, [0], {})]
        assert self.apart(run, *cells) == []
        for each in cells:  # and others are counted
            with watched() as seen:
                run(each)
            assert sum(bool(rows) for _, (rows, _) in seen.records) >= self.N - 1

    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
    def test_a_text_that_is_no_text_ends_nothing_and_is_quoted_nowhere(self, kind, tmp_path):
        def column(octets, usual):
            return from_octets([octets, *(usual[i % 2] for i in range(1, self.N))], kind)

        def model(octets):
            x = pa.table({"x": pa.array(np.arange(self.N) / self.N)})
            model = LogisticRegression(
                40.0, delta=1e-3, classes=("no", "yes"), bounds=(0, 1), steps=1, progress=False
            )
            return model.fit(x, column(octets, [b"no", b"yes"]), users=range(self.N))

        def shares(octets):
            labels = column(octets, [b"no", b"yes"])
            return DiscreteDistribution(4.0, categories=["no", "yes"]).fit(
                labels, users=range(self.N)
            )

        def stored(octets):
            pq.write_table(
                pa.table(
                    {"y": column(octets, [b"no", b"yes"]), "who": range(self.N), "x": [0.5] * 60}
                ),
                tmp_path / "table.parquet",
            )
            people = UserData.from_parquet(
                tmp_path / "table.parquet",
                user="who",
                features=["x"],
                target="y",
                classes=("no", "yes"),
            )
            return UserMean(bounds=(0, 1), epsilon=4.0).fit(people)

        for run in (model, shares, stored):
            assert self.apart(run, b"no", b"\xff31337", b"\xed\xa0\x80") == []
        frame = {octets: column(octets, [b"no", b"yes"]) for octets in (b"no", b"\xff31337")}
        for keys, hidden in ((["no", "yes"], False), ("popular", True)):

            def run(octets, keys=keys):
                return UserTable(
                    40.0,
                    delta=1e-3,
                    by="drink",
                    keys=keys,
                    statistics={"n": "count"},
                    random_state=0,
                ).fit(pa.table({"drink": frame[octets]}), users=range(self.N))

            assert self.apart(run, *frame, private_labels=hidden) == []

    @pytest.mark.parametrize("unit", ["s", "us"])
    def test_a_day_after_9999_ends_no_table(self, unit):
        def run(day):
            days = np.full(self.N, np.datetime64("2020-01-05", unit))
            days[0] = np.datetime64(day, unit)
            return self.table(days, "popular")

        assert (
            self.apart(run, "2020-01-05", "12000-01-01", "-0500-01-01", private_labels=True) == []
        )
        assert run("12000-01-01").keys_[0] == ("2020-01-05T00:00:00",)

    def test_popular_keys_beyond_63_bits_are_not_lost(self):
        cells = np.full(self.N, 2**63 + 5, dtype=np.uint64)
        fitted = self.table(cells, "popular")
        assert fitted.keys_[0] == (2**63 + 5,)
        assert fitted.table_.column("drink")[0].as_py() == 2**63 + 5
