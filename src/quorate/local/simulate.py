"""Protocols in one process: for analysts who try them out, and for learners.

The randomizers of clients answer here for a whole array of users at once, without a network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account, noise_for
from quorate.core.guarantees import Approximate, Guarantee, Pure, Relation, Trust
from quorate.core.questions.ballots import Ballots
from quorate.core.sealed import opened
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.local.randomizers.bucket_counts import BucketCounts
from quorate.local.randomizers.counts import EstimatedVotes
from quorate.local.randomizers.hashed import HashedResponse, candidates_of
from quorate.local.randomizers.prefixes import find_popular
from quorate.local.reliability import shuffled_response

__all__ = [
    "MOST_BUCKETS",
    "Choice",
    "bucket_choice",
    "bucket_reports",
    "honest_users",
    "local_choice",
    "shuffle_choice",
]

MOST_BUCKETS = 2**14
"""Users send about a message a bucket, so there are not more of them."""

SURE = 0.05  # public: 95 % is the convention of stated errors
"""The chance with which the published bound of bucket counts may fail."""


@dataclass(frozen=True)
class Choice:
    """The most frequent candidate and the guarantee for each user.

    Parameters
    ----------
    key : int
        The candidate with the most estimated votes.
    votes : EstimatedVotes
        Estimates of the most popular candidates, with standard errors.
    guarantee : Guarantee
        Against those who see the reports (local) or the shuffled reports (shuffle).
    report : HashedResponse or BucketCounts
        The randomizer that every user ran.

    Examples
    --------
    >>> choice = local_choice(np.full(800, 77), candidates=2**14, epsilon=2.0)
    >>> choice.key, choice.guarantee.trust.name
    (77, 'LOCAL')
    """

    key: int
    votes: EstimatedVotes
    guarantee: Guarantee
    report: HashedResponse | BucketCounts


def local_choice(
    keys: Ballots | NDArray[np.int64],
    *,
    candidates: int,
    epsilon: float,
    unit: str = "user",
    account: Account | None = None,
) -> Choice:
    """Find the candidate that most users name, without a trusted party: one report per user.

    Parameters
    ----------
    keys : array of int64
        One candidate per user; values outside 0, ..., ``candidates`` - 1 mean no candidate.
    candidates : int
        At most 2^256; beyond 2^63 the keys are an array of Python integers.
    epsilon : float
        Budget of each user.
    unit : str, default="user"
    account : Account or None, default=None
        The account to charge; by default a new one for this choice.

    Examples
    --------
    >>> local_choice(np.full(2000, 5), candidates=2**32, epsilon=2.0).key
    5
    """
    response = HashedResponse(candidates=candidates, epsilon=epsilon)
    promise = _Promise(response.event, Trust.LOCAL, unit)
    return _choose(_of_each(keys, account, wide=response.wide), response, promise, account)


def honest_users(n_users: int, *, honest: float) -> int:
    """Return how many honest reports hide each other; raise an error if there are none.

    >>> honest_users(205, honest=0.1)
    20
    """
    _validate.fraction(honest=honest)
    hiding = math.floor(honest * n_users)
    if hiding < 1:
        raise NotEnoughUsersError(
            f"Expected at least one honest user, got honest={honest!r} of {n_users} users."
        )
    return hiding


def shuffle_choice(
    keys: Ballots | NDArray[np.int64],
    *,
    candidates: int,
    epsilon: float,
    delta: float,
    honest: float = 1.0,
    unit: str = "user",
    account: Account | None = None,
) -> Choice:
    """Find the candidate that most users name by one shuffled report each.

    Parameters
    ----------
    keys : array of int64
        As for :func:`local_choice`; their number is public.
    candidates : int
    epsilon, delta : float
        The guarantee against those who see the shuffled reports.
    honest : float, default=1.0
        Share of the users whose reports hide the others; public.
    unit : str, default="user"
    account : Account or None, default=None
        The account to charge, with a reserve of ``delta``; by default a new one for this choice.

    Examples
    --------
    >>> shuffle_choice(np.full(200, 5), candidates=2**14, epsilon=1.0, delta=1e-6).key
    5
    """
    keys = _of_each(keys, account)
    hiding = honest_users(len(keys), honest=honest)
    response = shuffled_response(int(candidates), float(epsilon), float(delta), hiding)
    promise = _Promise(Approximate(epsilon, delta), Trust.SHUFFLE, unit)
    return _choose(keys, response, promise, account)


def bucket_reports(
    n_users: int,
    *,
    candidates: int,
    epsilon: float,
    delta: float,
    honest: float = 1.0,
    published: bool = False,
) -> BucketCounts:
    """Return the randomizer of :func:`bucket_choice`; refuse unsupported parameters.

    >>> bucket_reports(50, candidates=8, epsilon=1.0, delta=1e-6).complement
    True
    """
    _validate.positive_integer(candidates=candidates)
    if candidates > MOST_BUCKETS:
        raise ParameterError(
            f"Expected at most 2^14 candidates for counts of buckets, to each of which every user "
            f"sends messages; got {candidates}. Use hashed reports."
        )
    honest_users(n_users, honest=honest)
    counts = BucketCounts(
        buckets=candidates,
        users=n_users,
        epsilon=epsilon,
        delta=delta,
        honest=honest,
        complement=True,
        published=published,
        beta=SURE if published else None,
    )
    _ = counts.table  # refuses a delta that is too small for this many users
    return counts


def bucket_choice(
    keys: Ballots | NDArray[np.int64],
    *,
    candidates: int,
    epsilon: float,
    delta: float,
    honest: float = 1.0,
    published: bool = False,
    unit: str = "user",
    account: Account | None = None,
) -> Choice:
    """Find the candidate that most users name by shuffled messages that name candidates (G11).

    The selection of Lemma 36: every user runs Algorithm 7 in every bucket on whether they do *not*
    name it, Algorithm 8 counts, and the largest difference to the number of users wins. No count is
    above the truth, so with probability 1 - beta the winner has at most
    ``report.error_bound(beta)`` votes less than the best, whatever the number of candidates.

    Parameters
    ----------
    keys : array of int64
        As for :func:`local_choice`; their number is public.
    candidates : int
        At most 2^14.
    epsilon, delta : float
        The guarantee against those who see the shuffled messages.
    honest : float, default=1.0
        Share of the users who add their noise; public.
    published : bool, default=False
        Whether to use the constants of Corollary 40 with half of the budget for each of two
        buckets, instead of the least noise that satisfies the guarantee.
    unit : str, default="user"
    account : Account or None, default=None
        The account to charge, with a reserve of ``delta``; by default a new one for this choice.

    Examples
    --------
    >>> choice = bucket_choice(np.full(200, 5), candidates=64, epsilon=1.0, delta=1e-6)
    >>> choice.key, choice.report.error_bound(0.05) < 60
    (5, True)
    """
    keys = _of_each(keys, account)
    counts = bucket_reports(
        len(keys),
        candidates=candidates,
        epsilon=epsilon,
        delta=delta,
        honest=honest,
        published=published,
    )
    totals = counts.messages(keys, account=account)
    deviation = np.full(candidates, counts.noise.deviation)
    votes = EstimatedVotes(np.arange(candidates), counts.counts(totals), deviation, len(keys))
    return Choice(counts.choose(totals), votes, replace(counts.guarantee, unit=unit), counts)


@dataclass(frozen=True)
class _Promise:
    """The privacy cost of all reports for each user, by adversary."""

    event: Pure | Approximate
    trust: Trust
    unit: str
    relation: Relation = Relation.REPLACE


def _of_each(
    keys: Ballots | NDArray[np.int64], account: Account | None, *, wide: bool = False
) -> NDArray[np.int64]:
    """Return each user's candidate; in a real collection only the user's device knows it."""
    if isinstance(keys, Ballots):
        if account is not None:
            account.check_seal(keys)
        keys = opened(keys)
    return candidates_of(keys, wide=wide)


def _choose(
    keys: NDArray[np.int64],
    response: HashedResponse,
    promise: _Promise,
    account: Account | None,
) -> Choice:
    noise = noise_for(Account.of_release(account, promise), promise.event)
    reports = response.from_words(keys, noise.uniform_words(len(keys) * response.words))
    votes = find_popular(reports, response)
    guarantee = Guarantee(
        epsilon=promise.event.epsilon,
        delta=getattr(promise.event, "delta", 0.0),
        unit=promise.unit,
        relation=promise.relation,
        trust=promise.trust,
        numerics=noise.numerics,
        events=(promise.event,),
    )
    return Choice(votes.winner, votes, guarantee, response)
