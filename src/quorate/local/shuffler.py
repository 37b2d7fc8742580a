"""The shuffler: it waits, permutes and passes on, and is the only party that sees senders."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from quorate.core.noise import NoiseSource, ambient_noise
from quorate.core.once import OnceOnly
from quorate.exceptions import NotEnoughUsersError
from quorate.local.messages import MessageFormat, Reason
from quorate.local.task import Task

__all__ = ["Shuffler", "random_order"]


def random_order(count: int, noise: NoiseSource | None = None) -> NDArray[np.int64]:
    """Return a uniform permutation: the order of distinct secure words.

    If no two of the 64-bit words are equal, every order is equally likely; otherwise all are drawn
    again.

    >>> sorted(random_order(4).tolist())
    [0, 1, 2, 3]
    """
    source = ambient_noise() if noise is None else noise
    while True:
        words = source.uniform_words(count)
        order = np.argsort(words)
        if count < 2 or bool(np.all(np.diff(words[order]) > 0)):
            return order


class Shuffler(OnceOnly):
    """Wait for the task's number of messages and pass them on in a random order, nothing else.

    Messages of another length or task are dropped, because they would not hide anybody; so are
    repeated admission tokens. Both kinds of dropped messages are counted. Nothing is passed on
    before ``task.users`` messages have arrived, because fewer messages would give less privacy than
    the task guarantees. Later messages wait for a batch of their own, so no two releases differ by
    a few people. For the same reason a shuffler cannot be copied, and releases nothing in a forked
    process.

    Parameters
    ----------
    task : Task

    Examples
    --------
    >>> from quorate.local.client import Client
    >>> task = Task.shuffle(name="t", candidates=8, epsilon=1.0, delta=1e-6, users=3)
    >>> shuffler = Shuffler(task)
    >>> for person in range(3):
    ...     shuffler.admit(Client(task, largest_epsilon=9.0).message([5]), token=bytes([person]))
    >>> len(shuffler.release())
    3
    """

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task
        self._format = MessageFormat(task)
        self._waiting: list[bytes] = []
        self._tokens: set[bytes] = set()
        self._lock = threading.Lock()
        self.dropped: dict[Reason, int] = {}

    @property
    def waiting(self) -> int:
        """Number of messages that are waiting."""
        return len(self._waiting)

    def admit(self, message: object, *, token: bytes | None = None) -> None:
        """Take one message; a token stands for one user and is accepted once."""
        with self._lock:
            if not isinstance(message, bytes):
                self._drop(Reason.NOT_BYTES)
            elif len(message) != self._format.length:
                self._drop(Reason.WRONG_LENGTH)
            elif message[8:16] != self._format.header[8:16]:
                self._drop(Reason.FOREIGN_TASK)
            elif token is not None and token in self._tokens:
                self._drop(Reason.REPEATED)
            else:
                if token is not None:
                    self._tokens.add(token)
                self._waiting.append(message)

    def admit_all(self, messages: Iterable[object]) -> None:
        """Take many messages without tokens."""
        for message in messages:
            self.admit(message)

    def release(self) -> list[bytes]:
        """Return all waiting messages in a random order and forget them."""
        self.refuse_elsewhere()
        with self._lock:
            if len(self._waiting) < self.task.users:
                raise NotEnoughUsersError(
                    f"Expected {self.task.users} messages before any is passed on, got "
                    f"{len(self._waiting)}. Wait for more users."
                )
            crowd, self._waiting = self._waiting, []
        return [crowd[i] for i in random_order(len(crowd))]

    def _drop(self, reason: Reason) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
