"""Records on disk: private, gone with their owner, trusted only when finished."""

import errno
import gc
import json
import os
import signal
import subprocess
import sys

import pytest

from quorate.data.engines.spool import Spool, disk_errors
from quorate.exceptions import SpoolError

SOURCE = {"files": [["a.parquet", 10, 99]], "n_parts": 2}

OWNER = """
import sys, time
from quorate.data.engines.spool import Spool
spool = Spool({folder})
spool.path("00000.raw").write_bytes(b"secret")
print(spool.folder, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def owner(folder="None"):
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(folder=folder)], stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


class TestPrivacy:
    def test_nobody_else_can_look_into_it(self):
        spool = Spool()
        assert spool.folder.stat().st_mode & 0o077 == 0
        assert spool.folder.parent.stat().st_mode & 0o077 == 0

    def test_a_folder_that_others_can_read_is_refused(self, tmp_path):
        open_house = tmp_path / "open"
        open_house.mkdir(mode=0o755)
        with pytest.raises(SpoolError, match="Others may look"):
            Spool(open_house)

    def test_a_link_is_refused(self, tmp_path):
        (tmp_path / "real").mkdir(mode=0o700)
        (tmp_path / "link").symlink_to(tmp_path / "real")
        with pytest.raises(SpoolError, match="belongs to this user"):
            Spool(tmp_path / "link")


class TestEnd:
    def test_it_goes_away_with_its_object(self):
        spool = Spool()
        folder = spool.folder
        spool.path("00000.raw").write_bytes(b"secret")
        del spool
        gc.collect()
        assert not folder.exists()

    def test_a_killed_process_leaves_nothing_that_outlives_the_next_run(self):
        process, folder = owner()
        assert os.path.exists(folder)
        Spool()
        assert os.path.exists(folder), "its owner lives"
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert os.path.exists(folder)
        Spool()
        assert not os.path.exists(folder)

    def test_a_fork_does_not_end_the_spool_of_its_parent(self):
        spool = Spool()
        child = os.fork()
        if child == 0:
            spool._gone()
            os._exit(0)
        os.waitpid(child, 0)
        assert spool.folder.exists()


class TestAgain:
    def test_only_a_finished_spool_of_the_same_source_is_trusted(self, tmp_path):
        spool = Spool(tmp_path / "kept")
        spool.path("00000.raw").write_bytes(b"records")
        assert not spool.is_complete(SOURCE)
        spool.complete(SOURCE)
        assert spool.is_complete(SOURCE)
        assert not spool.is_complete({**SOURCE, "n_parts": 3})
        del spool
        gc.collect()
        assert Spool(tmp_path / "kept").is_complete(SOURCE)

    def test_a_file_of_another_length_is_not_trusted(self, tmp_path):
        spool = Spool(tmp_path / "kept")
        spool.path("00000.raw").write_bytes(b"records")
        spool.complete(SOURCE)
        spool.path("00000.raw").write_bytes(b"record")
        assert not spool.is_complete(SOURCE)

    @pytest.mark.parametrize("text", ["", "[]", "{", json.dumps({"source": SOURCE, "files": 3})])
    def test_a_damaged_manifest_is_not_trusted(self, tmp_path, text):
        spool = Spool(tmp_path / "kept")
        spool.path("manifest.json").write_text(text)
        assert not spool.is_complete(SOURCE)

    def test_what_a_killed_process_left_is_not_trusted(self, tmp_path):
        process, folder = owner(repr(str(tmp_path / "kept")))
        with pytest.raises(SpoolError, match="Another process"):
            Spool(folder)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        spool = Spool(folder)
        assert not spool.is_complete(SOURCE)
        spool.clear()
        assert not spool.path("00000.raw").exists()

    def test_files_of_others_are_not_touched(self, tmp_path):
        spool = Spool(tmp_path / "kept")
        spool.path("thesis.txt").write_text("mine")
        spool.clear()
        assert spool.path("thesis.txt").read_text() == "mine"


class TestFullDisk:
    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
    def test_a_full_disk_is_a_clear_error_and_leaves_nothing(self, code):
        spool = Spool()
        spool.path("00000.raw").write_bytes(b"half")
        with pytest.raises(SpoolError, match="no space left"), disk_errors(spool):
            raise OSError(code, "31337 bytes")
        assert not spool.folder.exists()

    def test_other_errors_of_the_disk_are_told_apart(self):
        spool = Spool()
        with pytest.raises(SpoolError, match="could not be written"), disk_errors(spool):
            raise OSError(errno.EIO, "I/O error")
