"""A hundred devices, a shuffler and a server
==========================================

Ask a hundred people for their favourite of 16,384 things, and let nobody see an answer. These are
real processes on this machine: a server that publishes the task and counts, a shuffler that mixes
messages and forgets who sent them, and a hundred devices.
"""

# %%
# **The task** is public. Its epsilon holds for the shuffled messages together. Every message also
# has a privacy of its own, ``report_epsilon``, that needs no trust in the shuffler.

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt

from quorate.app.serve.forwarding import fetch_task, send_message
from quorate.app.serve.message_store import MessageStore
from quorate.local import Client, Task

PEOPLE, FAVOURITE = 100, 4711
question = {"candidates": 2**14, "epsilon": 1.0, "delta": 1e-6}
task = Task.shuffle(name="favourite", users=PEOPLE, **question)

# %%
# **The processes.** On real machines these are the commands ``quorate collect`` and
# ``quorate tally``.

QUORATE = [sys.executable, "-c", "import sys; from quorate.app.cli import main; sys.exit(main())"]


def start(*arguments):
    command = [*QUORATE, "collect", *map(str, arguments), "--port", "0", "--rate", "1000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().split(" at ")[1].strip()


def records_of(person):
    """Return what the device of one person holds: most people come back to number 4711."""
    return [FAVOURITE, FAVOURITE, person] if person % 5 else [person, person]


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "task.json").write_text(task.to_json())
    (folder / "key").write_text(os.urandom(16).hex())
    common = (folder / "task.json", "--key-file", folder / "key", "--store")
    server, server_url = start(*common, folder / "server.db")
    shuffler, url = start(*common, folder / "mailbox.db", "--forward", server_url)
    try:
        for person in range(PEOPLE):
            # A device checks the task before it answers, and has a limit of its own.
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

# %%
# **The result**, and what is promised about one person.

print(f"{result['accepted']} messages; the favourite is number {result['winner']}.")
if result["winner"] != FAVOURITE:
    print(f"That is wrong: the favourite is {FAVOURITE}. With this noise it happens in some runs.")
print("One message alone:", result["guarantees"]["network"]["sentence"])
print("All of them shuffled:", result["guarantees"]["public"]["sentence"])

# %%
# **Why a shuffler helps.** At the same epsilon of 1 for the mixture, each message may carry more
# signal when it hides among more others.

crowds = (100, 300, 1000, 3000, 10_000)
alone = [Task.shuffle(name="favourite", users=n, **question).report_epsilon for n in crowds]
figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
axes.semilogx(crowds, alone, "o-", label="one message alone")
axes.axhline(question["epsilon"], color="k", linestyle="--", label="all messages, shuffled")
axes.set(xlabel="devices", ylabel="epsilon", ylim=(0, None), title="Hiding among others")
axes.legend()
axes.grid(alpha=0.3)
plt.show()
