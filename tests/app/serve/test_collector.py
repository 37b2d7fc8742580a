"""The door over HTTP: what is taken, what is refused, and that strangers cannot break it."""

import asyncio
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from browser import CHROMIUM, open_browser
from quorate.app.serve.collector import KEY_HEADER, TOKEN_HEADER, Collector, RateLimit
from quorate.app.serve.message_store import MessageStore
from quorate.exceptions import ParameterError
from quorate.local.client import Client
from quorate.local.device_memory import new_token
from quorate.local.messages import Reason
from quorate.local.server import Server
from quorate.local.task import Task

LOCAL = Task.local(name="local", candidates=50, epsilon=4.0, seed="88" * 32)
KEY = "a key of the shuffler"


@cache
def shuffled():
    """Make it when a test asks: its noise is a second's work."""
    return Task.shuffle(name="s", candidates=50, epsilon=1.0, delta=1e-6, users=3, seed="99" * 32)


@pytest.fixture
def store(tmp_path):
    made = MessageStore(tmp_path / "messages.db")
    yield made
    made.close()


def message_of(task=LOCAL):
    return Client(task, largest_epsilon=9.0).message([7])


class Door:
    """Requests to an application without a socket; the tests of the command line use real ones."""

    def __init__(self, app):
        self.app = app

    def request(self, method, path, **given):
        async def ask():
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://door") as client:
                return await client.request(method, path, **given)

        return asyncio.run(ask())

    def get(self, path):
        return self.request("GET", path)


def door(store, task=LOCAL, **options):
    options.setdefault("limit", RateLimit(per_second=1e6, burst=10**6))
    return Door(Collector(task=task, store=store, **options).app())


def post(client, message, token=None, path="/messages", **headers):
    token = new_token() if token is None else token
    headers = {"Quorate-Token": token, **headers}
    return client.request("POST", path, content=message, headers=headers)


class TestMessages:
    def test_a_message_is_kept_and_repeating_it_changes_nothing(self, store):
        client, message, token = (
            door(store),
            message_of(),
            new_token(),
        )
        assert post(client, message, token).status_code == 201
        assert post(client, message, token).status_code == 200
        assert store.messages(LOCAL) == [message]
        other = post(client, message_of(), token)
        assert other.status_code == 409
        assert store.messages(LOCAL) == [message]
        assert store.dropped(LOCAL) == {Reason.REPEATED: 1}

    @pytest.mark.parametrize("token", ["", "zz" * 8, "00", "00" * 65])
    def test_without_a_token_nothing_is_kept(self, store, token):
        answer = post(door(store), message_of(), token)
        assert answer.status_code == 401
        assert store.messages(LOCAL) == []

    def test_only_admitted_tokens_count(self, store):
        client = door(store, admitted=frozenset([bytes.fromhex("11" * 16)]))
        message = message_of()
        assert post(client, message, "22" * 16).status_code == 401
        assert post(client, message, "11" * 16).status_code == 201

    def test_malformed_and_foreign_messages_are_counted_by_reason(self, store):
        client = door(store)
        good = message_of()
        foreign = Client(
            Task.local(name="x", candidates=50, epsilon=4.0), largest_epsilon=4.0
        ).message([7])
        assert post(client, good[:-1]).json()["reason"] == Reason.WRONG_LENGTH.value
        assert post(client, b"").json()["reason"] == Reason.WRONG_LENGTH.value
        assert post(client, foreign).json()["reason"] == Reason.FOREIGN_TASK.value
        assert post(client, b"\0" + good[1:]).status_code == 400
        assert store.dropped(LOCAL) == {
            Reason.WRONG_LENGTH: 2,
            Reason.FOREIGN_TASK: 1,
            Reason.NO_MESSAGE: 1,
        }
        assert store.messages(LOCAL) == []

    def test_a_giant_body_is_not_read_to_its_end(self, store):
        given = []

        async def receive():
            given.append(b"x" * 10_000)
            return {"type": "http.request", "body": given[-1], "more_body": len(given) < 10**6}

        said = []

        async def send(message):
            said.append(message)

        scope = {"type": "http", "method": "POST", "path": "/messages", "headers": []}
        scope |= {"query_string": b"", "client": ("here", 1)}
        asyncio.run(door(store).app(scope, receive, send))
        assert said[0]["status"] == 413
        assert len(given) < 5

    def test_random_requests_never_fail(self, store):
        rng, client = np.random.default_rng(0), door(store)
        for _ in range(150):
            answer = post(client, rng.bytes(int(rng.integers(0, 40))), rng.bytes(16).hex())
            assert answer.status_code in (400, 413)
        assert client.get("/nothing").status_code == 404
        assert client.get("/messages").status_code == 405
        assert store.messages(LOCAL) == []


class TestShuffledTasks:
    def test_messages_past_the_shuffler_are_refused(self, store):
        client = door(store, shuffled(), batch_key=KEY)
        assert post(client, message_of(shuffled())).status_code == 403

    def test_batches_need_the_key_and_count_once(self, store):
        client = door(store, shuffled(), batch_key=KEY)
        batch = b"".join(message_of(shuffled()) for _ in range(3))
        token = new_token()
        for headers in ({}, {"Quorate-Key": "a key of somebody else"}):
            assert post(client, batch, token, "/batches", **headers).status_code == 403
        for code in (201, 200):
            answer = post(client, batch, token, "/batches", **{"Quorate-Key": KEY})
            assert answer.status_code == code
        assert [messages for _, messages in store.batches(shuffled())] == [batch]
        short = post(client, batch[:-1], None, "/batches", **{"Quorate-Key": KEY})
        assert short.status_code == 400

    def test_a_collector_without_a_key_takes_no_batches(self, store):
        answer = post(door(store), b"x" * 21, None, "/batches", **{"Quorate-Key": ""})
        assert answer.status_code == 403

    def test_a_short_key_is_refused(self, store):
        with pytest.raises(ParameterError, match="batch_key"):
            Collector(task=shuffled(), store=store, batch_key="short")


