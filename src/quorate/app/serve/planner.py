"""The planner as a web page: change users, records and epsilon, and see the expected error.

``GET /`` returns the page, ``GET /tasks`` the tasks and their parameters, ``GET /plan?...`` the
same answer as :func:`quorate.plan`, ``GET /request?...`` a request file for ``quorate fit``, and
``GET /ledger`` budgets and history, if a ledger was named. Only that ledger is read, nothing is
stored, and the page sends no other requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from importlib import resources
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from quorate.app.catalogue import TASKS as FITTED
from quorate.app.tasks.requests import asked_lines
from quorate.core.guarantees import Relation
from quorate.exceptions import MissingExtraError, ParameterError, QuorateError
from quorate.planning.questions import TASKS, plan, task_kind
from quorate.planning.solve import EPSILONS, MOST_USERS
from quorate.planning.tasks.base import PlanTask

__all__ = ["LOOPBACK", "PlannerPage", "ask", "describe_tasks", "page", "request_file"]

LOOPBACK = ("localhost",)
"""The name of this machine; a page from elsewhere that names it otherwise gets no answer."""

_SHARED = ("users", "error", "epsilon", "delta", "records", "confidence", "relation")
_WHOLE = frozenset({"users", "records", "dimension", "size", "vc", "domain", "horizon", "touched"})
_LIMITS = {
    "users": (1.0, float(MOST_USERS)),
    "records": (1.0, 1e6),
    "epsilon": EPSILONS,
    "delta": (0.0, 0.5),
    "error": (1e-12, 1e12),
    "confidence": (0.5, 1 - 1e-9),
    "dimension": (1.0, 1e3),
    "size": (1.0, 2.0**32),
    "vc": (1.0, 1e6),
    "domain": (1.0, 2.0**64),
    "horizon": (1.0, 1000.0),
    "touched": (1.0, 1000.0),
}
"""Ranges of the parameters; large numbers take long, and the page is open to strangers."""
_CELLS = frozenset({"cdf", "histogram", "quantiles", "shares", "table"})
_MOST_CELLS = 10_000  # machine: time
"""The largest size of tasks that compute every cell, not only the logarithm of their number."""
_YES = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def page() -> str:
    """Return the page: one file, with its style and its script.

    >>> page().startswith("<!doctype html>")
    True
    """
    return (resources.files("quorate.app.serve") / "planner.html").read_text(encoding="utf-8")


def describe_tasks() -> list[dict[str, Any]]:
    """Return each task with its parameters and the meaning of its error.

    >>> describe_tasks()[0]["name"]
    'mean'
    """
    shared = {field.name for field in fields(PlanTask)}
    found = []
    for name in TASKS:
        kind = task_kind(name)
        numbers = [
            {
                "name": field.name,
                "default": None if field.default is MISSING else _plain(field.default),
                "whole": field.name in _WHOLE,
                "choice": isinstance(field.default, bool),
            }
            for field in fields(kind)
            if field.name not in shared
        ]
        found.append({"name": name, "error_meaning": kind.error_meaning, "numbers": numbers})
    return found


def ask(query: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    """Return a status and the plan for a query string, as plain data.

    >>> code, answer = ask({"task": "median", "users": "1000", "epsilon": "1", "error": "0.1"})
    >>> code, answer["quorate"]
    (200, True)
    >>> ask({"task": "median", "users": "many", "epsilon": "1"})
    (400, {'refused': "Expected a number for users, got 'many'."})
    """
    try:
        return 200, plan(**_numbers(query)).to_dict()
    except QuorateError as refusal:
        return 400, {"refused": str(refusal)}
    except (ArithmeticError, MemoryError, ValueError):
        return 400, {"refused": "Expected numbers of people and records, got others."}


def request_file(query: Mapping[str, str]) -> tuple[int, str]:
    """Return a status and a request file for ``quorate fit`` with the numbers of the plan.

    Fields that the plan does not determine (the table, its columns, its ledger) are left to be
    filled in.

    >>> code, text = request_file({"task": "mean", "users": "2000", "epsilon": "1"})
    >>> code, 'task = "mean"' in text
    (200, True)
    """
    code, answer = ask(query)
    if code != 200:
        return code, str(answer["refused"])
    # What a plan knows and no fit does (agreement without a server) is filled in by hand.
    before, after = asked_lines(answer["task"] if answer["task"] in FITTED else None)
    lines = [
        f"# {answer['sentence']}",
        "# Replace everything in angle brackets, then run: quorate fit request.toml",
        'table = "<table.csv>"',
        f"task = {json.dumps(answer['task'])}",
        'user = "<user column>"',
        *before,
        f"epsilon = {_toml(answer['epsilon'])}",
        f"delta = {_toml(answer['delta'])}",
        f"relation = {json.dumps(answer['relation'].replace('_', '-'))}",
        f"records = {answer['records']}",
        *after,
    ]
    return 200, "\n".join(lines) + "\n"


@dataclass(frozen=True)
class PlannerPage:
    """The web application, and the ledger that it shows, if any.

    ``hosts`` are the host names it accepts, besides IP addresses. Requests with another host name
    or from a page of another origin are refused, so that a foreign page cannot read the ledger (DNS
    rebinding).

    >>> PlannerPage().read_ledger()
    (404, {'refused': 'No ledger was named: start with quorate serve --ledger PATH.'})
    """

    ledger: Path | None = None
    hosts: tuple[str, ...] = LOOPBACK

    def read_ledger(self) -> tuple[int, dict[str, Any]]:
        """Return budgets, what is left and the history, but nothing about data."""
        from quorate.ledger.entries import entry_for_people
        from quorate.ledger.ledger import Ledger

        if self.ledger is None:
            refusal = "No ledger was named: start with quorate serve --ledger PATH."
            return 404, {"refused": refusal}
        try:
            document = Ledger(self.ledger, must_exist=True).export()
        except QuorateError as refusal:
            return 409, {"refused": str(refusal)}
        entries = map(entry_for_people, reversed(document["entries"]))
        history = [{name: entry[name] for name in _SHOWN} for entry in entries]
        return 200, {"data": document["data"], "history": history, "digest": document["digest"]}

    def app(self) -> Any:
        """Return the application for an ASGI server."""
        try:
            from starlette.applications import Starlette
            from starlette.concurrency import run_in_threadpool
            from starlette.middleware import Middleware
            from starlette.requests import Request
            from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
            from starlette.routing import Route
        except ImportError:
            raise MissingExtraError(
                "The planner's page needs starlette and uvicorn: pip install 'quorate[serve]'."
            ) from None

        async def give_page(request: Request) -> Response:
            return HTMLResponse(page(), headers=_HEADERS)

        async def give_tasks(request: Request) -> Response:
            return JSONResponse(describe_tasks(), headers=_HEADERS)

        async def give_plan(request: Request) -> Response:
            code, answer = await run_in_threadpool(ask, dict(request.query_params))
            return JSONResponse(answer, code, headers=_HEADERS)

        async def give_request(request: Request) -> Response:
            code, text = await run_in_threadpool(request_file, dict(request.query_params))
            return PlainTextResponse(text, code, headers=_HEADERS)

        async def give_ledger(request: Request) -> Response:
            code, answer = await run_in_threadpool(self.read_ledger)
            return JSONResponse(answer, code, headers=_HEADERS)

        return Starlette(
            routes=[
                Route("/", give_page),
                Route("/tasks", give_tasks),
                Route("/plan", give_plan),
                Route("/request", give_request),
                Route("/ledger", give_ledger),
            ],
            middleware=[Middleware(_KnownNames, hosts=self.hosts)],
        )


class _KnownNames:
    """Middleware that accepts known host names and requests from our own page only."""

    def __init__(self, app: Any, hosts: tuple[str, ...]) -> None:
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            host = headers.get(b"host", b"").decode("latin-1")
            origin = headers.get(b"origin", b"").decode("latin-1")
            if not self._is_known(host) or (origin and origin.partition("://")[2] != host):
                from starlette.responses import PlainTextResponse

                refusal = PlainTextResponse("Expected a name of this machine.", 400)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_known(self, host: str) -> bool:
        """Return whether a host header is a known name or an IP address."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        try:
            ip_address(name)
        except ValueError:
            return name in self._hosts
        return True


