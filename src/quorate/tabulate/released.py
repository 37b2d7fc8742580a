"""Released numbers become a table with a standard error and a bound for every cell."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.by_group.person_cells import ValueColumn
from quorate.mechanisms.blocks import block_deviation, block_quantile
from quorate.mechanisms.stated_error import StatedError

__all__ = [
    "CONFIDENCE",
    "COVERS",
    "COVERS_STATED",
    "COVERS_UNSEEN",
    "STATE_A_CAP",
    "Estimates",
    "Released",
    "TableError",
    "arrow_table",
    "label_array",
    "means",
    "tail_factor",
    "totals",
]

Floats = NDArray[np.float64]

CONFIDENCE = 0.95  # public: 95 % is the convention of stated errors
"""With this probability each cell, by itself, is within its bound."""
COVERS = (
    "Privacy noise and clipping bias, estimated from a tally of people with an assumed tail; not "
    "sampling error."
)

COVERS_STATED = "Privacy noise; neither what the stated caps clip nor sampling error."

STATE_A_CAP = "state cap=, for too few people answered to see what a cap cuts"
COVERS_UNSEEN = (
    f"Nothing, where it is infinite: {STATE_A_CAP}. Elsewhere privacy noise and what caps cut; not "
    "the sampling of the people themselves."
)


def tail_factor(kind: str, *, beta: float, parts: int = 1, groups: int = 1) -> float:
    """Return the two-sided ``1 - beta`` quantile of the noise, in standard deviations.

    >>> [round(tail_factor(kind, beta=0.05), 3) for kind in ("gaussian", "laplace", "blocks")]
    [1.96, 2.118, 2.118]
    """
    from scipy.special import ndtri

    if kind == "gaussian":
        return -float(ndtri(beta / 2))
    if kind == "laplace":
        return -math.log(beta) / math.sqrt(2.0)
    return block_quantile(beta, parts, groups) / block_deviation(parts, groups)


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """One column of a table: values, standard errors and bounds.

    >>> one = Estimates(values=np.array([7.0]), errors=np.array([1.0]), bounds=np.array([2.0]))
    >>> one.values.size
    1
    """

    values: Floats
    errors: Floats
    bounds: Floats


@dataclass(frozen=True, kw_only=True)
class Released(Estimates):
    """One part of all cells: records, users, or the sum of a column relative to a centre.

    Attributes
    ----------
    cap : float
        The length to which contributions were clipped.
    centre : float
    column : ValueColumn or None
    """

    cap: float
    centre: float = 0.0
    column: ValueColumn | None = None


@dataclass(frozen=True, kw_only=True)
class TableError(StatedError):
    """The errors of a table; computed from public and released numbers.

    Attributes
    ----------
    standard_error : dict
        Root mean square over the groups of the standard errors of each statistic.
    confidence : float
        Probability with which each cell, taken separately, is within its bound.
    caps : dict
        The largest contribution of one person, by part of a cell: ``records``, ``groups``, and the
        summed columns, relative to their centres.
    smallest_key : int or None
        With popular keys, how many people a key needs to be found almost surely. A key with half as
        many is found in half of all runs.
    behind : int or None
        With ``largest=``, a bound on how many people (or records) a group has fewer than the group
        that truly has its rank; for all these groups together.

    Examples
    --------
    >>> print(TableError(standard_error={"visits": 12.0}, caps={"records": 20.0}))
    standard errors: visits 12; a person counts with records up to 20
    """

    standard_error: dict[str, float]
    confidence: float = CONFIDENCE
    caps: dict[str, float]
    smallest_key: int | None = None
    behind: int | None = None
    covers: str = COVERS

    @property
    def coordinates(self) -> tuple[float, ...]:
        """Empty: the table has a bound in each cell."""
        return ()

    @property
    def bound(self) -> float:
        """Infinite for the table as a whole: each cell has its own."""
        return math.inf

    @property
    def worst(self) -> float:
        """Infinite, because no released number limits how much more a person may contribute."""
        return math.inf

    def __str__(self) -> str:
        each = ", ".join(f"{name} {error:.3g}" for name, error in self.standard_error.items())
        caps = ", ".join(f"{name} up to {cap:.4g}" for name, cap in self.caps.items())
        said = [STATE_A_CAP] if self.covers == COVERS_UNSEEN else []
        said += [f"standard errors: {each}"] if each else []
        said += [f"a person counts with {caps}"] if caps else []
        if self.smallest_key is not None:
            said.append(f"a key of {self.smallest_key} people or more is always found")
        if self.behind is not None:
            said.append(f"the largest groups are at most {self.behind} smaller than the true ones")
        return "; ".join(said)


def totals(sums: Released, records: Released | None) -> Estimates:
    """Return the sum of a column in each group.

    It is the sum relative to the centre, plus the centre times the number of records.

    >>> sums, records = (
    ...     Released(
    ...         values=np.array([v]), errors=np.ones(1), bounds=np.ones(1), cap=1.0, centre=4.0
    ...     )
    ...     for v in (2.0, 10.0)
    ... )
    >>> totals(sums, records).values.tolist(), totals(sums, records).errors.round(2).tolist()
    ([42.0], [4.12])
    """
    if records is None or sums.centre == 0.0:
        return sums
    centre = sums.centre
    return Estimates(
        values=sums.values + centre * records.values,
        errors=np.hypot(sums.errors, centre * records.errors),
        bounds=np.hypot(sums.bounds, centre * records.bounds),
    )


def means(sums: Released, records: Released) -> Estimates:
    r"""Return the mean of a column in each group: a ratio of two released numbers.

    Let s be the sum about the centre c and n the number of records, off by at most :math:`b_s` and
    :math:`b_n`. If :math:`n > b_n`, the mean :math:`m = c + s/n` is off by about
    :math:`\sqrt{b_s^2 + (m - c)^2 b_n^2}/(n - b_n)`; otherwise all that is known is the range.
    """
    column, centre = sums.column, sums.centre
    if column is None:
        return sums
    low, high = column.lower - centre, column.upper - centre
    with np.errstate(all="ignore"):
        # Where noise is as large as the number of records, the ratio leans towards the centre.
        steady = records.values / (records.values**2 + records.errors**2)
        away = np.clip(sums.values * steady, low, high)
        least = records.values - records.bounds
        errors = np.hypot(sums.errors, away * records.errors) * np.abs(steady)
        bounds = np.hypot(sums.bounds, away * records.bounds) / least
    reach = np.maximum(high - away, away - low)
    known = least > 0
    return Estimates(
        values=centre + away,
        errors=np.where(known, np.minimum(errors, reach), reach),
        bounds=np.where(known, np.minimum(bounds, reach), reach),
    )


def arrow_table(
    by: tuple[str, ...], keys: tuple[tuple[Any, ...], ...], columns: dict[str, Estimates]
) -> Any:
    """Return the table: one row per group, three columns per statistic.

    >>> one = Estimates(values=np.array([7.0]), errors=np.array([1.0]), bounds=np.array([2.0]))
    >>> arrow_table(("city",), (("Bonn",),), {"visits": one}).to_pylist()
    [{'city': 'Bonn', 'visits': 7.0, 'visits_error': 1.0, 'visits_bound': 2.0}]
    """
    import pyarrow as pa

    made: dict[str, Any] = {
        name: label_array([key[place] for key in keys]) for place, name in enumerate(by)
    }
    for name, found in columns.items():
        made[name] = pa.array(found.values)
        made[f"{name}_error"] = pa.array(found.errors)
        made[f"{name}_bound"] = pa.array(found.bounds)
    return pa.table(made)


def label_array(labels: list[Any]) -> Any:
    """Return labels as an Arrow array: of their type, or as text if there is none.

    >>> label_array([1, 2**63]).type, label_array(["a", 1, None]).to_pylist()
    (DataType(uint64), ['a', '1', None])
    """
    import pyarrow as pa

    for kind in (None, pa.uint64()):
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
            return pa.array(labels, kind)
    return pa.array([None if label is None else str(label) for label in labels], pa.string())
