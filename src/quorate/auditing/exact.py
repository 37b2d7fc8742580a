"""Audits by enumeration: all small data sets and all pairs of neighbours give the true epsilon.

A mechanism is given as a function from a data set to its output law. The audit computes the law of
each data set of a :class:`SmallWorld`, compares all neighbours, and returns the true privacy loss
of one user. A loss above the claim is a violation. A loss far below it means that more noise than
necessary was added. Nothing is sampled, so neither case can be missed.

Laws come from formulas (:mod:`quorate.auditing.laws`), from a mechanism's own ``probabilities``, or
from the real code run with every outcome of its noise
(:func:`quorate.auditing.enumeration.enumerate_runs`).

An audit of a small world proves nothing about larger worlds. Choose worlds whose records reach the
declared bound on both sides and beyond it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.auditing.laws import Law
from quorate.core.guarantees import Guarantee, Relation
from quorate.exceptions import ParameterError

__all__ = ["DataSet", "ExactAudit", "SmallWorld", "audit_exactly"]

DataSet = tuple[Hashable, ...]
"""One record (a user's whole contribution) per user."""

MAX_DATA_SETS = 20_000  # machine: time and memory
"""A larger world is a mistake in the test, not a better audit."""

EPSILON_TOLERANCE = 1e-9  # machine: above the rounding of masses
"""Relative; masses are correct to 1e-12, so what exceeds this is not rounding."""

DELTA_TOLERANCE = 1e-12  # machine: above the rounding of masses
"""Absolute; a sum of at most a million rounded masses stays within it."""

_CELLS_PER_CHUNK = 2_000_000  # machine: memory
_ONE_PAIR = np.array([[0, 1]], dtype=np.intp)


@dataclass(frozen=True, kw_only=True)
class SmallWorld:
    """All data sets of a few users who each have one of a few records.

    Parameters
    ----------
    records : sequence of hashable
        The possible records of one user: a number, a tuple of values, ``()`` for a user without a
        record.
    n_users : int
        Number of users. Under ``Relation.ADD_REMOVE`` it is the largest number, and the world also
        has data sets of fewer users, down to none.
    ordered : bool, default=True
        Whether users are distinguished by their position. ``False`` keeps only one of the data sets
        that differ in order. There are far fewer of these; use it for mechanisms that ignore the
        order.

    Examples
    --------
    >>> world = SmallWorld(records=(0, 1), n_users=2)
    >>> world.data_sets(Relation.REPLACE)
    ((0, 0), (0, 1), (1, 0), (1, 1))
    >>> world.data_sets(Relation.ADD_REMOVE)[:3]
    ((), (0,), (1,))
    >>> len(SmallWorld(records=(0, 1), n_users=20, ordered=False).data_sets(Relation.REPLACE))
    21
    """

    records: Sequence[Hashable]
    n_users: int
    ordered: bool = True

    def __post_init__(self) -> None:
        _validate.positive_integer(n_users=self.n_users)
        kinds = len(self.records)
        if len(set(self.records)) != kinds or kinds < 2:
            raise ParameterError("Expected at least two records, all different.")
        n = self.n_users
        if (size := kinds**n if self.ordered else math.comb(n + kinds - 1, n)) > MAX_DATA_SETS:
            raise ParameterError(
                f"Expected at most {MAX_DATA_SETS} data sets, got {size}. Take fewer records or "
                f"users."
            )

    def data_sets(self, relation: Relation) -> tuple[DataSet, ...]:
        """Return every data set, one record per user."""
        sizes = (self.n_users,) if relation is Relation.REPLACE else range(self.n_users + 1)
        if self.ordered:
            return tuple(held for size in sizes for held in product(self.records, repeat=size))
        return tuple(
            held for size in sizes for held in combinations_with_replacement(self.records, size)
        )

    def neighbours(self, relation: Relation) -> Iterator[tuple[DataSet, DataSet]]:
        """Yield every unordered pair of data sets that differ in one user, once.

        >>> len(list(SmallWorld(records=(0, 1, 2), n_users=2).neighbours(Relation.REPLACE)))
        18
        >>> len(list(SmallWorld(records=(0, 1), n_users=1).neighbours(Relation.ADD_REMOVE)))
        2
        """
        rank = {record: i for i, record in enumerate(self.records)}
        for held in self.data_sets(relation):
            for i, record in enumerate(held):
                if not self.ordered and record in held[:i]:
                    continue  # the same user as far as the world can tell
                rest = held[:i] + held[i + 1 :]
                if relation is Relation.ADD_REMOVE:
                    yield held, rest
                    continue
                for other in self.records[rank[record] + 1 :]:
                    new = (*held[:i], other, *held[i + 1 :])
                    yield held, new if self.ordered else tuple(sorted(new, key=rank.__getitem__))


@dataclass(frozen=True, kw_only=True)
class ExactAudit:
    """The result of an exact audit.

    Attributes
    ----------
    claim : Guarantee
        The claimed guarantee.
    epsilon : float
        The true privacy loss in this world at the claimed delta: a proven lower bound on the
        mechanism's epsilon, and equal to this world's worst case if ``slack`` is zero.
    delta : float
        The true delta at the claimed epsilon (the hockey-stick divergence), with the same meaning.
    slack : float
        Largest probability, over the data sets, of outcomes that the law does not state exactly
        (window tails, cells, lost runs). The true delta at the claimed epsilon is at most ``delta +
        slack``.
    worst_pair : pair of data sets
        Neighbours between which ``epsilon`` is reached.
    n_data_sets, n_pairs : int

    Examples
    --------
    >>> def randomized_response(answers):
    ...     return {answers[0]: 0.75, 1 - answers[0]: 0.25}
    >>> world = SmallWorld(records=(0, 1), n_users=1)
    >>> print(audit_exactly(randomized_response, world, Guarantee(epsilon=1.2)))
    The claim holds: the true epsilon is 1.099, 91.6 % of the claimed 1.2, reached between (0,) and
    (1,) (2 data sets, 1 pair of neighbours).
    >>> print(audit_exactly(randomized_response, world, Guarantee(epsilon=1.0)))
    The claim is violated: the true epsilon is 1.099, 109.9 % of the claimed 1, ...
    """

    claim: Guarantee
    epsilon: float
    delta: float
    slack: float
    worst_pair: tuple[DataSet, DataSet]
    n_data_sets: int
    n_pairs: int

    @property
    def holds(self) -> bool:
        """Whether no pair of neighbours exceeds the claim."""
        if self.claim.delta == 0:
            return self.epsilon <= self.claim.epsilon * (1 + EPSILON_TOLERANCE)
        return self.delta <= self.claim.delta + DELTA_TOLERANCE

    @property
    def tightness(self) -> float:
        """True epsilon / claimed epsilon: above 1 is a violation, far below 1 needless noise."""
        if self.claim.epsilon == 0:
            return 1.0 if self.epsilon == 0 else math.inf
        return self.epsilon / self.claim.epsilon

    def __str__(self) -> str:
        first, second = self.worst_pair
        at = f" at delta = {self.claim.delta:.4g}" if self.claim.delta else ""
        least, note = "", ""
        if self.slack:
            least, note = "at least ", "; a lower bound, for outcomes are grouped into cells"
        pairs = "1 pair" if self.n_pairs == 1 else f"{self.n_pairs} pairs"
        return (
            f"The claim {'holds' if self.holds else 'is violated'}: the true epsilon is "
            f"{least}{self.epsilon:.4g}{at}, {100 * self.tightness:.1f} % of the claimed "
            f"{self.claim.epsilon:.4g}, reached between {first} and {second} "
            f"({self.n_data_sets} data sets, {pairs} of neighbours{note})."
        )


OutputLaw = Mapping[Hashable, Any] | Sequence[Any] | NDArray[Any]


def audit_exactly(
    law: Callable[[DataSet], OutputLaw],
    world: SmallWorld,
    claim: Guarantee,
    *,
    thorough: bool = True,
) -> ExactAudit:
    """Compare a mechanism's output laws on all neighbours of a small world with its claim.

    Parameters
    ----------
    law : callable
        Takes a data set (one record per user), and returns the law of the output: a
        :class:`~quorate.auditing.laws.Law`, a mapping from outputs to probabilities, or an array
        of probabilities of the outputs 0, 1, ... It must be deterministic.
    world : SmallWorld
    claim : Guarantee
        Its ``epsilon``, ``delta`` and ``relation`` are compared; a guarantee that is void because
        of a test double is treated as if it were valid.
    thorough : bool, default=True
        Whether to search for the worst pair. ``False`` stops at the first neighbours that exceed
        the claim, which is enough to show that a broken mechanism is detected.

    Returns
    -------
    ExactAudit

    Examples
    --------
    The example is a count of ones with discrete Laplace noise, and its broken twin with half the
    noise:

    >>> from quorate.auditing import discrete_laplace_mass
    >>> def noisy_count(answers, scale=1.0):
    ...     return discrete_laplace_mass(sum(answers), scale=scale, window=(-1, 4))
    >>> world = SmallWorld(records=(0, 1), n_users=3)
    >>> audit_exactly(noisy_count, world, Guarantee(epsilon=1.0)).holds
    True
    >>> halved = audit_exactly(lambda a: noisy_count(a, scale=0.5), world, Guarantee(epsilon=1.0))
    >>> halved.holds, round(halved.tightness, 9)
    (False, 2.0)
    """
    known: dict[DataSet, Law] = {}
    if not thorough:
        for compared, pair in enumerate(world.neighbours(claim.relation), start=1):
            for held in pair:
                if held not in known:
                    known[held] = _as_law(law(held))
            table = _Table.of([known[held] for held in pair])
            if table.exceeds(claim):
                found = _audit(claim, pair, [known[held] for held in pair], _ONE_PAIR)
                return replace(found, n_data_sets=len(known), n_pairs=compared)
    data_sets = world.data_sets(claim.relation)
    place = {held: i for i, held in enumerate(data_sets)}
    laws = [known[held] if held in known else _as_law(law(held)) for held in data_sets]
    pairs = np.array(
        [(place[a], place[b]) for a, b in world.neighbours(claim.relation)], dtype=np.intp
    )
    return _audit(claim, data_sets, laws, pairs)


def _audit(
    claim: Guarantee, data_sets: Sequence[DataSet], laws: Sequence[Law], pairs: NDArray[np.intp]
) -> ExactAudit:
    table = _Table.of(laws)
    if claim.delta == 0:
        epsilon, worst = _largest(pairs, table, table.log_ratios)
    else:
        epsilon, worst = _epsilon_at(claim.delta, pairs, table)
    delta, worst_at_claim = _largest(pairs, table, lambda p: table.hockey_sticks(p, claim.epsilon))
    if epsilon == 0:
        worst = worst_at_claim
    first, second = pairs[worst]
    return ExactAudit(
        claim=claim,
        epsilon=epsilon,
        delta=delta,
        slack=max(each.slack for each in laws),
        worst_pair=(data_sets[first], data_sets[second]),
        n_data_sets=len(data_sets),
        n_pairs=len(pairs),
    )


@dataclass(frozen=True)
class _Table:
    """Laws as rows, outputs as columns."""

    masses: NDArray[np.float64]
    logs: NDArray[np.float64]
    lost: NDArray[np.float64]

    @classmethod
    def of(cls, laws: Sequence[Law]) -> _Table:
        columns: dict[Hashable, int] = {}
        for each in laws:
            for output in each:
                columns.setdefault(output, len(columns))
        masses = np.zeros((len(laws), len(columns)))
        logs = np.full(masses.shape, -np.inf)
        for row, each in enumerate(laws):
            for output, mass in each.items():
                masses[row, columns[output]] = float(mass)
                logs[row, columns[output]] = _log(mass)
        return cls(masses, logs, np.array([each.lost for each in laws]))

    def exceeds(self, claim: Guarantee) -> bool:
        """Whether the first two laws are further apart than claimed."""
        if claim.delta == 0:
            limit = claim.epsilon * (1 + EPSILON_TOLERANCE)
            return bool(self.log_ratios(_ONE_PAIR)[0] > limit)
        delta = self.hockey_sticks(_ONE_PAIR, claim.epsilon)[0]
        return bool(delta > claim.delta + DELTA_TOLERANCE)

    def log_ratios(self, pairs: NDArray[np.intp]) -> NDArray[np.float64]:
        """Largest loss of each pair in both directions; lost mass is assigned to the other side."""
        return np.maximum(
            self._one_way_ratios(pairs[:, 0], pairs[:, 1]),
            self._one_way_ratios(pairs[:, 1], pairs[:, 0]),
        )

    def _one_way_ratios(
        self, left: NDArray[np.intp], right: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = np.log(self.lost[right])[:, np.newaxis]
            losses = self.logs[left] - np.logaddexp(self.logs[right], lost)
        # An output that neither can produce gives inf - inf: it says nothing.
        losses[np.isneginf(self.logs[left])] = -np.inf
        return np.asarray(losses.max(axis=1))

    def hockey_sticks(self, pairs: NDArray[np.intp], epsilon: float) -> NDArray[np.float64]:
        """Smallest delta of each pair at ``epsilon``, in both directions."""
        return np.maximum(
            self._one_way_sticks(pairs[:, 0], pairs[:, 1], epsilon),
            self._one_way_sticks(pairs[:, 1], pairs[:, 0], epsilon),
        )

    def _one_way_sticks(
        self, left: NDArray[np.intp], right: NDArray[np.intp], epsilon: float
    ) -> NDArray[np.float64]:
        p, q, lost = self.masses[left], self.masses[right], self.lost[right]
        if epsilon > 700:  # e^epsilon overflows; only impossible outputs still count
            impossible = (q == 0) & (lost == 0)[:, np.newaxis]
            return np.asarray(np.where(impossible, p, 0.0).sum(axis=1))
        factor = math.exp(epsilon)
        sticks = np.maximum(p - factor * q, 0.0).sum(axis=1) - factor * lost
        return np.asarray(np.maximum(sticks, 0.0))


def _largest(
    pairs: NDArray[np.intp],
    table: _Table,
    value: Callable[[NDArray[np.intp]], NDArray[np.float64]],
) -> tuple[float, int]:
    """Return the largest value over all pairs and its position, in chunks of bounded memory."""
    best, where = -math.inf, 0
    for start, chunk in _chunks(pairs, table):
        values = value(chunk)
        top = int(np.argmax(values))
        if values[top] > best:
            best, where = float(values[top]), start + top
    return max(best, 0.0), where


def _epsilon_at(delta: float, pairs: NDArray[np.intp], table: _Table) -> tuple[float, int]:
    """Return the smallest epsilon at which every pair satisfies ``delta``, to ten digits."""
    epsilon, where = 0.0, 0
    for start, chunk in _chunks(pairs, table):
        deltas = table.hockey_sticks(chunk, epsilon)
        while deltas.max() > delta:
            index = int(np.argmax(deltas))
            epsilon, where = _solve(delta, chunk[[index]], table, epsilon), start + index
            if epsilon == math.inf:
                return epsilon, where
            # A step beyond the solution, so that rounding cannot send the same pair round again.
            deltas = table.hockey_sticks(chunk, epsilon + 1e-10)
    return epsilon, where


def _solve(delta: float, pair: NDArray[np.intp], table: _Table, low: float) -> float:
    """Bisect for the epsilon of one pair whose delta at ``low`` is too large."""

    def exceeds(epsilon: float) -> bool:
        return bool(table.hockey_sticks(pair, epsilon)[0] > delta)

    high = max(1.0, 2.0 * low)
    while exceeds(high):
        low, high = high, 2.0 * high
        if low > 700:
            return math.inf
    while high - low > 1e-12 * max(1.0, high):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


def _chunks(pairs: NDArray[np.intp], table: _Table) -> Iterator[tuple[int, NDArray[np.intp]]]:
    size = max(1, _CELLS_PER_CHUNK // max(1, table.masses.shape[1]))
    return ((start, pairs[start : start + size]) for start in range(0, len(pairs), size))


def _as_law(given: OutputLaw) -> Law:
    if isinstance(given, Law):
        return given
    if isinstance(given, Mapping):
        return Law(given)
    return Law(dict(enumerate(np.asarray(given, dtype=object).tolist())))


def _log(mass: Any) -> float:
    if mass == 0:
        return -math.inf
    if isinstance(mass, numbers.Rational):
        exact = Fraction(mass)
        return math.log(exact.numerator) - math.log(exact.denominator)
    return math.log(mass)
