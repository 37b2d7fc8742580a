"""Outputs are checked before a budget is spent, and are whole."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from quorate.app.model_files import StoredModel
from quorate.app.reports.outputs import Outputs, predictions_as_csv, predictions_as_list
from quorate.exceptions import MissingExtraError, ParameterError


def test_model_and_report_are_written(mean_fit, tmp_path):
    outputs = Outputs(model=tmp_path / "m.json", report=tmp_path / "r.html")
    assert outputs.write(mean_fit).paths == (tmp_path / "m.json", tmp_path / "r.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", "r.html"]
    again = StoredModel.read(tmp_path / "m.json").estimator
    np.testing.assert_array_equal(again.mean_, mean_fit.estimator.mean_)


def test_a_report_that_fails_loses_nothing_else(mean_fit, tmp_path, monkeypatch):
    from quorate.app.reports import outputs

    def broken(*_):
        raise RuntimeError("a cell: Ann")

    monkeypatch.setattr(outputs, "fit_page", broken)
    asked = Outputs(model=tmp_path / "m.json", report=tmp_path / "r.html")
    written = asked.write(mean_fit)
    assert written.paths == (tmp_path / "m.json",)
    assert "unforeseen RuntimeError" in written.complaint
    assert "Ann" not in written.complaint


def test_a_folder_that_is_gone_is_reported(mean_fit, tmp_path):
    asked = Outputs(model=tmp_path / "gone" / "m.json", out=tmp_path / "a.json")
    written = asked.write(mean_fit)
    assert written.paths == (tmp_path / "a.json",)
    assert "was not written" in written.complaint


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_every_answer_can_be_a_file_with_all_its_digits(mean_fit, tmp_path, suffix):
    path = tmp_path / f"answer{suffix}"
    assert Outputs(out=path).write(mean_fit).failed == {}
    mean = float(mean_fit.estimator.mean_[0])
    name = mean_fit.columns.features[0]
    if suffix == ".json":
        assert json.loads(path.read_text())["released"]["mean"][name] == mean
        return
    table = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    assert table.set_index("name")["value"][f"mean.{name}"] == pytest.approx(mean, rel=1e-12)


def test_nothing_asked_for_is_nothing_written(mean_fit):
    assert Outputs().write(mean_fit).paths == ()


def test_what_cannot_be_written_is_known_before(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="folder"):
        Outputs(report=tmp_path / "none" / "r.html").check()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        Outputs(report=tmp_path / "r.html").check()
    Outputs(model=tmp_path / "m.json").check()


def test_predictions_are_plain():
    assert predictions_as_list(np.array([1, 2])) == [1, 2]
    assert predictions_as_list(np.array(["a", "b"], dtype=object)) == ["a", "b"]
    assert predictions_as_csv(["p"], [[None], [1.5]]) == 'p\r\n""\r\n1.5\r\n'
