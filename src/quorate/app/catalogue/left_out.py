"""Bounds on the effect of rows that could not be read, from released numbers.

A row that cannot be read is dropped. Three released numbers measure how much was dropped: the
average share of a person's rows, the share of people who lost a row, and the number of rows. Which
of them limits the effect depends on how the answer weights rows. So each estimator names one of
them (:class:`Weighing`) and a function that computes limits from it (``moved_by`` of a descriptor).
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
    "record_counts_moved",
    "second_moments_moved",
    "shares_moved",
    "sums_moved",
    "tables_moved",
]


class Weighing(Enum):
    """How an answer weights rows, which decides by which released number the effect is bounded.

    >>> Weighing("every row counts, whoever holds it: the number of rows").name
    'ROWS'
    """

    SHARE = "an average over users of averages over their rows: the share of a person's rows"
    PEOPLE = "one value per user, by all of their rows: the share of people who lost a row"
    ROWS = "every row counts, whoever holds it: the number of rows"


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Released upper limits of what was dropped.

    Attributes
    ----------
    share : float
        The dropped share of a person's rows, on average over people.
    people : float or None
        Share of people with at least one dropped row, if it was released.
    rows : float or None
        Number of dropped rows, if it was released; infinite if its error bound is infinite.
    n_users : int or None
        The number of users, if it is public.

    Examples
    --------
    >>> LeftOut(share=0.25).people is None
    True
    """

    share: float
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
    the others has :math:`r_u a_u + (1-r_u) b_u` among all rows. This is at most :math:`1-r_u` away
    from :math:`a_u` in total variation, and so are distribution functions.
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

    Their share of all people is at most the average share of dropped rows.

    >>> from types import SimpleNamespace
    >>> from quorate.app.catalogue import Wish
    >>> found = SimpleNamespace(of="users", count_=90.0, error_=SimpleNamespace(bound=9.0))
    >>> people_counts_moved(found, Wish(features=("age",)), LeftOut(share=0.25))
    {'the count': 33.0}
    """
    if estimator.of != "users":
        return record_counts_moved(estimator, wish, left_out)
    if left_out.n_users is not None:
        return {"the count": left_out.share * left_out.n_users}
    if left_out.share >= 1.0:
        return {}
    counted = float(estimator.count_) + float(estimator.error_.bound)
    return {"the count": max(0.0, counted) * left_out.share / (1.0 - left_out.share)}


def record_counts_moved(_: Any, __: Wish, left_out: LeftOut) -> dict[str, float]:
    """Bound how many records a count may lack: all that were dropped."""
    if left_out.rows is None or not math.isfinite(left_out.rows):
        return {}
    return {"the count": left_out.rows}


def sums_moved(_: Any, wish: Wish, left_out: LeftOut) -> dict[str, float]:
    """Bound the effect of dropped rows on sums; each counts with the largest value in bounds.

    >>> from quorate.app.catalogue import Wish
    >>> from quorate.ranges import Limit
    >>> wish = Wish(features=("spent",), limits=(Limit(-5, 100),))
    >>> sums_moved(None, wish, LeftOut(share=0.1, rows=30.0))
    {'spent': 3000.0}
    """
    if left_out.rows is None or not math.isfinite(left_out.rows):
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

    if left_out.rows is None or not math.isfinite(left_out.rows):
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
