"""Protocols in one process: what analysts try out and what learners call.

The very randomizers that clients run answer here for a whole array of users at once; only wires and
processes are missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.accounting.account import Account
from quorate.exceptions import NotEnoughUsersError
from quorate.guarantees import Approximate, Guarantee, Pure, Relation, Trust
from quorate.protocols.randomizers.counts import Votes
from quorate.protocols.randomizers.hashed import HashedResponse, candidates_of
from quorate.protocols.randomizers.prefixes import find_popular
from quorate.protocols.reliability import shuffled_response

__all__ = ["Choice", "honest_users", "local_choice", "shuffle_choice"]


@dataclass(frozen=True)
class Choice:
    """The crowd's choice and what was promised to each user.

    Parameters
    ----------
    key : int
        The candidate with the most estimated votes.
    votes : Votes
        Estimates of the most popular candidates, with standard errors.
    guarantee : Guarantee
        Against whoever sees the reports (local) or the shuffled reports (shuffle).
    report : HashedResponse
        The randomizer that every user ran.

    Examples
    --------
    >>> choice = local_choice(np.full(800, 77), candidates=2**14, epsilon=2.0)
    >>> choice.key, choice.guarantee.trust.name
    (77, 'LOCAL')
    """

    key: int
    votes: Votes
    guarantee: Guarantee
    report: HashedResponse


def local_choice(
    keys: NDArray[np.int64],
    *,
    candidates: int,
    epsilon: float,
    unit: str = "user",
    account: Account | None = None,
) -> Choice:
    """Find the candidate that most users name, trusting nobody: one report a user.

    Parameters
    ----------
    keys : array of int64
        One candidate a user; anything outside 0, ..., ``candidates`` - 1 is a user without one.
    candidates : int
        At most 2^63.
    epsilon : float
        Of each user.
    unit : str, default="user"
    account : Account or None, default=None
        What pays; by default one that is opened for this choice.

    Examples
    --------
    >>> local_choice(np.full(2000, 5), candidates=2**32, epsilon=2.0).key
    5
    """
    response = HashedResponse(candidates=candidates, epsilon=epsilon)
    promise = _Promise(response.event, Trust.LOCAL, unit)
    return _choose(candidates_of(keys), response, promise, account)


def honest_users(n_users: int, *, honest: float) -> int:
    """Return how many reports surely hide the others; refuse if none does.

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
    keys: NDArray[np.int64],
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
        What whoever sees the shuffled reports may learn about one user.
    honest : float, default=1.0
        Share of the users whose reports hide the others; public.
    unit : str, default="user"
    account : Account or None, default=None
        What pays, with a reserve of ``delta``; by default one that is opened for this choice.

    Examples
    --------
    >>> shuffle_choice(np.full(200, 5), candidates=2**14, epsilon=1.0, delta=1e-6).key
    5
    """
    keys = candidates_of(keys)
    hiding = honest_users(len(keys), honest=honest)
    response = shuffled_response(int(candidates), float(epsilon), float(delta), hiding)
    promise = _Promise(Approximate(epsilon, delta), Trust.SHUFFLE, unit)
    return _choose(keys, response, promise, account)


@dataclass(frozen=True)
class _Promise:
    """What the reports of all users cost each of them, against whom."""

    event: Pure | Approximate
    trust: Trust
    unit: str
    relation: Relation = Relation.REPLACE


def _choose(
    keys: NDArray[np.int64],
    response: HashedResponse,
    promise: _Promise,
    account: Account | None,
) -> Choice:
    noise = Account.of_release(account, promise).pay(promise.event)
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
