"""A request file says what the options say, and asking for one reads no row."""

from __future__ import annotations

import csv
import datetime
import json
import re
import tomllib
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate import Ledger, Relation
from quorate.app.catalogue import TASKS
from quorate.app.catalogue.descriptor import Target
from quorate.app.cli import main
from quorate.app.tasks.fitting import FitRequest
from quorate.app.tasks.requests import blank_request, read_request, request_text
from quorate.data.files.table_files import Columns
from quorate.exceptions import ParameterError, SchemaError
from quorate.ranges import Limit

COLUMNS = Columns(user=("patient",), features=("age", 'b "m" i'), unit="patient")
REQUESTS = {
    "a mean": FitRequest(
        task="mean", columns=COLUMNS, epsilon=1.0, limits=(Limit(0, 120, "age"), Limit(-1.5, 9))
    ),
    "a model": FitRequest(
        task="logistic",
        columns=replace(COLUMNS, target="ill", classes=("no", "yes"), missing=0.0),
        epsilon=0.3,
        delta=1e-6,
        relation=Relation.ADD_REMOVE,
        records=12,
        engine="dask://host:8786",
        limits=(Limit(0, 300),),
    ),
    "columns as people have them": FitRequest(
        task="logistic",
        columns=replace(
            COLUMNS,
            features=("age", "region", "visit"),
            target="ill",
            categories={"region": ("north", 'so"uth'), "age": (1, 2.5)},
        ),
        epsilon=1.0,
        limits=(Limit(datetime.date(2020, 1, 1), datetime.datetime(2021, 1, 1, 12), "visit"),),
    ),
    "settings": FitRequest(
        task="threshold",
        columns=replace(COLUMNS, features=("age",), target="ill"),
        epsilon=2,
        algorithm="two_stages",
        options={"alike": "true"},
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_what_is_written_is_read_again(name, tmp_path):
    path = tmp_path / "request.toml"
    path.write_text(request_text(REQUESTS[name], "visits.csv"))
    held = read_request(path)
    assert held.request == REQUESTS[name]
    assert held.table == tmp_path / "visits.csv"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("task = ", "TOML"),
        ('task = "mean"\nepsilon = 1\nuser = "id"\nepsilom = 2', "epsilom"),
        ('task = "mean"\nuser = "id"\ntable = "t.csv"', "epsilon"),
        ('task = "mean"\nuser = "id"\nepsilon = true\ntable = "t.csv"', "number"),
        ('task = "mean"\nuser = 7\nepsilon = 1\ntable = "t.csv"', "user"),
        ('task = "mean"\nuser = "id"\nepsilon = 1', "table"),
        ('task = "mean"\nuser = "id"\nepsilon = 1\n[categories]\na = "b"', "lists of values"),
        ('task = "mean"\nuser = "id"\nepsilon = 1\n[categories]\na = []', "public categories"),
        (
            'task = "mean"\nuser = "id"\nepsilon = 1\n[bounds]\na = [2020-01-01, 5]',
            "range of dates",
        ),
        ('task = "mean"\nuser = "<id>"\nepsilon = 1\ntable = "t.csv"', "angle brackets"),
        ('task = "mean"\nuser = "id"\nepsilon = 1\nrelation = "both"\ntable = "t.csv"', "relation"),
        ('task = "mean"\nuser = "id"\nepsilon = 1\ntable = "t.csv"\n[bounds]\na = [1]', "upper"),
    ],
)
def test_a_mistake_is_named_and_costs_nothing(text, words, tmp_path):
    path = tmp_path / "request.toml"
    path.write_text(text)
    with pytest.raises((ParameterError, SchemaError), match=words):
        read_request(path)


def _written(folder, text):
    path = folder / "request.toml"
    path.write_text(text)
    return path


