"""Strangers who dawdle, flood and lie are cut off; an honest client is served meanwhile.

A real server on loopback. Attackers come from addresses of their own (127.0.0.2 and others), as
they would. What is asserted is who is served and who is cut off, not how fast: the figure of one
second is measured by ``benchmarks/collector.py``.
"""

import http.client
import logging
import socket
import threading
import time
from contextlib import closing, contextmanager

import pytest
import uvicorn

from quorate.app.serve import collector as collecting
from quorate.app.serve.collector import Collector, RateLimit
from quorate.app.serve.listening import Doorkeeping, household, settings
from quorate.app.serve.message_store import MessageStore
from quorate.exceptions import ParameterError
from quorate.local.client import Client
from quorate.local.task import Task

TASK = Task.local(name="attacked", candidates=50, epsilon=4.0, seed="aa" * 32)
KEY = "a key of the shuffler"
HONEST, STRANGER = "127.0.0.1", "127.0.0.2"
PATIENCE = 20.0
"""Seconds after which a socket of a test gives up: far more than any test needs."""


@contextmanager
def serving(store, *, keeping=None, configure=lambda config: None, **options):
    """Serve a collector of the store; yield its port."""
    options.setdefault("limit", RateLimit(per_second=100.0, burst=300))
    app = Collector(task=TASK, store=store, **options).app()
    config = settings(app, keeping)
    configure(config)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = {"target": server.run, "kwargs": {"sockets": [listener]}, "daemon": True}
        thread = threading.Thread(**running)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(timeout=PATIENCE)


@pytest.fixture
def store(tmp_path):
    with closing(MessageStore(tmp_path / "messages.db")) as made:
        yield made


def call(port, text=b"", address=STRANGER):
    """Open a connection from an address, say something, and leave it open."""
    made = socket.create_connection(("127.0.0.1", port), PATIENCE, source_address=(address, 0))
    made.sendall(text)
    return made


def head(path="/messages", length=22, token="00" * 16, **headers):
    lines = [f"POST {path} HTTP/1.1", "Host: here", f"Content-Length: {length}"]
    lines += [
        f"Quorate-Token: {token}",
        *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def rest(connection):
    """Return what comes until the other side closes."""
    said = b""
    try:
        while chunk := connection.recv(65536):
            said += chunk
    except ConnectionResetError:
        pass
    finally:
        connection.close()
    return said


def status(said):
    return int(said.split()[1]) if said else None


def answer(port, number=None, *, address=HONEST):
    """Send an honest client's message over a connection of its own; return the status."""
    device = Client(TASK, largest_epsilon=4.0)
    message, token = device.message([7]), device.token
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=PATIENCE, source_address=(address, 0)
    )
    with closing(connection):
        connection.request("POST", "/messages", message, {"Quorate-Token": token})
        return connection.getresponse().status


