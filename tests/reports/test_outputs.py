"""Outputs are checked before a budget is spent, and are whole."""

import sys

import numpy as np
import pytest

from quorate.exceptions import MissingExtraError, ParameterError
from quorate.files.model_files import StoredModel
from quorate.reports.outputs import Outputs, predictions_as_csv, predictions_as_list


def test_model_and_report_are_written(mean_fit, tmp_path):
    outputs = Outputs(model=tmp_path / "m.json", report=tmp_path / "r.html")
    assert outputs.write(mean_fit) == (tmp_path / "m.json", tmp_path / "r.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", "r.html"]
    again = StoredModel.read(tmp_path / "m.json").estimator
    np.testing.assert_array_equal(again.mean_, mean_fit.estimator.mean_)


def test_the_model_is_safe_before_the_report_is_made(mean_fit, tmp_path, monkeypatch):
    from quorate.reports import outputs

    def broken(*_):
        raise RuntimeError("no page today")

    monkeypatch.setattr(outputs, "fit_page", broken)
    asked = Outputs(model=tmp_path / "m.json", report=tmp_path / "r.html")
    with pytest.raises(RuntimeError, match="no page"):
        asked.write(mean_fit)
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def test_nothing_asked_for_is_nothing_written(mean_fit):
    assert Outputs().write(mean_fit) == ()


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
    assert predictions_as_csv([None, 1.5]) == "prediction\r\n\r\n1.5\r\n".replace(
        "\r\n\r\n", '\r\n""\r\n'
    )
