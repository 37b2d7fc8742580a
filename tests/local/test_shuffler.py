"""The shuffler waits, forgets who sent what, and passes nothing else on."""

import threading
import time
from itertools import permutations

import numpy as np
import pytest

from goodness import FALSE_ALARM, p_value
from quorate.core.noise import SecureNoise, SeededNoise, use_noise
from quorate.exceptions import NotEnoughUsersError
from quorate.local.client import Client
from quorate.local.messages import Reason
from quorate.local.shuffler import Shuffler, random_order
from quorate.local.task import Task

TASK = Task.shuffle(name="t", candidates=8, epsilon=1.0, delta=1e-6, users=4, seed="22" * 32)


def messages(count):
    return [Client(TASK, largest_epsilon=9.0).message([5]) for _ in range(count)]


class TestOrder:
    @pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(3)], ids=["secure", "seeded"])
    def test_every_permutation_is_equally_likely(self, source):
        orders = list(permutations(range(4)))
        counts = np.zeros(24)
        for _ in range(4800):
            counts[orders.index(tuple(random_order(4, source)))] += 1
        assert p_value(counts, np.full(24, 1 / 24)) > FALSE_ALARM

    def test_sorting_by_too_few_bits_is_caught(self):
        """Ties keep the order of arrival, which is what must be forgotten."""
        orders = list(permutations(range(4)))
        counts = np.zeros(24)
        for _ in range(4800):
            words = SecureNoise().uniform_words(4) >> np.uint64(62)
            counts[orders.index(tuple(np.argsort(words, kind="stable")))] += 1
        assert p_value(counts, np.full(24, 1 / 24)) < FALSE_ALARM

    def test_equal_words_are_drawn_again(self):
        class Repeating(SeededNoise):
            calls = 0

            def _uniform_words(self, count):
                self.calls += 1
                return (
                    np.full(count, 5, np.uint64)
                    if self.calls == 1
                    else super()._uniform_words(count)
                )

        source = Repeating(1)
        assert sorted(random_order(3, source)) == [0, 1, 2]
        assert source.calls == 2

    def test_nobody_and_one_have_one_order(self):
        assert random_order(0).tolist() == []
        assert random_order(1).tolist() == [0]


class TestWaiting:
    def test_too_few_messages_are_kept(self):
        shuffler = Shuffler(TASK)
        shuffler.admit_all(messages(3))
        with pytest.raises(NotEnoughUsersError, match="4 messages"):
            shuffler.release()
        shuffler.admit_all(messages(1))
        assert len(shuffler.release()) == 4
        assert shuffler.waiting == 0
        with pytest.raises(NotEnoughUsersError):
            shuffler.release()

    def test_what_goes_out_is_what_came_in_in_another_order(self):
        shuffler, sent = Shuffler(TASK), messages(200)
        shuffler.admit_all(sent)
        with use_noise(SeededNoise(0)):
            released = shuffler.release()
        assert sorted(released) == sorted(sent)
        assert released != sent


class TestDropping:
    def test_what_would_not_hide_anybody_does_not_count(self):
        other = Task.local(name="other", candidates=8, epsilon=1.0)
        shuffler = Shuffler(TASK)
        good = messages(1)[0]
        foreign = good[:8] + other.digest[:8] + good[16:]
        for message in (None, b"short", foreign):
            shuffler.admit(message)
        assert shuffler.waiting == 0
        assert shuffler.dropped == {
            Reason.NOT_BYTES: 1,
            Reason.WRONG_LENGTH: 1,
            Reason.FOREIGN_TASK: 1,
        }

    def test_a_token_admits_one_message(self):
        shuffler = Shuffler(TASK)
        for message in messages(3):
            shuffler.admit(message, token=b"user 1")
        shuffler.admit(messages(1)[0], token=b"user 2")
        assert shuffler.waiting == 2
        assert shuffler.dropped == {Reason.REPEATED: 2}


class TestOnce:
    def test_two_threads_do_not_release_one_crowd(self):
        """The second begins where it does most harm: when the first has looked how many wait."""
        shuffler, found = Shuffler(TASK), []
        shuffler.admit_all(messages(4))
        began = threading.Event()

        def release():
            try:
                found.append(shuffler.release())
            except NotEnoughUsersError:
                found.append(None)

        other = threading.Thread(target=release)

        class Waiting(list):
            def __len__(self):
                if not began.is_set():
                    began.set()
                    other.start()
                    time.sleep(0.05)
                return super().__len__()

        shuffler._waiting = Waiting(shuffler._waiting)
        release()
        other.join()
        assert sorted(each is None for each in found) == [False, True]

    def test_what_comes_after_a_release_waits_for_a_crowd_of_its_own(self):
        shuffler = Shuffler(TASK)
        shuffler.admit_all(first := messages(4))
        assert sorted(shuffler.release()) == sorted(first)
        shuffler.admit_all(second := messages(3))
        with pytest.raises(NotEnoughUsersError):
            shuffler.release()
        shuffler.admit_all(last := messages(1))
        assert sorted(shuffler.release()) == sorted(second + last)