_SHOWN = ("time", "who", "data_name", "kind", "purpose", "epsilon", "delta")
# Nothing from elsewhere, nowhere else: the page holds all it needs.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        "connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def _numbers(query: Mapping[str, str]) -> dict[str, Any]:
    if "task" not in query:
        raise ParameterError(f"Expected a task: one of {', '.join(TASKS)}.")
    numbers: dict[str, Any] = {"task": query["task"]}
    for name, text in query.items():
        if name == "task" or not text.strip():
            continue
        if name == "relation":
            if text.upper().replace("-", "_") not in Relation.__members__:
                raise ParameterError(f"Expected replace or add_remove for relation, got {text!r}.")
            numbers[name] = Relation[text.upper().replace("-", "_")]
        elif name == "bounds":
            ends = [_number(name, part) for part in text.split(",")]
            numbers[name] = tuple(ends) if len(ends) > 1 else ends[0]
        elif name == "alike":
            if text.lower() not in _YES:
                raise ParameterError(f"Expected true or false for alike, got {text!r}.")
            numbers[name] = _YES[text.lower()]
        else:
            numbers[name] = _number(name, text)
    if numbers["task"] in _CELLS and numbers.get("size", 1) > _MOST_CELLS:
        raise ParameterError(
            f"Expected at most {_MOST_CELLS} cells for size, got {query['size']!r}: this page "
            "plans for no more, quorate.plan does."
        )
    known = {*_SHARED, *(field.name for field in fields(task_kind(numbers["task"])))}
    strange = sorted(set(numbers) - known - {"task"})
    if strange:
        raise ParameterError(
            f"Expected numbers of the task {numbers['task']!r}, got {', '.join(strange)}."
        )
    return numbers


def _number(name: str, text: str) -> int | float:
    try:
        value = float(text)
    except ValueError:
        raise ParameterError(f"Expected a number for {name}, got {text!r}.") from None
    low, high = _LIMITS.get(name, (-1e12, 1e12))
    if not low <= value <= high:
        raise ParameterError(
            f"Expected a number from {low:g} to {high:g} for {name}, got {text!r}: this page plans "
            "for no others, quorate.plan does."
        )
    return int(value) if name in _WHOLE and value == int(value) else value


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _toml(value: float | None) -> str:
    return '"<epsilon>"' if value is None else repr(value)
