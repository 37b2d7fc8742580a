"""From a store of messages to the result of a task.

In the local model every message may be seen by anybody, so a store may be counted as often as one
likes: all tallies together say what the messages say. In the shuffle model a message is hidden only
among those it was shuffled with. If it were shuffled twice, among other messages each time, the
difference would show who came in between. So each message is shuffled once: the first tally closes
its crowd, on disk and before anything is counted, and a later one adds crowds of new people only.
Everybody is in one crowd, all tallies together are computed from the shuffled crowds, and promise
what the smallest crowd promises (``docs/protocols.md``).
"""

from __future__ import annotations

from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.guarantees import Trust
from quorate.protocols.server import Server, Tally
from quorate.protocols.task import Task
from quorate.serve.message_store import MessageStore

__all__ = ["tally_store", "the_task"]


def the_task(store: MessageStore, task_id: str | None = None) -> Task:
    """Return the task of a store, by its id if there are several."""
    tasks = [task for task in store.tasks() if task_id in (None, task.id)]
    if len(tasks) != 1:
        held = ", ".join(f"{task.id} ({task.name})" for task in store.tasks()) or "none"
        raise ParameterError(
            f"Expected the id of one task of the store, got {task_id!r}; it holds {held}."
        )
    return tasks[0]


def tally_store(store: MessageStore, task: Task) -> Tally:
    """Count everything that a store holds of a task.

    In the shuffle model single messages first become a batch, which needs as many as the task
    promises: whoever runs this on them is the shuffler. Batches of another shuffler are counted as
    they are. Messages that are too few for a batch wait; without new batches the answer is the same
    again. What was turned away at the door came into no crowd and is not part of it.
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
    """Shuffle all messages that wait, once and for ever, if they are enough to hide each other."""
    try:
        store.make_batch(task, outgoing=False)
    except NotEnoughUsersError:
        if store.waiting(task) and not store.batches(task):
            raise
