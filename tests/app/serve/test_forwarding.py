"""Clients and shufflers repeat themselves until they are heard, and are counted once."""

import threading
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from quorate.app.serve.collector import Collector
from quorate.app.serve.forwarding import CollectorError, fetch_task, forward_batches, send_message
from quorate.app.serve.message_store import MessageStore
from quorate.local.client import Client
from quorate.local.device_memory import new_token
from quorate.local.task import Task

LOCAL = Task.local(name="local", candidates=50, epsilon=4.0, seed="aa" * 32)
KEY = "a key of the shuffler"


@cache
def shuffled():
    """Make it when a test asks: its noise is a second's work."""
    return Task.shuffle(name="s", candidates=50, epsilon=1.0, delta=1e-6, users=4, seed="bb" * 32)


@contextmanager
def listening(collector, lose=0):
    """Serve a collector with the standard library; the first ``lose`` answers get lost."""
    lost = [lose]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(200, collector.task.to_json())

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            token = self.headers["Quorate-Token"]
            if self.path == "/batches":
                code, said = collector.take_batch(
                    body, token=token, key=self.headers["Quorate-Key"]
                )
            else:
                code, said = collector.take(body, token=token)
            if lost[0] > 0:
                lost[0] -= 1
                self.close_connection = True
                return
            self.answer(code, str(said))

        def answer(self, code, text):
            self.send_response(code)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *ignored):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def stores(tmp_path):
    made = [MessageStore(tmp_path / name) for name in ("server.db", "shuffler.db")]
    yield made
    for store in made:
        store.close()


def quickly(seconds):
    """Do not wait in tests."""


def test_a_lost_answer_does_not_lose_or_double_the_message(stores):
    collector = Collector(task=LOCAL, store=stores[0])
    with listening(collector, lose=3) as url:
        assert fetch_task(url) == LOCAL
        message = Client(LOCAL, largest_epsilon=9.0).message([7])
        send_message(url, message, new_token(), wait=quickly)
    assert stores[0].messages(LOCAL) == [message]


def test_a_refusal_is_not_repeated(stores):
    waits = []
    refused = pytest.raises(CollectorError, match="status 400")
    with listening(Collector(task=LOCAL, store=stores[0])) as url, refused:
        send_message(url, b"nonsense", new_token(), wait=waits.append)
    assert waits == []


def test_nobody_there_is_tried_and_said(stores):
    waits = []
    with pytest.raises(CollectorError, match="did not take"):
        send_message("http://127.0.0.1:9", b"", new_token(), attempts=3, wait=waits.append)
    assert len(waits) == 3
    with pytest.raises(CollectorError, match="http"):
        fetch_task("file:///etc/hostname")


def test_a_shuffler_passes_full_batches_on_once(stores):
    server, mailbox = stores
    mailbox.open_task(shuffled())
    collector = Collector(task=shuffled(), store=server, batch_key=KEY)
    messages = [Client(shuffled(), largest_epsilon=9.0).message([7]) for _ in range(5)]
    with listening(collector, lose=2) as url:
        for i, message in enumerate(messages[:3]):
            mailbox.keep(shuffled(), b"%d" % i, message)
        assert forward_batches(mailbox, shuffled(), url, KEY, wait=quickly) == 0
        for i, message in enumerate(messages[3:]):
            mailbox.keep(shuffled(), b"1%d" % i, message)
        assert forward_batches(mailbox, shuffled(), url, KEY, wait=quickly) == 1
        assert forward_batches(mailbox, shuffled(), url, KEY, wait=quickly) == 0
    ((_, joined),) = server.batches(shuffled())
    length = len(messages[0])
    assert sorted(joined[i : i + length] for i in range(0, len(joined), length)) == sorted(messages)


def test_a_batch_that_could_not_be_sent_waits_in_the_outbox(stores):
    server, mailbox = stores
    mailbox.open_task(shuffled())
    for i in range(4):
        mailbox.keep(shuffled(), b"%d" % i, Client(shuffled(), largest_epsilon=9.0).message([7]))
    with pytest.raises(CollectorError):
        forward_batches(mailbox, shuffled(), "http://127.0.0.1:9", KEY, attempts=2, wait=quickly)
    assert len(mailbox.batches(shuffled(), outgoing=True)) == 1
    collector = Collector(task=shuffled(), store=server, batch_key=KEY)
    with listening(collector) as url:
        assert forward_batches(mailbox, shuffled(), url, KEY, wait=quickly) == 1
    assert len(server.batches(shuffled())) == 1
