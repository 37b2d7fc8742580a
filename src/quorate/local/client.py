"""The code on a user's device: from the user's records to one message."""

from __future__ import annotations

import hashlib
import operator
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from quorate import _validate
from quorate.core.guarantees import Guarantee
from quorate.core.once import OnceOnly
from quorate.core.users.crowd import call_quietly
from quorate.exceptions import AlreadyAnsweredError, ParameterError
from quorate.ledger.ledger import Ledger
from quorate.local.device_memory import DeviceMemory, StoredAnswer, new_token
from quorate.local.messages import MessageFormat
from quorate.local.task import PLURALITY, Task

__all__ = ["Client", "Decision", "plurality"]

Decision = Callable[[Any, int], int | None]
"""From a device's records and the public seed to a candidate, or to none."""


def plurality(records: Iterable[int], seed: int) -> int | None:
    """Return the most frequent value; the public seed breaks ties. None if there are no records.

    Values must be integers; with any other value among the records the result is None.

    >>> plurality([3, 5, 5], seed=1)
    5
    >>> plurality([], seed=1) is None
    True
    """
    counts = Counter(operator.index(record) for record in records)
    if not counts:
        return None
    most = max(counts.values())
    return min((value for value, count in counts.items() if count == most), key=_rank(seed))


def _rank(seed: int) -> Callable[[int], bytes]:
    """Return the order of values that all devices share: SHA-256 of seed and decimal value."""
    return lambda value: hashlib.sha256(f"{seed:032x} {value}".encode("ascii")).digest()


class Client(OnceOnly):
    r"""Make a user's one message for a task, on the user's own device.

    The device reduces its records to one candidate, answers by the task's randomizer with the
    operating system's randomness, and deletes the candidate. It answers a task once: later calls
    return the same bytes, so a lost connection costs no privacy. After :meth:`acknowledged` it
    refuses. With a ``memory`` this also holds after a restart of the program.

    The server defines the task, but the device limits the privacy loss: a task above
    ``largest_epsilon`` is refused, and with a ``memory`` the messages of all tasks together stay
    below it.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP for the message, with :math:`\varepsilon` the task's
        ``report_epsilon``
    neighbours : replace all records of one user
    trust : local
    public : the task, and that a message was sent
    numerics : exact
    proof : see :class:`~quorate.local.randomizers.hashed.HashedResponse`; whatever ``decide`` does,
        the message depends on the records through one candidate or none. If ``decide`` fails, the
        user has no candidate, so an error reveals nothing.

    Parameters
    ----------
    task : Task
    decide : callable or None, default=None
        The task's ``decision``: from records and ``task.shared_seed`` to a candidate or ``None``;
        needed unless the task says ``"plurality"``.
    largest_epsilon : float
        The largest epsilon this device accepts, set by the author of the app and never by the
        server.
    memory : DeviceMemory or None, default=None
        The earlier answers of this device; with ``None`` only this object remembers them.
    ledger : Ledger or None, default=None
        The device's own ledger: the message is charged before the records are read.
    data_name : str or None, default=None
        The name of the records in the ledger.

    Examples
    --------
    >>> task = Task.local(name="favourite", candidates=2**14, epsilon=1.0)
    >>> client = Client(task, largest_epsilon=1.0)
    >>> message = client.message([7, 7, 9])
    >>> len(message), client.message([1]) == message
    (22, True)
    >>> client.acknowledged()
    >>> client.message([1])
    Traceback (most recent call last):
        ...
    quorate.exceptions.AlreadyAnsweredError: This device has answered the task 'favourite' ...
    >>> Client(task, largest_epsilon=0.5)
    Traceback (most recent call last):
        ...
    quorate.exceptions.ParameterError: Expected a task whose message costs at most epsilon=0.5, ...
    """

    def __init__(
        self,
        task: Task,
        decide: Decision | None = None,
        *,
        largest_epsilon: float,
        memory: DeviceMemory | None = None,
        ledger: Ledger | None = None,
        data_name: str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(task, Task):
            raise ParameterError(f"Expected task to be a Task, got a {type(task).__name__}.")
        if decide is None and task.decision != PLURALITY:
            raise ParameterError(
                f"Expected decide=, the function that this task calls {task.decision!r}."
            )
        if (ledger is None) != (data_name is None):
            raise ParameterError("Expected ledger= and data_name= together, got one of them.")
        _validate.positive(largest_epsilon=largest_epsilon)
        if task.report_epsilon > largest_epsilon:
            raise ParameterError(
                f"Expected a task whose message costs at most epsilon={largest_epsilon!r}, the "
                f"limit of this client, got report_epsilon={task.report_epsilon!r}."
            )
        self.task = task
        self.largest_epsilon = largest_epsilon
        self._lock = threading.Lock()
        self._decide = plurality if decide is None else decide
        self._memory = memory
        self._answer = None if memory is None else memory.recall(task.id)
        self._ledger, self._data_name = ledger, data_name

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee against an adversary who sees the message itself."""
        return self.task.guarantees()["network"]

    @property
    def answered(self) -> bool:
        """Whether this device has made its one message for the task."""
        return self._answer is not None

    @property
    def token(self) -> str:
        """The admission token of the message, which is sent with it, also if it is sent again."""
        if self._answer is None:
            raise ParameterError("Expected a message before its token, got none: call message.")
        return self._answer.token

    def message(self, records: Any) -> bytes:
        """Return the message of a user with these records; later calls return the first message.

        It raises an error after the message was acknowledged, and in a forked process, so nobody
        answers twice.
        """
        self.refuse_elsewhere()
        with self._lock:  # threads that ask at once get one answer
            answer = self._answered(records)
        if answer.acknowledged:
            raise AlreadyAnsweredError(
                f"This device has answered the task {self.task.name!r} ({self.task.id}), and its "
                "message has arrived: it does not answer twice."
            )
        return answer.message

    def _answered(self, records: Any) -> StoredAnswer:
        if self._answer is None:
            # What is kept stands in the memory before anybody sees it; another program of this
            # device may have been quicker, and then its answer stays.
            self._answer = (
                self._first(records)
                if self._memory is None
                else self._memory.first(
                    self.task.id,
                    self.task.report_epsilon,
                    limit=self.largest_epsilon,
                    make=lambda: self._first(records),
                )
            )
        return self._answer

    def acknowledged(self) -> None:
        """Record that the collector has accepted the message."""
        if self._answer is None:
            raise ParameterError("Expected a message that was sent, got none: call message.")
        self._answer = replace(self._answer, acknowledged=True)
        if self._memory is not None:
            self._memory.acknowledge(self.task.id)

    def _first(self, records: Any) -> StoredAnswer:
        if self._ledger is not None and self._data_name is not None:
            purpose = f"task {self.task.id} ({self.task.name})"
            self._ledger.charge(self._data_name, self.guarantee, purpose=purpose)
        return StoredAnswer(self._make(self._candidate(records)), new_token())

    def _candidate(self, records: Any) -> int:
        # Whatever is raised, SystemExit too, would tell of the records.
        decided = call_quietly(lambda: self._decide(records, self.task.shared_seed))
        found = None if decided is None else call_quietly(lambda: int(decided))
        return found if found is not None and 0 <= found < self.task.candidates else -1

    def _make(self, candidate: int) -> bytes:
        reports = self.task.response.respond(np.array([candidate], dtype=np.int64))
        return MessageFormat(self.task).write(reports).tobytes()
