r"""Plans of tables by group: the errors of counts and means.

People have different numbers of records and prefer some groups. A model with two public guesses
describes the length of a person's records over all groups. Numbers of records are log-normal, and
``scale`` is their 99th percentile divided by the average. Two records of a person are in the same
group with probability ``between``, and otherwise in independent groups. A person with X records in
G groups then has the squared length :math:`X + X(X-1)(b + (1-b)/G)`.

The noise depends on public numbers alone, by the functions that a fit calls
(:mod:`quorate.tabulate.budget`). Caps are edges of a tally; the error includes what they clip.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from quorate import _validate
from quorate.core.account.costs import gdp_mu
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import ErrorModel, PeopleTask, PlanTask
from quorate.tabulate.budget import Outlook, Terms
from quorate.tabulate.released import tail_factor
from quorate.tabulate.user_table import table_route

__all__ = ["HeldTask", "TableTask", "farthest"]

# derived: the quantile .99 of the normal law.
_ONE_IN_A_HUNDRED = 2.3263478740408408
# Records of caps that group privacy tries, as powers of two of the average.
_CAPS = range(-12, 7)


def farthest(seen: Outlook) -> float:
    """Return how much longer a cap may be than the longest contribution that is detected.

    It is the next edge above, or one in the first factor of two beyond it.
    """
    return math.pow(2.0, 1 + 1 / seen.steps)


@lru_cache(maxsize=4096)
def seen_before(
    users: int,
    epsilon: float,
    delta: float,
    relation: Relation,
    *,
    groups: int,
    columns: int,
    records: bool,
    held: float,
) -> Outlook:
    """Return the expected costs and noise of a fit with records and this many columns.

    >>> known = {"groups": 1, "columns": 1, "records": False, "held": 1.0}
    >>> seen_before(20_000, 1.0, 0.0, Relation.REPLACE, **known).norm
    1
    """
    unknown = columns + records
    terms = Terms(
        epsilon=epsilon,
        mu=gdp_mu(epsilon, delta) if delta > 0 else 0.0,
        relation=relation,
        groups=groups,
        parts=unknown,
        looks=unknown + (groups > 1 and delta > 0),
        centres=columns * records,
    )
    return terms.outlook(held, users=users)


@dataclass(frozen=True, kw_only=True)
class HeldTask(PlanTask):
    """A sum over people, with a cap that is found privately.

    Parameters
    ----------
    scale : float, default=4.0
        The 99th percentile of people's contributions, divided by the average; 1 if all are equal.
    """

    scale: float = 4.0
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive(scale=self.scale)
        largest = math.exp(_ONE_IN_A_HUNDRED**2 / 2)
        if not 1.0 <= self.scale <= largest:
            raise ParameterError(f"Expected 1 <= scale <= {largest:.1f}, got scale={self.scale!r}.")

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return 1

    @property
    def largest_error(self) -> float:
        """The error of answering 0 in every cell."""
        return 1.0

    @property
    def _parts(self) -> int:
        """The number of parts of a cell."""
        return 1

    def _places(self, seen: Outlook) -> tuple[float, ...]:
        """Factors by which the released cap may differ from the best one."""
        return 1.0, farthest(seen)

    @abstractmethod
    def _seen(self, users: int, epsilon: float) -> Outlook:
        """Return the expected noise, from public numbers."""

    @property
    def _deviation(self) -> float:
        """Standard deviation of the logarithm of a person's number of records."""
        # scale = exp(z s - s^2 / 2), the smaller root.
        inside = _ONE_IN_A_HUNDRED**2 - 2.0 * math.log(self.scale)
        return _ONE_IN_A_HUNDRED - math.sqrt(max(0.0, inside))

    def _lost(self, above: float) -> float:
        """Return the share of all records beyond a cap.

        ``above`` says how far the cap is above the median.
        """
        from scipy.special import ndtr

        spread = self._deviation
        if spread == 0.0:
            return 0.0
        cap = math.exp(spread * above - spread**2 / 2)
        return max(0.0, float(ndtr(spread - above) - cap * ndtr(-above)))

    def _length(self, records: float, norm: int) -> float:
        """Return the length of the contribution of a person with this many records."""
        del norm
        return records

    def error(self, users: int, epsilon: float) -> float:
        """Return the error of one cell: noise and clipping."""
        from scipy.special import ndtri

        seen = self._seen(users, epsilon)
        if not seen.known:
            return self.largest_error
        above, spread = -float(ndtri(min(0.5, seen.above / users))), self._deviation
        middle = self.records * math.exp(spread * above - spread**2 / 2)
        found = 0.0
        for place in self._places(seen):
            records = max(1.0, place * middle)
            noise = self._share(seen, self._length(records, seen.norm) * seen.noise, users)
            lost = self._lost_beyond(above, place)
            found = max(found, noise + lost)
        return min(self.largest_error, found)

    def _lost_beyond(self, above: float, place: float) -> float:
        """Return the lost share if the cap is ``place`` times the length with this many above."""
        spread = self._deviation
        if spread == 0.0:
            return max(0.0, 1.0 - place)
        return self._lost(above + math.log(place) / spread)

    def _share(self, seen: Outlook, deviation: float, users: int) -> float:
        """Return a bound on the noise of a cell, relative to the average group."""
        kind = "gaussian" if seen.norm == 2 else "blocks"
        tail = tail_factor(kind, beta=self.beta, parts=self._parts, groups=self.groups)
        return tail * deviation * self.groups / (users * self.records)

    def baselines(self) -> dict[str, ErrorModel]:
        """Return the error of simpler methods, by name."""
        if self.records == 1:
            return {}
        return {
            "group privacy": self.best_group_error,
            "one record per user": self.one_record_error,
        }

    def best_group_error(self, users: int, epsilon: float) -> float:
        """Return the error of group privacy with the best cap on records.

        Records above the cap are dropped; the noise grows with the cap.
        """
        caps = {max(1.0, self.records * 2.0**power) for power in _CAPS}
        return min(self._capped_error(cap, users, epsilon) for cap in caps)

    def one_record_error(self, users: int, epsilon: float) -> float:
        """Return the error if every person contributes one random record.

        It estimates shares of records by shares of people, as if all people had equally many
        records.
        """
        from scipy.special import ndtri

        seen = self._seen(users, epsilon)
        noise = seen.stated
        tail = -float(ndtri(self.beta / 2))
        sampling = tail * math.sqrt((self.groups - 1.0) * (1.0 - self.share_between) / users)
        noise = self._share(seen, noise * self.records, users)
        return min(self.largest_error, math.hypot(noise, sampling) + self._lost(0.0))

    def _capped_error(self, cap: float, users: int, epsilon: float) -> float:
        seen, spread = self._seen(users, epsilon), self._deviation
        above = math.inf if cap >= self.records else -math.inf
        if spread > 0.0:
            above = (math.log(cap / self.records) + spread**2 / 2) / spread
        lost = self._lost(above) if spread > 0.0 else max(0.0, 1.0 - cap / self.records)
        noise = seen.stated * cap
        return min(self.largest_error, self._share(seen, noise, users) + lost)

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the users that suffice for the noise at a stated cap."""

        def noise(users: int) -> float:
            seen = self._seen(users, epsilon)
            length = self.scale * self.records
            return self._share(seen, seen.stated * length, users)

        users = smallest_users(noise, error)
        return PublishedBound(
            users=None if users is None else float(users),
            theorem="law of the noise",
            holds=False,
            note="a cap of scale times the records, stated; what people hold beyond it is missing",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the lower bound for two populations: all records are in a group, or none."""
        if error >= 0.5:
            return PublishedBound(
                users=1.0, theorem="no theorem", holds=True, note="half of a group always does"
            )
        return self.two_crowds(epsilon)


