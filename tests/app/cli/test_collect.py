"""Real processes on loopback: collectors that are killed, a shuffler, and the tally."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from browser import CHROMIUM, open_browser
from quorate.app.cli import main
from quorate.app.serve.forwarding import fetch_task, send_message
from quorate.app.serve.message_store import MessageStore
from quorate.local.client import Client
from quorate.local.device_memory import new_token
from quorate.local.messages import MessageFormat
from quorate.local.task import Task

RUN = "import sys; from quorate.app.cli import main; sys.exit(main(sys.argv[1:]))"


class Process:
    """A collector in a process of its own."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, "collect", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        if "--json" in arguments:
            self.url = json.loads(line)["url"]
        else:
            assert " at http://" in line, line + self.process.stderr.read()
            self.url = line.split(" at ")[1].strip()

    def kill(self, number=signal.SIGKILL):
        os.kill(self.process.pid, number)
        self.process.wait(timeout=30)
        self.process.stdout.close()
        self.process.stderr.close()


@contextmanager
def collector(*arguments):
    running = Process(*arguments)
    try:
        yield running
    finally:
        running.kill(signal.SIGTERM)


def write_task(path, **given):
    task = Task.local(**({"name": "t", "candidates": 100, "epsilon": 6.0} | given))
    path.write_text(task.to_json())
    return task


