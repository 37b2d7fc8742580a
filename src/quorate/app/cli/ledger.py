"""The commands of the ledger: create, change, show, watch, export, verify."""

from __future__ import annotations

import itertools
import json
import re
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from quorate import _validate
from quorate.app.cli.printing import Json, Neighbours, Unit, print_json, print_table
from quorate.core.guarantees import Guarantee, Relation
from quorate.exceptions import LedgerFileError, ParameterError

__all__ = ["change", "create", "export", "show", "verify", "watch"]

_NUMBER = r"([0-9.]+(?:e-?[0-9]+)?)"
_RELEASE = re.compile(rf"([^=]+)=\s*([0-9]+) x {_NUMBER}(?:,{_NUMBER})?(\s+gaussian)?", re.ASCII)


def create(
    path: Annotated[Path, typer.Argument(help="The ledger; created if there is none.")],
    *,
    data_name: Annotated[str, typer.Option(help="Name of the data set.")],
    epsilon: Annotated[float, typer.Option(help="Budget of one user.")],
    delta: Annotated[float, typer.Option(help="Budget of delta.")] = 0.0,
    unit: Unit = None,
    relation: Annotated[
        Neighbours, typer.Option("--relation", help="What neighbouring data sets are.")
    ] = Neighbours.REPLACE,
    composition: Annotated[
        str | None,
        typer.Option(
            help="basic (adds epsilons), gaussian (many small releases cost less), or pld (a list "
            "of releases, priced as a whole)."
        ),
    ] = None,
    release: Annotated[
        list[str] | None,
        typer.Option(
            help="pld: what there will be, as 'name=COUNT x EPSILON[,DELTA]', with the word "
            "gaussian behind it if its noise is; repeatable."
        ),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(help="A new budget for each day, week, month, quarter or year."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Give a data set its first budget.

    If it has a budget already, the command refuses: use change.
    """
    from quorate.ledger.ledger import Ledger

    unit = unit or ("user" if period is None else f"user x {period}")
    kind: dict[str, Any] = {"unit": unit, "relation": Relation[relation.name]}
    plan = None if release is None else dict(_planned(text, **kind) for text in release)
    book = Ledger(path)
    book.set_budget(
        data_name,
        epsilon=epsilon,
        delta=delta,
        composition=composition,
        period=period,
        plan=plan,
        replaces=0,
        **kind,
    )
    _show_ledger(book.export(), as_json=as_json)


def change(
    path: Annotated[Path, typer.Argument(help="The ledger.")],
    *,
    data_name: Annotated[str, typer.Option(help="Name of the data set.")],
    epsilon: Annotated[
        float | None, typer.Option(help="New epsilon of the budget; by default unchanged.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="New delta of the budget; by default unchanged.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm, in scripts.")] = False,
    as_json: Json = False,
) -> None:
    """Change the budget of a data set: print old and new, ask for confirmation, and write an entry.

    What was already spent remains spent. Unit, relation, composition and period cannot be changed.
    """
    from quorate.ledger.entries import Amount, decimal_reading
    from quorate.ledger.ledger import Ledger

    if epsilon is None and delta is None:
        raise ParameterError("Expected a new --epsilon, a new --delta, or both.")
    book = Ledger(path, must_exist=True)
    present = book.budget(data_name)
    new = (
        present.epsilon if epsilon is None else epsilon,
        present.delta if delta is None else delta,
    )
    _validate.non_negative(epsilon=new[0])
    _validate.delta(delta=new[1])
    old, wanted = (
        Amount(decimal_reading(pair[0]), decimal_reading(pair[1]))
        for pair in ((present.epsilon, present.delta), new)
    )
    said = f"Budget of {data_name!r}: {old.in_words(wanted)}."
    if not as_json:
        print(said)
    if not yes and not _confirmed():
        print("Nothing was changed.")
        raise typer.Exit(1)
    book.set_budget(
        present.data_name,
        epsilon=new[0],
        delta=new[1],
        relation=present.relation,
        unit=present.unit,
        composition=present.composition,
        period=present.period,
        replaces=present.id,
    )
    _show_ledger(book.export(), data_name, as_json=as_json)


def _confirmed() -> bool:
    """Ask on a terminal; a script has to pass ``--yes``."""
    if not sys.stdin.isatty():
        raise ParameterError(
            "Nothing was changed: there is no terminal to ask on. A script confirms with --yes."
        )
    return typer.confirm("Change it?", default=False, err=True)


def _planned(text: str, **kind: Any) -> tuple[str, tuple[Guarantee, int]]:
    """Return a planned release from its text on the command line."""
    from quorate.core.account import Gaussian
    from quorate.mechanisms.calibrate import gaussian_multiplier

    found = _RELEASE.fullmatch(text)
    if found is None:
        raise ParameterError(
            f"Expected a release as 'weekly count=52 x 0.05' or 'mean=9 x 0.3,1e-7 gaussian', got "
            f"{text!r}."
        )
    name, count, epsilon, delta, gaussian = found.groups()
    amounts: dict[str, Any] = {"epsilon": float(epsilon), "delta": float(delta or 0)}
    events = (Gaussian(gaussian_multiplier(**amounts)),) if gaussian else ()
    return name.strip(), (Guarantee(**amounts, **kind, events=events), int(count))


def show(
    path: Annotated[Path, typer.Argument(help="The ledger.")],
    *,
    data_name: Annotated[str | None, typer.Option(help="Only this data set.")] = None,
    as_json: Json = False,
) -> None:
    """Show budgets, what is left, and the history of charges."""
    from quorate.ledger.ledger import Ledger

    book = Ledger(path, must_exist=True)
    if data_name is not None:
        book.budget(data_name)
    _show_ledger(book.export(), data_name, as_json=as_json)


def export(
    path: Annotated[Path, typer.Argument(help="The ledger.")],
    *,
    out: Annotated[Path | None, typer.Option(help="Write here instead of printing.")] = None,
    as_json: Json = True,
) -> None:
    """Print or write the whole ledger as JSON, with exact amounts and digests."""
    from quorate.data.files.atomic import write_atomically
    from quorate.ledger.ledger import Ledger

    document = Ledger(path, must_exist=True).to_json()
    if out is None:
        print(document)
    else:
        write_atomically(out, document + "\n")
        print(f"Wrote {out}")


def verify(
    path: Annotated[Path, typer.Argument(help="The ledger, or a file that export wrote.")],
    *,
    digest: Annotated[
        str | None, typer.Option(help="An earlier digest, which must be in the history.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that no entry was changed, inserted or removed; of an export, check its summary too."""
    from quorate.ledger.ledger import Ledger

    if path.suffix == ".json":
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            last = Ledger.verify_export(document, contains=digest)
        except (ValueError, KeyError, TypeError) as problem:
            raise LedgerFileError(
                f"Expected {path} to be what 'quorate ledger export' wrote, got something else."
            ) from problem
    else:
        last = Ledger(path, must_exist=True).verify(contains=digest)
    if as_json:
        print_json({"digest": last})
    else:
        print(f"The ledger is intact. Last digest: {last}")


def watch(
    path: Annotated[Path, typer.Argument(help="The ledger.")],
    *,
    data_name: Annotated[str | None, typer.Option(help="Only this data set.")] = None,
    seconds: Annotated[float, typer.Option(help="Seconds between two checks.", min=0.1)] = 2.0,
    checks: Annotated[
        int | None, typer.Option(help="Stop after this many checks (default: Ctrl-C).", min=1)
    ] = None,
) -> None:
    """Print budgets and each new entry as it is written, until interrupted."""
    from quorate.ledger.ledger import Ledger

    book = Ledger(path, must_exist=True)
    seen = -1
    for check in itertools.count(1):
        document = book.export()
        entries = document["entries"]
        if len(entries) > seen:
            _show_ledger(document | {"entries": entries[max(seen, 0) :]}, data_name, as_json=False)
            seen = len(entries)
        if check == checks:
            return
        time.sleep(seconds)


def _show_ledger(document: dict[str, Any], name: str | None = None, *, as_json: bool) -> None:
    from quorate.ledger.calendars import divide_name
    from quorate.ledger.entries import entry_for_people, plain_amount

    def is_asked(key: str) -> bool:
        return name in (None, key, divide_name(key)[0])

    data = {key: value for key, value in document["data"].items() if is_asked(key)}
    entries = [
        entry_for_people(entry) for entry in document["entries"] if is_asked(entry["data_name"])
    ]
    if as_json:
        print_json({"data": data, "entries": entries})
        return
    rows = [
        (
            key,
            plain_amount(value["epsilon"]),
            plain_amount(value["remaining"]["epsilon"]),
            plain_amount(value["delta"]),
            plain_amount(value["remaining"]["delta"]),
            value["unit"],
            value["relation"],
            value["composition"],
        )
        for key, value in data.items()
    ]
    header = ("data", "epsilon", "left", "delta", "left", "unit", "relation", "composition")
    print_table("Budgets", header, rows)
    for key, value in data.items():
        for line in value["buys"]:
            print(f"{key}: {line}.")
    history = [
        (e["time"], e["who"], e["data_name"], e["kind"], e["purpose"], e["epsilon"], e["delta"])
        for e in entries
    ]
    columns = ("when", "who", "data", "entry", "purpose", "epsilon", "delta")
    print_table("History", columns, history)
