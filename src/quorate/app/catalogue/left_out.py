"""Bounds on the effect of rows that could not be read, from released numbers.

A row that cannot be read is dropped. Three released numbers measure how much was dropped: the
average share of a person's rows, the share of people who lost a row, and the number of rows, where
each person counts with at most a public cap. Which of them limits the effect depends on how the
answer weights rows. So each estimator names one of them (:class:`Weighing`) and a function that
computes limits from it (``moved_by`` of a descriptor). Where rows are counted, the cap is that of
the answer (``row_cap`` of a descriptor): without a cap the number has no finite bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from quorate.ranges import as_bound, coded_bounds

if TYPE_CHECKING:
    from quorate.app.catalogue.descriptor import Wish

__all__ = [
    "LeftOut",
    "MovedBy",
    "Weighing",
    "choices_moved",
    "error_rates_moved",
    "means_moved",
    "people_counts_moved",
    "ranks_moved",
    "record_cap",
    "record_counts_moved",
    "second_moments_moved",
    "shares_moved",
    "sum_cap",
    "sums_moved",
    "table_cap",
    "tables_moved",
]


class Weighing(Enum):
    """How an answer weights rows, which decides by which released number the effect is bounded.

    >>> Weighing.ROWS.value
    'every row counts, whoever holds it: the number of rows, of each person up to a cap'
    """

    SHARE = "an average over users of averages over their rows: the share of a person's rows"
    PEOPLE = "one value per user, by all of their rows: the share of people who lost a row"
    ROWS = "every row counts, whoever holds it: the number of rows, of each person up to a cap"


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Released upper limits of what was dropped.

    Attributes
    ----------
    share : float
        The dropped share of a person's rows, on average over people.
    users : float or None
        The same in users: the sum over people of their dropped shares.
    people : float or None
        Share of people with at least one dropped row, if it was released.
    rows : float or None
        Number of dropped rows, of each person at most a public cap, if it was released.
    n_users : int or None
        The number of users, if it is public.

    Examples
    --------
    >>> LeftOut(share=0.25).people is None
    True
    """

    share: float
    users: float | None = None
    people: float | None = None
    rows: float | None = None
    n_users: int | None = None


MovedBy = Callable[[Any, "Wish", LeftOut], Mapping[str, float]]
"""From a fitted estimator to the limit of each released number; empty if there is none."""


def means_moved(_: Any, wish: Wish, left_out: LeftOut) -> dict[str, float]:
    r"""Bound the effect of dropped rows on each coordinate of a mean over users.

    A user with the share :math:`r_u` of readable rows has the mean :math:`r_u a_u + (1-r_u) b_u`,
    where :math:`a_u` is the mean of the readable rows and :math:`b_u` that of the others. Both lie
    within bounds of width w, so dropping rows moves the mean by at most :math:`(1-r_u) w`. The mean
    over all users moves by at most w times the mean of :math:`1-r_u`. A user without a readable row
    is dropped completely, which is the case :math:`r_u = 0`.

    >>> from quorate.app.catalogue import Wish
    >>> from quorate.ranges import Limit
    >>> wish = Wish(features=("age",), limits=(Limit(0, 120),))
    >>> means_moved(None, wish, LeftOut(share=0.35))
    {'age': 42.0}
    """
    return {name: left_out.share * width for name, width in wish.widths.items()}


def second_moments_moved(estimator: Any, wish: Wish, left_out: LeftOut) -> dict[str, float]:
    r"""Bound the effect of dropped rows on second moments about a released centre (Frobenius norm).

    A user's mean z relative to the centre moves by at most :math:`(1-r_u) W`, for bounds whose
    widths have the length W, and :math:`|zz^T - yy^T| \le |z-y|(|z|+|y|)`.
    """
    coding = wish.coding
    bounds = wish.ranges() if coding.is_plain else coded_bounds(wish.bounds(), coding)
    middle = as_bound(bounds, len(coding.names), coding.names).centre
    width = math.hypot(*wish.widths.values())
    longest = width / 2.0 + math.dist(estimator.mean_.tolist(), middle.tolist())
    return {"the second moments": left_out.share * width * 2.0 * longest}


def shares_moved(estimator: Any, _: Wish, left_out: LeftOut) -> dict[str, float]:
    r"""Bound the effect of dropped rows on shares that are averaged over users.

    A user with the shares :math:`a_u` of categories among the readable rows and :math:`b_u` among
    the others has :math:`r_u a_u + (1-r_u) b_u` among all rows. Its total variation
    distance from :math:`a_u` is at most :math:`1-r_u`. The same bounds distribution functions.
    """
    return {estimator.error_.metric: left_out.share}


def ranks_moved(_: Any, __: Wish, left_out: LeftOut) -> dict[str, float]:
    """Bound the effect of dropped rows on the rank of a quantile, in users.

    Each user who lost a row may move from one side of the quantile to the other, or may be left out
    completely; either changes the rank by at most one.

    >>> from quorate.app.catalogue import Wish
    >>> ranks_moved(None, Wish(features=("age",)), LeftOut(share=0.1, people=0.25, n_users=400))
    {'the rank of a quantile': 100.0}
    """
    if left_out.people is None or left_out.n_users is None:
        return {}
    return {"the rank of a quantile": left_out.people * left_out.n_users}


