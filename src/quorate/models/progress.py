"""A progress bar, on a terminal only: batch jobs and notebooks stay quiet."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

__all__ = ["follow"]

# Shorter runs end before anybody wonders.
_SHORTEST = 5


def follow(steps: range, *, label: str, show: bool | None = None) -> Iterator[int]:
    """Yield the steps; draw a bar on the error stream if it is a terminal.

    Parameters
    ----------
    steps : range
        Their number is public, so the bar shows nothing about people.
    label : str
    show : bool, optional
        Overrules the look at the terminal.

    Examples
    --------
    >>> list(follow(range(3), label="fit"))
    [0, 1, 2]
    """
    wanted = sys.stderr.isatty() and len(steps) >= _SHORTEST if show is None else show
    walked: Iterable[int] = steps
    if wanted:
        from rich.console import Console
        from rich.progress import track

        walked = track(steps, description=label, console=Console(stderr=True), transient=True)
    yield from walked
