"""Compute the result of a task from a message store.

In the local model every message is private by itself, so a store may be counted any number of
times. In the shuffle model a message is hidden only among those it was shuffled with. If it were
shuffled twice, each time among other messages, the difference would show which messages arrived in
between. So each message is shuffled once. The first tally shuffles the waiting messages into a
batch and stores it before anything is counted. A later tally adds batches of new messages only.
Every user is in one batch, and all tallies together have the guarantee of the smallest batch
(``docs/protocols.md``).
"""

from __future__ import annotations

from quorate.app.serve.message_store import MessageStore
from quorate.core.guarantees import Trust
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.local.server import Server, Tally
from quorate.local.task import Task

__all__ = ["tally_store", "the_task"]


def the_task(store: MessageStore, task_id: str | None = None) -> Task:
    """Return the task of a store; if there are several, the one with this id."""
    tasks = [task for task in store.tasks() if task_id in (None, task.id)]
    if len(tasks) != 1:
        held = ", ".join(f"{task.id} ({task.name})" for task in store.tasks()) or "none"
        raise ParameterError(
            f"Expected the id of one task of the store, got {task_id!r}; it holds {held}."
        )
    return tasks[0]


def tally_store(store: MessageStore, task: Task) -> Tally:
    """Count everything that a store holds of a task.

    In the shuffle model single messages are first shuffled into a batch, which needs as many
    messages as the task states. Running this function on single messages is the role of the
    shuffler. Batches of another shuffler are counted unchanged. If there are too few messages for a
    batch, they wait; without a new batch the answer does not change. Messages that the collector
    refused are not counted.
    """
    server = Server(task)
    if task.trust is Trust.SHUFFLE:
        _close_crowd(store, task)
    else:
        server.dropped |= store.dropped(task)
        if single := store.messages(task):
            server.collect(single)
    for _, messages in store.batches(task):
        server.collect(messages)
    return server.tally()


def _close_crowd(store: MessageStore, task: Task) -> None:
    """Shuffle all waiting messages once, if there are enough of them to hide each other."""
    try:
        store.make_batch(task, outgoing=False)
    except NotEnoughUsersError:
        if store.waiting(task) and not store.batches(task):
            raise
