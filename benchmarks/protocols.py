"""Protocols that trust nobody or a shuffler: votes, prices, speed, hostile bytes, killed processes.

By default small numbers of runs; ``--full`` takes a million hostile messages and kills a collector
twenty times during ten thousand posts.
"""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from quorate.app.serve.forwarding import send_message
from quorate.app.serve.message_store import MessageStore
from quorate.local.client import Client
from quorate.local.device_memory import new_token
from quorate.local.messages import MessageFormat
from quorate.local.randomizers.counts import count_votes
from quorate.local.randomizers.hashed import HashedResponse
from quorate.local.server import Server
from quorate.local.shuffling.count_noise import calibrated_noise, published_noise
from quorate.local.simulate import local_choice, shuffle_choice
from quorate.local.task import Task

FULL = "--full" in sys.argv
CANDIDATES = 2**14
EPSILON, DELTA = 1.0, 1e-6


def best(job, repetitions=7):
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def speed():
    """Make, read and count a million messages, against counting and randomness alone."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, CANDIDATES, 10**6)
    task = Task.local(name="speed", candidates=CANDIDATES, epsilon=EPSILON)
    form = MessageFormat(task)

    def baseline():
        np.bincount(values, minlength=CANDIDATES)
        os.urandom(8_000_000)

    def reports():
        count_votes(task.response.respond(values), task.response)

    def messages():
        Server(task).collect(form.write(task.response.respond(values)).tobytes())

    # In turn, so that a busy machine disturbs all of them.
    base, plain, wire = (math.inf,) * 3
    for _ in range(7):
        base = min(base, best(baseline, 1))
        plain = min(plain, best(reports, 1))
        wire = min(wire, best(messages, 1))
    yield "10^6 reports made and counted / (bincount + urandom)", plain / base, 5.0
    yield "10^6 messages of 22 bytes made, read and counted / the same", wire / base, 5.0


def frequencies():
    """Compare the squared error of all frequencies, n = 10^5, with the best there can be."""
    rng = np.random.default_rng(1)
    values = (rng.zipf(1.3, 10**5) - 1) % CANDIDATES
    truth = np.bincount(values, minlength=CANDIDATES)
    for epsilon, limit in ((0.5, 1.08), (1.0, 1.03), (2.0, 1.03)):
        response = HashedResponse(candidates=CANDIDATES, epsilon=epsilon)
        errors = [
            np.mean((count_votes(response.respond(values), response).votes - truth) ** 2)
            for _ in range(8)
        ]
        optimum = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
        ratio = np.mean(errors) / len(values) / optimum
        yield f"n x MSE over the optimum at epsilon {epsilon:g}", ratio, limit


def stable_keys(users, rng, records=1024, noise=0.1):
    """Cut-offs that users arrive at with shared Gumbel noise, and the excess error of each."""
    target = rng.integers(CANDIDATES // 4, 3 * CANDIDATES // 4)
    gumbel = rng.gumbel(size=CANDIDATES)
    strength = 8 * math.sqrt(records)
    keys = []
    for _ in range(users):
        x = rng.integers(0, CANDIDATES, records)
        y = (x < target) ^ (rng.random(records) < noise)
        # Mistakes of "x < c" for all c: those of c = 0, and what each record adds or takes.
        steps = np.bincount(x, weights=np.where(y, -1.0, 1.0), minlength=CANDIDATES)
        mistakes = np.count_nonzero(y) + np.concatenate([[0.0], np.cumsum(steps)[:-1]])
        keys.append(np.argmax(gumbel - strength * mistakes / records))
    excess = (1 - 2 * noise) * np.abs(np.arange(CANDIDATES) - target) / CANDIDATES
    return np.array(keys), excess


def choices():
    """Count how often a choice is good: cut-offs by shared randomness, planted candidates."""
    runs = 60 if FULL else 20
    shuffled, local, agreement = [], [], []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        keys, excess = stable_keys(400, rng)
        agreement.append(np.bincount(keys).max() / len(keys))
        few = shuffle_choice(keys[:100], candidates=CANDIDATES, epsilon=EPSILON, delta=DELTA)
        shuffled.append(excess[few.key] <= 0.03)
        local.append(excess[local_choice(keys, candidates=CANDIDATES, epsilon=EPSILON).key] <= 0.03)
    print(f"  mean plurality of the stable cut-offs: {np.mean(agreement):.2f}")
    yield "missed excess .03: 100 users, one shuffled message each", 1 - np.mean(shuffled), 0.1
    yield "missed excess .03: 400 users, local", 1 - np.mean(local), 0.1
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        keys = rng.integers(0, 2**32, 800)
        keys[:640] = keys[0]
        found.append(local_choice(keys, candidates=2**32, epsilon=EPSILON).key == keys[0])
    yield "missed: 2^32 candidates, 800 local users, plurality .8", 1 - np.mean(found), 0.1


def prices():
    """Price the noise of two shuffled buckets, and repeat the constants of the print."""
    noise = calibrated_noise(EPSILON, DELTA)
    yield "mean of the joint noise", noise.mean, 43.0
    yield "deviation of the joint noise", noise.deviation, 6.6
    printed = published_noise(EPSILON, DELTA)
    off = abs(printed.r - 3 * (1 + math.log(1 / DELTA))) + abs(printed.p - math.exp(-0.2))
    yield "published constants, distance from the print", off, 1e-12


def hostile():
    """Send random and mutated messages: every one is counted, none raises."""
    count = 10**6 if FULL else 10**5
    rng = np.random.default_rng(2)
    task = Task.local(name="hostile", candidates=CANDIDATES, epsilon=EPSILON)
    form = MessageFormat(task)
    good = form.write(task.response.respond(np.zeros(count // 2, np.int64)))
    for _ in range(2):
        rows = np.arange(len(good))
        good[rows, rng.integers(0, form.length, len(good))] = rng.integers(0, 256, len(good))
    noise = rng.bytes(count * form.length)
    sizes = rng.integers(0, 2 * form.length, count - len(good))
    ends = np.cumsum(sizes) % (len(noise) - 2 * form.length)
    pieces = [noise[end : end + size] for end, size in zip(ends, sizes, strict=True)]
    batch = form.read([row.tobytes() for row in good] + pieces)
    print(
        f"  {count} hostile messages: {len(batch.reports)} canonical, dropped "
        f"{json.dumps({reason.name: n for reason, n in batch.dropped.items()})}"
    )
    yield (
        "hostile messages not counted",
        count - len(batch.reports) - sum(batch.dropped.values()),
        0,
    )


class Collecting:
    """A collector in a process of its own."""

    def __init__(self, folder, port):
        code = "import sys; from quorate.app.cli import main; sys.exit(main(sys.argv[1:]))"
        options = [
            folder / "task.json",
            "--store",
            folder / "m.db",
            "--rate",
            "1e6",
            "--port",
            port,
        ]
        command = [sys.executable, "-c", code, "collect", *map(str, options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split(" at ")[1].strip()

    def kill(self):
        """End it as a power cut would."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


