"""The command line: it parses options and prints results that other modules compute.

Exit codes: 0 done; 1 refused (no budget, too few users, hardly any readable row, or a failed
audit); 2 wrong use; 70 internal error; 130 interrupted. Every refusal is one line on the standard
error stream.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from quorate import __version__
from quorate.app.cli import collect, commands, guarantee, ledger, series, serve
from quorate.app.cli.printing import complain
from quorate.exceptions import (
    BudgetExceededError,
    CheckpointError,
    GridOverflowError,
    NotEnoughUsersError,
    NumericalFailure,
    QueriesExhaustedError,
    QuorateError,
    SeriesStoreError,
    WithheldError,
)

__all__ = ["main"]

_REFUSALS = (
    BudgetExceededError,
    CheckpointError,
    GridOverflowError,
    NotEnoughUsersError,
    NumericalFailure,
    QueriesExhaustedError,
    SeriesStoreError,
)
_INTERRUPTED, _UNFORESEEN = 130, 70  # public: 128 + SIGINT, and EX_SOFTWARE of sysexits.h
# Typer brings its own copy of click or uses the installed one; either way this is UsageError.
_UsageError: Any = typer.BadParameter.__base__

app = typer.Typer(
    name="quorate",
    help="Learn from people without learning about any one of them.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
_ledger = typer.Typer(help="Keep the privacy budgets of data sets.", rich_markup_mode=None)
for _command in (
    commands.plan,
    commands.check,
    commands.fit,
    commands.predict,
    commands.demo,
    commands.audit,
    guarantee.guarantee,
    collect.collect,
    collect.tally,
    serve.serve,
):
    app.command()(_command)
for _entry in (
    ledger.create,
    ledger.change,
    ledger.show,
    ledger.watch,
    ledger.export,
    ledger.verify,
):
    _ledger.command()(_entry)
app.add_typer(_ledger, name="ledger")
_series = typer.Typer(help="Release a table every period.", rich_markup_mode=None)
for _step in (series.update, series.show):
    _series.command()(_step)
app.add_typer(_series, name="series")


@app.callback(invoke_without_command=True)
def _options(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        print(f"quorate {__version__}")
        raise typer.Exit


@cache
def _commands() -> Any:
    """Return all commands; their signatures are read once."""
    return typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    >>> main(["--version"])
    quorate ...
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        code = _commands()(given, prog_name="quorate", standalone_mode=False)
    except _UsageError as problem:
        return complain(problem.format_message(), 2)
    except _REFUSALS as refusal:
        return complain(str(refusal), 1)
    except WithheldError as fault:
        return complain(str(fault), _UNFORESEEN)
    except QuorateError as problem:
        return complain(str(problem), 2)
    except OSError as problem:
        return complain(f"{problem.strerror}: {problem.filename}", 2)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except Exception as unforeseen:
        if os.environ.get("QUORATE_TRACEBACK"):
            raise
        # Its message might quote a record; whoever may see records can ask for it.
        return complain(
            f"Unforeseen {type(unforeseen).__name__}: please report it. QUORATE_TRACEBACK=1 shows "
            "where, and may show records.",
            _UNFORESEEN,
        )
    if code == _INTERRUPTED:
        return complain("Interrupted: charges remain, and no partial file is left.", code)
    return code if isinstance(code, int) else 0
