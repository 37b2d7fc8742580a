"""What all commands share: common options, tables, JSON, progress on a terminal."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from enum import Enum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = [
    "Decimal",
    "Encoding",
    "Json",
    "Neighbours",
    "NeighboursOption",
    "Separator",
    "Thousands",
    "Unit",
    "complain",
    "print_json",
    "print_paid",
    "print_table",
    "progress",
]


class Neighbours(Enum):
    """The words for neighbouring relations on the command line.

    >>> Neighbours("add-remove").name
    'ADD_REMOVE'
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Unit = Annotated[str | None, typer.Option(help="The word for what is protected, such as patient.")]
NeighboursOption = Annotated[
    Neighbours | None,
    typer.Option(
        "--relation",
        help="What neighbouring data sets are; by default add-remove for counts, sums and "
        "tables, and replace for all other tasks.",
    ),
]

Separator = Annotated[
    str | None, typer.Option(help="CSV: what separates cells; the word tab for a tab.")
]
Decimal = Annotated[str, typer.Option(help="CSV: the decimal mark, '.' or ','.")]
Thousands = Annotated[
    str | None, typer.Option(help="CSV: what groups digits by three, as in 1,234.")
]
Encoding = Annotated[str, typer.Option(help="CSV: utf-8, latin-1, cp1252, ...")]


def complain(message: str, code: int) -> int:
    """Print one line on the standard error stream and return the exit code."""
    print("quorate:", " ".join(message.split()), file=sys.stderr)
    return code


def print_json(document: Any) -> None:
    """Print one JSON document; JSON has no infinity, so an infinite bound becomes null.

    >>> print_json({"users": None, "bound": math.inf})
    {
      "users": null,
      "bound": null
    }
    """
    print(json.dumps(_finite(document), ensure_ascii=False, indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; texts appear as they are and are not read as markup."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 120)
    console.print(Text(title, style="bold"))
    table = Table(*header, show_header=any(header))
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console.print(table)


def print_paid(say: Callable[[], None]) -> bool:
    """Print an answer that was paid for; return whether the standard output took it.

    If it failed (a closed pipe, a full disk), the whole answer is printed on the standard error
    stream.
    """
    try:
        say()
        sys.stdout.flush()
    except (OSError, SystemExit):  # Rich ends the program at a closed pipe.
        with suppress(OSError, ValueError):
            # What is still in the buffer must not fail again when the program ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        with redirect_stdout(sys.stderr):
            say()
        return False
    return True


@contextmanager
def progress(words: str) -> Iterator[Callable[[float], None]]:
    """Show on a terminal that a command is running; yield the progress bar for reading files.

    >>> with progress("Fitting") as reading:  # not on a terminal: nothing is shown
    ...     reading(0.5)
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda share: None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        shown = bar.add_task(f"{words} ...", total=None)

        def reading(share: float) -> None:
            done = share >= 1.0
            said = f"{words} ..." if done else f"Reading the table: {share:.0%}"
            bar.update(shown, description=said, completed=share, total=None if done else 1.0)

        yield reading
