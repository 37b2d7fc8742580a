"""Promises of the file below the ledger: whole or refused, and never touched when refused."""

from __future__ import annotations

import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from quorate.exceptions import LedgerError, LedgerFileError
from quorate.ledger.append_only import AppendOnlyFile, Entry, Transaction

FIELDS = {
    "kind": "charge",
    "who": "me",
    "data_name": "visits",
    "purpose": "mean",
    "epsilon": "1/2",
    "delta": "0",
    "document": "{}",
}


@pytest.fixture
def file(tmp_path: Path) -> AppendOnlyFile:
    file = AppendOnlyFile(tmp_path / "ledger.db", timeout=30.0)
    file.create()
    for _ in range(3):
        append(file)
    return file


def append(file: AppendOnlyFile) -> Entry:
    with file.transaction(write=True) as page:
        return page.append(**FIELDS)


def entries(file: AppendOnlyFile) -> list[Entry]:
    with file.transaction(write=False) as page:
        return page.entries


def by_hand(path: Path, *statements: str) -> None:
    """Do what a person with the sqlite3 shell can do."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def is_refused_untouched(file: AppendOnlyFile, message: str) -> None:
    before = snapshot(file.path.parent)
    with pytest.raises(LedgerFileError, match=message):
        entries(file)
    with pytest.raises(LedgerFileError, match=message):
        append(file)
    file.create()
    assert snapshot(file.path.parent) == before


class TestEntriesStay:
    def test_entries_come_back_in_order_with_their_chain(self, file):
        found = entries(file)
        assert [entry.id for entry in found] == [1, 2, 3]
        assert len({entry.digest for entry in found}) == 3
        assert all(re.fullmatch(r"[0-9a-f]{64}", entry.digest) for entry in found)
        assert all(entry.time.endswith("+00:00") for entry in found)

    def test_the_folder_holds_one_file_between_calls(self, file):
        assert [path.name for path in file.path.parent.iterdir()] == ["ledger.db"]

    def test_a_plain_copy_is_the_whole_file(self, file, tmp_path):
        copy = AppendOnlyFile(tmp_path / "copy.db")
        shutil.copy(file.path, copy.path)
        assert entries(copy) == entries(file)

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE entries SET epsilon = '0'",
            "DELETE FROM entries",
            "DELETE FROM entries WHERE id = 3",
            "INSERT OR REPLACE INTO entries SELECT id, kind, time, who, data_name, purpose, '0', "
            "delta, document, digest FROM entries WHERE id = 3",
            "REPLACE INTO entries SELECT * FROM entries WHERE id = 1",
            "INSERT INTO entries SELECT id + 7, kind, time, who, data_name, purpose, epsilon, "
            "delta, document, digest FROM entries WHERE id = 3",
            "INSERT INTO entries SELECT * FROM entries WHERE id = 3 "
            "ON CONFLICT (id) DO UPDATE SET epsilon = '0'",
        ],
    )
    def test_sql_that_changes_or_removes_an_entry_is_refused(self, file, statement):
        before = entries(file)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            by_hand(file.path, statement)
        assert entries(file) == before

    def test_an_error_inside_a_transaction_leaves_nothing_behind(self, file):
        with pytest.raises(AttributeError), file.transaction(write=True) as page:
            page.append(**FIELDS).id.unknown_to_integers()
        assert len(entries(file)) == 3

    def test_a_reading_transaction_cannot_append(self, file):
        with pytest.raises(LedgerError, match="only reads"), file.transaction(write=False) as page:
            page.append(**FIELDS)

    def test_a_reading_transaction_leaves_the_bytes_alone(self, file):
        before = snapshot(file.path.parent)
        entries(file)
        assert snapshot(file.path.parent) == before

    def test_creating_twice_keeps_the_first_file(self, file):
        file.create()
        assert len(entries(file)) == 3

    def test_a_locked_file_gives_a_clear_error_and_no_entry(self, file):
        impatient = AppendOnlyFile(file.path, timeout=0.05)
        with closing(sqlite3.connect(file.path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(LedgerError, match=r"locked by another writer for 0\.05 s"):
                append(impatient)
        assert len(entries(file)) == 3

    def test_a_call_inside_a_call_gives_a_clear_error_instead_of_a_deadlock(self, file):
        impatient = AppendOnlyFile(file.path, timeout=0.05)
        with file.transaction(write=True), pytest.raises(LedgerError, match="locked"):
            entries(impatient)


class TestTampering:
    """Whoever removes the triggers still has to get past the chain."""

    OPEN_UP = tuple(
        f"DROP TRIGGER {name}"
        for name in ("entries_stay", "entries_do_not_change", "entries_come_last")
    )

    def tamper(self, file: AppendOnlyFile, *statements: str) -> None:
        with closing(sqlite3.connect(file.path)) as connection:
            query = "SELECT sql FROM sqlite_master WHERE type = 'trigger'"
            triggers = [sql for (sql,) in connection.execute(query)]
        by_hand(file.path, *self.OPEN_UP, *statements, *triggers)

    def test_a_missing_trigger_is_noticed(self, file):
        by_hand(file.path, "DROP TRIGGER entries_stay")
        is_refused_untouched(file, "tampered with: its tables or triggers")

    def test_a_foreign_trigger_is_noticed(self, file):
        by_hand(
            file.path,
            "CREATE TRIGGER thief AFTER INSERT ON entries BEGIN SELECT 1; END",
        )
        is_refused_untouched(file, "tampered with: its tables or triggers")

    @pytest.mark.parametrize(
        ("statement", "broken_at"),
        [
            ("UPDATE entries SET epsilon = '0' WHERE id = 2", 2),
            ("UPDATE entries SET epsilon = x'00' WHERE id = 2", 2),
            ("UPDATE entries SET who = 'you' WHERE id = 3", 3),
            ("DELETE FROM entries WHERE id = 1", 1),
            ("DELETE FROM entries WHERE id = 2", 2),
            ("UPDATE entries SET id = id + 1 WHERE id = 3", 3),
        ],
    )
    def test_a_changed_or_removed_entry_breaks_the_chain(self, file, statement, broken_at):
        self.tamper(file, statement)
        is_refused_untouched(file, f"the chain breaks at entry {broken_at}")

    def test_the_check_itself_lets_an_untampered_file_pass(self, file):
        self.tamper(file)
        assert len(entries(file)) == 3


class TestDamagedAndForeignFiles:
    def test_every_truncated_file_is_refused_untouched(self, file, tmp_path):
        whole = file.path.read_bytes()
        for length in [0, 1, 15, 16, 99, 100, 1000, 4096, len(whole) - 100, len(whole) - 1]:
            folder = tmp_path / str(length)
            folder.mkdir()
            cut = AppendOnlyFile(folder / "ledger.db")
            cut.path.write_bytes(whole[:length])
            is_refused_untouched(cut, "damaged")

    @pytest.mark.parametrize("content", [random.Random(1).randbytes(20_000), b"a,b\n1,2\n" * 99])
    def test_a_file_that_is_no_database_is_refused_untouched(self, file, content):
        file.path.write_bytes(content)
        is_refused_untouched(file, "is not a ledger")

    def test_a_newer_file_is_refused_untouched(self, file):
        by_hand(file.path, "PRAGMA user_version = 2")
        is_refused_untouched(file, "format 2 of a newer Quorate; this one reads format 1")

    def test_a_version_that_never_existed_is_refused_untouched(self, file):
        by_hand(file.path, "PRAGMA user_version = 0")
        is_refused_untouched(file, "format 0 never existed")

    @pytest.mark.parametrize("journal", ["DELETE", "WAL"])
    def test_a_foreign_database_is_refused_untouched(self, tmp_path, journal):
        file = AppendOnlyFile(tmp_path / "foreign.db")
        by_hand(file.path, f"PRAGMA journal_mode = {journal}", "CREATE TABLE entries (id)")
        is_refused_untouched(file, "of another program")

    def test_a_foreign_database_with_an_unfinished_journal_keeps_its_journal(self, tmp_path):
        file = AppendOnlyFile(tmp_path / "foreign.db")
        by_hand(file.path, "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
        die_in_the_middle(
            file.path, "UPDATE t SET x = 2", "INSERT INTO t VALUES (zeroblob(500000))"
        )
        assert file.path.with_name("foreign.db-journal").stat().st_size > 0
        is_refused_untouched(file, "of another program")

    def test_a_switch_to_a_write_ahead_log_is_refused_untouched(self, file):
        by_hand(file.path, "PRAGMA journal_mode = WAL")
        is_refused_untouched(file, "write-ahead log")
        by_hand(file.path, "PRAGMA journal_mode = DELETE")
        assert len(entries(file)) == 3

    def test_a_folder_in_place_of_the_file_is_refused(self, tmp_path):
        with pytest.raises(LedgerFileError, match="could not be opened"):
            entries(AppendOnlyFile(tmp_path))

    def test_a_lost_file_is_not_made_anew(self, file):
        file.path.unlink()
        with pytest.raises(LedgerFileError, match="could not be opened"):
            append(file)
        assert not file.path.exists()

    def test_a_missing_folder_is_named(self, tmp_path):
        with pytest.raises(LedgerFileError, match="could not be created"):
            AppendOnlyFile(tmp_path / "missing" / "ledger.db").create()

    def test_one_wrong_byte_is_refused_or_harmless_and_never_written_over(self, file):
        whole = bytearray(file.path.read_bytes())
        expected = entries(file)
        source = random.Random(7)
        # All of the header and schema page's beginning, then samples from everywhere.
        places = [*range(200), *(source.randrange(len(whole)) for _ in range(300))]
        refused = 0
        for place in places:
            damaged = whole.copy()
            damaged[place] ^= source.randrange(1, 256)
            file.path.write_bytes(damaged)
            try:
                assert entries(file) == expected
            except LedgerFileError:
                refused += 1
            assert file.path.read_bytes() == damaged
        assert refused > 100
        assert [path.name for path in file.path.parent.iterdir()] == ["ledger.db"]


def die_in_the_middle(path: Path, *statements: str) -> None:
    """Leave a transaction half written into the database, as ``kill -9`` at the worst moment does.

    The tiny cache makes SQLite write changed pages into the file before the commit.
    """
    script = (
        "import os, signal, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA cache_size = 1')\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "for statement in sys.argv[2:]:\n"
        "    connection.execute(statement)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path, *statements], check=False)
    assert done.returncode == -signal.SIGKILL


class TestRecovery:
    HALF = (
        "DROP TRIGGER entries_do_not_change",
        "UPDATE entries SET purpose = 'forged'",
        *[f"CREATE TABLE filler{i} AS SELECT zeroblob(500000)" for i in range(5)],
    )

    @pytest.mark.parametrize("write", [False, True])
    def test_a_half_written_entry_is_rolled_back_at_the_next_call(self, file, write):
        before, intact = entries(file), file.path.read_bytes()
        die_in_the_middle(file.path, *self.HALF)
        assert file.path.read_bytes() != intact, "the test must really leave a torn file"
        assert file.path.with_name("ledger.db-journal").exists()
        if write:
            assert append(file).id == 4
        assert entries(file)[:3] == before
        assert not file.path.with_name("ledger.db-journal").exists()

    def test_a_writer_of_ours_killed_between_two_pages_is_rolled_back(self, file):
        # Several pages: the last one gets new entries and is written out before the commit.
        for _ in range(40):
            append(file)
        before, intact = entries(file), file.path.read_bytes()
        script = (
            "import os, signal, sys\n"
            "from pathlib import Path\n"
            "from quorate.ledger.append_only import AppendOnlyFile\n"
            "with AppendOnlyFile(Path(sys.argv[1])).transaction(write=True) as page:\n"
            "    page.connection.execute('PRAGMA cache_size = 1')\n"
            "    for _ in range(500):\n"
            "        page.append(kind='charge', who='me', data_name='visits', purpose='mean',\n"
            "                    epsilon='1', delta='0', document='x' * 999)\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        subprocess.run([sys.executable, "-c", script, file.path], check=False)
        assert file.path.read_bytes()[: len(intact)] != intact, "old pages must really be torn"
        assert entries(file) == before

    def test_every_write_waits_for_the_disk(self, file):
        with file.transaction(write=True) as page:
            settings = [
                page.connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous")
            ]
        assert settings == ["delete", 3], "3 is EXTRA"

    def test_a_twin_that_forgets_the_journal_is_caught_by_the_chain(self, file):
        die_in_the_middle(file.path, *self.HALF)
        file.path.with_name("ledger.db-journal").unlink()
        is_refused_untouched(file, "damaged|tampered")

    def test_a_draft_left_by_a_killed_creator_does_no_harm(self, tmp_path):
        (tmp_path / "ledger.db.0123456789abcdef.new").write_bytes(b"half")
        file = AppendOnlyFile(tmp_path / "ledger.db")
        file.create()
        assert entries(file) == []

    def test_an_empty_transaction_has_an_empty_digest(self):
        assert Transaction(None, []).last_digest == ""
