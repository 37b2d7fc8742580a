"""A device remembers what it said: across starts, across programs, in a file nobody else reads."""

import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from quorate.exceptions import BudgetExceededError, ParameterError, SchemaError
from quorate.local.device_memory import DeviceMemory, StoredAnswer, close_to_others, new_token

FULL = {"limit": 10.0}


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.db"


class TestOnce:
    def test_the_first_answer_stays_whoever_asks(self, path):
        made = []

        def make():
            made.append(StoredAnswer(b"%d" % len(made), new_token()))
            return made[-1]

        def ask(_):
            return DeviceMemory(path).first("task", 1.0, make=make, **FULL)

        DeviceMemory(path)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(ask, range(20)))
        assert len(made) == 1
        assert set(answers) == set(made)
        assert DeviceMemory(path).recall("task") == made[0]
        assert DeviceMemory(path).recall("another") is None

    def test_an_acknowledgement_stays(self, path):
        memory = DeviceMemory(path)
        memory.first("task", 1.0, make=lambda: StoredAnswer(b"m", "00"), **FULL)
        memory.acknowledge("task")
        assert DeviceMemory(path).recall("task") == StoredAnswer(b"m", "00", acknowledged=True)

    def test_an_answer_that_could_not_be_made_is_none(self, path):
        def fail():
            raise BudgetExceededError("the ledger refuses")

        memory = DeviceMemory(path)
        with pytest.raises(BudgetExceededError):
            memory.first("task", 1.0, make=fail, **FULL)
        assert memory.recall("task") is None


class TestLimit:
    def test_everything_together_stays_below_it_to_the_last_bit(self, path):
        memory = DeviceMemory(path)
        for i in range(4):
            memory.first(f"{i}", 0.25, limit=1.0, make=lambda: StoredAnswer(b"m", "00"))
        for least in (0.25, 1e-300):
            with pytest.raises(BudgetExceededError, match="together"):
                memory.first("one more", least, limit=1.0, make=lambda: StoredAnswer(b"m", "00"))
        # What was said stays said.
        assert memory.first("0", 0.25, limit=0.1, make=lambda: None) == StoredAnswer(b"m", "00")


class TestFile:
    def test_nobody_else_reads_it(self, path):
        DeviceMemory(path).first("task", 1.0, make=lambda: StoredAnswer(b"m", "00"), **FULL)
        assert mode(path) == 0o600
        path.chmod(0o666)
        DeviceMemory(path)
        assert mode(path) == 0o600

    def test_another_file_is_refused_and_left_as_it_was(self, tmp_path):
        foreign = tmp_path / "other.db"
        with sqlite3.connect(foreign) as base:
            base.execute("CREATE TABLE people (name)")
        foreign.chmod(0o644)
        with pytest.raises(SchemaError, match="answers of a device"):
            DeviceMemory(foreign)
        assert mode(foreign) == 0o644
        notes = tmp_path / "notes.txt"
        notes.write_text("my notes " * 1000)
        with pytest.raises(SchemaError, match="answers of a device"):
            DeviceMemory(notes)
        with pytest.raises(ParameterError, match="place where a file can be made"):
            DeviceMemory(tmp_path / "nowhere" / "answers.db")

    def test_a_file_of_somebody_else_is_refused(self, path, monkeypatch):
        path.touch(0o644)

        def refuse(*_, **__):
            raise PermissionError

        monkeypatch.setattr(os, "chmod", refuse)
        with pytest.raises(ParameterError, match="belongs to another user"):
            close_to_others(path)
