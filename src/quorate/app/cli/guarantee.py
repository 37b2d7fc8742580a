"""The command guarantee: the guarantee of a file, and an entry for the public registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from quorate.app.cli.printing import Json, print_json
from quorate.exceptions import ParameterError

__all__ = ["guarantee"]


def guarantee(
    file: Annotated[
        Path, typer.Argument(help="A model that fit wrote, or a JSON document with a guarantee.")
    ],
    *,
    registry: Annotated[
        Path | None, typer.Option(help="Write an entry of the public registry (YAML).")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the data product.")] = None,
    releases: Annotated[
        int, typer.Option(help="How many releases the guarantee covers, such as 52 weeks.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Print the guarantee of a release, and write an entry for the public registry."""
    from quorate._validate import positive_integer
    from quorate.app.registry import FILL_IN, registry_entry
    from quorate.data.files.atomic import write_atomically

    positive_integer(releases=releases)
    promise, product = _read(file)
    if registry is not None:
        text = registry_entry(promise, name=name or FILL_IN, product=product, releases=releases)
        write_atomically(registry, text)
    if as_json:
        print_json(promise.to_dict())
    else:
        print(promise)


def _read(file: Path) -> tuple[Any, str]:
    """Return the guarantee in a file, and the kind of product that it covers."""
    from quorate.app.model_files import FORMAT, StoredModel
    from quorate.ledger.entries import read_guarantee

    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(document, dict) and document.get("format") == FORMAT:
            model = StoredModel.read(file)
            product = "Machine learning model" if model.predicts else "Summary statistics"
            return model.estimator.guarantee_, product
        stated = document.get("guarantee", document)
        promise = read_guarantee(stated)
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise ParameterError(
            f"Expected a model file, or JSON with a guarantee, in {file}: {problem}."
        ) from None
    return promise, "Summary statistics"
