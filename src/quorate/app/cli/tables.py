"""Command line options for a table by group, as the options of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from quorate.exceptions import ParameterError

__all__ = ["table_options"]


def table_options(
    *,
    by: Sequence[str] = (),
    keys: Sequence[str] = (),
    statistics: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """Return the options ``by``, ``keys`` and ``statistics``, as far as they were given.

    Parameters
    ----------
    by : sequence of str
        Columns of the key, several of them separated by commas.
    keys : sequence of str
        One list of labels (or the word popular), or for several columns ``column=label,label``.
    statistics : mapping from str to sequence of str
        For each statistic its columns; ``name=column`` gives the result another name. Quantiles
        are ``name=column:0.9``.

    Examples
    --------
    >>> asked = table_options(by=["city"], statistics={"count": ["visits"], "mean": ["m=price"]})
    >>> asked["statistics"]
    '{"visits": "count", "m": ["price", "mean"]}'
    """
    found: dict[str, str] = {}
    if by:
        found["by"] = ",".join(by)
    if len(keys) == 1 and "=" not in keys[0]:
        found["keys"] = keys[0]
    elif keys:
        pairs = [text.partition("=") for text in keys]
        if not all(name and equals for name, equals, _ in pairs):
            raise ParameterError("Expected --keys once, or as 'column=label,label' for each.")
        found["keys"] = json.dumps({name: labels.split(",") for name, _, labels in pairs})
    asked: dict[str, object] = {}
    for statistic, texts in statistics.items():
        for text in texts:
            name, equals, column = text.partition("=")
            if name in asked:
                raise ParameterError(
                    f"Two columns would be called {name!r}: write name=column for one of them."
                )
            asked[name] = [column, statistic] if equals else statistic
            if statistic == "quantile":
                asked[name] = _quantile(column, text)
    if asked:
        found["statistics"] = json.dumps(asked)
    return found


def _quantile(text: str, whole: str) -> list[object]:
    """Return ``wait:0.9`` as a column, the word and a number.

    >>> _quantile("wait:0.9", "p90=wait:0.9")
    ['wait', 'quantile', 0.9]
    """
    column, _, fraction = text.rpartition(":")
    try:
        return [column, "quantile", float(fraction)]
    except ValueError:
        raise ParameterError(f"Expected --quantile name=column:0.9, got {whole!r}.") from None