def killed():
    """Count what a collector that is killed again and again loses or doubles."""
    kills, count, workers = (20, 10_000, 8) if FULL else (3, 800, 4)
    task = Task.local(name="killed", candidates=CANDIDATES, epsilon=EPSILON)
    sent, lock = [], threading.Lock()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "task.json").write_text(task.to_json())
        running = Collecting(folder, 0)
        url, port = running.url, running.url.rsplit(":", 1)[1]

        def work():
            for _ in range(count // workers):
                message = Client(task, largest_epsilon=9.0).message([7])
                send_message(url, message, new_token(), attempts=1000)
                with lock:
                    sent.append(message)

        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for kill in range(kills):
            while len(sent) < (kill + 1) * count // (kills + 2):
                time.sleep(0.002)
            running.kill()
            running = Collecting(folder, port)
        for thread in threads:
            thread.join()
        running.kill()
        store = MessageStore(folder / "m.db", must_exist=True)
        kept = store.messages(task)
        store.close()
    print(f"  {len(sent)} messages acknowledged, {kills} kills, {len(kept)} kept")
    wrong = len(set(kept) ^ set(sent)) + abs(len(kept) - len(sent)) + abs(len(sent) - count)
    yield "messages lost or doubled", wrong, 0


def main():
    missed = False
    for part in (speed, frequencies, choices, prices, hostile, killed):
        for name, value, limit in part():
            print(f"{name}: measured {value:.4g} (limit {limit:g})", flush=True)
            missed |= not value <= limit
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
