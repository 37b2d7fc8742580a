"""The commands series update and series show: a table every week, from a cron job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorate.app.cli.commands import dialect_of
from quorate.app.cli.printing import (
    Decimal,
    Encoding,
    Json,
    Separator,
    Thousands,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from quorate.series.user_series import UserSeries

__all__ = ["show", "update"]

SeriesPath = Annotated[Path, typer.Argument(help="The file that describes the series (TOML).")]
PagePath = Annotated[
    Path | None, typer.Option("--page", help="Write a page with the curves and their bands.")
]


def update(
    series: SeriesPath,
    table: Annotated[Path, typer.Argument(help="The new rows: CSV or Parquet.")],
    *,
    period: Annotated[
        str | None,
        typer.Option(help="Label of the period, such as 2026-W07; by default the next one."),
    ] = None,
    page: PagePath = None,
    separator: Separator = None,
    decimal: Decimal = ".",
    thousands: Thousands = None,
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Release one period. A period that was released before is printed again, at no cost."""
    from quorate.app.tasks.series import SeriesFile
    from quorate.data.files.atomic import check_writable

    if page is not None:
        check_writable(page)
    dialect = dialect_of(separator, decimal, thousands, encoding)
    released = SeriesFile.read(series).update(table, period=period, dialect=dialect)
    _print(released, period, page, as_json=as_json)


def show(series: SeriesPath, *, page: PagePath = None, as_json: Json = False) -> None:
    """Print the last period that was released; nothing is drawn."""
    from quorate.app.tasks.series import SeriesFile

    _print(SeriesFile.read(series).series.read(), None, page, as_json=as_json)


def _print(series: UserSeries, period: str | None, page: Path | None, *, as_json: bool) -> None:
    from quorate.data.files.atomic import write_atomically

    rows: list[dict[str, Any]] = series.table_.to_pylist()
    wanted = series.periods_[-1] if period is None else period
    rows = [row for row in rows if row["period"] == wanted]
    if as_json:
        running = [row for row in series.running_.to_pylist() if row["period"] == wanted]
        print_json(
            {
                "period": wanted,
                "rows": rows,
                "running": running,
                "guarantee": series.guarantee_.to_dict(),
            }
        )
    else:
        header = tuple(rows[0])
        cells = [
            tuple(f"{x:,.6g}" if isinstance(x, float) else str(x) for x in row.values())
            for row in rows
        ]
        print_table(f"Series: {wanted}", header, cells)
        print(series.guarantee_)
    if page is not None:
        from quorate.app.reports.series_page import series_page

        write_atomically(page, series_page(series))