def choices_moved(estimator: Any, _: Wish, left_out: LeftOut) -> dict[str, float]:
    """Bound how much worse the choice can become because of dropped rows, in people.

    Each user has one vote, or part of one, for each candidate. A user who lost a row may take a
    whole vote from the chosen candidate and give one to the best.
    """
    error, people, n_users = estimator.error_, left_out.people, left_out.n_users
    if people is None or n_users is None or not (error.stated and error.unit == "people"):
        return {}
    return {"the loss of the choice (in people)": 2.0 * people * n_users}


def error_rates_moved(estimator: Any, _: Wish, left_out: LeftOut) -> dict[str, float]:
    """Bound the effect of dropped rows on the smallest average error of a class of rules."""
    if left_out.people is None or not estimator.error_.stated:
        return {}
    return {"the error of the best rule": left_out.people}


def people_counts_moved(estimator: Any, wish: Wish, left_out: LeftOut) -> dict[str, float]:
    """Bound how many people a count may lack: those without any readable row.

    Each of them lost a whole share, so there are at most as many as the dropped shares add up to.

    >>> from types import SimpleNamespace
    >>> from quorate.app.catalogue import Wish
    >>> found = SimpleNamespace(of="users", count_=90.0, error_=SimpleNamespace(bound=9.0))
    >>> people_counts_moved(found, Wish(features=("age",)), LeftOut(share=0.25, users=33.0))
    {'the count': 33.0}
    """
    if estimator.of != "users":
        return record_counts_moved(estimator, wish, left_out)
    return {} if left_out.users is None else {"the count": left_out.users}


def record_counts_moved(_: Any, __: Wish, left_out: LeftOut) -> dict[str, float]:
    """Bound how many records a count may lack: all that were dropped."""
    if left_out.rows is None:
        return {}
    return {"the count": left_out.rows}


def sums_moved(_: Any, wish: Wish, left_out: LeftOut) -> dict[str, float]:
    """Bound the effect of dropped rows on sums; a row counts with the largest value in bounds.

    >>> from quorate.app.catalogue import Wish
    >>> from quorate.ranges import Limit
    >>> wish = Wish(features=("spent",), limits=(Limit(-5, 100),))
    >>> sums_moved(None, wish, LeftOut(share=0.1, rows=30.0))
    {'spent': 3000.0}
    """
    if left_out.rows is None:
        return {}
    lower, upper = wish.ranges()
    largest = (max(abs(low), abs(high)) for low, high in zip(lower, upper, strict=True))
    return {name: left_out.rows * each for name, each in zip(wish.features, largest, strict=True)}


def tables_moved(estimator: Any, _: Wish, left_out: LeftOut) -> dict[str, float]:
    """Bound the effect of dropped rows on the counts and sums in the cells of a table.

    Means and medians are limited by their bounds only, because a group may have lost more rows than
    it kept.
    """
    from quorate.tabulate.requests import as_request

    if left_out.rows is None:
        return {}
    request = as_request(estimator.statistics)
    ranges = request.ranges(estimator.bounds)
    found = {}
    for each in request.requests:
        if each.statistic in ("count", "users"):
            found[each.name] = left_out.rows
        elif each.statistic == "sum" and each.column is not None:
            found[each.name] = left_out.rows * max(map(abs, ranges[each.column]))
    return found


RowCap = Callable[[Any, "Wish"], float | None]
"""From a fitted estimator to the number of rows that count of one person; None without one."""


def record_cap(estimator: Any, _: Wish) -> float | None:
    """Return the cap on a person's records in a count of records or a mean over records.

    >>> from types import SimpleNamespace
    >>> record_cap(SimpleNamespace(of="records", error_=SimpleNamespace(cap=5.7)), None)
    6.0
    >>> record_cap(SimpleNamespace(of="users", error_=SimpleNamespace(cap=1.0)), None)
    """
    if getattr(estimator, "of", None) == "users":
        return None
    return _whole(estimator.error_.cap)


def sum_cap(estimator: Any, wish: Wish) -> float | None:
    """Return how many records at the far end of their range reach the cap of a sum.

    >>> from types import SimpleNamespace
    >>> from quorate.app.catalogue import Wish
    >>> from quorate.ranges import Limit
    >>> wish = Wish(features=("spent",), limits=(Limit(-5, 100),))
    >>> sum_cap(SimpleNamespace(error_=SimpleNamespace(cap=[720.0])), wish)
    8.0
    """
    lower, upper = wish.ranges()
    largest = [max(abs(low), abs(high)) for low, high in zip(lower, upper, strict=True)]
    caps = zip(estimator.error_.cap, largest, strict=True)
    return _whole(max((float(cap) / far for cap, far in caps if far > 0), default=0.0))


def table_cap(estimator: Any, _: Wish) -> float | None:
    """Return how many records of a person the counts and sums of a table take."""
    from quorate.tabulate.requests import as_request

    ranges = as_request(estimator.statistics).ranges(estimator.bounds)
    caps = dict(estimator.error_.caps)
    found = [float(caps["records"])] if "records" in caps else []
    for column, (lower, upper) in ranges.items():
        far = max(abs(lower), abs(upper))
        if column in caps and far > 0:
            found.append(float(caps[column]) / far)
    return _whole(max(found, default=1.0))


def _whole(cap: float) -> float:
    # Where a cap is no whole number, one more record is the next one.
    return float(max(1, math.ceil(cap)))
