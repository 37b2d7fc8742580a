"""A device sends one message, whatever its records are, and the same when asked again."""

import contextlib
import copy
import os
import threading

import numpy as np
import pytest

from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import (
    AlreadyAnsweredError,
    BudgetExceededError,
    OtherProcessError,
    ParameterError,
)
from quorate.ledger.ledger import Ledger
from quorate.local.client import Client, plurality
from quorate.local.device_memory import DeviceMemory
from quorate.local.messages import MessageFormat
from quorate.local.task import Task

TASK = Task.local(name="t", candidates=1000, epsilon=1.0, seed="11" * 32)


def message_of(records, *, decide=None, task=TASK, seed=4):
    with use_noise(SeededNoise(seed)):
        return Client(task, decide, largest_epsilon=9.0).message(records)


class TestOneMessage:
    def test_it_is_the_report_of_the_candidate(self):
        with use_noise(SeededNoise(4)):
            reports = TASK.response.respond(np.array([7]))
        assert message_of([7, 7, 3]) == MessageFormat(TASK).write(reports).tobytes()

    def test_a_retry_sends_the_same_bytes(self):
        client = Client(TASK, largest_epsilon=9.0)
        first = client.message([7])
        assert client.message([7]) == first
        assert client.message([8]) == first

    def test_threads_that_ask_at_once_get_one_message(self):
        both = threading.Barrier(2)

        def decide(records, seed):
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(timeout=0.5)  # where one waits for the other, it waits in vain
            return 7

        client, found = Client(TASK, decide, largest_epsilon=9.0), []
        threads = [
            threading.Thread(target=lambda: found.append(client.message([7]))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 2
        assert len(set(found)) == 1

    def test_two_devices_differ(self):
        assert len({Client(TASK, largest_epsilon=9.0).message([7]) for _ in range(20)}) == 20

    def test_real_messages_need_no_seed(self):
        assert len(Client(TASK, largest_epsilon=9.0).message([1])) == MessageFormat(TASK).length


class TestDevice:
    """What a device keeps between two starts of the program."""

    def test_the_message_and_its_token_stay_until_they_are_acknowledged(self, tmp_path):
        first = Client(TASK, largest_epsilon=1.0, memory=DeviceMemory(tmp_path / "answers.db"))
        assert not first.answered
        message, token = first.message([7]), first.token
        again = Client(TASK, largest_epsilon=1.0, memory=DeviceMemory(tmp_path / "answers.db"))
        assert again.answered
        assert (again.message([8]), again.token) == (message, token)
        again.acknowledged()
        later = Client(TASK, largest_epsilon=1.0, memory=DeviceMemory(tmp_path / "answers.db"))
        assert later.answered
        for client in (again, later):
            with pytest.raises(AlreadyAnsweredError, match="does not answer twice"):
                client.message([8])

    def test_what_another_program_of_the_device_answered_stays(self, tmp_path):
        """Both looked before either answered: one message leaves the device."""
        memory = DeviceMemory(tmp_path / "answers.db")
        one, two = (Client(TASK, largest_epsilon=1.0, memory=memory) for _ in range(2))
        assert one.message([7]) == two.message([8])
        assert one.token == two.token

    def test_a_copy_in_another_process_answers_nothing(self):
        client = Client(TASK, largest_epsilon=1.0)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                client.message([7])
            except OtherProcessError:
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert client.message([7])
        with pytest.raises(TypeError, match="cannot be copied"):
            copy.copy(client)

    def test_a_client_says_no_more_than_its_own_limit(self):
        for limit in (0.999, 0.5):
            with pytest.raises(ParameterError, match="limit of this client"):
                Client(TASK, largest_epsilon=limit)
        Client(TASK, largest_epsilon=1.0)
        with pytest.raises(TypeError, match="largest_epsilon"):
            Client(TASK)
        for wrong in (0.0, -1.0, float("nan"), float("inf")):
            with pytest.raises(ParameterError, match="largest_epsilon"):
                Client(TASK, largest_epsilon=wrong)

    def test_the_limit_is_that_of_the_message_alone_and_not_of_the_shuffled_crowd(self):
        task = Task.shuffle(name="s", candidates=8, epsilon=1.0, delta=1e-3, users=50)
        assert task.report_epsilon > task.epsilon
        with pytest.raises(ParameterError, match="limit of this client"):
            Client(task, largest_epsilon=task.epsilon)

    def test_all_tasks_of_a_server_together_stay_below_the_limit(self, tmp_path):
        memory, seen = DeviceMemory(tmp_path / "answers.db"), []

        def decide(records, seed):
            seen.append(records)
            return 7

        for task in (TASK, TASK.renewed(1)):
            Client(task, decide, largest_epsilon=2.5, memory=memory).message([7])
        third = Client(TASK.renewed(2), decide, largest_epsilon=2.5, memory=memory)
        with pytest.raises(BudgetExceededError, match="together"):
            third.message([7])
        assert len(seen) == 2
        assert not third.answered

    def test_a_token_or_an_acknowledgement_needs_a_message(self):
        client = Client(TASK, largest_epsilon=1.0)
        with pytest.raises(ParameterError, match="call message"):
            _ = client.token
        with pytest.raises(ParameterError, match="call message"):
            client.acknowledged()

    def test_its_own_ledger_is_charged_once_and_before_the_records_are_seen(self, tmp_path):
        ledger = Ledger(tmp_path / "device.db")
        ledger.set_budget("photos", epsilon=1.5)
        client = Client(TASK, largest_epsilon=9.0, ledger=ledger, data_name="photos")
        client.message([7])
        client.message([7])
        assert ledger.spent("photos").epsilon == 1.0
        seen = []
        other = Task.local(name="u", candidates=1000, epsilon=1.0)
        paid = {"ledger": ledger, "data_name": "photos"}
        second = Client(other, lambda r, s: seen.append(r), largest_epsilon=9.0, **paid)
        with pytest.raises(BudgetExceededError):
            second.message([7])
        assert seen == []
        with pytest.raises(ParameterError, match="together"):
            Client(TASK, largest_epsilon=9.0, ledger=ledger)


class TestEveryInput:
    """What cannot be answered is answered by coins, with the same length and no error."""

    @pytest.mark.parametrize(
        "records",
        [[], None, "abc", [None], [np.nan], [np.inf], [-1], [1000], [2**200], 5, object(), [[1]]],
        ids=range(12),
    )
    def test_records_that_hold_no_candidate_make_a_message_of_coins(self, records):
        assert message_of(records) == message_of([])

    def test_a_million_records_are_one_vote(self):
        assert message_of([7] * 10**6) == message_of([7])

    def test_a_decision_that_raises_is_a_user_without_a_candidate(self):
        def failing(records, seed):
            raise RuntimeError(f"record {records}")

        assert message_of([5], decide=failing) == message_of([])
        assert message_of([5], decide=lambda r, s: None) == message_of([])
        assert message_of([5], decide=lambda r, s: 10**9) == message_of([])

    @pytest.mark.parametrize("error", [SystemExit, GeneratorExit])
    def test_no_record_ends_the_program(self, error):
        def failing(records, seed):
            raise error(f"record {records}")

        assert message_of([5], decide=failing) == message_of([])

    def test_the_decision_gets_the_public_seed(self):
        seen = []
        message_of([5], decide=lambda records, seed: seen.append((records, seed)) or 5)
        assert seen == [([5], TASK.shared_seed)]


class TestPlurality:
    def test_ties_go_by_the_seed_and_not_by_the_order_of_records(self):
        winners = {plurality([4, 9], seed) for seed in range(30)}
        assert winners == {4, 9}
        for seed in range(10):
            assert plurality([4, 9, 9, 4], seed) == plurality([9, 4, 4, 9], seed)

    def test_most_records_win(self):
        assert plurality([1, 2, 2], seed=0) == 2


class TestRefusals:
    def test_another_decision_needs_its_function(self):
        task = Task.local(name="t", candidates=4, epsilon=1.0, decision="stable")
        with pytest.raises(ParameterError, match="'stable'"):
            Client(task, largest_epsilon=9.0)
        assert len(Client(task, lambda r, s: 1, largest_epsilon=9.0).message([])) > 16

    def test_something_else_than_a_task_is_refused(self):
        with pytest.raises(ParameterError, match="Task"):
            Client(TASK.to_json(), largest_epsilon=9.0)

    def test_the_promise_is_the_one_of_a_single_message(self):
        assert Client(TASK, largest_epsilon=9.0).guarantee == TASK.guarantees()["network"]
