"""A collector under attack: how long an honest client waits until its message is taken.

A real ``quorate collect`` on loopback. Four attacks run one by one and then together: a thousand
connections that say nothing, bodies that come a byte at a time, batches of 64 MB without a key, and
nonsense. An honest client sends a message every 50 ms, each over a connection of its own.
"""

import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from quorate.local.client import Client
from quorate.local.task import Task

SECONDS = 15.0 if "--full" in sys.argv else 5.0
LIMIT = 1.0
RUN = "import sys; from quorate.app.cli import main; sys.exit(main(sys.argv[1:]))"
GIANT = 64 * 2**20


def call(port, text, address):
    """Open a connection from an address of this machine and say something."""
    made = socket.create_connection(("127.0.0.1", port), 20.0, source_address=(address, 0))
    made.sendall(text)
    return made


def head(path, length):
    token = "Quorate-Token: " + "00" * 16
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\n{token}\r\nContent-Length: {length}\r\n\r\n".encode()
    )


class Attack:
    """Something that strangers do again and again until it is over."""

    def __init__(self, port):
        self.port, self.over, self.held = port, threading.Event(), []

    def keep_on(self, once):
        """Attack in this way until it is over."""
        while not self.over.is_set():
            with suppress(OSError):
                once()
            self.over.wait(0.01)

    def connections(self):
        """Hold a thousand connections that say nothing; open those anew that were closed."""
        if len(self.held) >= 1000:
            self.held.pop(0).close()
        self.held.append(call(self.port, b"", "127.0.0.2"))
        while len(self.held) < 1000 and not self.over.is_set():
            self.held.append(call(self.port, b"", "127.0.0.2"))

    def slow_bodies(self):
        """Send bodies a byte at a time, a hundred at once."""
        slow = [call(self.port, head("/messages", 22), "127.0.0.3") for _ in range(100)]
        for _ in range(20):
            for each in slow:
                with suppress(OSError):
                    each.sendall(b"Q")
            self.over.wait(0.2)
        for each in slow:
            each.close()

    def giants(self):
        """Send 64 MB without a key."""
        with closing(call(self.port, head("/batches", GIANT), "127.0.0.4")) as giant:
            for _ in range(GIANT // 65536):
                giant.sendall(bytes(65536))

    def nonsense(self):
        """Send what is neither HTTP nor a message."""
        broken = head("/messages", 9) + b'{"a": [1,'
        for text in (b"\0\xff\r\n\r\n", broken, b"{" * 100_000):
            with closing(call(self.port, text, "127.0.0.5")) as each:
                each.recv(1000)


def longest_wait(port, task, seconds):
    """Return the longest time an honest client waited, and how many were not taken."""
    longest, refused, end = 0.0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        device = Client(task, largest_epsilon=1.0)
        body, headers = device.message([7]), {"Quorate-Token": device.token}
        begun = time.perf_counter()
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
                connection.request("POST", "/messages", body, headers)
                refused += connection.getresponse().status != 201
        except OSError:
            refused += 1
        longest = max(longest, time.perf_counter() - begun)
        time.sleep(0.05)
    return longest, refused


def main():
    task = Task.local(name="attacked", candidates=2**14, epsilon=1.0)
    missed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "task.json").write_text(task.to_json())
        (folder / "key").write_text(os.urandom(16).hex())
        options = ["--key-file", str(folder / "key"), "--store", str(folder / "m.db")]
        command = [sys.executable, "-c", RUN, "collect", str(folder / "task.json"), *options]
        process = subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            kinds = ["connections", "slow_bodies", "giants", "nonsense"]
            for chosen in ([], *([kind] for kind in kinds), kinds):
                attack = Attack(port)
                threads = [
                    threading.Thread(target=attack.keep_on, args=(getattr(attack, kind),))
                    for kind in chosen
                ]
                for thread in threads:
                    thread.start()
                longest, refused = longest_wait(port, task, SECONDS)
                attack.over.set()
                for thread in threads:
                    thread.join()
                for each in attack.held:
                    each.close()
                name = " + ".join(chosen) or "nobody attacks"
                print(
                    f"{name}: longest wait {longest:.3f} s (limit {LIMIT:g}), {refused} not taken"
                )
                missed |= longest > LIMIT or refused > 0
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
            process.stdout.close()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
