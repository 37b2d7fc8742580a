"""A store becomes a result with its promise."""

import json
import os
import signal
from functools import cache

import numpy as np
import pytest

from forks import in_a_fork
from quorate.app.serve.message_store import MessageStore
from quorate.app.serve.tallying import tally_store, the_task
from quorate.core.noise import SeededNoise
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.local.messages import MessageFormat, Reason
from quorate.local.server import Server
from quorate.local.task import Task
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


class TestOnce:
    """Each message is shuffled once; two tallies never differ by a few people."""

    def fill(self, store, values, seed=1, first=0):
        store.open_task(shuffled())
        for i, message in enumerate(rows(shuffled(), values, seed)):
            store.keep(shuffled(), b"%d" % (first + i), message)

    def said(self, store):
        return json.dumps(tally_store(store, shuffled()).to_dict())

    @pytest.mark.parametrize("late", range(4))
    def test_who_comes_after_a_tally_does_not_change_it(self, store, late):
        """The difference was that person's message: epsilon >= 1.58 under a claim of .25."""
        self.fill(store, np.full(30, 7))
        first = self.said(store)
        self.fill(store, np.full(29, late), seed=2, first=30)
        store.drop(shuffled(), Reason.WRONG_LENGTH)
        assert [self.said(store) for _ in range(3)] == [first] * 3

    def test_what_an_attacker_sees_of_the_last_person_is_the_same_for_every_answer(self, tmp_path):
        """The attack: subtract the tally before from the tally after, for either answer."""
        seen = {}
        for answer in (3, 4):
            gaps = []
            for world in range(40):
                store = MessageStore(tmp_path / f"{answer} {world}.db")
                self.fill(store, np.full(30, 7), seed=world)
                before = tally_store(store, shuffled()).votes()
                self.fill(store, [answer], seed=1000 + world, first=30)
                after = tally_store(store, shuffled()).votes()
                moved = dict(zip(after.candidates.tolist(), after.votes, strict=True))
                still = dict(zip(before.candidates.tolist(), before.votes, strict=True))
                gaps.append(moved[3] - still[3])
                store.close()
            seen[answer] = gaps
        assert seen[3] == seen[4] == [0.0] * 40

    def test_a_second_crowd_is_of_new_people_and_both_keep_the_promise(self, store):
        self.fill(store, np.full(30, 7))
        first = tally_store(store, shuffled())
        self.fill(store, np.full(30, 9), seed=2, first=30)
        both = tally_store(store, shuffled())
        assert (first.accepted, both.accepted) == (30, 60)
        assert both.guarantees == first.guarantees == shuffled().guarantees()
        crowds = [len(messages) for _, messages in store.batches(shuffled())]
        assert crowds == [30 * MessageFormat(shuffled()).length] * 2

    def test_whoever_was_counted_is_not_counted_again(self, store):
        self.fill(store, np.full(30, 7))
        tally_store(store, shuffled())
        self.fill(store, np.full(30, 9), seed=2)
        assert store.waiting(shuffled()) == 0
        assert tally_store(store, shuffled()).accepted == 30

    def test_what_a_shuffler_passes_on_is_not_counted_here_too(self, store):
        self.fill(store, np.full(30, 7))
        store.make_batch(shuffled())
        assert tally_store(store, shuffled()).accepted == 0
        self.fill(store, np.full(30, 9), seed=2, first=30)
        tally_store(store, shuffled())
        assert len(store.batches(shuffled(), outgoing=True)) == 1

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_kill_gives_no_second_answer_and_loses_none(self, tmp_path, store, moment):
        """Killed before anything was counted, or when everything was: the crowd is the same."""
        self.fill(store, np.full(30, 7))

        def killed():
            own = MessageStore(tmp_path / "messages.db")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Server, "collect" if moment == "before" else "tally", _kill)
                tally_store(own, shuffled())

        assert in_a_fork(killed) == ""
        self.fill(store, np.full(10, 9), seed=2, first=30)
        tally = tally_store(store, shuffled())
        assert (tally.accepted, tally.winner) == (30, 7)
        assert store.waiting(shuffled()) == 10

    def test_in_the_local_model_a_tally_is_of_all_so_far(self, store):
        """Every message may be seen by anybody: tallies say nothing that messages do not."""
        store.open_task(LOCAL)
        for i, message in enumerate(rows(LOCAL, np.full(20, 7))):
            store.keep(LOCAL, b"%d" % i, message)
            if i in (10, 19):
                assert tally_store(store, LOCAL).accepted == i + 1


def _kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


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
