"""The command serve: the planner as a web page, by default for this machine only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from quorate.app.cli.printing import Json

__all__ = ["serve"]


def serve(
    *,
    ledger: Annotated[Path | None, typer.Option(help="A ledger to show in a second tab.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8766,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A host name that browsers may use for this machine."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the planner as a web page, until interrupted; no data are read."""
    from quorate.app.serve.listening import listen
    from quorate.app.serve.planner import LOOPBACK, PlannerPage

    if ledger is not None:
        from quorate.ledger.ledger import Ledger

        Ledger(ledger, must_exist=True)

    def announce(address: str) -> str:
        return json.dumps({"url": address}) if as_json else f"Planning at {address}"

    names = (*LOOPBACK, host, *(name or ()))
    listen(PlannerPage(ledger, names).app(), host, port, announce)
