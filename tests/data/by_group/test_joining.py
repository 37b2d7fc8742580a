"""People's attributes joined to their records: whom they reach, whom not, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quorate.data.by_group.joining import joined, joined_schema
from quorate.exceptions import SchemaError

COLUMNS = ["wait", "age", "ward"]


def attributes(visits, people):
    found = joined(visits, people, users="who", columns=COLUMNS)
    return list(zip(found["age"].to_pylist(), found["ward"].to_pylist(), strict=True))


class TestWhoGetsWhat:
    VISITS = pa.table({"who": [3, 1, 1, 2, None, 9], "wait": np.arange(6.0)})
    PEOPLE = pa.table(
        {"who": [1, 2, 2, 3, None], "age": [11, 21, 22, 31, 41], "ward": list("abcde")}
    )

    def test_one_row_a_person(self):
        found = attributes(self.VISITS, self.PEOPLE)
        nothing = (None, None)
        assert found == [(31, "d"), (11, "a"), (11, "a"), nothing, nothing, nothing]

    @pytest.mark.parametrize("visits", [pl.from_arrow, pa.Table.to_pandas, lambda t: t])
    @pytest.mark.parametrize("people", [pl.from_arrow, pa.Table.to_pandas, lambda t: t])
    def test_tables_of_all_libraries_join(self, visits, people):
        texts = [
            t.set_column(0, "who", t["who"].cast(pa.string())) for t in (self.VISITS, self.PEOPLE)
        ]
        expected = attributes(self.VISITS, self.PEOPLE)
        assert attributes(visits(texts[0]), people(texts[1])) == expected

    def test_integers_of_all_widths_are_the_same_people(self):
        for one, other in (("int8", "uint32"), ("int64", "int16"), ("uint64", "uint64")):
            tables = [
                t.set_column(0, "who", t["who"].cast(kind))
                for t, kind in ((self.VISITS, one), (self.PEOPLE, other))
            ]
            assert attributes(*tables) == attributes(self.VISITS, self.PEOPLE)

    def test_a_list_of_nobody_gives_nobody_anything(self):
        assert set(attributes(self.VISITS, self.PEOPLE.slice(0, 0))) == {(None, None)}
        assert attributes(self.VISITS.slice(0, 0), self.PEOPLE) == []


def test_nobody_changes_what_others_get():
    """Whatever one person brings to either table: texts, another row, no id, everybody's ward."""
    rng = np.random.default_rng(0)
    visits = pd.DataFrame({"who": [f"p{i}" for i in rng.integers(0, 40, 300)], "wait": 1.0})
    people = pd.DataFrame(
        {"who": [f"p{i}" for i in range(40)], "age": 30, "ward": rng.choice(["x", "y"], 40)}
    )
    expected = attributes(visits, people)
    for held in ([], ["odd"], ["odd"] * 5, ["odd", None], [7, 7.5]):
        own = pd.DataFrame({"who": held, "wait": 2.0})
        listed = pd.DataFrame({"who": held, "age": 99, "ward": "x"})
        found = attributes(
            pd.concat([own, visits], ignore_index=True),
            pd.concat([listed, people], ignore_index=True),
        )
        assert found[len(held) :] == expected


@pytest.mark.parametrize(
    ("visits", "people", "users"),
    [
        ({"who": [1]}, {"who": ["1"], "age": [1]}, "who"),
        ({"who": pa.array([1], pa.uint64())}, {"who": [1], "age": [1]}, "who"),
        ({"who": [1.5]}, {"who": [1.5], "age": [1]}, "who"),
        ({"who": [1]}, {"id": [1], "age": [1]}, "who"),
        ({"who": [1]}, {"who": [1]}, "who"),
        ({"who": [1], "age": [2]}, {"who": [1], "age": [1]}, "who"),
        ({"who": [1]}, {"who": [1], "age": [1]}, [1]),
    ],
)
def test_what_does_not_fit_is_seen_without_a_row(visits, people, users):
    tables = [pa.table({"wait": [1.0]} | visits), pa.table(people)]
    with pytest.raises(SchemaError):
        joined_schema(*(t.slice(0, 0) for t in tables[:1]), users, tables[1], ["wait", "age"])


def test_attributes_that_are_long_are_taken_often():
    """Nobody's text ends a join, however often it is taken."""
    visits = pa.table({"who": np.zeros(3000, int)})
    people = pa.table({"who": [0], "ward": ["x" * 10**6]})
    found = joined(visits, people, users="who", columns=["ward"])
    assert found["ward"].type == pa.large_string()
    assert found.num_rows == 3000
