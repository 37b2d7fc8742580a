"""Protocols in the local and the shuffle model: clients, servers and their guarantees.

Read :mod:`~quorate.protocols.task` first: a task is the public file that both sides hold. Analysts
who want to try a protocol out call :mod:`~quorate.protocols.simulate`.
"""

from __future__ import annotations

from quorate.protocols.client import Client
from quorate.protocols.server import Server, Tally
from quorate.protocols.shuffler import Shuffler
from quorate.protocols.simulate import Choice, bucket_choice, local_choice, shuffle_choice
from quorate.protocols.task import Task

__all__ = [
    "Choice",
    "Client",
    "Server",
    "Shuffler",
    "Tally",
    "Task",
    "bucket_choice",
    "local_choice",
    "shuffle_choice",
]
