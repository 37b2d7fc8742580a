"""A stable rule on a user's own device, which chooses the candidate for a message."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.core.users import UserData
from quorate.local.client import Decision
from quorate.papers.stability.rules import StableRule
from quorate.papers.stability.shared_seed import SharedSeed

__all__ = ["device_decision"]


def device_decision(rule: StableRule) -> Decision:
    """Return the decision of a :class:`~quorate.local.client.Client` that runs ``rule``.

    The device's records are a pair (X, y); the seed is that of the task. The server gets the
    hypothesis of the winning key by ``rule.concept(tally.winner, SharedSeed(task.shared_seed))``.

    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.local import Client, Server, Task
    >>> from quorate.papers.stability import SoftmaxRule
    >>> rule = SoftmaxRule(Thresholds(0, 99), sharpness=float("inf"))
    >>> task = Task.local(name="cut-off", candidates=rule.size, epsilon=4.0, decision="softmax")
    >>> x = np.arange(100)
    >>> decide = device_decision(rule)
    >>> devices = [Client(task, decide, largest_epsilon=4.0) for _ in range(60)]
    >>> tally = Server(task).collect(device.message((x, x >= 42)) for device in devices)
    >>> rule.concept(tally.winner, SharedSeed(task.shared_seed)).cut
    42
    """

    def decide(records: Any, seed: int) -> int:
        x, y = records
        columns = np.asarray(x).reshape(len(y), rule.n_features)
        user = UserData.from_arrays(columns, np.asarray(y), users=np.zeros(len(y), dtype=np.int64))
        return int(rule.decide(user, SharedSeed(seed))[0])

    return decide
