"""What was acknowledged is there once, whatever happened; a shuffler's store forgets."""

import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache

import pytest

from quorate.app.serve import message_store
from quorate.app.serve.message_store import Kept, MessageStore
from quorate.exceptions import NotEnoughUsersError, ParameterError, SchemaError
from quorate.local.client import Client
from quorate.local.device_memory import new_token
from quorate.local.messages import Reason
from quorate.local.task import Task

TASK = Task.local(name="t", candidates=8, epsilon=1.0, seed="44" * 32)


@cache
def shuffled():
    """Make it when a test asks: its noise is a second's work."""
    return Task.shuffle(name="s", candidates=8, epsilon=1.0, delta=1e-6, users=5, seed="55" * 32)


@pytest.fixture
def store(tmp_path):
    made = MessageStore(tmp_path / "messages.db")
    made.open_task(TASK)
    made.open_task(shuffled())
    yield made
    made.close()


class TestKeeping:
    def test_a_token_keeps_one_message(self, store):
        assert store.keep(TASK, b"a", b"one") is Kept.NEW
        assert store.keep(TASK, b"a", b"one") is Kept.ALREADY
        assert store.keep(TASK, b"a", b"two") is Kept.OTHER
        assert store.keep(TASK, b"b", b"one") is Kept.NEW
        assert sorted(store.messages(TASK)) == [b"one", b"one"]
        assert store.dropped(TASK) == {Reason.REPEATED: 1}

    def test_tasks_do_not_mix(self, store):
        store.keep(TASK, b"a", b"one")
        assert store.keep(shuffled(), b"a", b"two") is Kept.NEW
        assert store.messages(TASK) == [b"one"]

    def test_it_is_there_after_reopening(self, tmp_path, store):
        store.keep(TASK, b"a", b"one")
        store.drop(TASK, Reason.WRONG_LENGTH)
        again = MessageStore(tmp_path / "messages.db", must_exist=True)
        assert again.messages(TASK) == [b"one"]
        assert again.dropped(TASK) == {Reason.WRONG_LENGTH: 1}
        assert again.tasks() == [TASK, shuffled()]
        again.close()

    def test_many_threads_and_connections_lose_nothing(self, tmp_path, store):
        other = MessageStore(tmp_path / "messages.db")

        def keep(i):
            return (store, other)[i % 2].keep(TASK, f"{i % 50}".encode(), b"%d" % (i % 50))

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(keep, range(200)))
        assert results.count(Kept.NEW) == 50
        assert results.count(Kept.ALREADY) == 150
        assert len(store.messages(TASK)) == 50
        other.close()

    def test_tokens_differ(self):
        assert len({new_token() for _ in range(100)}) == 100


class TestSeeds:
    def test_a_second_task_with_the_same_seed_is_refused(self, store):
        again = Task.local(name="another question", candidates=8, epsilon=1.0, seed=TASK.seed)
        with pytest.raises(ParameterError, match=f"seed of task {TASK.id}"):
            store.open_task(again)
        assert store.tasks() == [TASK, shuffled()]

    def test_the_same_task_may_be_opened_again(self, store):
        store.open_task(TASK)
        assert store.tasks() == [TASK, shuffled()]


