"""Files are whole or not there."""

import os
from pathlib import Path

import pytest

from quorate.data.files.atomic import check_writable, write_atomically
from quorate.exceptions import ParameterError


def test_a_file_appears_whole_and_nothing_else_stays(tmp_path):
    write_atomically(tmp_path / "a.json", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_an_older_file_is_replaced(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old and longer")
    assert write_atomically(path, "new").read_text() == "new"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_leaves_the_old_file_and_no_part(tmp_path, monkeypatch, stop):
    path = tmp_path / "a.json"
    path.write_text("old")

    def interrupted(_):
        raise stop

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(stop):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.json"]


def test_a_missing_folder_and_a_folder_as_file_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="folder that can be written"):
        check_writable(tmp_path / "none" / "a.json")
    with pytest.raises(ParameterError, match="name of a file"):
        check_writable(tmp_path)


def test_a_place_that_only_looks_writable_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="folder that can be written"):
        check_writable(tmp_path / ("a" * 300))

    def read_only(*_args, **_kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "touch", read_only)
    with pytest.raises(ParameterError, match="folder that can be written"):
        check_writable(tmp_path / "a.json")


def test_the_check_leaves_nothing_behind(tmp_path):
    (tmp_path / "a.json").write_text("old")
    check_writable(tmp_path / "a.json")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_text() == "old"


def test_a_name_without_a_folder_means_the_present_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check_writable("a.json") == Path("a.json")
