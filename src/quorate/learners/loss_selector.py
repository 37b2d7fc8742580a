"""Pick the best of many candidates (models, settings, policies) by a bounded loss (U7)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Bound
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.users import UserData
from quorate.core.users.crowd import call_quietly
from quorate.core.users.public_choices import in_own_order
from quorate.data.tables import declared_columns
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError
from quorate.learners.base import HeldRecords
from quorate.learners.covers import cover_of
from quorate.learners.scores.base import Integers, Score
from quorate.learners.scores.pairwise import MAX_DUELLISTS, Duels, check_duellists
from quorate.learners.scores.reference import ClippedDifference
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.choices.choose import CONFIDENCE, ChoiceError, ChooseBest
from quorate.mechanisms.search.random_restarts import RandomRestarts
from quorate.mechanisms.search.rough_records import RecordRange
from quorate.ranges import as_limits

__all__ = ["LossSelector", "decide_selection", "sums_from"]

_ALGORITHMS = ("auto", "reference", "exponential", "duels", "published")

# Steps into which the range of the loss is cut.
_STEPS = 2**20

# Share of the budget that finds the reference.
_REFERENCE_SHARE = Fraction("0.3")

# Differences to a reference pay once users average over this many records.
_ENOUGH_RECORDS = 16
_RECORD_CUTS = (16, 64, 256, 1024, 4096)
_MANY_RECORDS = RecordRange.exactly(_ENOUGH_RECORDS)

# Votes follow what most people prefer, however many vote; sums of losses follow the mean. Sums err
# less for people who differ from this many users x epsilon on: at least, and per unit of ln(K).
# (With 17 guesses at skewed people who hold 32 records from 200 to 400 users on.)
_MANY_USERS, _USERS_PER_LOG_SIZE = 250.0, 40.0

_CAVEAT = "The loss was called with the records of all users at once (vectorized=True)."


def sums_from(candidates: int) -> float:
    """Return the smallest users x epsilon at which losses are summed, if users may differ.

    >>> sums_from(10)
    250.0
    """
    return max(_MANY_USERS, _USERS_PER_LOG_SIZE * math.log(candidates))


def decide_selection(
    records: RecordRange | None,
    *,
    candidates: int,
    epsilon: float,
    n_users: int | None,
    alike: bool = False,
) -> Route:
    """Return how ``"auto"`` chooses, from public numbers; the planner uses it too.

    ``n_users`` is None where it is private.

    >>> known = dict(candidates=10, epsilon=1.0, n_users=1000)
    >>> print(decide_selection(RecordRange.exactly(64), alike=True, **known))
    duels: a user has 64 records: users can judge all pairs
    >>> print(decide_selection(None, **known))
    exponential: users are many, or their number is private, and may differ: add up their losses
    """
    if not alike and (n_users is None or n_users * epsilon >= sums_from(candidates)):
        return Route(
            name="exponential",
            reason="users are many, or their number is private, and may differ: add up their "
            "losses",
        )
    known = f"a user has {records}"
    if records is None or records.lower < _ENOUGH_RECORDS:
        return Route(name="exponential", reason=f"{known}: differences are as large as losses")
    if candidates <= MAX_DUELLISTS:
        return Route(name="duels", reason=f"{known}: users can judge all pairs")
    return Route(name="reference", reason=f"{known}: differences to a reference are small")


class LossSelector(UserEstimator):
    r"""Choose the candidate with the smallest mean loss over users.

    A user's mean loss over m records is within about :math:`1/\sqrt m` of its expectation, and so
    is the difference of two candidates. So users with many records mostly agree which of two
    candidates is better. If users are alike, they therefore vote on pairs of candidates. If there
    are too many pairs, they score the difference of each candidate to a privately chosen reference,
    clipped to that small radius. Then the noise matters less the more records users have, unlike in
    the plain exponential mechanism. The candidate that most users prefer need not have the smallest
    mean loss, so with many users who may differ the losses are summed instead.

    Learning
    --------
    candidates : K of them, or a cover of a ball or box (:func:`~quorate.learners.covers.cover_of`)
    setting : bounded losses; users i.i.d., records of one user i.i.d.; privacy needs none of this
    users needed : excess of order :math:`B\ln K/(n\varepsilon\sqrt m) + B\sqrt{\ln K/(mn)}`
        (Corollary 3 of [1]_); G times ``cover`` more for a G-Lipschitz loss over a ball or a box
        (Corollary 4), and :func:`~quorate.learners.covers.published_radius` balances them (Remark
        1)

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : candidates, loss, ``bounds`` and all parameters; under ``Relation.REPLACE`` the number
        of users. How many records a user has is private.
    numerics : exact
    proof : A user's mean losses are clipped to ``bounds`` and rounded to 2^20 steps. Their sums
        have a sensitivity of 2^20 steps; that of clipped differences is proved in
        :class:`~quorate.learners.scores.ClippedDifference`. Costs of the releases add up. Released
        are ``index_``, ``records_`` and functions of them. ``loss`` must compute the value of a
        record from that record alone.

    Complexity
    ----------
    O(N K) for the losses, O(n K) memory; duels O(n K^2).

    Parameters
    ----------
    epsilon : float, default=1.0
    bounds : float, pair or Interval, default=(0.0, 1.0)
        Smallest and largest loss; values outside are clipped. Public.
    candidates : sequence or Bound, optional
        The candidates: a list, or a :class:`~quorate.core.bounds.grid.Ball`, Box or Interval
        of parameters, from which a cover is made. Without it, the columns of ``X`` are the losses.
    cover : float, optional
        The largest L2 distance between a parameter and its nearest candidate, for a ball or a box.
    loss : callable, optional
        ``loss(candidate, X, y)`` returns one loss for each record of one user. If it fails for a
        user, this user has the smallest loss for all candidates.
    vectorized : bool, default=False
        Call ``loss`` with the records of all users at once: much faster, but only private if it
        treats every record independently, to the last bit. The guarantee is then labelled
        ``idealized``.
    algorithm : {"auto", "reference", "exponential", "duels", "published"}, default="auto"
        ``"auto"``: if users are ``alike`` or few and have 16 records or more, duels for up to 4096
        candidates and a reference for more; otherwise the exponential mechanism on the losses. If
        users disagree, duels and the reference select the candidate that most users prefer and not
        the one with the best mean. ``"published"`` is Algorithm 5 of [1]_.
    records : int or "auto", default="auto"
        Number of records in each user's mean: a public number, or a rough private estimate, which
        costs budget. State it if ``X`` has one row of means per user.
    alike : bool, default=False
        Whether users are alike, that is, whether their records come from one distribution. This
        allows algorithms that need few users and select what most of them prefer.
    failure : float, default=0.1
        Desired probability of failure of ``"published"``.
    delta : 0.0
        Only pure differential privacy is supported; any other value is refused.
    relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    index_ : int
    candidate_ : object
        The candidate itself if ``candidates`` were given, otherwise its index.
    algorithm_ : Route
        The algorithm that was used, and why.
    error_ : ChoiceError
        How much worse than the best candidate the chosen one may be.
    records_ : RecordRange or None
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845, Section 6.

    Examples
    --------
    >>> guesses = [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> x = np.tile([0.1, 0.2, 0.3, 0.4], 300).reshape(-1, 1)
    >>> def distance(guess, X, y):
    ...     return abs(X[:, 0] - guess)
    >>> selector = LossSelector(epsilon=1.0, candidates=guesses, loss=distance, records=4)
    >>> selector.fit(x, users=np.arange(1200) // 4).candidate_
    0.25
    """

    _takes_crowds = True
    _uses_delta = False

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = (0.0, 1.0),
        candidates: Sequence[Any] | NDArray[Any] | Bound | None = None,
        cover: float | None = None,
        loss: Callable[[Any, NDArray[np.float64], Any], NDArray[np.float64]] | None = None,
        vectorized: bool = False,
        algorithm: str = "auto",
        records: int | str = "auto",
        alike: bool = False,
        failure: float = 0.1,
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.candidates = candidates
        self.cover = cover
        self.loss = loss
        self.vectorized = vectorized
        self.algorithm = algorithm
        self.records = records
        self.alike = alike
        self.failure = failure
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> LossSelector:
        """Choose from records grouped by user: ``(X, y, users=...)`` or a ``UserData``."""
        self._check()
        self._check_candidates(X)
        self._try_out(X, y)
        account = self._charge(X, y, users)
        people = self._population(X, y, users)
        held = HeldRecords.stated(self.records, account)
        route = self._decide(people, held)
        error = self._error(route.name, people, held)
        index = (
            self._restart(people, held)
            if route.name == "published"
            else self._choose(route.name, people, held)
        )
        self.guarantee_ = self._promise(account)
        self.index_ = index
        self.candidate_ = index if self._listed is None else self._listed[index]
        self.algorithm_ = route
        self.error_ = error
        self.records_ = held.known
        return self

    @property
    def _listed(self) -> Sequence[Any] | NDArray[Any] | None:
        """The candidates one by one: the points of a cover of a ball or a box."""
        if isinstance(self.candidates, Bound):
            return cover_of(self.candidates, radius=float(self.cover or 0.0))
        return self.candidates

    @property
    def _caveat(self) -> str | None:
        return _CAVEAT if self.vectorized and self.loss is not None else None

    def _try_out(self, X: Any, y: Any) -> None:
        """Refuse a loss that fails on two made-up records."""
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if (declared := declared_columns(X)) is not None:
            shape = (0, declared)
        if self.loss is None or self._listed is None or len(shape) != 2:
            return
        with_target = y is not None if declared is None else X.has_target
        made_up = np.zeros((2, shape[1])), np.zeros(2) if with_target else None
        if _losses_of(self.loss, self._listed[0], *made_up) is None:
            raise ParameterError(
                "Expected loss(candidate, X, y) to return one number for each record; on two "
                "made-up records of zeros it did not. No user's records were read."
            )

    def _range(self) -> tuple[float, float]:
        lower, upper = as_limits(self.bounds, 1)
        return float(lower[0]), float(upper[0])

    def _check(self) -> None:
        _validate.one_of(_ALGORITHMS, algorithm=self.algorithm)
        as_limits(self.bounds, 1)
        _validate.probability(failure=self.failure)
        _validate.one_of((False, True), alike=self.alike)
        if self.records != "auto":
            _validate.positive_integer(records=self.records)
        if isinstance(self.candidates, Bound) != (self.cover is not None):
            raise ParameterError(
                "Expected cover=, the largest distance of a point from its cover, together with a "
                "Ball or a Box as candidates, and with nothing else."
            )
        if self.cover is not None:
            _validate.positive(cover=self.cover)
        if (self._listed is None) != (self.loss is None):
            raise ParameterError("Expected candidates and loss together, got one of them.")
        if not isinstance(self.vectorized, bool | np.bool_):
            raise ParameterError(f"Expected vectorized=True or False, got {self.vectorized!r}.")
        if self.loss is not None and not callable(self.loss):
            raise ParameterError(f"Expected a function as loss, got {type(self.loss).__name__}.")
        if self._listed is not None and len(self._listed) == 0:
            raise ParameterError("Expected at least one candidate, got none.")
        if self.algorithm == "published" and self.relation is not Relation.REPLACE:
            raise ParameterError(
                "Expected relation=Relation.REPLACE for algorithm='published': its means divide by "
                "the number of users. Use 'reference'."
            )

    def _check_candidates(self, X: Any) -> None:
        """Refuse duels among too many candidates, if ``X`` shows their number."""
        if self.algorithm != "duels":
            return
        if self._listed is not None:
            check_duellists(len(self._listed), "duels")
        elif (declared := declared_columns(X)) is not None:
            check_duellists(declared, "duels")
        elif len(getattr(X, "shape", ())) == 2:
            check_duellists(X.shape[1], "duels")

    def _decide(self, people: People, held: HeldRecords) -> Route:
        """Return the algorithm and the reason; estimate the records if both depend on them."""
        if self.algorithm in ("reference", "published") and held.known is None:
            held.buy(people, _RECORD_CUTS)
        if self.algorithm != "auto":
            return Route(name=self.algorithm, reason="it was requested")
        decide = partial(
            decide_selection,
            candidates=self._n_candidates(people),
            epsilon=float(self.epsilon),
            n_users=people.n_users if self.relation is Relation.REPLACE else None,
            alike=self.alike,
        )
        # Records are not asked about where they decide nothing.
        if held.known is None and decide(_MANY_RECORDS).name != "exponential":
            held.buy(people, _RECORD_CUTS)
        return decide(held.known)

    def _n_candidates(self, people: People) -> int:
        return people.n_features if self._listed is None else len(self._listed)

    def _own_losses(self) -> _OwnLosses:
        """Return a function that computes each user's mean losses, wherever the data are."""
        return _OwnLosses(self._listed, self.loss, bool(self.vectorized), self._range())

    def _choose(self, score: str, people: People, held: HeldRecords) -> int:
        account = held.account
        if score == "duels":
            return self._by_duels(people, account)
        if score == "exponential":
            return self._by_sums(people, account)
        first = account.part_of(epsilon=_REFERENCE_SHARE * account.left)
        reference = self._by_sums(people, first)
        return self._by_difference(people, self._near(reference, held), account)

    def _error(self, name: str, people: People, held: HeldRecords) -> ChoiceError:
        """Return the error bound of the last choice, with the remaining budget."""
        if name == "published":
            return ChoiceError.unknown(
                "Only some of the candidates are looked at, and the best may not be among them."
            )
        left = held.account.left
        chooser, counts = self._chooser(people, left), "mean losses of people, in the whole range"
        if name != "exponential":
            left = left if name == "duels" else (1 - _REFERENCE_SHARE) * left
            score = Duels() if name == "duels" else self._near(0, held)
            chooser, counts = self._chooser(people, left, score), score.name.replace("_", " ")
        return ChoiceError.of_people(
            chooser.error_bound(1.0 - CONFIDENCE) / float(chooser.sensitivity),
            counts=counts,
            n_users=people.n_users if self.relation is Relation.REPLACE else None,
        )

    def _chooser(self, people: People, epsilon: Fraction, score: Score | None = None) -> ChooseBest:
        """Return the choice by a score, or by the sums of the losses themselves."""
        return ChooseBest(
            candidates=self._n_candidates(people),
            epsilon=epsilon,
            sensitivity=_STEPS if score is None else score.sensitivity(self.relation),
            relation=self.relation,
            one_sided=score is None and self.relation is Relation.ADD_REMOVE,
        )

    def _near(self, reference: int, held: HeldRecords) -> ClippedDifference:
        typical = _typical_records(held.known)
        radius = min(_STEPS, math.ceil(_STEPS / math.sqrt(typical)))
        return ClippedDifference(reference=reference, radius=radius)

    def _by_sums(self, people: People, account: Account) -> int:
        chooser = self._chooser(people, account.left)
        sums = people.scores(_Judged(self._own_losses(), self._n_candidates(people), 0, _STEPS))
        return chooser.release(-sums, account=account)

    def _by_duels(self, people: People, account: Account) -> int:
        chooser = self._chooser(people, account.left, Duels())
        candidates = self._n_candidates(people)
        losses = people.duels(_Steps(self._own_losses()), candidates, Duels().verdict)
        return chooser.release(-losses, account=account)

    def _by_difference(self, people: People, score: ClippedDifference, account: Account) -> int:
        chooser = self._chooser(people, account.left, score)
        near = _Judged(
            self._own_losses(), self._n_candidates(people), -score.radius, score.radius, score
        )
        return chooser.release(-people.scores(near), account=account)

    def _restart(self, people: People, held: HeldRecords) -> int:
        lower, upper = self._range()
        restarts = RandomRestarts(
            lower=lower,
            upper=upper,
            epsilon=held.account.left,
            n_users=people.n_users,
            records=max(1, int(_typical_records(held.known))),
            failure=self.failure,
        )
        means = people.each(self._own_losses()).map(partial(np.nan_to_num, nan=lower))
        index, _ = restarts.release(means, account=held.account)
        return index


@dataclass(frozen=True)
class _OwnLosses:
    """Each user's mean loss (rows) of each candidate (columns), of clipped records.

    Records' losses are clipped first, so that a user's mean is meaningful. The mean is clipped
    again on the grid; privacy depends on this second clipping only.
    """

    candidates: Sequence[Any] | NDArray[Any] | None
    loss: Callable[..., Any] | None
    vectorized: bool
    range: tuple[float, float]

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        if self.candidates is None or self.loss is None:
            return users.user_means()
        users = in_own_order(users)
        lower, upper = self.range
        columns = []
        for candidate in self.candidates:
            values = self._record_losses(candidate, users)
            inside = np.clip(np.nan_to_num(values, nan=lower), lower, upper)
            columns.append(users.user_sums(inside.reshape(-1, 1))[:, 0])
        with np.errstate(all="ignore"):
            return np.stack(columns, axis=1) / users.record_counts()[:, np.newaxis]

    def _record_losses(self, candidate: Any, users: UserData) -> NDArray[np.float64]:
        if self.vectorized:
            values = _losses_of(self.loss, candidate, users.X, users.y)
            if values is not None:
                return values
        values = np.full(users.n_records, np.nan)
        for start, stop in itertools.pairwise(users.offsets.tolist()):
            own = slice(start, stop)
            y = None if users.y is None else users.y[own]
            found = _losses_of(self.loss, candidate, users.X[own], y)
            if found is not None:
                values[own] = found
        return values


@dataclass(frozen=True)
class _Judged:
    """The losses of users on a grid, or their differences to a reference."""

    losses: _OwnLosses
    candidates: int
    low: int
    high: int
    score: ClippedDifference | None = None

    @property
    def shape(self) -> tuple[int]:
        return (self.candidates,)

    def __call__(self, users: UserData) -> Iterator[tuple[EllipsisType, Integers]]:
        table = _on_grid(self.losses(users), self.losses.range)
        yield ..., table if self.score is None else self.score.judged(table, table[:, 0])


@dataclass(frozen=True)
class _Steps:
    """The losses of users on a grid."""

    losses: _OwnLosses

    def __call__(self, users: UserData) -> Iterator[Integers]:
        yield _on_grid(self.losses(users), self.losses.range)


def _losses_of(loss: Any, candidate: Any, X: Any, y: Any) -> NDArray[np.float64] | None:
    """Return one loss per record, or None if the loss failed.

    Neither a text nor a shape may say why it failed.
    """
    values = call_quietly(lambda: np.asarray(loss(candidate, X, y), dtype=np.float64))
    return None if values is None or values.shape != (len(X),) else values


def _typical_records(known: RecordRange | None) -> float:
    if known is None or known.upper is None:
        return max(1, known.lower if known is not None else 1)
    return max(1.0, math.sqrt(max(1, known.lower) * (known.upper - 1)))


def _on_grid(means: NDArray[np.float64], bounds: tuple[float, float]) -> Integers:
    """Return losses as integers from 0 to 2^20; a user without records has the smallest losses."""
    lower, upper = bounds
    with np.errstate(all="ignore"):
        share = (means - lower) / (upper - lower)
    inside = np.clip(np.nan_to_num(share, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return np.asarray(np.rint(inside * _STEPS), dtype=np.int64)
