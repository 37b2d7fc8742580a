"""The commands collect and tally, for users who trust no server, or only a shuffler."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorate.app.cli.printing import Json, print_json, print_table
from quorate.core.guarantees import Trust
from quorate.exceptions import ParameterError

if TYPE_CHECKING:
    from quorate.app.serve.message_store import MessageStore
    from quorate.local.server import Tally
    from quorate.local.task import Task

__all__ = ["collect", "tally"]

TaskFile = Annotated[Path, typer.Argument(help="The public task (JSON); --create writes it.")]
KeyFile = Annotated[
    Path | None, typer.Option(help="File with the key that shuffler and server share.")
]


def collect(  # noqa: PLR0913 - one option for each public number
    task: TaskFile,
    *,
    store: Annotated[Path, typer.Option(help="Where messages are kept.")] = Path("messages.db"),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8765,
    create: Annotated[bool, typer.Option(help="Write the task from the options below.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the task.")] = None,
    candidates: Annotated[int | None, typer.Option(help="How many candidates.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy loss of one user.")] = None,
    delta: Annotated[float, typer.Option(help="Above 0: through a shuffler.")] = 0.0,
    users: Annotated[int, typer.Option(help="How many messages a shuffler waits for.")] = 1,
    honest: Annotated[float, typer.Option(help="Share of honest users among them.")] = 1.0,
    tokens: Annotated[
        Path | None, typer.Option(help="File with the admitted tokens, one in hexadecimal a line.")
    ] = None,
    forward: Annotated[
        str | None, typer.Option(help="Be the shuffler: pass full batches on to this collector.")
    ] = None,
    key_file: KeyFile = None,
    rate: Annotated[float, typer.Option(help="Messages a second from one address.")] = 50.0,
    as_json: Json = False,
) -> None:
    """Collect messages over HTTP until interrupted; acknowledged messages are on disk."""
    from quorate.app.serve.collector import Collector, RateLimit
    from quorate.app.serve.listening import listen
    from quorate.app.serve.message_store import MessageStore
    from quorate.local.task import Task

    key = None if key_file is None else key_file.read_text().strip()
    if forward is not None and key is None:
        raise ParameterError("Expected --key-file beside --forward: the server asks for the key.")
    if create:
        _create(task, name, candidates, epsilon, delta, users, honest)
    described = Task.from_json(task.read_bytes())
    admitted = None if tokens is None else _tokens(tokens)
    with closing(MessageStore(store)) as kept:
        collector = Collector(
            task=described,
            store=kept,
            batch_key=None if forward else key,
            admitted=admitted,
            limit=RateLimit(per_second=rate, burst=max(1, round(4 * rate))),
        )
        if forward is not None:
            _start_forwarding(store, described, forward, str(key))

        def announce(address: str) -> str:
            line = f"Collecting task {described.id} ({described.name}) at {address}"
            return json.dumps({"task_id": described.id, "url": address}) if as_json else line

        listen(collector.app(), host, port, announce)


def tally(
    store: Annotated[Path, typer.Argument(help="The collector's messages.")],
    *,
    task_id: Annotated[str | None, typer.Option(help="Which task, if there are several.")] = None,
    as_json: Json = False,
) -> None:
    """Count the collected messages: the most popular candidates, and the guarantees.

    With a shuffler, a tally closes the batch: later messages belong to the next one.
    """
    from quorate.app.serve.message_store import MessageStore
    from quorate.app.serve.tallying import tally_store, the_task

    with closing(MessageStore(store, must_exist=True)) as kept:
        result = tally_store(kept, the_task(kept, task_id))
    if as_json:
        print_json(result.to_dict())
    else:
        _print_tally(result)


def _create(
    path: Path,
    name: str | None,
    candidates: int | None,
    epsilon: float | None,
    delta: float,
    users: int,
    honest: float,
) -> None:
    """Write a new task; an existing file is not overwritten, because messages may refer to it."""
    from quorate.data.files.atomic import write_atomically
    from quorate.local.task import Task

    if name is None or candidates is None or epsilon is None:
        raise ParameterError("Expected --name, --candidates and --epsilon beside --create.")
    if path.exists():
        raise ParameterError(f"Expected --create with a new file, got {path}, which exists.")
    common: dict[str, Any] = {"name": name, "candidates": candidates, "epsilon": epsilon}
    made = (
        Task.shuffle(**common, delta=delta, users=users, honest=honest)
        if delta
        else Task.local(**common, users=users)
    )
    write_atomically(path, made.to_json())


def _tokens(path: Path) -> frozenset[bytes]:
    try:
        return frozenset(bytes.fromhex(line) for line in path.read_text().split())
    except ValueError:
        raise ParameterError(f"Expected one hexadecimal token a line in {path}.") from None


def _start_forwarding(path: Path, task: Task, url: str, key: str) -> None:
    import threading

    threading.Thread(target=_forward, args=(path, task, url, key), daemon=True).start()


def _forward(path: Path, task: Task, url: str, key: str) -> None:
    """Pass full batches on, as long as the process runs."""
    import time

    from quorate.app.serve.forwarding import CollectorError, forward_batches
    from quorate.app.serve.message_store import MessageStore

    store: MessageStore = MessageStore(path)
    while True:
        try:
            forward_batches(store, task, url, key)
        except CollectorError as problem:
            print(f"quorate: {problem} It is tried again.", flush=True)
        time.sleep(0.5)


def _print_tally(result: Tally) -> None:
    popular = result.popular
    rows = [
        (str(candidate), f"{votes:.1f}", f"{error:.1f}")
        for candidate, votes, error in zip(
            popular.candidates, popular.votes, popular.standard_errors, strict=True
        )
    ]
    title = f"{result.task.name}: {result.accepted} messages, choice {result.winner}"
    print_table(title, ("candidate", "votes", "standard error"), rows)
    if result.dropped:
        rows = [(reason.value, str(count), "") for reason, count in result.dropped.items()]
        print_table("Dropped", ("reason", "messages", ""), rows)
    influence = float(result.task.response.influence)
    print(f"A dishonest user moves two candidates apart by at most {influence:.2f} votes.")
    if result.task.trust is Trust.SHUFFLE:
        print(f"Later messages are counted once {result.task.users} of them make a batch.")
    for role, promise in result.guarantees.items():
        print(f"{role}: {promise}")
