"""A table with labels is charged before it is read, and refuses from names and types alone."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from quorate import Ledger
from quorate.app.model_files import StoredModel
from quorate.app.tasks import fitting
from quorate.app.tasks.fitting import FitRequest, fit
from quorate.app.tasks.frames import UnreadTable
from quorate.core.guarantees import Relation
from quorate.data.files.table_files import Columns, TableFile
from quorate.exceptions import (
    BudgetExceededError,
    ParameterError,
    QuorateError,
    SchemaError,
    WithheldError,
)
from quorate.ranges import Limit

OPTIONS = {
    "by": "clinic",
    "keys": "north,south",
    "statistics": "visits=count,people=users,average=mean:price",
}


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 6000
    frame = pl.DataFrame(
        {
            "patient": rng.integers(0, 900, n),
            "day": rng.integers(0, 3, n),
            "clinic": rng.choice(["north", "south", " other"], n, p=[0.6, 0.3, 0.1]),
            "price": rng.gamma(2.0, 20.0, n),
        }
    )
    folder = tmp_path_factory.mktemp("visits")
    frame.write_csv(folder / "visits.csv")
    frame.write_parquet(folder / "visits.parquet")
    return folder


def request(**changes):
    given = {
        "task": "table",
        "columns": Columns(user=("patient",), unit="user"),
        "epsilon": 8.0,
        "delta": 1e-6,
        "limits": (Limit(0, 200, "price"),),
        "options": OPTIONS,
    }
    return FitRequest(**given | changes)


@pytest.mark.parametrize("name", ["visits.csv", "visits.parquet"])
@pytest.mark.parametrize("relation", Relation)
def test_a_file_gives_a_table(visits, name, relation):
    found = fit(request(relation=relation), TableFile(visits / name))
    exact = pl.read_csv(visits / "visits.csv").group_by("clinic").agg(pl.len(), pl.mean("price"))
    for row in found.estimator.table_.to_pylist():
        count, mean = exact.row(by_predicate=pl.col("clinic") == row["clinic"])[1:]
        assert abs(row["visits"] - count) < 200
        assert abs(row["average"] - mean) < 4
        assert 0 < row["people"] < 1000
    assert found.n_users == (len(set(exact_ids(visits))) if relation is Relation.REPLACE else None)
    assert found.estimator.guarantee_.unit == "user"


def exact_ids(visits):
    return pl.read_csv(visits / "visits.csv")["patient"].to_list()


def test_several_columns_are_one_unit(visits):
    asked = request(columns=Columns(user=("patient", "day")))
    found = fit(asked, TableFile(visits / "visits.csv"))
    assert found.estimator.guarantee_.unit == "patient x day"
    pairs = pl.read_csv(visits / "visits.csv").select("patient", "day").unique()
    assert found.n_users == len(pairs)


def test_a_stored_table_is_the_same_table(visits, tmp_path):
    found = fit(request(), TableFile(visits / "visits.csv"))
    again = StoredModel.read(StoredModel(found.estimator).write(tmp_path / "model.json")).estimator
    assert again.table_.equals(found.estimator.table_)
    assert again.keys_ == found.estimator.keys_
    document = StoredModel(found.estimator).to_dict()
    document["released"]["table_"]["columns"].pop()
    with pytest.raises(QuorateError, match="sound model file"):
        StoredModel.from_dict(document)


def test_the_charge_comes_before_the_first_row(visits, tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.set_budget("visits", epsilon=9.0, delta=1e-5)
    asked = request(ledger=tmp_path / "ledger.sqlite", data_name="visits")

    def dies(self, *_, **__):
        raise OSError("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(TableFile, "read_labels", dies)
        with pytest.raises(SchemaError, match="could not be read"):
            fit(asked, TableFile(visits / "visits.csv"))
    assert ledger.spent("visits").epsilon == 8.0
    with monkeypatch.context() as broken:
        broken.setattr(TableFile, "read_labels", dies)
        with pytest.raises(BudgetExceededError):
            fit(asked, TableFile(visits / "visits.csv"))


def test_a_twin_that_reads_first_is_caught(visits, tmp_path, monkeypatch):
    """The same test sees a fit that reads before it charges."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.set_budget("visits", epsilon=9.0, delta=1e-5)
    asked = request(ledger=tmp_path / "ledger.sqlite", data_name="visits")
    monkeypatch.setattr(
        fitting, "UnreadTable", lambda read, schema: (_ for _ in ()).throw(OSError("disk"))
    )
    with pytest.raises(WithheldError):
        fit(asked, TableFile(visits / "visits.csv"))
    assert ledger.spent("visits").epsilon == 0.0


