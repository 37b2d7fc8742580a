r"""Tables of several levels that add up: country, region, city.

The cells of each level have independent noise, so the released cities do not add up to their
region. Weighted least squares makes them add up: among all numbers that add up it takes those
closest to the released ones, each in units of its own noise. Nothing is drawn and no record is
read. As the noise of different cells is independent, no number becomes noisier, and most become
less noisy: a region is now measured by its own cell and by its cities together (Gauss, Markov).

On a tree this takes two passes. [1]_ In the upward pass a node's own number y with variance v is
combined with the sum of its children, with variance S, by inverse variances; the result is z with
variance s. In the downward pass the difference between a parent and the sum of its children is
divided among them in proportion to their variances: :math:`h_c = z_c + (s_c / S) (h_p - \sum z)`,
with variance :math:`V_c = s_c - s_c^2 / S + (s_c / S)^2 V_p`.

References
----------
.. [1] Hay, Rastogi, Miklau, Suciu. Boosting the accuracy of differentially private histograms
   through consistency. VLDB 2010. (There with one noise for all nodes.)

:class:`Tree` makes one table of all levels: every record counts in its leaf and in all that is
above, so one release with one budget has all nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.by_group.keys import Row, column_places
from quorate.data.by_group.reading import Reading
from quorate.data.frames import open_frame
from quorate.exceptions import ParameterError, SchemaError
from quorate.tabulate.released import CONFIDENCE, Estimates, tail_factor

__all__ = ["Tree", "consistent"]

_TAIL = tail_factor("gaussian", beta=1 - CONFIDENCE)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class _Level:
    """The numbers of one level: values, variances, and what their bounds allow beyond noise."""

    values: Floats
    variances: Floats
    others: Floats

    @classmethod
    def of(cls, values: Floats, errors: Floats, bounds: Floats) -> _Level:
        """Return the numbers as they were released."""
        return cls(values, errors**2, np.maximum(bounds - _TAIL * errors, 0.0))

    @property
    def bounds(self) -> Floats:
        """The 95 % bound of each number."""
        return np.asarray(_TAIL * np.sqrt(self.variances) + self.others)

    def beside(self, released: _Level) -> Estimates:
        """Return these adjusted numbers with bounds, given the released numbers.

        The clipping biases of many children may add up, so that the adjusted bound is larger. In
        that case the bound of the released number is used, plus the distance between the two
        numbers. The choice between the two depends on errors and bounds alone, not on the values.
        """
        own, distance = released.bounds, np.abs(self.values - released.values)
        bounds = np.where(self.bounds <= own, self.bounds, own + distance)
        return Estimates(values=self.values, errors=np.sqrt(self.variances), bounds=bounds)


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
        From the top level to the leaves, as in ``UserTable.table_``. The first column of each is
        its only key; each of ``columns`` also has its ``_error`` and its ``_bound``. They must be
        released separately, so that their noise is independent.
    parents : sequence of mappings
        For each level except the first, a mapping from its keys to keys of the level above.
    columns : sequence of str
        Statistics that add up: counts and sums. (Numbers of users add up only if nobody is in two
        groups.)

    Returns
    -------
    list of pyarrow.Table
        The same tables, in which every number of ``columns`` is the sum of its children, with the
        errors and bounds of the new numbers.

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
            made[number] = _replaced(made[number], name, level.beside(levels[number]))
    return made


@dataclass(frozen=True)
class Tree:
    """All nodes of a hierarchy whose leaves are public combinations of keys.

    Parameters
    ----------
    leaves : tuple of rows
        The labels of each leaf, from the top level down.

    Examples
    --------
    >>> Tree((("de", "Bonn"), ("de", "Ulm"), ("fr", "Lyon"))).nodes
    (('de', None), ('fr', None), ('de', 'Bonn'), ('de', 'Ulm'), ('fr', 'Lyon'))
    """

    leaves: tuple[Row, ...]

    @cached_property
    def levels(self) -> tuple[tuple[Row, ...], ...]:
        """The nodes of each level, starting at the top; a node is a tuple of labels."""
        depth = len(self.leaves[0])
        return tuple(
            tuple(dict.fromkeys(row[: level + 1] for row in self.leaves)) for level in range(depth)
        )

    @cached_property
    def nodes(self) -> tuple[Row, ...]:
        """All nodes, level by level; labels of lower levels are None."""
        depth = len(self.levels)
        return tuple((*row, *[None] * (depth - len(row))) for each in self.levels for row in each)

    def stacked(self, X: Any, users: str, reading: Reading) -> tuple[Any, Reading]:
        """Return a table with every record once per level, and how to read its keys."""
        import pyarrow as pa

        table = open_frame(X, list(dict.fromkeys([*reading.columns, users])))
        places = [
            column_places(table.column(name), labels, name=name)
            for name, labels in zip(reading.by, reading.keys or (), strict=True)
        ]
        node = "node"
        while node in table.column_names:
            node += "'"
        copies, first = [], 0
        for level, rows in enumerate(self.levels, start=1):
            upper = replace(
                reading,
                by=reading.by[:level],
                keys=(reading.keys or ())[:level],
                rows=rows,
            )
            found = upper.numbered(places[:level])
            nodes = pa.array(found + first, mask=found < 0)
            copies.append(table.append_column(node, nodes))
            first += len(rows)
        every = replace(reading, by=(node,), keys=(tuple(range(first)),), rows=None)
        return pa.concat_tables(copies), every

    def added_up(self, found: Estimates) -> Estimates:
        """Return numbers of all nodes that add up, with their new errors and bounds."""
        ends = np.cumsum([len(rows) for rows in self.levels])[:-1]
        whole = _Level.of(found.values, found.errors, found.bounds)
        parts = (np.split(each, ends) for each in _fields(whole))
        levels = [_Level(*each) for each in zip(*parts, strict=True)]
        known = [{row: place for place, row in enumerate(rows)} for rows in self.levels]
        places = [
            np.array([above[row[:-1]] for row in rows], dtype=np.int64)
            for above, rows in zip(known[:-1], self.levels[1:], strict=True)
        ]
        adjusted = zip(*map(_fields, _adjusted(levels, places)), strict=True)
        values, variances, others = map(np.concatenate, adjusted)
        return _Level(values, variances, others).beside(whole)


def _places(tables: Sequence[Any], parents: Sequence[Mapping[Any, Any]]) -> list[Integers]:
    """Return, for each level except the first, the row of each key's parent."""
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
    return _Level.of(values, errors, bounds)


def _adjusted(levels: list[_Level], places: list[Integers]) -> list[_Level]:
    """Return the least squares solution: one pass up the tree, then one pass down."""
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


def _replaced(table: Any, name: str, found: Estimates) -> Any:
    import pyarrow as pa

    columns = {name: found.values, f"{name}_error": found.errors, f"{name}_bound": found.bounds}
    for each, values in columns.items():
        table = table.set_column(table.column_names.index(each), each, pa.array(values))
    return table
