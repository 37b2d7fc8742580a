"""The planner's page in a real browser: its figures are those of qr.plan."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import threading
import time
import tomllib

import httpx
import pytest
import uvicorn

import quorate as qr
from browser import CHROMIUM, open_browser
from quorate.app.serve import planner
from quorate.app.serve.planner import PlannerPage, ask, describe_tasks, request_file

QUICK = (
    "logistic",
    "linear",
    "threshold",
    "concept",
    "select",
    "agreement-local",
    "shares",
    "cdf",
    "table",
)


@pytest.fixture(scope="module")
def asked():
    """What the page asked of qr.plan, and what that answered."""
    return []


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    ledger = qr.Ledger(tmp_path_factory.mktemp("ledger") / "book.db", actor="ann")
    ledger.set_budget("visits", epsilon=1.0, unit="patient")
    promise = qr.Guarantee(epsilon=0.25, unit="patient")
    ledger.charge("visits", promise, purpose="mean <b>age</b>")
    return ledger.path


@pytest.fixture(scope="module")
def address(asked, book):
    original = planner.plan

    def recorded(**numbers):
        answer = original(**numbers)
        asked.append((numbers, answer))
        return answer

    planner.plan = recorded
    listener = socket.create_server(("127.0.0.1", 0))
    settings = uvicorn.Config(PlannerPage(book).app(), log_level="error", ws="none")
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=20)
    listener.close()
    planner.plan = original


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def settle(browser):
    """Wait until the page shows the answer to the last change."""
    browser.evaluate(
        "new Promise(done => { const look = () => Number(document.body.dataset.ready) === asked "
        "&& asked > 0 ? done(asked) : setTimeout(look, 10); setTimeout(look, 200); })"
    )


def settings(count):
    public = random.Random(16)
    kinds = {task["name"]: task["numbers"] for task in describe_tasks()}
    for _ in range(count):
        name = public.choice(QUICK)
        held = {
            "users": public.randint(50, 50_000),
            "epsilon": round(public.uniform(0.2, 5.0), 2),
            "records": public.randint(1, 60),
            "delta": 1e-6,
            "confidence": public.choice([0.8, 0.9, 0.95]),
        }
        for number in kinds[name]:
            if number["name"] in ("dimension", "size"):
                # Every column of a table is another second of arithmetic, and no other page.
                columns = name == "table" and number["name"] == "dimension"
                held[number["name"]] = public.randint(2, 6 if columns else 40)
        yield name, held


def test_its_figures_are_those_of_the_planner_for_80_settings(browser, address, asked):
    browser.open(address, width=1000)
    settle(browser)
    for name, held in settings(80):
        asked.clear()
        shown = browser.evaluate(
            f"(async () => {{ const held = {json.dumps(held)}; $('task').value = '{name}';"
            "numbersOf($('task').value, new URLSearchParams()); $('solve').value = 'error'; show();"
            "for (const [key, value] of Object.entries(held)) $(key).value = value;"
            "await refresh(); return {answer, sentence: $('sentence').textContent,"
            "needed: $('rows').rows[0].cells[1].textContent}; })()"
        )
        ((numbers, expected),) = asked
        assert held.items() <= numbers.items()
        assert numbers["task"] == name
        assert shown["answer"] == json.loads(json.dumps(expected.to_dict()))
        assert shown["sentence"] == expected.sentence
        # Users are people: 62.4 of them stood here.
        assert re.fullmatch(r"[\d,]+ users?|out of reach", shown["needed"]), shown["needed"]
    assert browser.problems == []
    assert all(url.startswith(address) for url in browser.requests)


def test_no_curve_crosses_a_word_of_the_drawing(browser, address):
    """The word "error" stood where the curves of simpler methods begin."""
    for width in (1280, 390):
        browser.open(address, width=width)
        settle(browser)
        words = browser.evaluate(
            "[...document.querySelectorAll('#chart text')].map(text => {"
            "const box = text.getBBox(); return [text.textContent, box.x, box.y, box.x + box.width,"
            "box.y + box.height]; })"
        )
        corners = browser.evaluate(
            "[...document.querySelectorAll('#chart polyline')].flatMap("
            "line => [...line.points].map(point => [point.x, point.y]))"
        )
        assert len(corners) > 50
        crossed = {
            word
            for word, left, top, right, bottom in words
            for x, y in corners
            if left <= x <= right and top <= y <= bottom
        }
        assert crossed == set()


def test_every_state_has_an_address(browser, address):
    query = "?task=threshold&users=4321&epsilon=2&records=7&solve=error&alike=true"
    browser.open(address + "/" + query, width=1000)
    settle(browser)
    assert browser.evaluate("$('users').value") == "4321"
    assert browser.evaluate("$('alike').value") == "true"
    assert browser.evaluate("answer.users") == 4321
    browser.evaluate("$('users').value = 999; $('users').dispatchEvent(new Event('input'))")
    settle(browser)
    again = browser.evaluate("location.href")
    assert "users=999" in again
    browser.open(again, width=1000)
    settle(browser)
    assert browser.evaluate("answer.users") == 999


def test_it_works_by_keyboard_alone(browser, address):
    browser.open(address + "/?task=linear&users=2000", width=1000)
    settle(browser)
    seen = []
    for _ in range(60):
        browser.press_tab()
        seen.append(browser.evaluate("document.activeElement.id"))
        if seen[-1] == "users":
            break
    browser.evaluate("$('users').select()")
    browser.type("7500")
    settle(browser)
    assert browser.evaluate("answer.users") == 7500
    browser.press_tab()
    assert browser.evaluate("document.activeElement.id") == "slide-users"
    before = browser.evaluate("Number($('users').value)")
    browser.press("ArrowRight", 39)
    settle(browser)
    assert browser.evaluate("answer.users") > before
    browser.evaluate("$('tab-plan').focus()")
    browser.press("ArrowRight", 39)
    assert browser.evaluate("document.activeElement.id") == "tab-ledger"
    assert browser.evaluate("$('panel-plan').hidden") is True


def test_dragging_the_dot_changes_the_users(browser, address):
    browser.open(address + "/?task=linear&users=2000", width=1000)
    settle(browser)
    box = browser.evaluate(
        "(({x, y, width, height}) => [x + width/2, y + height/2])($('dot').getBoundingClientRect())"
    )
    browser.drag(box, (box[0] + 120, box[1]))
    settle(browser)
    assert browser.evaluate("answer.users") > 2500


@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (390, "dark")])
def test_it_fits_a_phone_and_the_night(browser, address, width, scheme, tmp_path):
    browser.open(address, width=width, scheme=scheme)
    settle(browser)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 22, 28)")
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000
    assert browser.problems == []


def test_on_a_phone_the_answer_stands_above_the_fields(browser, address):
    browser.open(address, width=390, height=800)
    settle(browser)
    places = browser.evaluate(
        "['sentence', 'chart', 'task'].map(id => "
        "document.getElementById(id).getBoundingClientRect().top)"
    )
    assert places == sorted(places)
    assert places[0] < 400


def test_every_number_has_a_label_that_says_what_it_is(browser, address):
    """A field called "between" or "scale" said nothing to somebody new."""
    browser.open(address, width=1000)
    settle(browser)
    text = "[...document.querySelectorAll('#numbers label')].map(each => each.textContent)"
    for task in describe_tasks():
        browser.evaluate(f"numbersOf('{task['name']}', new URLSearchParams())")
        labels = browser.evaluate(text)
        assert len(labels) == len(task["numbers"])
        for label in labels:
            assert " " in label, (task["name"], label)


def test_the_first_view_shows_what_simpler_methods_lack(browser, address):
    # Issue 31: the curves of Quorate, clipping and one record a user coincided there.
    browser.open(address, width=1000)
    settle(browser)
    first = browser.evaluate("answer")
    assert browser.evaluate("document.getElementById('example').hidden") is False
    assert len(first["baselines"]) >= 3
    for baseline in first["baselines"]:
        assert baseline["error"] >= 2.0 * first["error_expected"], baseline["name"]
    # Whoever asks something else gets the defaults of that, not those of the example.
    browser.open(address + "/?task=mean", width=1000)
    settle(browser)
    assert browser.evaluate("document.getElementById('example').hidden") is True
    assert browser.evaluate("answer.records") == 10


def test_the_ledger_is_shown_as_text(browser, address):
    browser.open(address + "/#ledger", width=1000)
    time.sleep(0.1)
    settle(browser)
    shown = browser.evaluate("$('budgets').textContent + $('history').textContent")
    assert "visits" in shown
    assert "0.75" in shown
    assert "mean <b>age</b>" in shown


def test_a_refusal_is_a_sentence_and_no_figure_stays(browser, address):
    browser.open(address + "/?task=linear&users=none", width=1000)
    settle(browser)
    assert "Expected a number for users" in browser.evaluate("$('sentence').textContent")
    assert browser.evaluate("$('rows').rows.length") == 0
    browser.open(address + "/?task=linear&users=2000", width=1000)
    settle(browser)
    assert browser.evaluate("$('rows').rows.length") > 0
    browser.evaluate("$('users').value = 'none'; $('users').dispatchEvent(new Event('input'))")
    settle(browser)
    assert "Expected a number for users" in browser.evaluate("$('sentence').textContent")
    assert browser.evaluate("$('rows').rows.length") == 0


def get(held, path, base="http://127.0.0.1", **headers):
    async def ask_once():
        transport = httpx.ASGITransport(app=held.app())
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.get(path, headers=headers)

    return asyncio.run(ask_once())


class TestWithoutABrowser:
    def test_addresses_answer_and_allow_nothing_from_elsewhere(self, book):
        page = get(PlannerPage(book), "/")
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        assert get(PlannerPage(book), "/plan?task=nothing").status_code == 400
        assert "epsilon" in get(PlannerPage(book), "/request?task=shares&users=9&error=1").text
        shown = get(PlannerPage(book), "/ledger").json()
        assert shown["data"]["visits"]["unit"] == "patient"
        assert get(PlannerPage(book), "/nothing").status_code == 404
        assert get(PlannerPage(), "/ledger").status_code == 404

    def test_a_browser_led_here_by_a_strangers_name_reads_nothing(self, book):
        known = ("http://localhost", "http://localhost:8766", "http://127.0.0.1:8766")
        strange = ("http://evil.example", "http://localhost.evil.example", "http://evil.localhost")
        for path in ("/", "/plan", "/tasks", "/request", "/ledger", "/nothing"):
            for name in strange:
                answer = get(PlannerPage(book), path, name)
                assert answer.status_code == 400
                assert "patient" not in answer.text
                assert answer.text == "Expected a name of this machine."
        for name in (*known, "http://192.0.2.7:8766", "http://[::1]:8766", "http://LOCALHOST"):
            assert get(PlannerPage(book), "/ledger", name).status_code == 200
        for strange in ("[", "]", "[::1", "@", "localhost@evil.example", "/"):
            answer = get(PlannerPage(book), "/ledger", Host=strange)
            assert answer.status_code == 400, strange
        named = PlannerPage(book, ("localhost", "planner.example"))
        assert get(named, "/ledger", "http://planner.example").status_code == 200
        assert get(named, "/ledger", "http://evil.example").status_code == 400

    def test_a_page_from_elsewhere_gets_no_answer(self, book):
        here = "http://127.0.0.1:8766"
        for origin in ("http://evil.example", "http://127.0.0.1:80", "null", "https://localhost"):
            answer = get(PlannerPage(book), "/ledger", here, Origin=origin)
            assert answer.status_code == 400
            assert "patient" not in answer.text
        own = get(PlannerPage(book), "/ledger", here, Origin=here)
        assert own.status_code == 200
        assert "access-control-allow-origin" not in own.headers

    @pytest.mark.parametrize(
        "query",
        [
            {},
            {"task": "mean"},
            {"task": "mean", "users": "1e400", "epsilon": "1"},
            {"task": "mean", "users": "1000", "epsilon": "1", "error": "1e-300"},
            {"task": "mean", "users": "10", "epsilon": "1", "relation": "both"},
            {"task": "mean", "users": "10", "epsilon": "1", "domain": "5"},
            {"task": "threshold", "users": "10", "epsilon": "1", "alike": "perhaps"},
            {"task": "median", "users": "10", "epsilon": "1", "bounds": "a,b"},
        ],
    )
    def test_what_cannot_be_asked_is_refused_in_a_sentence(self, query):
        code, answer = ask(query)
        assert code == 400
        assert answer["refused"].startswith("Expected")

    @pytest.mark.parametrize(
        ("number", "wrong"),
        [
            ("error", ("1e-13", "1e300", "0", "nan")),
            ("users", ("0.5", "1e14", "inf")),
            ("records", ("0", "1e9")),
            ("epsilon", ("1e-9", "1e300", "-1")),
            ("size", ("1e9", "0")),
            ("confidence", ("1", "0.1")),
        ],
    )
    def test_numbers_that_would_take_for_ever_are_refused(self, number, wrong):
        asked = {"task": "cdf", "users": "1000", "epsilon": "1", "size": "10"}
        for text in wrong:
            code, answer = ask({**asked, number: text})
            assert code == 400
            assert f"for {number}" in answer["refused"]

    @pytest.mark.parametrize("task", ["smallest-error", "parity"])
    def test_a_tiny_error_is_answered_at_once(self, task):
        """It took hours, walking every guess that a search could make."""
        for asked in ({"users": "1000", "error": "1e-12"}, {"error": "1e-12"}):
            begun = time.monotonic()
            code, answer = ask({"task": task, "epsilon": "1", **asked})
            assert code == 200
            assert answer["users_needed"] is None
            assert time.monotonic() - begun < 30

    def test_an_accident_of_arithmetic_is_a_sentence(self, monkeypatch):
        for kind in (OverflowError, ZeroDivisionError, MemoryError, ValueError):

            def fail(kind=kind, **numbers):
                raise kind("something inside")

            monkeypatch.setattr(planner, "plan", fail)
            code, answer = ask({"task": "mean", "users": "10", "epsilon": "1"})
            assert code == 400
            assert "inside" not in answer["refused"]

    def test_a_request_file_holds_what_was_planned(self):
        code, text = request_file({"task": "mean", "users": "2000", "error": "0.5"})
        assert code == 200
        request = tomllib.loads(text)
        assert request["epsilon"] == qr.plan("mean", users=2000, error=0.5).epsilon
        assert request["relation"] == "replace"
        assert request_file({"task": "mean"})[0] == 400