class TestDawdlers:
    def test_headers_that_do_not_come_are_not_waited_for(self, store):
        with serving(store, keeping=Doorkeeping(request_seconds=0.3)) as port:
            silent, half = call(port), call(port, head()[:30])
            assert rest(silent) == rest(half) == b""
            assert answer(port) == 201

    def test_a_byte_now_and_then_buys_no_time(self, store):
        keeping = Doorkeeping(request_seconds=0.5)
        start = head()[:-2] + b"X: "
        with serving(store, keeping=keeping) as port, closing(call(port, start)) as slow:
            for _ in range(200):
                try:
                    slow.sendall(b"x")
                except OSError:
                    return
                time.sleep(0.05)
        pytest.fail("every byte starts the clock anew")

    def test_a_second_request_on_a_connection_is_not_waited_for_either(self, store):
        with serving(store, keeping=Doorkeeping(request_seconds=0.3)) as port:
            twice = call(port, b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n")
            said = twice.recv(65536)
            while not said.endswith(b"}"):
                said += twice.recv(65536)
            assert status(said) == 200
            twice.sendall(b"GET /hea")
            assert rest(twice) == b""

    def test_a_body_that_does_not_come_is_not_waited_for(self, store, monkeypatch):
        monkeypatch.setattr(collecting, "_MESSAGE_SECONDS", 0.3)
        with serving(store) as port:
            assert status(rest(call(port, head() + b"QRM"))) == 408
            assert answer(port) == 201
        assert len(store.messages(TASK)) == 1

    def test_limits_that_are_none_are_refused(self):
        for wrong in ({"connections": 0}, {"request_seconds": 0.0}):
            with pytest.raises(ParameterError):
                Doorkeeping(**wrong)


class TestGiants:
    def pump(self, port, start, size=64 * 2**20):
        """Send a giant body until the other side has enough; return how much went."""
        giant, piece, sent = call(port, start), bytes(65536), 0
        try:
            while sent < size:
                giant.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        return sent, status(rest(giant))

    @pytest.mark.parametrize("key", [{}, {"Quorate_Key": "a key of somebody else"}], ids=str)
    def test_a_batch_without_the_key_is_not_read(self, store, key):
        """What the kernels of both sides hold is some megabytes; the server reads none of it."""
        with serving(store, batch_key=KEY) as port:
            sent, code = self.pump(port, head("/batches", 64 * 2**20, **key))
            assert sent < 16 * 2**20
            assert code in (403, None)
            assert answer(port) == 201

    @pytest.mark.parametrize("path", ["/messages", "/task", "/health", "/nothing"])
    def test_no_address_reads_a_giant(self, store, path):
        with serving(store) as port:
            sent, code = self.pump(port, head(path, 64 * 2**20))
            assert sent < 16 * 2**20
            assert code in (413, 405, 404, None)

    def test_a_batch_with_the_key_is_read_and_kept_in_one_piece(self, store):
        one = Client(TASK, largest_epsilon=4.0).message([7])
        batch = one * (2**20 // len(one))
        with serving(store, batch_key=KEY) as port:
            start = head("/batches", len(batch), Quorate_Key=KEY, Connection="close")
            giant = call(port, start)
            giant.sendall(batch)
            assert status(rest(giant)) == 201
        assert [held for _, held in store.batches(TASK)] == [batch]

    def test_a_batch_beyond_its_limit_is_cut_off(self, store, monkeypatch):
        monkeypatch.setattr(collecting, "_MAX_BATCH", 2**20)
        with serving(store, batch_key=KEY) as port:
            sent, code = self.pump(port, head("/batches", 64 * 2**20, Quorate_Key=KEY))
        assert sent < 16 * 2**20
        assert code in (413, None)
        assert store.batches(TASK) == []


class TestFloods:
    def test_the_oldest_connection_of_the_busiest_address_makes_room(self, store):
        with serving(store, keeping=Doorkeeping(connections=20, request_seconds=60.0)) as port:
            quiet = call(port, address="127.0.0.3")
            flood = [call(port) for _ in range(60)]
            assert answer(port) == 201
            quiet.sendall(b"GET /health HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            assert status(rest(quiet)) == 200, "whoever holds one place keeps it"
            flood[-1].sendall(b"GET /health HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            assert status(rest(flood[-1])) == 200
            assert all(rest(each) == b"" for each in flood[:40])
            for each in flood[40:-1]:
                each.close()

    def test_the_rate_limit_is_asked_at_every_address(self, store):
        limit = RateLimit(per_second=1e-6, burst=3)
        with serving(store, batch_key=KEY, limit=limit) as port:
            paths = ("/messages", "/batches", "/task", "/health", "/client.js", "/nothing")
            for i, path in enumerate(paths):
                stranger = f"127.0.1.{i + 1}"
                codes = [
                    status(rest(call(port, head(path, 0, Connection="close"), stranger)))
                    for _ in range(5)
                ]
                assert 429 not in codes[:3]
                assert codes[3:] == [429, 429], path
            assert answer(port) == 201

    def test_a_household_counts_once_however_many_addresses_it_has(self):
        assert household("2001:db8::1") == household("2001:db8::ffff:1:2:3")
        assert household("2001:db8::1") != household("2001:db8:0:1::1")
        assert household("::ffff:192.0.2.7") == household("192.0.2.7") != household("192.0.2.8")

    def test_all_of_it_at_once_and_honest_clients_are_served_throughout(self, store, monkeypatch):
        """Slow bodies, giants without a key, many connections, nonsense, as long as it takes."""
        monkeypatch.setattr(collecting, "_MESSAGE_SECONDS", 1.0)
        over, made = threading.Event(), []

        def keep_attacking(attack):
            while not over.is_set():
                try:
                    attack()
                except OSError:
                    over.wait(0.01)

        with serving(store, batch_key=KEY, keeping=Doorkeeping(connections=60)) as port:

            def giants():
                TestGiants().pump(port, head("/batches", 64 * 2**20))

            def crowd():
                made.extend(call(port) for _ in range(20))
                over.wait(0.05)

            def dawdlers():
                made.append(call(port, head() + b"Q", "127.0.0.4"))
                over.wait(0.02)

            def nonsense():
                for text in (
                    b"\0\xff nonsense\r\n\r\n",
                    head(length=9, Connection="close") + b'{"a": [1,',
                    b"{" * 70_000,
                ):
                    rest(call(port, text, "127.0.0.5"))
                over.wait(0.02)

            attackers = [
                threading.Thread(target=keep_attacking, args=(attack,), daemon=True)
                for attack in (giants, crowd, dawdlers, nonsense)
            ]
            for thread in attackers:
                thread.start()
            codes = []
            for _ in range(12):
                codes.append(answer(port))
                time.sleep(0.02)
            over.set()
            for thread in attackers:
                thread.join(timeout=PATIENCE)
            for each in made:
                each.close()
        assert codes == [201] * 12
        assert len(store.messages(TASK)) == 12


class TestNothingIsWritten:
    def test_no_address_stands_in_any_log_even_for_whoever_turns_logs_on(self, store, capfd):
        written = []

        class Keep(logging.Handler):
            def emit(self, record):
                written.append(self.format(record))

        keeper = Keep()
        names = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "")

        def configure(config):
            config.load()
            for name in names[:-1]:
                logging.getLogger(name).setLevel(logging.INFO)
            logging.getLogger().addHandler(keeper)
            logging.getLogger("uvicorn.error").addHandler(keeper)

        try:
            with serving(store, configure=configure) as port:
                assert answer(port, address="127.0.0.77") == 201
                for text in (b"nonsense\r\n\r\n", head("/messages?who=me", 0, Connection="close")):
                    rest(call(port, text, "127.0.0.77"))
                for start in (b"", b"POST /mess", head() + b"QRM"):
                    call(port, start, "127.0.0.77").close()
                assert answer(port) == 201
        finally:
            for name in names:
                logging.getLogger(name).removeHandler(keeper)
                if name:
                    logging.getLogger(name).setLevel(logging.NOTSET)
        seen = "\n".join([*written, *capfd.readouterr()])
        assert "Started server" in seen, "the test does not see logs at all"
        assert "127.0.0.77" not in seen
        assert "Traceback" not in seen, "strangers who leave fill a disk"
        assert "who=me" not in seen

    def test_settings_write_neither_accesses_nor_what_strangers_do(self):
        made = settings(None)
        assert made.access_log is False
        assert logging.getLogger("uvicorn.error").level == logging.ERROR
        assert not logging.getLogger("uvicorn.access").hasHandlers()
