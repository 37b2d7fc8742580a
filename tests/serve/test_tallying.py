"""A store becomes a result with its promise."""

from functools import cache

import numpy as np
import pytest

from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.noise import SeededNoise
from quorate.protocols.messages import MessageFormat, Reason
from quorate.protocols.task import Task
from quorate.serve.message_store import MessageStore
from quorate.serve.tallying import tally_store, the_task
from reports_of import seeded_reports

LOCAL = Task.local(name="local", candidates=50, epsilon=4.0, seed="66" * 32)


@cache
def shuffled():
    """Make it when a test asks: its noise is a second's work."""
    return Task.shuffle(name="s", candidates=50, epsilon=1.0, delta=1e-6, users=30, seed="77" * 32)


def rows(task, values, seed=1):
    reports = seeded_reports(task.response, np.asarray(values), SeededNoise(seed))
    return [row.tobytes() for row in MessageFormat(task).write(reports)]


@pytest.fixture
def store(tmp_path):
    made = MessageStore(tmp_path / "messages.db")
    yield made
    made.close()


def test_single_messages_are_counted(store):
    store.open_task(LOCAL)
    for i, message in enumerate(rows(LOCAL, np.full(60, 7))):
        store.keep(LOCAL, b"%d" % i, message)
    store.drop(LOCAL, Reason.WRONG_LENGTH)
    tally = tally_store(store, LOCAL)
    assert (tally.winner, tally.accepted) == (7, 60)
    assert tally.dropped == {Reason.WRONG_LENGTH: 1}
    assert tally.guarantees["public"].epsilon == 4.0


def test_single_messages_of_a_shuffle_wait_until_they_hide_each_other(store):
    store.open_task(shuffled())
    messages = rows(shuffled(), np.full(30, 7))
    for i, message in enumerate(messages[:29]):
        store.keep(shuffled(), b"%d" % i, message)
    with pytest.raises(NotEnoughUsersError, match="30 messages"):
        tally_store(store, shuffled())
    store.keep(shuffled(), b"29", messages[29])
    assert tally_store(store, shuffled()).guarantees["public"].delta == 1e-6


def test_batches_are_counted_and_a_small_one_is_promised_less(store):
    store.open_task(shuffled())
    store.keep_batch(shuffled(), b"a", b"".join(rows(shuffled(), np.full(30, 7))))
    assert tally_store(store, shuffled()).guarantees["public"].epsilon == 1.0
    store.keep_batch(shuffled(), b"b", b"".join(rows(shuffled(), np.full(10, 7), 2)))
    tally = tally_store(store, shuffled())
    assert tally.accepted == 40
    assert tally.guarantees["public"].epsilon == shuffled().report_epsilon


def test_the_task_is_found_by_its_id(store):
    with pytest.raises(ParameterError, match="it holds none"):
        the_task(store)
    store.open_task(LOCAL)
    assert the_task(store) == LOCAL
    store.open_task(shuffled())
    assert the_task(store, shuffled().id) == shuffled()
    with pytest.raises(ParameterError, match=f"{LOCAL.id} \\(local\\)"):
        the_task(store)
