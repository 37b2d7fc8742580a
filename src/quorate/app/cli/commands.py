"""The commands plan, fit, predict, audit and demo."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorate.app.cli.printing import (
    Decimal,
    Encoding,
    Json,
    NeighboursOption,
    Separator,
    Thousands,
    Unit,
    complain,
    print_json,
    print_paid,
    print_table,
    progress,
)
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

if TYPE_CHECKING:
    from quorate.app.reports.outputs import Written
    from quorate.app.tasks.fitting import Fit
    from quorate.data.files.dialects import Dialect
    from quorate.planning.plan import Plan

__all__ = ["audit", "check", "demo", "dialect_of", "fit", "plan", "predict"]


def plan_tasks() -> list[str]:
    """Return the tasks that can be planned, for shell completion."""
    from quorate.planning import TASKS

    return list(TASKS)


def fit_tasks() -> list[str]:
    """Return the tasks that can be fitted, for shell completion."""
    from quorate.app.catalogue import TASKS

    return list(TASKS)


def audit_names() -> list[str]:
    """Return the releases that can be audited, for shell completion."""
    from quorate.app.reports.audits import AUDITS

    return list(AUDITS)


def _one_range(text: str) -> tuple[float, float]:
    """Return the range of all columns that an option states."""
    from quorate.ranges import Limit

    limit = Limit.parse(text)
    if limit.column is not None:
        raise ParameterError(f"Expected bounds as 'lower,upper' or 'b', got {text!r}.")
    return float(limit.lower), float(limit.upper)


def _settings(texts: Sequence[str]) -> dict[str, str]:
    """Return further parameters by name, as text."""
    settings = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or name in settings:
            raise ParameterError(f"Expected each setting once, as 'name=value', got {text!r}.")
        settings[name] = value
    return settings


def dialect_of(
    separator: str | None, decimal: str, thousands: str | None, encoding: str
) -> Dialect:
    """Return the format of a CSV file, according to the options."""
    from quorate.data.files.dialects import Dialect

    tab = separator in ("tab", "\\t")
    return Dialect("\t" if tab else separator, decimal, thousands, encoding)


def plan(  # noqa: PLR0913 - one option for each public number
    task: Annotated[
        str,
        typer.Argument(
            help="mean, median, threshold, concept, logistic, ...", autocompletion=plan_tasks
        ),
    ],
    *,
    users: Annotated[int | None, typer.Option(help="How many users there are.")] = None,
    records: Annotated[int, typer.Option(help="Records per user.")] = 1,
    epsilon: Annotated[float | None, typer.Option(help="Privacy loss.")] = None,
    delta: Annotated[float, typer.Option(help="0 for pure differential privacy.")] = 0.0,
    error: Annotated[float | None, typer.Option(help="The largest acceptable error.")] = None,
    confidence: Annotated[float, typer.Option(help="Probability of the stated error.")] = 0.9,
    dimension: Annotated[int | None, typer.Option(help="Number of features.")] = None,
    size: Annotated[int | None, typer.Option(help="Number of rules or candidates.")] = None,
    vc: Annotated[int | None, typer.Option(help="VC dimension of the rules.")] = None,
    domain: Annotated[int | None, typer.Option(help="Points of an ordered feature.")] = None,
    bounds: Annotated[
        str | None, typer.Option(help="Public range of the values: 'lower,upper' or 'b'.")
    ] = None,
    scale: Annotated[float | None, typer.Option(help="How much records vary.")] = None,
    between: Annotated[
        float | None,
        typer.Option(help="Share of the variance between people, 0 (alike) to 1; default 0.5."),
    ] = None,
    heterogeneity: Annotated[
        float | None, typer.Option(help="Instead: standard deviation of people's own means.")
    ] = None,
    error_level: Annotated[float | None, typer.Option(help="Error of the best rule.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Series: how many periods.")] = None,
    touched: Annotated[
        int | None, typer.Option(help="Series: in how many periods a person has records.")
    ] = None,
    relation: NeighboursOption = None,
    as_json: Json = False,
) -> None:
    """Say how many users are needed, which error to expect, or which epsilon: reads no data.

    Leave out one of --users, --error and --epsilon: it is computed. The exit code is 1 if there are
    too few users.
    """
    from quorate.planning import plan as ask

    answer = ask(
        task,
        users=users,
        records=records,
        epsilon=epsilon,
        delta=delta,
        error=error,
        confidence=confidence,
        dimension=dimension,
        size=size,
        vc=vc,
        domain=domain,
        bounds=None if bounds is None else _one_range(bounds),
        scale=scale,
        between=between,
        heterogeneity=heterogeneity,
        error_level=error_level,
        horizon=horizon,
        touched=touched,
        relation=None if relation is None else Relation[relation.name],
    )
    if as_json:
        print_json(answer.to_dict())
    else:
        print_table(f"Plan: {answer.task}", ("", ""), answer.rows)
        print(answer.sentence)
    if not answer.quorate:
        raise typer.Exit(1)


def fit(  # noqa: PLR0913 - one option for each part of the request
    table: Annotated[
        Path,
        typer.Argument(help="CSV, TSV or Parquet file, a folder of them, or a request (TOML)."),
    ],
    *,
    task: Annotated[
        str | None,
        typer.Option(
            help="mean, median, threshold, logistic, linear, ...", autocompletion=fit_tasks
        ),
    ] = None,
    user: Annotated[
        list[str] | None, typer.Option(help="Column with the user's id; repeatable.")
    ] = None,
    features: Annotated[
        list[str] | None, typer.Option(help="Columns, separated by commas; repeatable.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column to be predicted.")] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(help="Public range: 'lower,upper', 'b', or 'column=lower,upper'; or dates."),
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(help="Public values of a feature that is text: 'column=a,b,c'; repeatable."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy loss of one user.")] = None,
    delta: Annotated[float, typer.Option(help="0 for pure differential privacy.")] = 0.0,
    relation: NeighboursOption = None,
    unit: Unit = None,
    missing: Annotated[str, typer.Option(help="'drop', or a number to fill in.")] = "drop",
    classes: Annotated[
        str | None, typer.Option(help="Public labels of the target, separated by commas.")
    ] = None,
    records: Annotated[
        int | None, typer.Option(help="Records a user typically holds, if that is public.")
    ] = None,
    algorithm: Annotated[str, typer.Option(help="A named algorithm, or auto.")] = "auto",
    uncounted: Annotated[
        bool,
        typer.Option("--uncounted", help="Spend nothing on counting the rows that could be read."),
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another parameter of the task: 'name=value'; repeatable."),
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Table: columns of the groups; repeatable.")
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(help="Table: 'label,label', 'popular', or 'column=label,label' for each."),
    ] = None,
    count: Annotated[
        list[str] | None, typer.Option(help="Table: count records, under this name.")
    ] = None,
    people: Annotated[
        list[str] | None, typer.Option(help="Table: count people, under this name.")
    ] = None,
    total: Annotated[
        list[str] | None, typer.Option("--sum", help="Table: 'column' or 'name=column'.")
    ] = None,
    mean: Annotated[
        list[str] | None, typer.Option(help="Table: mean over records, 'column' or 'name=column'.")
    ] = None,
    median: Annotated[
        list[str] | None, typer.Option(help="Table: median over people, likewise.")
    ] = None,
    quantile: Annotated[
        list[str] | None, typer.Option(help="Table: quantile over people, 'name=column:0.9'.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the answer here, as .csv, .parquet or .json.")
    ] = None,
    separator: Separator = None,
    decimal: Decimal = ".",
    thousands: Thousands = None,
    encoding: Encoding = "utf-8",
    engine: Annotated[
        str, typer.Option(help="local, files, dask://host:port, spark://host:port or local[2].")
    ] = "local",
    ledger: Annotated[Path | None, typer.Option(help="Ledger to charge.")] = None,
    data_name: Annotated[
        str | None, typer.Option(help="Name of the data set in the ledger.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Write the model here, as JSON.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report page here.")] = None,
    as_json: Json = False,
) -> None:
    """Learn from a table of records, protecting each user as a whole.

    A request file says everything at once: quorate fit request.toml. The command check writes one.
    """
    from quorate.app.catalogue.options import labels, number_or_word
    from quorate.app.cli.tables import table_options
    from quorate.app.reports.outputs import Outputs, Written
    from quorate.app.tasks.fitting import FitRequest, default_relation
    from quorate.app.tasks.fitting import fit as run
    from quorate.app.tasks.requests import read_request
    from quorate.data.files.table_files import Columns, TableFile
    from quorate.ranges import Limit

    asked = table_options(
        by=by or (),
        keys=keys or (),
        statistics={
            "count": count or (),
            "users": people or (),
            "sum": total or (),
            "mean": mean or (),
            "median": median or (),
            "quantile": quantile or (),
        },
    )
    if table.suffix == ".toml":
        if asked or task or user or epsilon is not None or bounds or categories or ledger:
            raise ParameterError("A request file contains all options: give no others beside it.")
        held = read_request(table)
        request, table = held.request, held.table
        model, out, report = model or held.model, out or held.out, report or held.report
    elif task is None or not user or epsilon is None:
        raise ParameterError("Expected --task, --user and --epsilon, or a request file (TOML).")
    else:
        request = FitRequest(
            task=task,
            columns=Columns(
                user=tuple(user),
                features=tuple(name for group in features or () for name in group.split(",")),
                target=target,
                unit=unit,
                missing=number_or_word(missing),
                classes=None if classes is None else tuple(map(number_or_word, classes.split(","))),
                categories={
                    name: labels(text) for name, text in _settings(categories or ()).items()
                },
            ),
            limits=tuple(Limit.parse(text) for text in bounds or ()),
            epsilon=epsilon,
            delta=delta,
            relation=default_relation(task, ledger, data_name)
            if relation is None
            else Relation[relation.name],
            records=records,
            algorithm=algorithm,
            engine=engine,
            ledger=ledger,
            data_name=data_name,
            options=_settings(setting or ()) | asked,
            counted=not uncounted,
            dialect=dialect_of(separator, decimal, thousands, encoding),
        )
    outputs = Outputs(model=model, out=out, report=report)
    outputs.check()
    with progress("Fitting") as reading:
        result = run(request, TableFile(table, watch=reading))
        written = Written() if result.nothing else outputs.write(result)
        expected = None if result.nothing else _forecast(result)
    taken = print_paid(lambda: _print_fit(result, expected, written, as_json=as_json))
    if result.nothing:
        complain("There is no answer: almost no row could be read and used.", 1)
        raise typer.Exit(1)
    if written.failed:
        complain(f"{written.complaint} The answer was printed.", 1)
    if not taken:
        complain("The standard output failed: the answer is above, on standard error.", 1)
    if written.failed or not taken:
        raise typer.Exit(1)


def _forecast(result: Fit) -> Plan | None:
    """Return the planner's forecast; None if there is none."""
    from quorate.app.tasks.forecast import forecast

    with suppress(Exception):
        return forecast(result)
    return None


