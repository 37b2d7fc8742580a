r"""Tables of several levels that add up: country, region, city.

Tables of single levels have noise of their own, so cities do not add up to their region. Least
squares makes them do so: of all numbers that add up it takes those that are closest to the released
ones, each in units of its own noise. Nothing is drawn and no record is read. As noise of different
cells is independent, no number is noisier than before, and most are less noisy: a region is now
measured by its own cell and by its cities together (Gauss, Markov).

On a tree this takes two passes. [1]_ Upwards, a node's own number y with variance v and the sum of
its children, with variance S, are joined by their precisions to z with variance s. Downwards, what
a parent is more than its children together is given to them in proportion to their variances:
:math:`h_c = z_c + (s_c / S) (h_p - \sum z)`, with variance
:math:`V_c = s_c - s_c^2 / S + (s_c / S)^2 V_p`.

References
----------
.. [1] Hay, Rastogi, Miklau, Suciu. Boosting the accuracy of differentially private histograms
   through consistency. VLDB 2010. (There with one noise for all nodes.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.exceptions import ParameterError, SchemaError
from quorate.tabulate.released import CONFIDENCE, tail_factor

__all__ = ["consistent"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class _Level:
    """The numbers of one level: values, variances, and what bounds hold beside noise."""

    values: Floats
    variances: Floats
    others: Floats


def consistent(
    tables: Sequence[Any],
    parents: Sequence[Mapping[Any, Any]],
    *,
    columns: Sequence[str],
) -> list[Any]:
    """Return the tables of the levels of a hierarchy with numbers that add up.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
        From the top level to the leaves, as ``UserTable.table_`` with one column of keys, the
        first: for each of ``columns`` also its ``_error`` and its ``_bound``. Released apart from
        each other, so that their noise is independent.
    parents : sequence of mappings
        For each level but the first, from its keys to keys of the level above.
    columns : sequence of str
        Statistics that add up: counts and sums. (People do so only if nobody is in two groups.)

    Returns
    -------
    list of pyarrow.Table
        The same tables, where every number of ``columns`` is the sum of its children, with errors
        and bounds of what it is now.

    Examples
    --------
    >>> import pyarrow as pa
    >>> def table(keys, values, error):
    ...     return pa.table(
    ...         {"key": keys, "n": values, "n_error": [error] * len(keys),
    ...          "n_bound": [1.96 * error] * len(keys)}
    ...     )
    >>> country, cities = table(["all"], [100.0], 3.0), table(["a", "b"], [40.0, 48.0], 3.0)
    >>> levels = consistent([country, cities], [{"a": "all", "b": "all"}], columns=["n"])
    >>> [level["n"].to_pylist() for level in levels], round(levels[0]["n_error"][0].as_py(), 3)
    ([[96.0], [44.0, 52.0]], 2.449)
    """
    places = _places(tables, parents)
    made = list(tables)
    for name in columns:
        levels = [_level(table, name) for table in tables]
        for number, level in enumerate(_adjusted(levels, places)):
            made[number] = _replaced(made[number], name, level)
    return made


def _places(tables: Sequence[Any], parents: Sequence[Mapping[Any, Any]]) -> list[Integers]:
    """Return, for each level but the first, the row of each key's parent in the level above."""
    if len(tables) < 2 or len(parents) != len(tables) - 1:
        raise ParameterError(
            "Expected at least two levels, and parents for each of them but the first, got "
            f"{len(tables)} tables and {len(parents)} mappings."
        )
    found = []
    for above, below, parent in zip(tables[:-1], tables[1:], parents, strict=True):
        rows = {key: row for row, key in enumerate(above.column(0).to_pylist())}
        keys = below.column(0).to_pylist()
        orphans = [key for key in keys if parent.get(key) not in rows]
        places = [rows[parent[key]] for key in keys if key not in set(orphans)]
        childless = len(rows) - len(set(places))
        if orphans or childless:
            raise ParameterError(
                f"Expected every key to have a parent in the level above, and every parent a "
                f"child, got {len(orphans)} without a parent and {childless} without a child."
            )
        found.append(np.array(places, dtype=np.int64))
    return found


def _level(table: Any, name: str) -> _Level:
    needed = [name, f"{name}_error", f"{name}_bound"]
    missing = [each for each in needed if each not in table.column_names]
    if missing:
        raise SchemaError(f"Expected the columns {', '.join(needed)}, got none of {missing}.")
    values, errors, bounds = (table[each].to_numpy().astype(np.float64) for each in needed)
    if not (errors > 0).all():
        raise ParameterError(f"Expected errors above 0 in {name}_error: what has none is exact.")
    tail = tail_factor("gaussian", beta=1 - CONFIDENCE)
    return _Level(values, errors**2, np.maximum(bounds - tail * errors, 0.0))


def _adjusted(levels: list[_Level], places: list[Integers]) -> list[_Level]:
    """Return least squares: up the tree, then down."""
    up = list(levels)
    for number in range(len(levels) - 2, -1, -1):
        own, below, place = levels[number], up[number + 1], places[number]
        sums = _Level(*(_added(each, place, len(own.values)) for each in _fields(below)))
        weight = sums.variances / (own.variances + sums.variances)
        up[number] = _Level(
            weight * own.values + (1 - weight) * sums.values,
            weight * own.variances,
            weight * own.others + (1 - weight) * sums.others,
        )
    down = [up[0]]
    for number, place in enumerate(places):
        above, own = down[-1], up[number + 1]
        size = len(above.values)
        values, variances, others = (_added(each, place, size)[place] for each in _fields(own))
        share = own.variances / variances
        down.append(
            _Level(
                own.values + share * (above.values[place] - values),
                own.variances - share * own.variances + share**2 * above.variances[place],
                # What is missing for another reason than noise may point either way.
                (1 - share) * own.others + share * (above.others[place] + others - own.others),
            )
        )
    return down


def _fields(level: _Level) -> tuple[Floats, Floats, Floats]:
    return level.values, level.variances, level.others


def _added(values: Floats, place: Integers, size: int) -> Floats:
    return np.asarray(np.bincount(place, weights=values, minlength=size), dtype=np.float64)


def _replaced(table: Any, name: str, level: _Level) -> Any:
    import pyarrow as pa

    errors = np.sqrt(level.variances)
    tail = tail_factor("gaussian", beta=1 - CONFIDENCE)
    columns = {name: level.values, f"{name}_error": errors}
    columns[f"{name}_bound"] = tail * errors + level.others
    for each, values in columns.items():
        table = table.set_column(table.column_names.index(each), each, pa.array(values))
    return table
