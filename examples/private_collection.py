"""A hundred devices, a shuffler and a server
==========================================

Ask a hundred people for their favourite of 16,384 things, and let nobody see an answer.

Real processes on this machine: a server that publishes the task and counts, a shuffler that mixes
messages and forgets who sent them, and a hundred devices. The server learns the favourite; what
it could learn about one person is printed at the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from quorate.protocols import Client, Task
from quorate.serve.forwarding import fetch_task, send_message
from quorate.serve.message_store import MessageStore

PEOPLE = 100
QUORATE = [sys.executable, "-c", "import sys; from quorate.cli import main; sys.exit(main())"]


def start(*arguments: object) -> tuple[subprocess.Popen[str], str]:
    """Start a collector on a free port and return it with its address."""
    command = [*QUORATE, "collect", *map(str, arguments), "--port", "0", "--rate", "1000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    if process.stdout is None:
        raise RuntimeError("the collector has no output")
    return process, process.stdout.readline().split(" at ")[1].strip()


def records_of(person: int) -> list[int]:
    """Return what one person's device holds: most people come back to number 4711."""
    return [4711, 4711, person] if person % 5 else [person, person]


def main() -> None:
    """Run the collection and print its result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = Task.shuffle(
            name="favourite", candidates=2**14, epsilon=1.0, delta=1e-6, users=PEOPLE
        )
        (folder / "task.json").write_text(task.to_json())
        (folder / "key").write_text(os.urandom(16).hex())
        common = (folder / "task.json", "--key-file", folder / "key", "--store")
        server, server_url = start(*common, folder / "server.db")
        shuffler, url = start(*common, folder / "mailbox.db", "--forward", server_url)
        try:
            for person in range(PEOPLE):
                # A device checks the task before it believes it, and has a limit of its own.
                device = Client(fetch_task(url), largest_epsilon=4.0)
                send_message(url, device.message(records_of(person)), device.token)
                device.acknowledged()
            store = MessageStore(folder / "server.db")
            while not store.batches(task):
                time.sleep(0.1)
            store.close()
        finally:
            for process in (server, shuffler):
                process.terminate()
                process.communicate()
        command = [*QUORATE, "tally", str(folder / "server.db"), "--json"]
        result = json.loads(subprocess.check_output(command))
    print(f"{result['accepted']} messages; the crowd's favourite is number {result['winner']}.")
    print("One message alone:", result["guarantees"]["network"]["sentence"])
    print("All of them shuffled:", result["guarantees"]["public"]["sentence"])


if __name__ == "__main__":
    main()