def _print_fit(result: Fit, expected: Plan | None, written: Written, *, as_json: bool) -> None:
    from quorate.app.catalogue import answer
    from quorate.app.reports.fit_report import error_sentence, fit_summary

    if result.nothing is not None:
        _print_nothing(result, result.nothing, as_json=as_json)
        return
    if as_json:
        files: dict[str, object] = {"written": [str(path) for path in written.paths]}
        if written.failed:
            files["failed"] = dict(written.failed)
        print_json(fit_summary(result, expected) | files)
        return
    said = answer(result.estimator, result.columns.features, result.columns.classes)
    counted = () if result.readable is None else (f"Rows: {result.readable}",)
    if result.readable is not None and result.readable.is_little:
        # Numbers about rows that nobody could read look like any others: say so first.
        print(f"Warning: {result.readable}")
        counted = ()
    print_table(said.caption, said.header, said.rows)
    stated = error_sentence(result, said)
    for line in (said.sentence, *counted, f"Error: {stated}", _guarantee_line(result)):
        print(line)
    if expected is not None:
        print(f"Forecast: {expected.sentence} The error is: {expected.error_meaning}.")
    _print_left(result)
    for path in written.paths:
        print(f"Wrote {path}")


def _print_nothing(result: Fit, said: str, *, as_json: bool) -> None:
    """Print the released count instead of an answer, because almost no row supports one."""
    from quorate.app.reports.fit_report import fit_summary

    if as_json:
        empty: dict[str, object] = {"released": None, "sentence": said, "error": None}
        print_json(fit_summary(result, None) | empty | {"written": []})
        return
    print(said)
    print(_guarantee_line(result))
    _print_left(result)


