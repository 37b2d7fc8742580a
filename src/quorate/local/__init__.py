"""Protocols in the local and the shuffle model: clients, servers and their guarantees.

Read :mod:`~quorate.local.task` first: a task is the public file that both sides have. To try out a
protocol, analysts call :mod:`~quorate.local.simulate`.
"""

from __future__ import annotations

from quorate.local.client import Client
from quorate.local.server import Server, Tally
from quorate.local.shuffler import Shuffler
from quorate.local.simulate import Choice, bucket_choice, local_choice, shuffle_choice
from quorate.local.task import Task

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
