"""A page for planners: move users, records and epsilon, and see what it takes.

``GET /`` is the page, ``GET /tasks`` what can be asked about each task, ``GET /plan?...`` the same
answer as :func:`quorate.plan`, ``GET /request?...`` a request file for ``quorate fit``, and
``GET /ledger`` budgets and history, if a ledger was named. Nothing is read but that ledger, nothing
is stored, and the page asks nobody else for anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from quorate.catalogue import TASKS as FITTED
from quorate.exceptions import MissingExtraError, ParameterError, QuorateError
from quorate.guarantees import Relation
from quorate.planning.questions import TASKS, plan, task_kind
from quorate.planning.tasks.base import Task
from quorate.tasks.requests import asked_lines

__all__ = ["LOOPBACK", "PlannerPage", "ask", "describe_tasks", "page", "request_file"]

LOOPBACK = ("127.0.0.1", "localhost")
"""The names of this machine; a page from elsewhere that names it otherwise gets no answer."""

_SHARED = ("users", "error", "epsilon", "delta", "records", "confidence", "relation")
_WHOLE = frozenset({"users", "records", "dimension", "size", "vc", "domain"})
_YES = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def page() -> str:
    """Return the page: one file, with its style and its script.

    >>> page().startswith("<!doctype html>")
    True
    """
    return (resources.files("quorate.serve") / "planner.html").read_text(encoding="utf-8")


def describe_tasks() -> list[dict[str, Any]]:
    """Return each task with what its error means and the numbers that describe it.

    >>> describe_tasks()[0]["name"]
    'mean'
    """
    shared = {field.name for field in fields(Task)}
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
    """Return a status and the plan for what an address asks, as plain values.

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


def request_file(query: Mapping[str, str]) -> tuple[int, str]:
    """Return a status and a request for ``quorate fit`` with what the plan settles.

    What the plan cannot know (the table, its columns, its ledger) is left to be filled in.

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
        "# Fill in what stands in angle brackets, then: quorate fit request.toml",
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
    """The page with its addresses, and a ledger to show if there is one.

    ``hosts`` are the names by which it may be called: a browser that a stranger's name led here
    must not read a ledger to the stranger.

    >>> PlannerPage().read_ledger()
    (404, {'refused': 'No ledger was named: start with quorate serve --ledger PATH.'})
    """

    ledger: Path | None = None
    hosts: tuple[str, ...] = LOOPBACK

    def read_ledger(self) -> tuple[int, dict[str, Any]]:
        """Return budgets, what is left and the history; never anything about data."""
        from quorate.accounting.ledger import Ledger

        if self.ledger is None:
            refusal = "No ledger was named: start with quorate serve --ledger PATH."
            return 404, {"refused": refusal}
        try:
            document = Ledger(self.ledger, must_exist=True).export()
        except QuorateError as refusal:
            return 409, {"refused": str(refusal)}
        history = [
            {name: entry[name] for name in _SHOWN} for entry in reversed(document["entries"])
        ]
        return 200, {"data": document["data"], "history": history, "digest": document["digest"]}

    def app(self) -> Any:
        """Return the application for an ASGI server."""
        try:
            from starlette.applications import Starlette
            from starlette.concurrency import run_in_threadpool
            from starlette.middleware import Middleware
            from starlette.middleware.trustedhost import TrustedHostMiddleware
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
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(self.hosts))],
        )


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
        return int(value) if name in _WHOLE and value == int(value) else value
    except (ValueError, OverflowError):
        raise ParameterError(f"Expected a number for {name}, got {text!r}.") from None


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _toml(value: float | None) -> str:
    return '"<epsilon>"' if value is None else repr(value)