def _guarantee_line(result: Fit) -> str:
    return f"Guarantee: {result.estimator.guarantee_}"


def _print_left(result: Fit) -> None:
    if result.account is not None:
        left = result.account.left
        print(f"Left for {result.account.name!r}: epsilon {left.epsilon:g}, delta {left.delta:g}.")


def check(
    table: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file, or a folder of them.")],
    *,
    user: Annotated[list[str], typer.Option(help="Column with the user's id; repeatable.")],
    task: Annotated[
        str | None, typer.Option(help="The task to fit.", autocompletion=fit_tasks)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the request here instead of printing it.")
    ] = None,
) -> None:
    """Write a request file to fill in, from the names of the columns alone; no row is read."""
    from quorate.app.tasks.requests import blank_request
    from quorate.data.files.atomic import write_atomically

    text = blank_request(table, user=tuple(user), task=task)
    if out is None:
        print(text, end="")
    elif out.exists():
        raise ParameterError(f"Expected a new file for --out, got {out}, which exists.")
    else:
        write_atomically(out, text)
        print(f"Wrote {out}: fill it in, then run quorate fit {out}")


def predict(
    model: Annotated[Path, typer.Argument(help="Model file that fit wrote.")],
    table: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file with the features.")],
    *,
    user: Annotated[
        list[str] | None,
        typer.Option(help="Column of the table to write beside each prediction; repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write a CSV file instead of printing.")] = None,
    separator: Separator = None,
    decimal: Decimal = ".",
    thousands: Thousands = None,
    encoding: Encoding = "utf-8",
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="A column for each class instead of a label.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Predict for every row of a table, with a model file from any machine.

    A row with a missing value gets an empty cell; how many there are is printed on standard error.
    """
    from quorate._validate import finite_rows
    from quorate.app.model_files import StoredModel
    from quorate.app.reports.outputs import predictions_as_csv, predictions_as_list
    from quorate.data.files.atomic import write_atomically
    from quorate.data.files.table_files import TableFile

    stored = StoredModel.read(model)
    source = TableFile(table, dialect_of(separator, decimal, thousands, encoding))
    ids = source.texts(tuple(user or ()))
    rows = source.features(stored.feature_names, stored.estimator._coding)
    names = ["prediction"]
    if probabilities:
        names, shares = stored.predict_probabilities(rows)
        found: list[list[object]] = [predictions_as_list(row) for row in shares]
        values: list[object] = list(found)
    else:
        values = predictions_as_list(stored.predict(rows))
        values = [v if whole else None for v, whole in zip(values, finite_rows(rows), strict=True)]
        found = [[value] for value in values]
    columns = (*ids.values(), found)
    lines = ([*row[:-1], *row[-1]] for row in zip(*columns, strict=True))
    text = predictions_as_csv([*ids, *names], lines)
    if absent := len(rows) - int(finite_rows(rows).sum()):
        what = "no probabilities" if probabilities else "no prediction"
        typer.echo(f"{absent:,} of {len(rows):,} rows lack a value and have {what}.", err=True)
    if out is not None:
        write_atomically(out, text)
    if as_json:
        document = {"predictions": values, "written": None if out is None else str(out)}
        print_json(document | ({"ids": ids} if ids else {}))
    elif out is None:
        print(text, end="")
    else:
        print(f"Wrote {out}")


def demo(
    *,
    report: Annotated[Path, typer.Option(help="Where the report page is written.")] = Path(
        "report.html"
    ),
    as_json: Json = False,
) -> None:
    """Learn from 20,000 real players and compare with simpler methods and with no privacy."""
    from quorate.app.reports.demo import run_demo
    from quorate.app.reports.demo_page import demo_page, demo_tables
    from quorate.app.reports.outputs import Outputs
    from quorate.app.reports.page import render
    from quorate.data.files.atomic import write_atomically

    Outputs(report=report).check()
    with progress("Learning from the players of 150 years"):
        result = run_demo()
    write_atomically(report, render(demo_page(result)))
    if as_json:
        print_json(result.to_dict() | {"written": [str(report)]})
        return
    for table in demo_tables(result):
        print_table(table.caption, table.header, table.rows)
    print(f"Wrote {report}")


def audit(
    name: Annotated[
        str | None,
        typer.Argument(help="What to audit; without it, the list.", autocompletion=audit_names),
    ] = None,
    *,
    broken: Annotated[
        bool, typer.Option("--broken", help="Halve the noise: the audit must fail.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compute the true epsilon of a release in a small world and compare it with the claim."""
    from quorate.app.reports.audits import AUDITS, run_audit

    if name is None:
        rows = tuple((key, audit.summary) for key, audit in AUDITS.items())
        if as_json:
            print_json(dict(rows))
        else:
            print_table("Audits", ("name", "what is audited"), rows)
        return
    with progress("Auditing"):
        result = run_audit(name, broken=broken)
    if as_json:
        document = {"audit": name, "holds": result.holds, "sentence": str(result)}
        print_json(document | {"claimed": result.claim.epsilon, "true": result.epsilon})
    else:
        print(result)
    if not result.holds:
        raise typer.Exit(1)
