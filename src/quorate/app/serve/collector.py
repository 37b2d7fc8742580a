"""An HTTP server that checks, stores and acknowledges messages, and learns little else.

``GET /task`` gives the public task, ``GET /client.js`` the browser's client. ``POST /messages``
accepts one message as raw bytes with an admission token in the header ``Quorate-Token``; sending
again with the same token changes nothing. ``POST /batches`` accepts a shuffled batch, with the
shuffler's key.

To limit abuse, the rate limit and the key are checked before a body is read, bodies are limited in
size and time, and disk access runs outside the event loop.

A token says that somebody may take part, not who. Give each user a random token. If nothing
prevents a person from answering twice anyway, clients may draw their own. No access is logged:
addresses are used for the rate limit, in memory, and then deleted.
"""

from __future__ import annotations

import asyncio
import hmac
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quorate import _validate
from quorate.app.serve.listening import household
from quorate.app.serve.message_store import Kept, MessageStore
from quorate.core.guarantees import Trust
from quorate.exceptions import MissingExtraError, ParameterError
from quorate.local.messages import MessageFormat, Reason
from quorate.local.task import Task
from quorate.local.vectors import client_script

__all__ = ["Collector", "RateLimit"]

TOKEN_HEADER = "Quorate-Token"
KEY_HEADER = "Quorate-Key"
_TOKEN_BYTES = range(8, 65)
_MAX_BATCH = 64 * 2**20
"""Bytes of one batch; a shuffler with more sends several."""
_MESSAGE_SECONDS = 5.0  # machine: time
"""Until a message of some bytes is there; the slowest telephone takes less."""
_BATCH_SECONDS = 120.0  # machine: time
"""Until a batch is there, from a shuffler that has shown its key: half a megabyte a second."""

Answer = tuple[int, dict[str, str]]
"""A status code and what to say."""

_NO_KEY: Answer = (403, {"status": "refused", "reason": "expected the shuffler's key"})


@dataclass
class RateLimit:
    """A token bucket for each address: a rate per second and a burst size.

    Parameters
    ----------
    per_second : float, default=50.0
    burst : int, default=200
    clock : callable
        Returns the time in seconds; can be replaced in tests.

    Examples
    --------
    >>> limit = RateLimit(per_second=1.0, burst=2, clock=lambda: 0.0)
    >>> [limit.allows("a") for _ in range(3)], limit.allows("b")
    ([True, True, False], True)
    """

    per_second: float = 50.0
    burst: int = 200
    clock: Callable[[], float] = time.monotonic
    most_addresses: int = 100_000
    _left: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        _validate.positive(per_second=self.per_second)
        _validate.positive_integer(burst=self.burst, most_addresses=self.most_addresses)

    def allows(self, address: str) -> bool:
        """Use one request of an address's allowance; False if none is left."""
        with self._lock:
            now = self.clock()
            left, then = self._left.pop(address, (float(self.burst), now))
            left = min(float(self.burst), left + (now - then) * self.per_second)
            allowed = left >= 1.0
            self._left[address] = (left - allowed, now)
            if len(self._left) > self.most_addresses:
                # The address that was quiet for longest starts with a full bucket next time.
                self._left.pop(next(iter(self._left)))
            return allowed


