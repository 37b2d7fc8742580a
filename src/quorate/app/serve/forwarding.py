"""The senders: a client with one message, and a shuffler with its batches."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from quorate.app.serve.collector import KEY_HEADER, TOKEN_HEADER
from quorate.app.serve.message_store import MessageStore
from quorate.exceptions import NotEnoughUsersError, QuorateError
from quorate.local.task import Task

__all__ = ["CollectorError", "fetch_task", "forward_batches", "send_message"]

_SECONDS = 10.0  # machine: time
_DONE = (200, 201)  # public: HTTP's OK and Created


class CollectorError(QuorateError, RuntimeError):
    """A collector could not be reached, or refused the request."""


def fetch_task(url: str) -> Task:
    """Read the task of a collector; refuse a task whose guarantee is not valid."""
    return Task.from_json(_ask(f"{url}/task", None, {})[1])


def send_message(
    url: str,
    message: bytes,
    token: str,
    *,
    attempts: int = 60,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Send a message until it is acknowledged; the token makes repeating it harmless."""
    _until_done(f"{url}/messages", message, {TOKEN_HEADER: token}, attempts, wait)


def forward_batches(
    store: MessageStore,
    task: Task,
    url: str,
    key: str,
    *,
    attempts: int = 60,
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Shuffle the waiting messages, if there are enough; send all batches and return their number.

    A batch stays in the outbox until the server has acknowledged it, and because of its token the
    server stores it once. So this function may be killed at any point and started again.
    """
    try:
        store.make_batch(task)
    except NotEnoughUsersError:
        if not store.batches(task, outgoing=True):
            return 0
    sent = 0
    for token, messages in store.batches(task, outgoing=True):
        headers = {TOKEN_HEADER: token.hex(), KEY_HEADER: key}
        _until_done(f"{url}/batches", messages, headers, attempts, wait)
        store.forget_batch(task, token)
        sent += 1
    return sent


def _until_done(
    url: str,
    body: bytes,
    headers: dict[str, str],
    attempts: int,
    wait: Callable[[float], None],
) -> None:
    problem = "no answer"
    for attempt in range(attempts):
        try:
            code, answer = _ask(url, body, headers)
        except (OSError, http.client.HTTPException) as trouble:
            problem = type(trouble).__name__
        else:
            if code in _DONE:
                return
            problem = f"status {code}: {answer.decode(errors='replace')[:200]}"
            if code not in (429, 500, 502, 503, 504):
                break
        wait(min(1.0, 0.05 * 2**attempt))
    raise CollectorError(f"The collector at {url} did not take the message ({problem}).")


def _ask(url: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
    if not url.startswith(("http://", "https://")):
        raise CollectorError(f"Expected an http or https address, got {url!r}.")
    request = urllib.request.Request(url, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            return int(answer.status), answer.read(1 << 20)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return int(refusal.code), refusal.read(1 << 20)
