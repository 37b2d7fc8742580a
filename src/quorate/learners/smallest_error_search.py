"""A private search for the smallest error of a class, at user level (L3, L4).

Lemma 4.5, Lemma C.1 and Algorithm 2 of Li, Wang, Ye: a binary search for the error of the best
concept. Each step compares it with a guess. It counts, for the best concept, the users with more
than t mistakes, where t separates errors below the guess from errors above it; the count gets
Laplace noise. The printed Algorithm 2 exchanges its branches: a count that is too high means that
the best error lies *above* the guess, so the lower end moves up. Counts are compared, not shares:
under add or remove the number of users is private, so a count cannot be divided by it.

As published, the comparison separates the guess from the guess plus alpha/2, its margin is sqrt(m)
alpha/2800, and records beyond 1/alpha^2 are dropped. The calibrated form separates the guess minus
alpha/2 from the guess plus alpha/2, half-way between exact tails. This doubles the gap and proves
the same two claims. The search returns the middle of the last interval. It starts at [0, 1/2] if
two concepts of the class are opposites, because one of them errs on at most half of any records;
this saves rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.learners.concepts.base import ConceptClass, OrderedConceptClass
from quorate.learners.scores.base import Along, Judged, Spoken
from quorate.learners.scores.more_than import MoreThan, separating_rate, separation
from quorate.learners.scores.surrogate import Surrogate
from quorate.learners.selection import choose_by_score, is_walked
from quorate.mechanisms.search.private_compare import PrivateCompare

__all__ = ["MinErrorSearch", "choose_by_estimated_level", "published_records"]


def published_records(records: int, alpha: float) -> int:
    """Return how many records of a user are kept; the theorems drop those beyond 1/alpha^2.

    >>> published_records(1000, 0.1), published_records(5, 0.1)
    (100, 5)
    """
    return min(records, math.floor(1 / alpha**2 + 1e-9))


_WALKED_ROUNDS = 12  # machine: time
"""Rounds whose guesses are all looked at: half a second; every further one takes twice as long."""


@dataclass(frozen=True, kw_only=True)
class MinErrorSearch:
    """The steps of Algorithm 2: their number, rates and shares, from public numbers only.

    Parameters
    ----------
    alpha : float
        Accuracy.
    records : int
        Records per user for which the shares are computed.
    reach : float, default=0.5
        An upper bound on the error of the best concept; see :meth:`of_class`.
    published : bool, default=False
        Whether to use the paper's margins, and its start at [0, 1].

    Examples
    --------
    >>> MinErrorSearch(alpha=0.05, records=16).rounds
    4
    >>> MinErrorSearch(alpha=0.05, records=16, published=True).rounds
    6
    """

    alpha: float
    records: int
    reach: float = 0.5
    published: bool = False

    def __post_init__(self) -> None:
        _validate.probability(alpha=self.alpha)
        _validate.positive_integer(records=self.records)
        _validate.one_of((0.5, 1.0), reach=self.reach)

    @classmethod
    def of_class(
        cls, concepts: ConceptClass, *, alpha: float, records: int, published: bool
    ) -> MinErrorSearch:
        """Return the search for a class, starting at the largest error of its best concept.

        >>> from quorate.learners.concepts import PointFunctions, Thresholds
        >>> known = dict(alpha=0.05, records=16, published=False)
        >>> classes = Thresholds(0, 9), PointFunctions(9)
        >>> [MinErrorSearch.of_class(each, **known).start for each in classes]
        [(0.0, 0.5), (0.0, 1.0)]
        """
        reach = 0.5 if concepts.errs_at_most_half else 1.0
        return cls(alpha=alpha, records=records, reach=reach, published=published)

    @property
    def start(self) -> tuple[float, float]:
        """The first interval of the search."""
        return (0.0, 1.0 if self.published else self.reach)

    @property
    def rounds(self) -> int:
        """How often the interval is halved."""
        if self.published:
            return math.ceil(math.log2(2 / self.alpha))
        # The middle of an interval of length alpha is off by alpha/2, the comparisons by alpha/2.
        return max(1, math.ceil(math.log2(self.reach / self.alpha)))

    @property
    def kept_records(self) -> int:
        """How many records of a user are used."""
        return published_records(self.records, self.alpha) if self.published else self.records

    def step(self, guess: float) -> tuple[float, float]:
        """Return the rate of mistakes to count, and the share of users to compare the count with.

        >>> rate, share = MinErrorSearch(alpha=0.1, records=64).step(0.25)
        >>> round(rate, 3), round(share, 2)
        (0.248, 0.52)
        """
        from scipy.stats import binom

        m = self.kept_records
        low = guess if self.published else max(0.0, guess - self.alpha / 2)
        high = min(1.0, guess + self.alpha / 2)
        if not low < high:
            return math.nextafter(1.0, 0.0), 1.0
        rate = separating_rate(low, high)
        below = float(binom.sf(math.floor(rate * m), m, low))
        if self.published:
            return rate, min(1.0, below + math.sqrt(m) * self.alpha / 2800)
        return rate, 0.5 * (below + float(binom.sf(math.floor(rate * m), m, high)))

    @cached_property
    def smallest_gap(self) -> float:
        """Return a lower bound on the separation over all guesses the search can make.

        More than 4,096 guesses are not enumerated. Then the bound is the difference of the two
        rates: a single record separates them by that much, and all records of a user by no less.
        """
        if self.rounds > _WALKED_ROUNDS:
            return self.alpha / (4 if self.published else 2)
        width = 2.0**-self.rounds * (self.start[1] - self.start[0])
        guesses = [self.start[0] + k * width for k in range(1, 2**self.rounds)]
        m, half = self.kept_records, self.alpha / 2
        return min(
            separation(m, max(0.0, g - (0 if self.published else half)), min(1.0, g + half))[1]
            for g in guesses
        )

    def users_needed(self, *, epsilon: float, beta: float, size: int) -> int:
        """Return users that suffice for accuracy ``alpha`` with probability 1 - ``beta``.

        For ``size`` concepts, a best error of at most ``reach`` and i.i.d. records. In every round
        the two cases differ by at least g. Noise may use a quarter of this gap and sampling another
        quarter (Hoeffding's inequality for all concepts), each except with probability beta/2T.

        >>> MinErrorSearch(alpha=0.1, records=64).users_needed(epsilon=1.0, beta=0.1, size=100)
        208
        """
        _validate.positive(epsilon=epsilon)
        _validate.probability(beta=beta)
        _validate.positive_integer(size=size)
        gap, rounds = self.smallest_gap, self.rounds
        share = beta / (2 * rounds)
        by_noise = math.log(1 / (2 * share)) * rounds / epsilon / (gap / 4)
        by_sampling = math.log(size / share) / (2 * (gap / 4) ** 2)
        return math.ceil(max(by_noise, by_sampling))

    def run(self, concepts: ConceptClass, people: People, *, account: Account) -> float:
        """Return the estimate. The rest of the account is spent in equal parts, one per round."""
        walk = None
        if is_walked(concepts) and isinstance(concepts, OrderedConceptClass):
            walk = people.walk(Along(concepts))
        lower, upper = self.start
        each = account.left / self.rounds
        for _ in range(self.rounds):
            guess = (lower + upper) / 2
            rate, share = self.step(guess)
            compare = PrivateCompare(share=share, epsilon=each, relation=account.relation)
            score, weights = MoreThan(rate=rate), compare.weights
            if walk is not None:
                excess = walk.scores(Spoken(score, *weights)).min()
            else:
                excess = people.scores(Judged(concepts, (score,), *weights)).min()
            if compare.release(excess, account=account):
                lower = guess
            else:
                upper = guess
        return lower if self.published else (lower + upper) / 2


def choose_by_estimated_level(
    concepts: ConceptClass,
    people: People,
    *,
    records: int,
    excess: float,
    published: bool,
    account: Account,
    random_state: RandomState = None,
) -> int:
    """Estimate the smallest error with half of the budget, then choose with the best t for it (L4).

    As published: records beyond 1/excess^2 are dropped, the estimate has accuracy excess/6, t
    distinguishes the estimate plus excess/6 from the estimate plus excess/3, and the exponential
    mechanism uses the surrogate score with sensitivity 2. Calibrated: t is optimal at the estimate
    itself, and permute-and-flip uses the number of users above t, which is the same score for a
    class that represents itself, with half the noise.
    """
    if published:
        records = published_records(records, excess)
    search = MinErrorSearch.of_class(
        concepts, alpha=excess / 6 if published else excess, records=records, published=published
    )
    kept = people.capped(search.kept_records, random_state=random_state)
    half = account.left / 2
    level = search.run(concepts, kept, account=account.part_of(epsilon=half))
    if published:
        low, high = level + excess / 6, level + excess / 3
        rate = separating_rate(min(low, 1 - 1e-9), min(high, 1.0))
        score: MoreThan | Surrogate = Surrogate(target=concepts, rate=rate)
    else:
        score = MoreThan.separating(error_level=level, excess=excess)
    return choose_by_score(
        concepts,
        kept,
        score,
        account=account.part_of(epsilon=half),
        random_state=random_state,
        published=published,
    )