class TestBatches:
    def fill(self, store, count=5):
        messages = [Client(shuffled(), largest_epsilon=9.0).message([i % 8]) for i in range(count)]
        for i, message in enumerate(messages):
            store.keep(shuffled(), b"user %d" % i, message)
        return messages

    def test_too_few_messages_stay(self, store):
        self.fill(store, 4)
        with pytest.raises(NotEnoughUsersError, match="5 messages"):
            store.make_batch(shuffled())
        assert store.waiting(shuffled()) == 4
        assert store.batches(shuffled(), outgoing=True) == []

    def test_a_batch_holds_all_messages_and_the_table_none(self, store):
        messages = self.fill(store, 40)
        token = store.make_batch(shuffled())
        ((found, joined),) = store.batches(shuffled(), outgoing=True)
        length = len(messages[0])
        pieces = [joined[i : i + length] for i in range(0, len(joined), length)]
        assert found == token
        assert sorted(pieces) == sorted(messages)
        assert pieces != messages
        assert store.waiting(shuffled()) == 0
        assert store.messages(shuffled()) == []

    def test_the_order_of_a_batch_is_drawn(self, store):
        self.fill(store, 40)
        kept = b"".join(store.messages(shuffled()))
        store.make_batch(shuffled())
        # Of 40! orders one is that of the table.
        assert store.batches(shuffled(), outgoing=True)[0][1] != kept

    def test_who_sent_what_is_not_in_the_file_any_more(self, tmp_path, store):
        """In no page and not in the log: user and message stood together in one row."""
        messages = self.fill(store, 30)

        def together():
            found = 0
            for path in tmp_path.iterdir():
                data = path.read_bytes()
                found += sum(b"user %d" % i + message in data for i, message in enumerate(messages))
            return found

        assert together() > 0
        store.make_batch(shuffled())
        assert together() == 0

    def test_used_tokens_stay_used(self, store):
        self.fill(store)
        store.make_batch(shuffled())
        assert store.keep(shuffled(), b"user 0", b"a second message") is Kept.ALREADY
        assert store.waiting(shuffled()) == 0

    def test_a_batch_is_received_once_and_forgotten_when_sent(self, store):
        assert store.keep_batch(shuffled(), b"x", b"messages") is Kept.NEW
        assert store.keep_batch(shuffled(), b"x", b"messages") is Kept.ALREADY
        assert store.batches(shuffled()) == [(b"x", b"messages")]
        self.fill(store)
        token = store.make_batch(shuffled())
        store.forget_batch(shuffled(), token)
        assert store.batches(shuffled(), outgoing=True) == []
        assert len(store.batches(shuffled())) == 1


class TestRights:
    """Who sent what stands in the file: it is its owner's, from the first moment on."""

    def modes(self, folder):
        return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}

    def test_it_is_made_for_its_owner_alone_with_what_lies_beside_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(message_store, "close_to_others", lambda path: None)
        before = os.umask(0)
        try:
            with closing(MessageStore(tmp_path / "messages.db")) as made:
                made.open_task(TASK)
                made.keep(TASK, b"a", b"one")
                found = self.modes(tmp_path)
        finally:
            os.umask(before)
        assert set(found) == {"messages.db", "messages.db-wal", "messages.db-shm"}
        assert set(found.values()) == {0o600}

    def test_a_wider_one_is_closed_to_others_with_what_lies_beside_it(self, tmp_path):
        path = tmp_path / "messages.db"
        with closing(MessageStore(path)) as made:
            made.open_task(TASK)
            made.keep(TASK, b"a", b"one")
            for each in tmp_path.iterdir():
                each.chmod(0o666)
            with closing(MessageStore(path)) as again:
                assert set(self.modes(tmp_path).values()) == {0o600}
                assert again.messages(TASK) == [b"one"]

    def test_a_foreign_file_keeps_its_rights(self, tmp_path):
        notes = tmp_path / "notes.txt"
        notes.write_text("my notes " * 1000)
        notes.chmod(0o644)
        with pytest.raises(SchemaError):
            MessageStore(notes)
        assert self.modes(tmp_path) == {"notes.txt": 0o644}


class TestRefusals:
    def test_other_files_are_refused_and_left_alone(self, tmp_path):
        text = tmp_path / "notes.txt"
        text.write_text("my notes " * 1000)
        with pytest.raises(SchemaError, match="store of messages"):
            MessageStore(text)
        assert text.read_text().startswith("my notes")
        foreign = tmp_path / "other.db"
        with sqlite3.connect(foreign) as connection:
            connection.execute("CREATE TABLE a (b)")
        connection.close()
        with pytest.raises(SchemaError, match="another database"):
            MessageStore(foreign)

    def test_a_missing_store_is_not_made_by_reading(self, tmp_path):
        with pytest.raises(ParameterError, match="no file"):
            MessageStore(tmp_path / "nothing.db", must_exist=True)
        assert not (tmp_path / "nothing.db").exists()
