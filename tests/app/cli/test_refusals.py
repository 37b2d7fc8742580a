"""Refusals that no other test reaches: each is one clear sentence, and costs no budget."""

import json
import sys

import numpy as np
import pyarrow as pa
import pytest

import quorate as qr
from quorate.app import model_files
from quorate.app.catalogue import describe
from quorate.app.cli import main
from quorate.app.model_files import ModelFileError, StoredModel
from quorate.app.plain_data import decode, encode
from quorate.app.serve.planner import PlannerPage
from quorate.app.tasks.crowds import Place
from quorate.data.files.csv_lines import header_line, read_header
from quorate.exceptions import MissingExtraError, ParameterError, SchemaError


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "visits.csv"
    rows = "\n".join(f"p{i % 50},{20 + i % 60},{i % 2}.5,{i % 2}" for i in range(200))
    path.write_text("who,age,dose,ill\n" + rows)
    return path


def refused(arguments, capsys):
    code, said = main(arguments), capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    return code, said.err


RULE = "--task concept --user who --target ill --classes 0,1 --epsilon 1 "
TABLE = "--task table --user who --count n --epsilon 1 "


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            RULE + "--features age,dose --bounds 0,100 --set concepts=intervals",
            "one feature for intervals",
        ),
        (
            RULE + "--features dose --bounds 0,0.5 --set concepts=intervals",
            "whole numbers as bounds",
        ),
        (
            RULE + "--features age,dose --bounds 0,100 --set concepts=thresholds",
            "one feature for cut-offs",
        ),
        (TABLE + "--set where=age", "conditions such as city=Bonn"),
        (
            "--task parity --user who --features age,dose --target ill --classes 0,1 --epsilon 1 "
            "--bounds 0,1 --categories age=1,2",
            "it has no categories and no dates",
        ),
    ],
)
def test_a_fit_that_cannot_be(given, words, table, capsys):
    code, said = refused(["fit", str(table), *given.split()], capsys)
    assert code == 2
    assert words in said


def test_a_plan_takes_one_range_for_all_columns(capsys):
    given = "plan mean --users 100 --epsilon 1 --bounds age=0,120"
    code, said = refused(given.split(), capsys)
    assert code == 2
    assert "'lower,upper' or 'b'" in said


def test_a_file_that_is_not_there_or_opens_for_nobody(tmp_path):
    with pytest.raises(SchemaError, match="found none at"):
        read_header(tmp_path / "none.csv", ",")
    with pytest.raises(SchemaError, match=r"could not open 'none\.csv'"):
        header_line(tmp_path / "none.csv")


def test_a_table_that_is_not_there(tmp_path, capsys):
    code, said = refused(["fit", str(tmp_path / "none.csv"), *TABLE.split()], capsys)
    assert code == 2
    assert "none.csv" in said


class TestModelFiles:
    def stored(self, X):
        ids = np.arange(1200) // 4
        return StoredModel(qr.UserMean(1.0, bounds=1.0, random_state=0).fit(X, users=ids))

    def test_a_mean_predicts_no_probabilities_and_names_no_columns_of_arrays(self):
        model = self.stored(np.zeros((1200, 1)))
        with pytest.raises(ParameterError, match="a model that gives probabilities, got UserMean"):
            model.predict_probabilities(np.zeros((1, 1)))
        with pytest.raises(ParameterError, match="a model with names of features"):
            _ = model.feature_names

    def test_a_file_that_is_too_large_is_not_read(self, tmp_path, monkeypatch):
        path = tmp_path / "model.json"
        self.stored(np.zeros((1200, 1))).write(path)
        monkeypatch.setattr(model_files, "_LARGEST_FILE", 10)
        with pytest.raises(ModelFileError, match="at most 10 bytes"):
            StoredModel.read(path)

    def test_a_broken_table_or_date_of_a_foreign_file(self):
        held = encode(pa.table({"a": [1, 2], "b": [3, 4]}))
        text = json.dumps(held)
        assert decode(held).num_rows == 2
        for broken in (text.replace("[3, 4]", "[3]"), text.replace('"b"', '"a"')):
            assert broken != text
            with pytest.raises(SchemaError, match="columns with different names"):
                decode(json.loads(broken))


@pytest.mark.parametrize(
    ("task", "parameters"),
    [("UserCount", {"of": "records"}), ("UserSum", {"cap": 3.0}), ("RecordMean", {"cap": 3.0})],
)
def test_what_no_plan_forecasts_is_said(task, parameters):
    fitted = describe(task).kind(1.0, **parameters)
    with pytest.raises(ParameterError, match="A plan"):
        describe(task).sizes(fitted, None)


def test_the_page_names_the_extra_that_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(MissingExtraError, match=r"quorate\[serve\]"):
        PlannerPage().app()


def test_a_cluster_that_does_not_answer(monkeypatch):
    def nobody(address):
        raise OSError(address)

    monkeypatch.setattr("quorate.app.tasks.crowds._client", nobody)
    with pytest.raises(ParameterError, match="No answer at 'dask://localhost:1'"):
        Place("dask://localhost:1").connect()


class TestRequests:
    def test_check_names_the_columns_and_tasks_that_there_are(self, table, capsys):
        code, said = refused(["check", str(table), "--user", "patient"], capsys)
        assert code == 2
        assert "who, age, dose, ill" in said
        code, said = refused(["check", str(table), "--user", "who", "--task", "mode"], capsys)
        assert code == 2
        assert "Expected a task among" in said

    @pytest.mark.parametrize(
        ("line", "words"),
        [("user = [1]", "names of columns"), ("user = 'who'\nbounds = 3", "a table [bounds]")],
    )
    def test_a_request_of_the_wrong_type(self, line, words, table, tmp_path, capsys):
        path = tmp_path / "request.toml"
        path.write_text(f"table = '{table.name}'\ntask = 'mean'\nepsilon = 1.0\n{line}\n")
        code, said = refused(["fit", str(path)], capsys)
        assert code == 2
        assert words in said


def test_a_fault_of_the_program_is_one_line_unless_it_is_asked_for(table, capsys, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("31337 years")

    monkeypatch.setattr("quorate.app.tasks.requests.blank_request", broken)
    given = ["check", str(table), "--user", "who"]
    code, said = refused(given, capsys)
    assert code == 70
    assert "31337" not in said
    monkeypatch.setenv("QUORATE_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match="31337"):
        main(given)