@dataclass(frozen=True, kw_only=True)
class Collector:
    """The collector of one task.

    Parameters
    ----------
    task : Task
    store : MessageStore
    batch_key : str or None, default=None
        The secret key of the shuffler. If it is set, batches with this key are accepted; in the
        shuffle model single messages are refused, because they must go through the shuffler.
    admitted : frozenset of bytes or None, default=None
        The admitted tokens; ``None`` admits all tokens.
    limit : RateLimit
        The rate limit of each address.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = MessageStore(pathlib.Path(folder.name) / "messages.db")
    >>> collector = Collector(task=Task.local(name="t", candidates=8, epsilon=1.0), store=store)
    >>> collector.take(b"?", token="00" * 16)
    (400, {'status': 'dropped', 'reason': 'another length'})
    >>> store.close(); folder.cleanup()
    """

    task: Task
    store: MessageStore
    batch_key: str | None = None
    admitted: frozenset[bytes] | None = None
    limit: RateLimit = field(default_factory=RateLimit)

    def __post_init__(self) -> None:
        if self.batch_key is not None and len(self.batch_key) < 16:
            raise ParameterError("Expected a batch_key of at least 16 characters.")
        self.store.open_task(self.task)

    @property
    def format(self) -> MessageFormat:
        """The wire format of the task's messages."""
        return MessageFormat(self.task)

    def take(self, message: bytes, *, token: str | None) -> Answer:
        """Check one message and store it; return the status code and the response."""
        if self.task.trust is Trust.SHUFFLE and self.batch_key is not None:
            return 403, {"status": "refused", "reason": "messages come through the shuffler"}
        held = _token(token)
        if held is None:
            return 401, {"status": "refused", "reason": f"expected a token in {TOKEN_HEADER}"}
        if self.admitted is not None and held not in self.admitted:
            return 401, {"status": "refused", "reason": "this token is not admitted"}
        dropped = self.format.read([message]).dropped
        for reason in dropped:
            self.store.drop(self.task, reason)
            return 400, {"status": "dropped", "reason": reason.value}
        kept = self.store.keep(self.task, held, message)
        code = {Kept.NEW: 201, Kept.ALREADY: 200, Kept.OTHER: 409}[kept]
        return code, {"status": kept.value}

    def knows(self, key: str | None) -> bool:
        """Return whether a key is that of the shuffler; compared in constant time."""
        if self.batch_key is None or key is None:
            return False
        return hmac.compare_digest(key.encode(), self.batch_key.encode())

    def take_batch(self, messages: bytes, *, token: str | None, key: str | None) -> Answer:
        """Store a batch from a shuffler; return the status code and the response."""
        if not self.knows(key):
            return _NO_KEY
        held = _token(token)
        if held is None:
            return 401, {"status": "refused", "reason": f"expected a token in {TOKEN_HEADER}"}
        if not messages or len(messages) % self.format.length:
            self.store.drop(self.task, Reason.WRONG_LENGTH)
            return 400, {"status": "dropped", "reason": Reason.WRONG_LENGTH.value}
        kept = self.store.keep_batch(self.task, held, messages)
        return (201 if kept is Kept.NEW else 200), {"status": kept.value}

    def app(self) -> Any:
        """Return the application for an ASGI server."""
        try:
            from starlette.applications import Starlette
            from starlette.concurrency import run_in_threadpool
            from starlette.middleware import Middleware
            from starlette.middleware.cors import CORSMiddleware
            from starlette.requests import Request
            from starlette.responses import JSONResponse, Response
            from starlette.routing import Route
        except ImportError:
            raise MissingExtraError(
                "A collector needs starlette and uvicorn: pip install 'quorate[serve]'."
            ) from None

        script = client_script()

        async def give_task(request: Request) -> Response:
            return Response(self.task.to_json(), media_type="application/json")

        async def give_client(request: Request) -> Response:
            return Response(script, media_type="text/javascript")

        async def health(request: Request) -> Response:
            return JSONResponse({"status": "open", "task_id": self.task.id})

        async def post_message(request: Request) -> Response:
            body = await _body(request, self.format.length, _MESSAGE_SECONDS)
            if isinstance(body, bytes):
                token = request.headers.get(TOKEN_HEADER)
                code, answer = await run_in_threadpool(self.take, body, token=token)
            else:
                code, answer = body
            return JSONResponse(answer, code)

        async def post_batch(request: Request) -> Response:
            # The key comes first: a body of a stranger is not read.
            key, token = request.headers.get(KEY_HEADER), request.headers.get(TOKEN_HEADER)
            code, answer = _NO_KEY
            if self.knows(key):
                body = await _body(request, _MAX_BATCH, _BATCH_SECONDS)
                if isinstance(body, bytes):
                    code, answer = await run_in_threadpool(
                        self.take_batch, body, token=token, key=key
                    )
                else:
                    code, answer = body
            return JSONResponse(answer, code)

        # Any page may post: what a browser sends is the user's own message, with no cookie.
        anywhere = Middleware(
            CORSMiddleware,
            allow_origins=["*"],
            allow_methods=["GET", "POST"],
            allow_headers=[TOKEN_HEADER, "Content-Type"],
        )
        routes = [
            Route("/task", give_task),
            Route("/client.js", give_client),
            Route("/health", health),
            Route("/messages", post_message, methods=["POST"]),
            Route("/batches", post_batch, methods=["POST"]),
        ]
        refused = JSONResponse({"status": "refused", "reason": "too many requests"}, 429)
        refused.headers["Access-Control-Allow-Origin"] = "*"
        limited = Middleware(_Limited, limit=self.limit, refused=refused)
        return Starlette(routes=routes, middleware=[limited, anywhere])


class _Limited:
    """Middleware that applies the rate limit before anything else."""

    def __init__(self, app: Any, limit: RateLimit, refused: Any) -> None:
        self._app, self._limit, self._refused = app, limit, refused

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            address = household(scope["client"][0]) if scope.get("client") else "unknown"
            if not self._limit.allows(address):
                await self._refused(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _body(request: Any, most: int, seconds: float) -> bytes | Answer:
    """Read a body; stop if it is too long or too slow, and say so."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more:
                event = await request.receive()
                if event["type"] == "http.disconnect":
                    return 400, {"status": "dropped", "reason": "broken off"}
                body += event.get("body", b"")
                if len(body) > most:
                    return 413, {"status": "dropped", "reason": "too long"}
                more = event.get("more_body", False)
    except TimeoutError:
        return 408, {"status": "dropped", "reason": "too slow"}
    return bytes(body)


def _token(text: str | None) -> bytes | None:
    """Decode a hexadecimal token; None if it is not one."""
    try:
        token = bytes.fromhex(text or "")
    except ValueError:
        return None
    return token if len(token) in _TOKEN_BYTES else None
