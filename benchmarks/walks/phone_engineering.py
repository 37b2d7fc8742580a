"""Phone engineering: a collector over HTTP, clients that answer once, a tally.

Run by ``benchmarks/walk.py``; the first argument is the folder of the program. Needs
``quorate[serve]``.
"""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from quorate.local.client import Client
from quorate.local.task import Task

PROGRAM = str(Path(sys.argv[1]) / "quorate")
PEOPLE, PORT = 400, "8799"
URL = f"http://127.0.0.1:{PORT}"

options = ["--create", "--name", "transport", "--candidates", "4", "--epsilon", "4", "--port", PORT]
options += ["--store", "messages.db", "--rate", "100000"]
server = subprocess.Popen(
    [PROGRAM, "collect", "task.json", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
)


def get(path):
    with urllib.request.urlopen(URL + path, timeout=10) as reply:
        return reply.read()


def send(message, token):
    headers = {"Quorate-Token": token, "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(URL + "/messages", data=message, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status
    except urllib.error.HTTPError as refusal:
        return refusal.code


try:
    for _ in range(300):
        try:
            health = json.loads(get("/health"))
            break
        except OSError:
            assert server.poll() is None, server.communicate()[0].decode()
            time.sleep(0.1)
    assert health["status"] == "open", health
    task = Task.from_json(get("/task"))
    assert b"Quorate" in get("/client.js")
    for person in range(PEOPLE):
        client = Client(task, largest_epsilon=4.0)
        records = [person % 10 // 5 * 2] * 3  # half of the people say 0, the others 2
        message = client.message(records)
        assert send(message, client.token) == 201
        if person == 0:
            # The same bytes again are kept once; other bytes with the same token never.
            assert send(message, client.token) == 200
            other = Client(task, largest_epsilon=4.0)
            assert send(other.message([1]), client.token) == 409
            assert send(b"no message", "00" * 8) == 400
        client.acknowledged()
finally:
    server.terminate()
    server.wait(30)
said = subprocess.run(
    [PROGRAM, "tally", "messages.db", "--json"], capture_output=True, text=True, check=True
).stdout
tally = json.loads(said)
votes = {row["candidate"]: row for row in tally["popular"]}
assert tally["accepted"] == PEOPLE, tally["accepted"]
for candidate in (0, 2):
    # Six standard errors: less than one run in a hundred million.
    far = abs(votes[candidate]["votes"] - PEOPLE / 2) / votes[candidate]["standard_error"]
    assert far < 6, votes
assert tally["winner"] in (0, 2), tally["winner"]
print({candidate: round(row["votes"]) for candidate, row in votes.items()})
try:
    Client(task, largest_epsilon=1.0)
except ValueError as refusal:
    assert "at most" in str(refusal), refusal
else:
    raise AssertionError("a device said more than its app allows")
