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


def test_a_device_or_pipe_is_refused_and_stays(tmp_path):
    """``--report /dev/full``, asked by root, replaced the device by a page and said so."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for name in (pipe, "/dev/null"):
        for ask in (check_writable, lambda path: write_atomically(path, "page")):
            with pytest.raises(ParameterError, match="device or pipe"):
                ask(name)
    assert pipe.is_fifo()
    assert Path("/dev/null").is_char_device()


def test_a_link_stays_and_its_file_is_written(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "a.json").write_text("old")
    link = tmp_path / "a.json"
    link.symlink_to(folder / "a.json")
    write_atomically(link, "new")
    assert link.is_symlink()
    assert (folder / "a.json").read_text() == "new"
    assert [path.name for path in folder.iterdir()] == ["a.json"]
