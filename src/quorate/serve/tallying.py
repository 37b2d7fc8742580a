"""From a store of messages to the result of a task."""

from __future__ import annotations

from quorate.exceptions import ParameterError
from quorate.guarantees import Trust
from quorate.protocols.server import Server, Tally
from quorate.protocols.shuffler import Shuffler
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

    In the shuffle model single messages are shuffled first, which needs as many as the task
    promises: whoever runs this on them is the shuffler. Batches of another shuffler are counted as
    they are.
    """
    server = Server(task)
    for reason, count in store.dropped(task).items():
        server.dropped[reason] = count
    single = store.messages(task)
    if task.trust is Trust.SHUFFLE and single:
        shuffler = Shuffler(task)
        shuffler.admit_all(single)
        single = shuffler.release()
    if single:
        server.collect(single)
    for _, messages in store.batches(task):
        server.collect(messages)
    return server.tally()