class TestCheck:
    def test_two_tables_of_one_schema_give_the_same_text(self, tmp_path):
        texts = set()
        path = tmp_path / "visits.csv"
        for rows in ("1,20,3\n", "", "x,y,z\n" * 500, "9,1e308,NaN\n\n"):
            path.write_text("patient,age,dose\n" + rows)
            texts.add(blank_request(path, user=("patient",)))
        assert len(texts) == 1
        assert '"age"' in texts.pop()

    @settings(max_examples=60, deadline=None)
    @given(
        rows=st.lists(
            st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"))] * 3),
            max_size=20,
        ),
        numbers=st.lists(st.floats(), min_size=1, max_size=20),
        task=st.sampled_from([None, *TASKS]),
    )
    def test_any_two_tables_of_one_schema_give_the_same_text(
        self, tmp_path_factory, rows, numbers, task
    ):
        folder = tmp_path_factory.mktemp("check")
        given = {"user": ("patient",), "task": task}
        texts = {}
        for name, held in (("one", rows), ("other", [("7", "8", "9")])):
            path = folder / "visits.csv"
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([("patient", "age", "dose"), *held])
            texts[name] = blank_request(path, **given)
        assert texts["one"] == texts["other"]
        for name, held in (("one", numbers), ("other", [0.0])):
            path = folder / "visits.parquet"
            columns = {"patient": list(range(len(held))), "age": held, "dose": held}
            pq.write_table(pa.table(columns), path)
            texts[name] = blank_request(path, **given)
        assert texts["one"] == texts["other"]

    @pytest.mark.parametrize("task", TASKS)
    def test_a_request_for_a_task_asks_for_what_the_task_needs(self, task, tmp_path):
        path = tmp_path / "visits.csv"
        path.write_text("patient,age,ill\n")
        text = blank_request(path, user=("patient",), task=task)
        told = TASKS[task]
        open_keys = tomllib.loads(text)
        assert ("target" in open_keys) is told.supervised
        assert ("classes" in open_keys) is bool(told.most_classes)
        assert set(told.asks) <= set(open_keys.get("set", {}))
        with pytest.raises(ParameterError, match="Fill in"):
            read_request(_written(tmp_path, text))
        text = text.replace('["<lowest>", "<highest>"]', "[0, 100]")
        if told.target is not Target.NUMBER:
            text = text.replace('"ill" = [0, 100]\n', "")  # delete what you do not need
        if told.frame is None:
            text = re.sub(r"features = .*", 'features = ["age"]', text)
            text = text.replace('target = "<column>"', 'target = "ill"')
            text = re.sub(r"\[\"<label>.*\]", '["no", "yes"]', text)
            for name, example in told.asks.items():
                text = text.replace(f'{name} = "<{example}>"', f'{name} = "{example}"')
        else:
            text = text.replace('by = "<column>"', 'by = "ill"').replace("<column>", "age")
            text = re.sub(r"\[\"<label>.*\]", '["no", "yes"]', text)
        request = read_request(_written(tmp_path, text)).request
        columns = request.columns if told.frame else replace(request.columns, features=("age",))
        request.build(columns)  # refuses what is missing

    def test_no_row_is_read(self, tmp_path, monkeypatch):
        path = tmp_path / "visits.csv"
        path.write_bytes(b"patient,age\n" + b"\xff" * 1000)  # rows that cannot be decoded
        assert "age" in blank_request(path, user=("patient",))

    def test_a_user_column_that_is_not_there_is_refused(self, tmp_path):
        path = tmp_path / "visits.csv"
        path.write_text("patient,age\n")
        with pytest.raises(SchemaError, match="patient, age"):
            blank_request(path, user=("person",))

    def test_from_check_to_fit_without_python(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        rows = "\n".join(f"p{i % 400},{30 + i % 40}" for i in range(2000))
        (tmp_path / "visits.csv").write_text("patient,age\n" + rows)
        given = ["--user", "patient", "--task", "mean", "--out", "request.toml"]
        assert main(["check", "visits.csv", *given]) == 0
        assert main(["check", "visits.csv", *given]) == 2  # nothing is written over
        assert main(["fit", "request.toml"]) == 2
        assert "Fill in bounds" in capsys.readouterr().err
        ledger = Ledger("book.db")
        ledger.set_budget("visits", epsilon=2.0, unit="patient")
        text = (tmp_path / "request.toml").read_text()
        text = text.replace('["<lowest>", "<highest>"]', "[0, 120]")
        text = text.replace('# ledger = "<budget.sqlite>"', 'ledger = "book.db"')
        text = text.replace('# data_name = "<name>"', 'data_name = "visits"')
        (tmp_path / "request.toml").write_text(text)
        assert main(["fit", "request.toml", "--epsilon", "2"]) == 2
        assert ledger.spent("visits").epsilon == 0
        capsys.readouterr()
        assert main(["fit", "request.toml", "--report", "report.html", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert abs(said["released"]["mean"]["age"] - 49.5) < 10
        assert ledger.spent("visits").epsilon == 1.0
        assert "quorate fit request.toml" in (tmp_path / "report.html").read_text()


def test_probabilities_are_a_column_for_each_class(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"p{i % 900},{i % 100},{'yes' if i % 100 > 50 else 'no'}" for i in range(9000))
    (tmp_path / "visits.csv").write_text("patient,dose,ill\n" + rows)
    asked = "--task logistic --user patient --features dose --target ill --classes no,yes"
    given = f"{asked} --bounds 0,100 --epsilon 10 --delta 1e-6 --model model.json".split()
    assert main(["fit", "visits.csv", *given]) == 0
    capsys.readouterr()
    assert main(["predict", "model.json", "visits.csv", "--probabilities"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "no,yes"
    shares = [float(value) for value in lines[1].split(",")]
    assert sum(shares) == pytest.approx(1.0)
    assert main(["predict", "model.json", "visits.csv"]) == 0
    label = capsys.readouterr().out.splitlines()[1]
    assert label == ("yes" if shares[1] > 0.5 else "no")
