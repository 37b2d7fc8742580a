"""Reports as bytes: one length per task and one canonical form; others are dropped.

A message is, little-endian::

    "QRM" | version u8 | kind u8 | level u8 | payload length u16 | task id, 8 bytes
    payload: s masks of ceil(d / 8) bytes each | answer u8 | zero u8

A message has 22 bytes for 2^14 candidates. There is only one way to write a report: unused bits and
bytes are zero and the length is exact, so a message contains nothing besides the report. A server
reads whole arrays, drops messages that are not canonical and counts them by reason. It never
raises, whatever it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.local.randomizers.hashed import Reports
from quorate.local.task import Task

__all__ = ["MessageBatch", "MessageFormat", "Reason"]

VERSION = 1
KIND = 1
HEADER = 16
"""Bytes before the payload."""

_MAGIC = b"QRM"
_LEVEL_BYTE = 5
_LEVEL_SHIFT, _BYTE = np.uint64(8 * _LEVEL_BYTE), np.uint64(255)


class Reason(Enum):
    """Why a message was dropped; only the first reason that applies is counted.

    >>> Reason.FOREIGN_TASK.value
    'made for another task'
    """

    NOT_BYTES = "not bytes"
    WRONG_LENGTH = "another length"
    NO_MESSAGE = "not a Quorate message"
    OTHER_VERSION = "another version of the format"
    OTHER_KIND = "another kind of message"
    WRONG_PAYLOAD = "another payload length"
    FOREIGN_TASK = "made for another task"
    NO_LEVEL = "no such level"
    WRONG_ANSWER = "an answer out of range"
    NOT_ZERO = "padding that is not zero"
    WRONG_MASK = "a mask with bits it cannot have"
    REPEATED = "an admission token that was used before"


@dataclass(frozen=True)
class MessageBatch:
    """The valid reports of many messages, and why others were dropped.

    >>> task = Task.local(name="t", candidates=16, epsilon=1.0)
    >>> batch = MessageFormat(task).read([b"hello", None])
    >>> len(batch.reports), batch.dropped
    (0, {<Reason.NOT_BYTES: 'not bytes'>: 1, <Reason.WRONG_LENGTH: 'another length'>: 1})
    """

    reports: Reports
    dropped: dict[Reason, int]


@dataclass(frozen=True)
class MessageFormat:
    """How the reports of one task are written.

    >>> MessageFormat(Task.local(name="t", candidates=2**14, epsilon=1.0)).length
    22
    """

    task: Task

    @property
    def mask_bytes(self) -> int:
        """Bytes of one mask."""
        return -(-self.task.response.bits // 8)

    @property
    def length(self) -> int:
        """Bytes of every message of the task."""
        return HEADER + self._payload

    @property
    def _payload(self) -> int:
        return self.task.width * self.mask_bytes + 2

    @cached_property
    def header(self) -> bytes:
        """The first 16 bytes of every message, except for the level."""
        start = _MAGIC + bytes([VERSION, KIND, 0]) + self._payload.to_bytes(2, "little")
        return start + self.task.digest[:8]

    @cached_property
    def _record(self) -> np.dtype[Any]:
        """The fields of a message; a mask is read in pieces of 8, 4, 2 and 1 bytes."""
        fields = {"head": ("<u8", 0), "task": ("<u8", 8)}
        for i in range(self.task.width):
            for start, size in self._pieces:
                place = HEADER + i * self.mask_bytes + start
                fields[f"mask {i} {start}"] = (f"<u{size}", place)
        fields["answer"] = ("u1", self.length - 2)
        fields["zero"] = ("u1", self.length - 1)
        return np.dtype(
            {
                "names": list(fields),
                "formats": [kind for kind, _ in fields.values()],
                "offsets": [place for _, place in fields.values()],
                "itemsize": self.length,
            }
        )

    @cached_property
    def _pieces(self) -> tuple[tuple[int, int], ...]:
        """The positions of the pieces of a mask, and their sizes."""
        sizes = [size for size in (8, 4, 2, 1) if self.mask_bytes & size]
        return tuple((sum(sizes[:i]), size) for i, size in enumerate(sizes))

    def write(self, reports: Reports) -> NDArray[np.uint8]:
        """Return one row of bytes for each report.

        >>> task = Task.local(name="t", candidates=2**14, epsilon=1.0)
        >>> MessageFormat(task).write(task.response.respond(np.arange(3))).shape
        (3, 22)
        """
        records = np.zeros(len(reports), dtype=self._record)
        head, task = np.frombuffer(self.header, "<u8")
        records["head"] = head | (reports.levels.astype(np.uint64) << _LEVEL_SHIFT)
        records["task"] = task
        for i, mask in enumerate(reports.masks):
            for start, _ in self._pieces:
                # Storing in a piece's type keeps its lowest bits.
                records[f"mask {i} {start}"] = mask >> np.uint64(8 * start)
        records["answer"] = reports.answers
        return records.view(np.uint8).reshape(len(reports), self.length)

    def read(self, messages: Iterable[Any] | bytes | NDArray[np.uint8]) -> MessageBatch:
        """Read messages: one bytes object each, or all of them concatenated."""
        dropped: dict[Reason, int] = {}
        records = np.frombuffer(self._joined(messages, dropped), self._record)
        reports, fine = self._reports(records)
        if not bool(np.all(fine)):
            bad = records[~fine]
            self._count(bad, dropped)
            reports = Reports(reports.masks[:, fine], reports.answers[fine], reports.levels[fine])
        return MessageBatch(reports, dropped)

    def _joined(
        self, messages: Iterable[Any] | bytes | NDArray[np.uint8], dropped: dict[Reason, int]
    ) -> bytes:
        """Return the messages of the right length end to end, and count the others."""
        if isinstance(messages, bytes | bytearray | memoryview | np.ndarray):
            joined = bytes(messages)
            whole = len(joined) - len(joined) % self.length
            if whole == len(joined):
                return joined
            dropped[Reason.WRONG_LENGTH] = 1
            return joined[:whole]
        given = list(messages)
        pieces = [each for each in given if type(each) is bytes]
        if len(pieces) < len(given):
            dropped[Reason.NOT_BYTES] = len(given) - len(pieces)
        fitting = [each for each in pieces if len(each) == self.length]
        if len(fitting) < len(pieces):
            dropped[Reason.WRONG_LENGTH] = len(pieces) - len(fitting)
        return b"".join(fitting)

    def _reports(self, records: NDArray[Any]) -> tuple[Reports, NDArray[np.bool_]]:
        """Return the contents of the records, and which of them are canonical."""
        response = self.task.response
        expected, task = np.frombuffer(self.header, "<u8")
        head = records["head"].astype(np.uint64)
        levels = ((head >> _LEVEL_SHIFT) & _BYTE).astype(np.uint8)
        fine = (head & ~(_BYTE << _LEVEL_SHIFT)) == expected
        fine &= records["task"] == task
        fine &= levels < response.levels
        masks = np.zeros((self.task.width, len(records)), dtype=np.uint64)
        for i in range(self.task.width):
            for start, _ in self._pieces:
                piece = records[f"mask {i} {start}"].astype(np.uint64)
                masks[i] |= piece << np.uint64(8 * start) if start else piece
        forbidden = ~np.array(response.prefix_masks, dtype=np.uint64)
        per_report = forbidden[0] if response.levels == 1 else forbidden[levels % response.levels]
        for mask in masks:
            fine &= (mask & per_report) == 0
        answers = records["answer"].copy()
        fine &= answers < 2**self.task.width
        fine &= records["zero"] == 0
        return Reports(masks, answers, levels), fine

    def _count(self, bad: NDArray[Any], dropped: dict[Reason, int]) -> None:
        """Count each record under the first reason that applies to it."""
        table = bad.view(np.uint8).reshape(len(bad), self.length)
        header = np.frombuffer(self.header, np.uint8)
        level, answer = table[:, _LEVEL_BYTE], table[:, -2]
        checks = {
            Reason.NO_MESSAGE: np.any(table[:, :3] != header[:3], axis=1),
            Reason.OTHER_VERSION: table[:, 3] != VERSION,
            Reason.OTHER_KIND: table[:, 4] != KIND,
            Reason.WRONG_PAYLOAD: np.any(table[:, 6:8] != header[6:8], axis=1),
            Reason.FOREIGN_TASK: np.any(table[:, 8:16] != header[8:16], axis=1),
            Reason.NO_LEVEL: level >= self.task.response.levels,
            Reason.WRONG_ANSWER: answer >= 2**self.task.width,
            Reason.NOT_ZERO: table[:, -1] != 0,
            # What is not canonical for none of these reasons has a mask that cannot be.
            Reason.WRONG_MASK: np.ones(len(table), dtype=bool),
        }
        left = np.ones(len(table), dtype=bool)
        for reason, applies in checks.items():
            if count := int(np.count_nonzero(left & applies)):
                dropped[reason] = count
            left &= ~applies
