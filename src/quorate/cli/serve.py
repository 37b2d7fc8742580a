"""The command serve: a page for planners, on this machine only unless told otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from quorate.cli.printing import Json
from quorate.exceptions import MissingExtraError

__all__ = ["listen", "serve"]

_MOST_AT_ONCE = 1_000
"""Open connections; more are told to come back."""


def serve(
    *,
    ledger: Annotated[Path | None, typer.Option(help="A ledger to show in a second tab.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8766,
    as_json: Json = False,
) -> None:
    """Open the planner as a page, until interrupted; no data are read."""
    from quorate.serve.planner import LOOPBACK, PlannerPage

    if ledger is not None:
        from quorate.accounting.ledger import Ledger

        Ledger(ledger, must_exist=True)

    def announce(address: str) -> str:
        return json.dumps({"url": address}) if as_json else f"Planning at {address}"

    # Who opens it to others says so by --host; by which names they come is then their business.
    hosts = LOOPBACK if host in LOOPBACK else ("*",)
    listen(PlannerPage(ledger, hosts).app(), host, port, announce)


def listen(app: Any, host: str, port: int, announce: Callable[[str], str]) -> None:
    """Serve an application until interrupted; print what ``announce`` says of its address."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError(
            "This command needs starlette and uvicorn: pip install 'quorate[serve]'."
        ) from None
    import socket

    settings = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # addresses are nobody's business
        limit_concurrency=_MOST_AT_ONCE,
        timeout_keep_alive=5,
    )
    with socket.create_server((host, port)) as listener:
        print(announce(f"http://{host}:{listener.getsockname()[1]}"), flush=True)
        uvicorn.Server(settings).run(sockets=[listener])
