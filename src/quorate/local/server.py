"""The collecting side: read messages from unknown senders, count them, state the guarantee."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.guarantees import Guarantee
from quorate.exceptions import SchemaError
from quorate.local.messages import MessageBatch, MessageFormat, Reason
from quorate.local.randomizers.counts import EstimatedVotes, count_votes, estimate_votes
from quorate.local.randomizers.hashed import Reports
from quorate.local.randomizers.prefixes import find_popular
from quorate.local.task import Role, Task

__all__ = ["Server", "Tally"]

_SHOWN = 16
"""Popular candidates that a tally lists."""


@dataclass(frozen=True)
class Tally:
    """The result of a collection, and its guarantees for each user.

    Parameters
    ----------
    task : Task
    popular : EstimatedVotes
        The most popular candidates, the most frequent one first.
    accepted : int
        How many messages were counted.
    dropped : dict of Reason to int
        How many were dropped, by reason.
    guarantees : dict of role to Guarantee
        Against the network, the shuffler, the server and the public.
    reports : Reports
        The counted reports: post-processing of the messages, so you may compute anything from them.

    Examples
    --------
    >>> from quorate.local.client import Client
    >>> task = Task.local(name="t", candidates=8, epsilon=9.0)
    >>> devices = [Client(task, largest_epsilon=9.0) for _ in range(20)]
    >>> tally = Server(task).collect([*(device.message([5]) for device in devices), b"?"])
    >>> tally.winner, tally.accepted, tally.to_dict()["dropped"]
    (5, 20, {'another length': 1})
    """

    task: Task
    popular: EstimatedVotes
    accepted: int
    dropped: dict[Reason, int]
    guarantees: dict[Role, Guarantee]
    reports: Reports

    @property
    def winner(self) -> int:
        """The candidate with the most estimated votes."""
        return self.popular.winner

    def votes(self, candidates: NDArray[np.int64] | Sequence[int] | None = None) -> EstimatedVotes:
        """Return estimates with standard errors: of the given candidates, or of all of them."""
        response = self.task.response
        if candidates is not None:
            keys = np.asarray(candidates, dtype=np.int64)
            return estimate_votes(keys, self.reports, response)
        if response.levels > 1:
            raise SchemaError(
                f"Expected candidates=, because {self.task.candidates} of them are too many to "
                "list."
            )
        return count_votes(self.reports, response)

    def to_dict(self) -> dict[str, Any]:
        """Return the tally as plain data."""
        return {
            "task": self.task.to_dict(),
            "task_id": self.task.id,
            "accepted": self.accepted,
            "dropped": {reason.value: count for reason, count in self.dropped.items()},
            "winner": self.winner,
            "popular": [
                {"candidate": int(c), "votes": float(v), "standard_error": float(e)}
                for c, v, e in zip(
                    self.popular.candidates,
                    self.popular.votes,
                    self.popular.standard_errors,
                    strict=True,
                )
            ],
            "votes_one_liar_moves": float(self.task.response.influence),
            "guarantees": {role: each.to_dict() for role, each in self.guarantees.items()},
        }


class Server:
    """Count the messages of a task.

    No message can make it raise an error: malformed, foreign and repeated ones are dropped and
    counted by reason. Messages of all calls of :meth:`collect` are counted together.

    Parameters
    ----------
    task : Task

    Examples
    --------
    >>> task = Task.local(name="t", candidates=2**14, epsilon=1.0)
    >>> reports = task.response.respond(np.full(3000, 77))
    >>> Server(task).collect(MessageFormat(task).write(reports).tobytes()).winner
    77
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._format = MessageFormat(task)
        self._parts: list[Reports] = []
        self._tokens: set[bytes] = set()
        self._smallest: int | None = None
        self.dropped: dict[Reason, int] = {}

    def collect(
        self,
        messages: Iterable[Any] | bytes | NDArray[np.uint8],
        *,
        tokens: Iterable[bytes] | None = None,
    ) -> Tally:
        """Add messages and return the tally of all so far.

        In the shuffle model one call takes one batch of the shuffler.

        Parameters
        ----------
        messages : iterable of bytes, or bytes
            One bytes object per message, or all of them concatenated.
        tokens : iterable of bytes or None, default=None
            One admission token per message; a message with a repeated token is dropped.
            Not used in the shuffle model, where the shuffler removes tokens.
        """
        if tokens is not None:
            messages = self._first_of_each(list(messages), list(tokens))
        batch = self._format.read(messages)
        self._parts.append(batch.reports)
        self._remember_size(batch)
        for reason, count in batch.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + count
        return self.tally()

    def tally(self) -> Tally:
        """Return the result of everything collected so far."""
        reports = _joined(self._parts, self.task.width)
        return Tally(
            task=self.task,
            popular=find_popular(reports, self.task.response, count=_SHOWN),
            accepted=len(reports),
            dropped=dict(self.dropped),
            guarantees=self.task.guarantees(shuffled=self._smallest),
            reports=reports,
        )

    def _remember_size(self, batch: MessageBatch) -> None:
        """Remember the size of the smallest batch: its messages are hidden among the fewest others.

        Only messages with the task's id and length count, because a shuffler passes on no others.
        """
        away = (Reason.NOT_BYTES, Reason.WRONG_LENGTH, Reason.FOREIGN_TASK)
        inside = {reason: n for reason, n in batch.dropped.items() if reason not in away}
        size = len(batch.reports) + sum(inside.values())
        if size and (self._smallest is None or size < self._smallest):
            self._smallest = size

    def _first_of_each(self, messages: list[Any], tokens: list[bytes]) -> list[Any]:
        if len(messages) != len(tokens):
            raise SchemaError(
                f"Expected one token for each of {len(messages)} messages, got {len(tokens)}."
            )
        first = []
        for message, token in zip(messages, tokens, strict=True):
            if type(token) is not bytes:
                self.dropped[Reason.NOT_BYTES] = self.dropped.get(Reason.NOT_BYTES, 0) + 1
            elif token in self._tokens:
                self.dropped[Reason.REPEATED] = self.dropped.get(Reason.REPEATED, 0) + 1
            else:
                self._tokens.add(token)
                first.append(message)
        return first


def _joined(parts: list[Reports], width: int) -> Reports:
    if len(parts) == 1:
        return parts[0]
    empty = np.zeros(0, dtype=np.uint8)
    return Reports(
        np.concatenate([np.zeros((width, 0), np.uint64), *(p.masks for p in parts)], axis=1),
        np.concatenate([empty, *(p.answers for p in parts)]),
        np.concatenate([empty, *(p.levels for p in parts)]),
    )