@dataclass(frozen=True, kw_only=True)
class TableTask(HeldTask, PeopleTask):
    """Counts, sums and means by group, as in :class:`~quorate.tabulate.UserTable`.

    The error is that of one cell of a group of average size, for the people in the data. For a
    count it is relative to the count, for a mean it is in standard deviations of a record. The
    error of a sum combines both by the root of the sum of their squares, weighted by the mean and
    the deviation.

    Parameters
    ----------
    size : int, default=10
        Groups.
    dimension : int, default=1
        Columns that are summed, for sums or means; 0 for counts only.
    scale : float, default=4.0
        The 99th percentile of records per person, divided by the average; 1 if all are equal.
    between : float, optional
        How strongly a person's records tend to be in the same group: 0 not at all, 1 all of them.

    Examples
    --------
    >>> task = TableTask(size=50, records=50, delta=1e-6)
    >>> task.algorithm(20_000, 1.0)[0], round(task.error(20_000, 1.0), 2)
    ('laplace', 0.06)
    """

    size: int = 10
    dimension: int = 1

    name: ClassVar[str] = "table"
    error_meaning: ClassVar[str] = (
        "error in a group of average size: of a count as a share of it, of a mean in standard "
        "deviations of one record"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(size=self.size)
        _validate.non_negative_integer(dimension=self.dimension)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.size

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about numbers that the caller did not state."""
        if self.between is not None:
            return ()
        return (
            "Assumes that half of a person's pairs of records are in the same group: state "
            "between= (0 if the records of a person fall anywhere).",
        )

    def _seen(self, users: int, epsilon: float) -> Outlook:
        return seen_before(
            users,
            epsilon,
            self.delta,
            self.relation,
            groups=self.size,
            columns=self.dimension,
            records=True,
            # One group if all of a person's records are alike, all of them if none are.
            held=self.size ** (1.0 - self.share_between),
        )

    @property
    def _parts(self) -> int:
        return 1 + self.dimension

    def _places(self, seen: Outlook) -> tuple[float, ...]:
        """Factors for the released cap; over several groups the losses of cells average out."""
        return (1.0,)

    @property
    def _same(self) -> float:
        """The probability that two records of a person are in the same group."""
        return self.share_between + (1.0 - self.share_between) / self.size

    def _length(self, records: float, norm: int) -> float:
        """Return the length of the records of a person with this many of them, over all groups."""
        if norm == 1 or records <= 1.0:
            return records
        return math.sqrt(records + records * (records - 1.0) * self._same)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the kind of noise of a table."""
        route = table_route(self._seen(users, epsilon).norm, "found privately")
        return route.name, route.reason