class TestPublicPages:
    def test_task_and_client_are_given_to_anybody(self, store):
        client = door(store)
        assert Task.from_json(client.get("/task").content) == LOCAL
        assert "Quorate" in client.get("/client.js").text
        assert client.get("/health").json() == {"status": "open", "task_id": LOCAL.id}

    def test_a_page_from_elsewhere_may_post(self, store):
        asked = {
            "Origin": "https://example.org",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "Quorate-Token",
        }
        answer = door(store).request("OPTIONS", "/messages", headers=asked)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "*"


class TestRateLimit:
    def test_an_address_that_asks_too_often_waits(self, store):
        now = [0.0]
        limit = RateLimit(per_second=2.0, burst=3, clock=lambda: now[0])
        client = door(store, limit=limit)
        codes = [post(client, message_of()).status_code for _ in range(5)]
        assert codes == [201, 201, 201, 429, 429]
        now[0] += 0.5
        assert post(client, message_of()).status_code == 201
        assert post(client, message_of()).status_code == 429

    def test_permissions_do_not_pile_up(self):
        now = [0.0]
        limit = RateLimit(per_second=1.0, burst=2, clock=lambda: now[0])
        now[0] = 1e9
        assert [limit.allows("a") for _ in range(3)] == [True, True, False]

    def test_memory_of_addresses_is_bounded(self):
        limit = RateLimit(most_addresses=10, clock=lambda: 0.0)
        for i in range(100):
            limit.allows(str(i))
        assert len(limit._left) == 10

    def test_many_threads_take_no_more_than_there_is(self):
        limit = RateLimit(per_second=1e-9, burst=100, most_addresses=5)
        with ThreadPoolExecutor(8) as pool:
            allowed = list(pool.map(lambda i: limit.allows(f"{i % 3}"), range(900)))
        assert sum(allowed) == 300

    @pytest.mark.parametrize("wrong", [{"per_second": 0.0}, {"burst": 0}])
    def test_limits_that_are_none_are_refused(self, wrong):
        with pytest.raises(ParameterError):
            RateLimit(**wrong)


def test_a_seed_that_was_used_is_refused_at_the_door(store):
    Collector(task=LOCAL, store=store)
    again = Task.local(name="again", candidates=50, epsilon=4.0, seed=LOCAL.seed)
    with pytest.raises(ParameterError, match="seed"):
        Collector(task=again, store=store)


GUIDE = Path(__file__).parents[3] / "docs" / "phones.md"
TRANSPORT = Task.local(name="transport", candidates=8, epsilon=1.0, seed="5a" * 32)


def test_the_page_for_phones_names_every_endpoint_header_and_status(store):
    text = GUIDE.read_text(encoding="utf-8")
    for route in door(store).app.routes:
        method = "POST" if "POST" in route.methods else "GET"
        assert f"`{method} {route.path}`" in text
    for header in (TOKEN_HEADER, KEY_HEADER):
        assert f"`{header}`" in text
    for status in (200, 201, 400, 401, 403, 408, 409, 413, 429):
        assert str(status) in text.split("## Endpoints")[1].split("## The client")[0]


@contextmanager
def listening(app):
    """Serve an application at an address of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(timeout=20)


@pytest.fixture
def answers(store, tmp_path):
    """The example of the guide in a browser: choose, send, and read what the page says."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    files = tmp_path / "app"
    files.mkdir()
    (example,) = re.findall(r"```html\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    app = Collector(task=TRANSPORT, store=store).app()
    # The page and the collector are two origins, as they are in the field.
    pages = Starlette(routes=[Mount("/", StaticFiles(directory=files, html=True))])
    with (
        listening(pages) as page,
        listening(app) as collector,
        open_browser(tmp_path / "profile") as browser,
    ):
        (files / "client.js").write_bytes(httpx.get(collector + "/client.js").content)

        def answer(choice, address=collector):
            told = example.replace("https://collect.example.org", address)
            assert told != example
            (files / "index.html").write_text(told, encoding="utf-8")
            browser.open(f"{page}/?{new_token()}", width=390)
            browser.evaluate(f"document.getElementById('choice').value = '{choice}'")
            browser.evaluate("document.querySelector('button').click()")
            return browser.evaluate(
                "new Promise(done => { const look = () => { "
                "const text = document.getElementById('status').textContent; "
                "text ? done(text) : setTimeout(look, 20); }; look(); })"
            )

        yield answer


@pytest.mark.slow
def test_the_example_for_phones_runs_in_a_browser(store, answers):
    assert answers(3) == "Thank you. Your answer was taken."
    (kept,) = store.messages(TRANSPORT)
    assert Server(TRANSPORT).collect([kept]).accepted == 1
    # Neither a second click nor another choice makes a second message.
    assert answers(1) == "You have answered already."
    assert store.messages(TRANSPORT) == [kept]


@pytest.mark.slow
def test_the_example_for_phones_waits_for_a_collector_that_is_down(store, answers):
    assert answers(3, address="http://127.0.0.1:9") == "Not sent yet. Please try again later."
    assert store.messages(TRANSPORT) == []
    assert answers(3) == "Thank you. Your answer was taken."
    assert len(store.messages(TRANSPORT)) == 1
