"""A progress bar with the remaining time while records are grouped; on a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

__all__ = ["Progress"]


class Progress:
    """Shows the progress of a pass over a table, in percent and time left; only on a terminal.

    The number of records is private and not shown.

    Examples
    --------
    >>> with Progress(100, label="grouping by user") as bar:
    ...     bar.advance(60)
    ...     bar.share
    0.6
    """

    def __init__(self, total: int | None, *, label: str, show: bool | None = None) -> None:
        self._total, self._label, self._done = total, label, 0.0
        self._wanted = sys.stderr.isatty() if show is None else show
        self._bar: Any = None

    @property
    def share(self) -> float:
        """The share of the table that was read; 0 if its length is not known."""
        return self._done / self._total if self._total else 0.0

    def __enter__(self) -> Self:
        if self._wanted:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                SpinnerColumn,
                TaskProgressColumn,
                TextColumn,
                TimeRemainingColumn,
            )
            from rich.progress import Progress as Bar

            known = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            columns = known if self._total else (SpinnerColumn(),)
            self._bar = Bar(
                TextColumn("{task.description}"),
                *columns,
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=1.0 if self._total else None)
        return self

    def advance(self, rows: float) -> None:
        """Report that this many more rows were read."""
        self._done += rows
        if self._bar is not None and self._total:
            self._bar.update(self._task, completed=self.share)

    def reach(self, share: float) -> None:
        """Report the share of the table that was read."""
        if self._total:
            self.advance(share * self._total - self._done)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
