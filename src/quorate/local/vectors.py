"""Known answers for clients in other languages: messages for given tasks, bytes and candidates.

The same answers are in ``js/vectors.json``. A client that produces these bytes makes correct
reports. Its platform must ensure that its random bytes are secret and uniform.
"""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from typing import Any

import numpy as np

from quorate.local.client import plurality
from quorate.local.messages import MessageFormat
from quorate.local.task import Task

__all__ = ["client_script", "known_answers", "message_from_bytes", "stored_answers"]

_SEED = "5eed" * 16
_CASES = 24  # public: how many cases an implementer is given


def message_from_bytes(task: Task, candidate: int | None, random: bytes) -> bytes:
    """Return the message for given random bytes; only for known answers.

    >>> task = Task.local(name="t", candidates=2**14, epsilon=1.0, seed="00" * 32)
    >>> message_from_bytes(task, 5, bytes(8))[-6:].hex()
    '000000000000'
    """
    value = -1 if candidate is None else candidate
    reports = task.response.from_words(np.array([value]), np.frombuffer(random, "<u8"))
    return MessageFormat(task).write(reports).tobytes()


def known_answers() -> list[dict[str, Any]]:
    """Return tasks of all kinds with messages and decisions, computed in Python.

    >>> answers = known_answers()
    >>> len(answers), answers[0]["cases"][0]["message"][:6]
    (8, '51524d')
    """
    return [_answers(task) for task in _tasks()]


def stored_answers() -> list[dict[str, Any]]:
    """Return the known answers that are shipped with the JavaScript client."""
    folder = resources.files("quorate.local") / "js"
    stored: list[dict[str, Any]] = json.loads((folder / "vectors.json").read_text("ascii"))
    return stored


def client_script() -> str:
    """Return the JavaScript client, for pages and tests.

    >>> client_script().startswith("// The device side")
    True
    """
    return (resources.files("quorate.local") / "js" / "quorate-client.js").read_text("ascii")


def _tasks() -> list[Task]:
    sizes = (2, 300, 2**14, 2**20, 2**21 + 5, 2**32, 2**63)
    tasks = [
        Task.local(name=f"local {size}", candidates=size, epsilon=epsilon, seed=_SEED)
        for size, epsilon in zip(sizes, (0.5, 2.0, 1.0, 4.0, 1.0, 0.7, 3.0), strict=True)
    ]
    shuffled = Task.shuffle(
        name="shuffled", candidates=2**14, epsilon=1.0, delta=1e-6, users=100, seed=_SEED
    )
    return [*tasks, shuffled]


def _answers(task: Task) -> dict[str, Any]:
    cases = []
    for i in range(_CASES):
        random = _bytes(task, i)[: 8 * task.response.words]
        if i % 4 == 0:  # the smallest coin keeps the hash
            random = random[:-4] + bytes(4)
        last = task.candidates - 1
        candidate = [0, last, int.from_bytes(_bytes(task, -1 - i), "big") % task.candidates, None][
            i % 4
        ]
        cases.append(
            {
                "candidate": _text(candidate),
                "random": random.hex(),
                "message": message_from_bytes(task, candidate, random).hex(),
            }
        )
    records = [[1, 0, 1], [0, 1], [1, 0, 0, 1], [], [5, 3, 4]]
    return {
        "task": task.to_json(),
        "id": task.id,
        "shared_seed": f"{task.shared_seed:032x}",
        "report_epsilon": task.report_epsilon,
        "cases": cases,
        "decisions": [
            {
                "records": each,
                "candidate": None if (v := plurality(each, task.shared_seed)) is None else str(v),
            }
            for each in records
        ],
    }


def _text(candidate: int | None) -> str | None:
    """Return a candidate as a decimal, because JSON's numbers end at 2^53."""
    return None if candidate is None else str(candidate)


def _bytes(task: Task, number: int) -> bytes:
    """Return bytes that look random and are the same on every machine."""
    parts = (hashlib.sha256(task.digest + f"{number} {j}".encode()).digest() for j in range(4))
    return b"".join(parts)