@pytest.mark.slow
class TestKilled:
    """The benchmark does it with twenty kills and ten thousand messages."""

    def test_a_collector_that_is_killed_loses_and_doubles_nothing(self, tmp_path):
        kills, count, workers = 2, 240, 4
        task = write_task(tmp_path / "task.json")
        options = (tmp_path / "task.json", "--store", tmp_path / "m.db", "--rate", "1e6")
        first = Process(*options, "--port", 0)
        port = first.url.rsplit(":", 1)[1]
        running, sent, lock = [first], [], threading.Lock()

        def work(share):
            for _ in range(share):
                message, token = Client(task, largest_epsilon=9.0).message([42]), new_token()
                send_message(first.url, message, token, attempts=400)
                with lock:
                    sent.append(message)

        threads = [threading.Thread(target=work, args=(count // workers,)) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for kill in range(kills):
            while len(sent) < (kill + 1) * count // (kills + 2):
                time.sleep(0.002)
            running[-1].kill()
            running.append(Process(*options, "--port", port))
        for thread in threads:
            thread.join(timeout=120)
        running[-1].kill()
        store = MessageStore(tmp_path / "m.db", must_exist=True)
        assert len(sent) == count
        assert sorted(store.messages(task)) == sorted(sent)
        store.close()


@pytest.mark.slow
class TestShuffle:
    def test_clients_a_shuffler_and_a_server_in_three_kinds_of_processes(self, tmp_path, capsys):
        path, key = tmp_path / "task.json", tmp_path / "key"
        key.write_text("a key that both of them know\n")
        options = ("--name", "shuffled", "--candidates", 16384, "--epsilon", 1.0)
        # Real noise: of 60 people 23 collections in 2,000 name another winner, of 150 none
        more = ("--delta", 1e-6, "--users", 150, "--port", 0, "--rate", "1e6")
        server_store, mailbox = tmp_path / "server.db", tmp_path / "mailbox.db"
        with (
            collector(
                path, "--create", *options, *more, "--store", server_store, "--key-file", key
            ) as server,
            collector(
                path, "--store", mailbox, "--forward", server.url, "--key-file", key, "--port", 0
            ) as shuffler,
        ):
            task = fetch_task(shuffler.url)
            for _ in range(150):
                device = Client(task, largest_epsilon=9.0)
                send_message(shuffler.url, device.message([4711]), device.token)
            store = MessageStore(server_store)
            until = time.monotonic() + 60
            while not store.batches(task) and time.monotonic() < until:
                time.sleep(0.05)
            store.close()
        assert main(["tally", str(server_store), "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["accepted"] == 150
        assert result["winner"] == 4711
        assert result["guarantees"]["public"]["delta"] == 1e-6
        assert result["guarantees"]["network"]["epsilon"] == task.report_epsilon
        assert main(["tally", str(mailbox)]) == 0
        assert "0 messages" in capsys.readouterr().out


class TestTally:
    def test_a_table_and_the_promises_are_printed(self, tmp_path, capsys):
        task = write_task(tmp_path / "task.json")
        store = MessageStore(tmp_path / "m.db")
        store.open_task(task)
        for i in range(50):
            store.keep(task, b"%d" % i, Client(task, largest_epsilon=9.0).message([42]))
        store.close()
        assert main(["tally", str(tmp_path / "m.db")]) == 0
        printed = capsys.readouterr().out
        assert "t: 50 messages, choice 42" in printed
        assert "public: epsilon = 6 for each user" in printed
        assert "A dishonest user moves" in printed

    def test_too_few_for_a_shuffle_are_refused(self, tmp_path, capsys):
        task = Task.shuffle(name="s", candidates=8, epsilon=1.0, delta=1e-6, users=5)
        store = MessageStore(tmp_path / "m.db")
        store.open_task(task)
        store.keep(task, b"1", Client(task, largest_epsilon=9.0).message([1]))
        store.close()
        assert main(["tally", str(tmp_path / "m.db")]) == 1
        assert "5 messages" in capsys.readouterr().err

    def test_a_shuffled_tally_is_the_same_again_whoever_came_since(self, tmp_path, capsys):
        task = Task.shuffle(name="s", candidates=8, epsilon=1.0, delta=1e-6, users=5)
        wire, said = MessageFormat(task), []
        for first, count in ((0, 5), (5, 4)):
            store = MessageStore(tmp_path / "m.db")
            store.open_task(task)
            for i, row in enumerate(wire.write(task.response.respond(np.full(count, first % 8)))):
                store.keep(task, b"%d" % (first + i), row.tobytes())
            store.close()
            assert main(["tally", str(tmp_path / "m.db")]) == 0
            said.append(capsys.readouterr().out)
        assert said[0] == said[1]
        assert "5 messages" in said[0]
        assert "Later messages are counted once 5 of them make a batch." in said[0]

    def test_a_missing_store_is_wrong_use(self, tmp_path, capsys):
        assert main(["tally", str(tmp_path / "no.db")]) == 2
        assert "no file" in capsys.readouterr().err


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--create"], "--name"),
            (["--forward", "http://127.0.0.1:1"], "--key-file"),
            ([], "Expected a task"),
        ],
    )
    def test_wrong_use_is_said_before_anything_listens(self, tmp_path, capsys, options, words):
        path = tmp_path / "task.json"
        path.write_text("{}")
        assert main(["collect", str(path), "--store", str(tmp_path / "m.db"), *options]) == 2
        assert words in capsys.readouterr().err

    def test_an_existing_task_is_not_overwritten(self, tmp_path, capsys):
        path = tmp_path / "task.json"
        task = write_task(path)
        options = ["--create", "--name", "n", "--candidates", "8", "--epsilon", "1"]
        assert main(["collect", str(path), *options]) == 2
        assert "exists" in capsys.readouterr().err
        assert path.read_text() == task.to_json()

    @pytest.mark.parametrize("module", ["starlette.applications", "uvicorn"])
    def test_a_missing_extra_is_named(self, tmp_path, capsys, monkeypatch, module):
        monkeypatch.setitem(sys.modules, module, None)
        write_task(tmp_path / "task.json")
        arguments = ["collect", str(tmp_path / "task.json"), "--store", str(tmp_path / "m.db")]
        assert main([*arguments, "--port", "0"]) == 2
        assert "quorate[serve]" in capsys.readouterr().err

    def test_tokens_that_are_no_tokens_are_refused(self, tmp_path, capsys):
        write_task(tmp_path / "task.json")
        (tmp_path / "tokens").write_text("not hexadecimal\n")
        arguments = ["collect", str(tmp_path / "task.json"), "--store", str(tmp_path / "m.db")]
        assert main([*arguments, "--tokens", str(tmp_path / "tokens")]) == 2
        assert "hexadecimal" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_browser_answers_a_collector(tmp_path, capsys):
    """The script, the task and the post go over real HTTP, from a page of another origin."""
    write_task(tmp_path / "task.json", candidates=1000, epsilon=8.0)
    options = (tmp_path / "task.json", "--store", tmp_path / "m.db", "--rate", "1e6", "--port", 0)
    options = (*options, "--json")
    script = """
    async function answer(url, people) {
      const task = await (await fetch(url + "/task")).text();
      const codes = [];
      for (let i = 0; i < people; i++) {
        localStorage.clear();  // another person
        const client = await Quorate.Client.create(task, { largestEpsilon: 8 });
        for (let again = 0; again < 2; again++) {
          const { message, token } = await client.answer([777, 777, i]);
          const headers = { "Quorate-Token": token };
          const request = { method: "POST", headers, body: message };
          codes.push((await fetch(url + "/messages", request)).status);
        }
      }
      window.codes = JSON.stringify(codes);
    }
    """
    with collector(*options) as running, open_browser(tmp_path / "profile") as browser:
        page = tmp_path / "page.html"
        page.write_text(
            f"<!doctype html><meta charset=utf-8><script src='{running.url}/client.js'></script>"
            f"<script>{script}; answer('{running.url}', 25);</script>"
        )
        browser.open(page, width=800)
        until, codes = time.monotonic() + 60, None
        while codes is None and time.monotonic() < until:
            codes = browser.evaluate("window.codes")
            time.sleep(0.05)
        assert browser.problems == []
    assert json.loads(codes) == [201, 200] * 25
    assert main(["tally", str(tmp_path / "m.db"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["accepted"], result["winner"]) == (25, 777)
