"""The threshold learner of Li, Wang, Ye: a noisy binary search on medians (L5, L6).

Algorithm 1 and Theorem 5.2: split the current range of cut-offs at a private median of the records
in it. Compare the best cut-off to the left, the median itself and the best to the right, by noisy
counts of users with more than t mistakes, and continue with the best of them. After log(1/alpha)
rounds the range contains so few records that every cut-off in it is accurate enough.

The asymptotics are optimal, but every round pays for a median over the whole domain. In no
measurement was it better than :class:`~quorate.learners.threshold.ThresholdLearner`; it is included
as the reference. The printed text needs these corrections: the median's accuracy in round k is
theta^(k-1) (not the target), s counts records (not a share), the number of rounds is rounded up,
"left" and "right" exclude the median, and Theorem 5.2 uses PrivateMedian (not PrivateCompare).

The published form follows the print: a user keeps at most 1/alpha^2 records, and at most
1/theta^(k-1) for the median of round k; a cut-off u has the records l, ..., u - 1 on its left and u
+ 1, ..., r on its right; a side without cut-offs has an infinite count and no noise.

The calibrated form finds t by a private crossing instead of Lemma 4.5, uses exact tails for t and
s, and drops no records. It makes one private choice of the smallest of the three counts instead of
three noisy ones, and four rounds, and ends with an exponential mechanism inside the last range
instead of its left end. It also ignores two records in each comparison: the cut-offs l, ..., u - 1
agree about a record at l, and u + 1, ..., r agree about one at u + 1, so these records cannot
affect the rest of the search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.questions.lines import SealedLine, Walk
from quorate.core.sealed import Sealed
from quorate.core.users.grouping import group_by_user
from quorate.learners.base import HeldRecords, RuleLearner
from quorate.learners.concepts.numeric.thresholds import Direction, Thresholds
from quorate.learners.cut_off_medians import shifted
from quorate.learners.scores.base import Along, MistakeLine
from quorate.learners.scores.crossing import Crossing
from quorate.learners.scores.more_than import MoreThan, separating_rate
from quorate.learners.smallest_error_search import MinErrorSearch, published_records
from quorate.learners.threshold import threshold_class
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.choices.choose import ChoiceError, ChooseBest
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.quantiles import PrivateQuantile
from quorate.mechanisms.noisy_count import NoisyCount

__all__ = ["PrivateThreshold", "median_in_range"]

_THETA_PUBLISHED = 2 / 3  # public: as printed
_THETA = 0.6
_ROUNDS = 4
# Shares of the calibrated budget: level, medians and comparisons (all rounds), last choice.
_SHARES = (Fraction(1, 8), Fraction(3, 8), Fraction(1, 4), Fraction(1, 4))


def median_in_range(
    walk: Walk,
    *,
    first: int,
    last: int,
    mass: float,
    account: Account,
    published: bool = False,
) -> int:
    """Release a cut-off in [first, last] that halves the users' records (L5, Lemma 5.1).

    A user counts on a side if more than s of the user's records are there; s is chosen to
    distinguish half of ``mass``, the probability of the range, from two thirds of it. The loss is
    the larger of the two counts, so only the (s + 1)-th record from either end matters. A record at
    the j-th point of the domain is to the left of the cut-offs above j. ``published`` counts all
    records; otherwise only records on which cut-offs of that side differ are counted.

    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.core.users import UserData
    >>> x, who = np.arange(400) % 10, np.arange(400) // 10
    >>> data = UserData.from_arrays(x.astype(float), np.zeros(400), users=who)
    >>> walk = People(data, Relation.REPLACE).walk(Along(Thresholds(0, 2**40)))
    >>> known = dict(first=0, last=2**40, mass=0.9)
    >>> 4 <= median_in_range(walk, account=Account.open(epsilon=4.0), **known) <= 6
    True
    """
    # Numbered from the middle, up to 2**63 cut-offs fit into 64 bits with a sign.
    middle = (first + last) // 2
    median = PrivateQuantile(
        domain=(first - middle, last - middle), epsilon=account.left, relation=account.relation
    )
    sides = walk.each(_Sides(first, last, mass, published))
    return middle + median.release_between(sides.column(0), sides.column(1), account=account)


@dataclass(frozen=True)
class _Sides:
    """The positions from which a user counts against cut-offs, on the left and on the right."""

    first: int
    last: int
    mass: float
    published: bool

    def __call__(self, line: MistakeLine) -> NDArray[np.int64]:
        ends = _sides(line, self.first, self.last, self.mass, published=self.published)
        return shifted(*ends, (self.first + self.last) // 2)


def _sides(
    line: MistakeLine, first: int, last: int, mass: float, *, published: bool
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    events, rate = line.events, separating_rate(mass / 2, 2 * mass / 3)
    low, high = np.uint64(first), np.uint64(last)
    reached = events.positions >= low if published else events.positions > low
    inside = reached & (events.positions <= high)
    user, edge = events.user[inside], events.positions[inside]
    order = group_by_user(user, n_users=events.n_users)
    edge = edge[order]
    count = np.bincount(user, minlength=events.n_users)
    start = np.cumsum(count) - count
    skip = np.floor(rate * line.held).astype(np.int64)
    counts = np.flatnonzero(count > skip)
    # Somebody with too few records in the range minds no cut-off.
    upper = np.full(events.n_users, last, dtype=np.uint64)
    lower = np.full(events.n_users, first, dtype=np.uint64)
    upper[counts] = edge[start[counts] + skip[counts]]
    lower[counts] = edge[start[counts] + count[counts] - 1 - skip[counts]]
    if not published:
        lower[counts] -= np.uint64(1)
    return lower, upper


class PrivateThreshold(RuleLearner):
    r"""Learn a cut-off by a noisy binary search on medians (Algorithm 1 of [1]_).

    Learning
    --------
    concept class : "x >= threshold" over {lower, ..., upper}
    setting : agnostic, proper; users i.i.d., records of one user i.i.d.; privacy needs none of this
    users needed : :math:`\tilde O(\ln|X|/\varepsilon + \ln|X|/(m\alpha\varepsilon) +
        1/(\sqrt m\alpha\varepsilon) + 1/(m\alpha^2))` (Theorem 5.2)

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``domain`` and all parameters; under ``Relation.REPLACE`` the number of users
    numerics : exact
    proof : A level (crossing, or Lemma 4.5), then at most ``rounds`` times a median
        (:class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`) and a comparison of three
        counts of sensitivity 1 (three discrete Laplace draws, or one permute-and-flip), then one
        choice. Each range is a function of what was released before. All rounds are charged,
        including those that are skipped if the search ends early. Released are ``index_``,
        ``records_`` and functions of them.

    Complexity
    ----------
    One sort of all records, and O(N) a round.

    Parameters
    ----------
    epsilon : float, default=1.0
    domain : tuple of two numbers
        Lowest and highest value of the feature, public.
    step : int or float, optional
        As in :class:`~quorate.learners.threshold.ThresholdLearner`.
    direction : Direction, default=Direction.ABOVE
        ``ABOVE`` or ``BELOW``.
    excess : float, default=0.05
        Desired accuracy, the papers' alpha.
    records : int or "auto", default="auto"
        Records per user; needed by ``constants="published"``, where ``"auto"`` spends budget on a
        rough private estimate.
    error_level : float, optional
        The error of the best threshold, if it is known publicly; then no budget is spent on its
        estimate.
    constants : {"calibrated", "published"}, default="calibrated"
    classes : sequence of two labels, default=(0, 1)
        The labels of ``y``, negative first, compared as numbers if both are numbers and as text
        otherwise; records with another label are dropped. ``predict`` returns these labels;
        ``concept_`` uses 0 and 1 instead. For a ``UserData`` pass the labels to
        ``UserData.from_arrays(classes=...)`` instead.
    delta : 0.0
        Only pure differential privacy is supported; any other value is refused.
    relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    threshold_, concept_, index_, algorithm_, error_, records_, classes_, guarantee_
        As in :class:`~quorate.learners.threshold.ThresholdLearner`.

    References
    ----------
    .. [1] Li, Wang, Ye. Improved bounds for pure private agnostic learning: item-level and
       user-level privacy. ICML 2024, Algorithm 1, Lemma 5.1 and Theorem 5.2.

    Examples
    --------
    >>> x = np.tile([3, 900, 1100, 70_000], 500)
    >>> search = PrivateThreshold(epsilon=8.0, domain=(0, 2**20))
    >>> search = search.fit(x, x >= 1000, users=np.arange(2000) // 4)
    >>> 900 < search.threshold_ <= 1100
    True
    """

    _single_feature = True

    def __init__(  # noqa: PLR0913 - the common keywords and those of a domain
        self,
        epsilon: float = 1.0,
        *,
        domain: tuple[int | float, int | float] | None = None,
        step: int | float | None = None,
        direction: Direction = Direction.ABOVE,
        excess: float = 0.05,
        records: int | str = "auto",
        error_level: float | None = None,
        constants: str = "calibrated",
        classes: Sequence[Any] = (0, 1),
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.domain = domain
        self.step = step
        self.direction = direction
        self.excess = excess
        self.records = records
        self.error_level = error_level
        self.constants = constants
        self.classes = classes
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> PrivateThreshold:
        """Learn from records grouped by user: ``(X, y, users=...)`` or a ``UserData``."""
        self._validate_common()
        _validate.one_of((Direction.ABOVE, Direction.BELOW), direction=self.direction)
        concepts = threshold_class(self.domain, step=self.step, direction=self.direction)
        self._refuse(concepts, "auto", X, y)
        account = self._charge(X, y, users, target=True)
        people = self._population(X, y, users, classes=self.classes)
        held = HeldRecords.stated(self.records, account)
        search = self._published if self.constants == "published" else self._calibrated
        index = search(concepts, people, held)
        self._release(
            concepts,
            index,
            held,
            score="private_threshold",
            reason="it was requested",
            error=ChoiceError.unknown(
                "Each round may lose the best cut-off; the loss of all rounds together is known "
                "only for users who are alike."
            ),
        )
        self.threshold_ = concepts.cut_off(index)
        return self

    def _published(self, concepts: Thresholds, people: People, held: HeldRecords) -> int:
        account = held.account
        m = published_records(held.typical(people), self.excess)
        kept = people.capped(m, random_state=self.random_state)
        half = account.left / 2
        level = self.error_level
        if level is None:
            search = MinErrorSearch(alpha=self.excess / 6, records=m, published=True)
            level = search.run(concepts, kept, account=account.part_of(epsilon=half))
        low, high = min(level + self.excess / 6, 1 - 1e-9), min(level + self.excess / 3, 1.0)
        rounds = math.ceil(math.log(2 / self.excess, 1.5))
        each = half / (4 * rounds)
        score = MoreThan(rate=separating_rate(low, high))
        losses = score.losses_along(kept.walk(Along(concepts)))
        noisy = NoisyCount(epsilon=each, relation=self.relation)

        def median(first: int, last: int, mass: float) -> int:
            few = kept.capped(math.floor(1 / mass + 1e-9), random_state=self.random_state)
            return median_in_range(
                few.walk(Along(concepts)),
                first=first,
                last=last,
                mass=mass,
                account=account.part_of(epsilon=each),
                published=True,
            )

        def compare(counts: list[Sealed | None]) -> int:
            left, middle, right = (
                math.inf if count is None else noisy.release(count, account=account)
                for count in counts
            )
            # The middle wins only if it is strictly best, the left only if strictly below right.
            if middle < min(left, right):
                return 1
            return 0 if left < right else 2

        first, _ = self._narrow(
            losses, rounds=rounds, theta=_THETA_PUBLISHED, median=median, compare=compare
        )
        return first

    def _calibrated(self, concepts: Thresholds, people: People, held: HeldRecords) -> int:
        """Divide the budget among an error level, medians, comparisons and a final choice."""
        account, walk = held.account, people.walk(Along(concepts))
        for_level, for_medians, for_compares, for_last = (share * account.left for share in _SHARES)
        if self.error_level is None:
            crossing = Crossing()
            chooser = ChooseBest(
                candidates=len(crossing.rates),
                epsilon=for_level,
                sensitivity=crossing.sensitivity(self.relation),
                relation=self.relation,
            )
            losses_by_rate = crossing.losses_of_rates_along(walk)
            rate = crossing.rates[chooser.release(-losses_by_rate, account=account)]
            score = MoreThan(rate=rate)
        else:
            score = MoreThan.separating(error_level=self.error_level, excess=self.excess)
        smallest = ChooseBest(
            candidates=3,
            epsilon=for_compares / _ROUNDS,
            relation=self.relation,
            one_sided=self.relation is Relation.ADD_REMOVE,
        )
        losses = score.losses_along(walk)

        def median(first: int, last: int, mass: float) -> int:
            part = account.part_of(epsilon=for_medians / _ROUNDS)
            return median_in_range(walk, first=first, last=last, mass=mass, account=part)

        def compare(counts: list[Sealed | None]) -> int:
            known = (people.everybody() if count is None else count for count in counts)
            return smallest.release(-reduce(Sealed.beside, known), account=account)

        first, last = self._narrow(
            losses, rounds=_ROUNDS, theta=_THETA, median=median, compare=compare
        )
        choice = ChooseOrdered(
            epsilon=for_last,
            relation=self.relation,
            one_sided=self.relation is Relation.ADD_REMOVE,
        )
        return choice.release(losses.between(first, last), lower=first, account=account)

    def _narrow(
        self,
        losses: SealedLine,
        *,
        rounds: int,
        theta: float,
        median: Callable[[int, int, float], int],
        compare: Callable[[list[Sealed | None]], int],
    ) -> tuple[int, int]:
        """Halve the range of cut-offs round by round; return the last range."""
        first, last = 0, losses.size - 1
        for k in range(rounds):
            if first == last:
                break
            middle = median(first, last, theta**k)
            sides = ((first, middle - 1), (middle, middle), (middle + 1, last))
            fewest = [losses.between(a, b).min() if a <= b else None for a, b in sides]
            winner = compare(fewest)
            if winner == 1 or (winner == 0 and middle == first) or (winner == 2 and middle == last):
                first = last = middle
            elif winner == 0:
                last = middle - 1
            else:
                first = middle + 1
        return first, last