@pytest.mark.parametrize(
    "changes",
    [
        {"options": OPTIONS | {"by": "town"}},
        {"options": OPTIONS | {"statistics": "cost=sum"}},
        {"options": OPTIONS | {"statistics": "visits=mode"}},
        {"options": OPTIONS | {"statistics": "visits"}},
        {"options": OPTIONS | {"keys": "popular"}, "delta": 0.0},
        {"options": OPTIONS | {"keys": '["north"'}},
        {"options": {"by": "clinic", "keys": "north"}},
        {"options": OPTIONS | {"cap": "-1"}},
        {"options": OPTIONS | {"colour": "red"}},
        {"limits": ()},
        {"columns": Columns(user=("nobody",), unit="user")},
        {"columns": Columns(user=("patient",), features=("price",), unit="user")},
        {"engine": "local[2]"},
    ],
)
@pytest.mark.parametrize("name", ["visits.csv", "visits.parquet"])
def test_mistakes_cost_nothing(visits, tmp_path, changes, name):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.set_budget("visits", epsilon=9.0, delta=1e-5)
    asked = {"ledger": tmp_path / "ledger.sqlite", "data_name": "visits"} | changes
    with pytest.raises((ParameterError, SchemaError, ValueError)):
        fit(request(**asked), TableFile(visits / name))
    assert ledger.spent("visits").epsilon == 0.0


def test_text_where_numbers_are_needed_is_seen_in_the_schema(visits):
    with pytest.raises(SchemaError, match="numbers"):
        fit(
            request(
                options=OPTIONS | {"statistics": "total=sum:clinic", "by": "day", "keys": "1,2"},
                limits=(Limit(0, 9),),
            ),
            TableFile(visits / "visits.parquet"),
        )


def test_conditions_and_several_keys(visits):
    options = {
        "by": "clinic,day",
        "keys": '{"clinic": ["north", "south"], "day": [0, 1, 2]}',
        "statistics": "visits=count",
        "where": '{"price": {"from": 10, "to": 40}}',
    }
    found = fit(request(options=options, limits=()), TableFile(visits / "visits.csv"))
    frame = pl.read_csv(visits / "visits.csv").filter(pl.col("price").is_between(10, 40))
    assert found.estimator.table_.num_rows == 6
    total = frame.filter(pl.col("clinic").is_in(["north", "south"])).height
    assert abs(sum(found.estimator.table_["visits"].to_pylist()) - total) < 400


def test_labels_that_are_no_text_and_empty_ones_are_missing(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes(b"who,city\na,\xff\xfe\nb,\nc, Ulm \nd,Ulm\n")
    table = TableFile(path).read_labels(
        Columns(user=("who",), features=("city",)), labels=["city"], ids="id"
    )
    assert table["city"].to_pylist() == [None, None, "Ulm", "Ulm"]
    assert len(set(table["id"].to_pylist())) == 4


def test_every_column_of_an_id_tells_users_apart(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("who,day,city\na,1,Ulm\na,2,Ulm\na,1,Ulm\n,3,Ulm\n")
    columns = Columns(user=("who", "day"), features=("city",))
    ids = TableFile(path).read_labels(columns, labels=["city"], ids="id")["id"].to_pylist()
    assert ids[0] == ids[2] != ids[1]


def test_an_unread_table_gives_no_rows():
    table = UnreadTable(lambda: pytest.fail("read"), pa.schema([("a", pa.int64())]))
    assert table[:0].num_rows == 0
    assert "a" in repr(table)
    with pytest.raises(ParameterError):
        table[:1]
