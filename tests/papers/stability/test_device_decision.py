"""A device decides as the simulation does, and never fails."""

import numpy as np
import pytest

from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.learners.concepts import Thresholds
from quorate.local import Client, Task
from quorate.local.messages import MessageFormat
from quorate.papers.stability import SoftmaxRule
from quorate.papers.stability.device_decision import device_decision
from quorate.papers.stability.shared_seed import SharedSeed

RULE = SoftmaxRule(Thresholds(0, 255))
TASK = Task.local(name="cut-off", candidates=RULE.size, epsilon=1.0, decision="softmax")


def people(count, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (count, 64))
    return x, (x >= 100) ^ (rng.random(x.shape) < 0.1)


def test_every_device_comes_to_the_key_of_the_simulation():
    x, y = people(30)
    users = np.repeat(np.arange(30), 64)
    together = UserData.from_arrays(x.reshape(-1, 1), y.ravel(), users=users)
    keys = RULE.decide(together, SharedSeed(TASK.shared_seed))
    decide = device_decision(RULE)
    alone = [decide(person, TASK.shared_seed) for person in zip(x, y, strict=True)]
    assert alone == keys.tolist()
    other = TASK.renewed()
    changed = [decide(person, other.shared_seed) for person in zip(x, y, strict=True)]
    assert changed != alone


@pytest.mark.parametrize("records", [None, (), ([1], [1, 0]), (["a"], [1]), 5, ([np.nan], [1])])
def test_records_that_no_rule_can_read_make_a_message_all_the_same(records):
    with use_noise(SeededNoise(3)):
        message = Client(TASK, device_decision(RULE), largest_epsilon=9.0).message(records)
    assert len(message) == MessageFormat(TASK).length
