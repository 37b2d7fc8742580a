r"""Private choices among keys that cannot be listed: closed operations of the account.

Users vote for keys; which keys have votes is private. Two mechanisms can release such keys.

*All keys of a universe* (G8). Key u with :math:`c_u` votes is drawn with probability proportional
to :math:`e^{\lambda c_u}`; keys without votes may be drawn too. Proof: this is the exponential
mechanism on the whole universe, whose loss is at most :math:`\lambda` times the spread of the votes
(:mod:`quorate.core.account.along_a_line`). Few keys have votes, and all others are equivalent, so
the law has few pieces: keys with equal counts form one piece, and all keys without votes another
one; within a piece all keys are equally likely. For exact sampling see
``docs/proofs/ordered_choice.md``.

*Popular keys* (G9). Every count of a key with votes gets discrete Laplace noise of scale s that is
truncated at plus and minus A; keys whose noisy count is above A are published with it. Proof: let
:math:`\delta_1 = P(Z = A)`. If a count moves by one, the densities of its noisy value differ by a
factor of at most :math:`e^{1/s}`, except at one end of the range of the noise, whose mass is
:math:`\delta_1`. A count that changes from 0 to 1 is above A only if Z = A, again with probability
:math:`\delta_1`. A key that is not published has a noisy count in a fixed set of values; for a
count of 0 this is certain. So the parts of the two laws that are within :math:`e^{1/s}` of each
other have mass at least :math:`1-\delta_1`. If a user changes k votes, each in a count with
independent noise, the cost is :math:`\varepsilon = k/s` and
:math:`\delta = 1 - (1 - \delta_1)^k`. A key without votes never appears.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np

from quorate._validate import exact, float_down, float_up
from quorate.core.account.account import Account, noise_for, sample_for
from quorate.core.guarantees import Approximate
from quorate.core.noise import NoiseSource
from quorate.core.noise.exact_decisions import exp_enclosure
from quorate.core.noise.exponential import choose_heavy
from quorate.core.questions.ballots import SealedVotes
from quorate.core.questions.votes import Key, sorted_votes
from quorate.core.sealed import check_sealed, opened

__all__ = [
    "cut_off_scale",
    "draw_key",
    "largest_mass",
    "listed",
    "popular_event",
    "popular_keys",
    "unseen_key",
]

# Digits of the enclosures beside those that the mass itself needs.
_BITS = 128


def draw_key(votes: SealedVotes, *, size: int, rate: Fraction, account: Account) -> int:
    """Return a key below ``size`` with nearly the most votes, chosen among all keys.

    >>> from quorate.core.by_hand import votes_by_hand
    >>> votes, account = votes_by_hand([10**18] * 60 + [3, 4]), Account.open(epsilon=4.0)
    >>> draw_key(votes, size=2**64, rate=Fraction(2), account=account), account.left
    (1000000000000000000, Fraction(0, 1))
    """
    check_sealed(votes, SealedVotes)
    account.check_seal(votes)
    counts = listed(opened(votes), size)
    seen = list(counts)

    def draw(noise: NoiseSource) -> int:
        # Keys with equally many votes share a piece; those without votes come first.
        groups: dict[int, list[int]] = {}
        for key, count in counts.items():
            groups.setdefault(count, []).append(key)
        lengths = [size - len(seen), *(len(keys) for keys in groups.values())]
        losses = [0, *(-count for count in groups)]
        piece = choose_heavy(lengths, losses, rate=rate, noise=noise)
        place = noise.uniform_below(lengths[piece])
        if piece == 0:
            return unseen_key(place, seen)
        return groups[-losses[piece]][place]

    return sample_for(
        account,
        "universe_choice",
        draw,
        held=counts,
        loss=rate * votes.moves.spread,
        rate=rate,
        size=size,
    )


def popular_keys(
    votes: SealedVotes, *, epsilon: float | Fraction, reach: int, account: Account
) -> dict[Key, int]:
    """Return the keys whose noisy count is above ``reach``, in order, with these counts.

    >>> from quorate.core.by_hand import votes_by_hand
    >>> votes = votes_by_hand(["tea"] * 200 + ["mate"] * 3 + ["coffee"] * 90)
    >>> account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-6)
    >>> list(popular_keys(votes, epsilon=1.0, reach=27, account=account))
    ['coffee', 'tea']
    """
    check_sealed(votes, SealedVotes)
    account.check_seal(votes)
    moved = int(votes.moves.l1)
    noise = noise_for(account, popular_event(epsilon, reach, moved=moved))
    return _above(opened(votes), cut_off_scale(epsilon, moved=moved), reach, noise)


def _above(
    votes: Mapping[Key, int], scale: float, reach: int, noise: NoiseSource
) -> dict[Key, int]:
    counts = sorted_votes(votes)
    values = np.array(list(counts.values()), dtype=np.int64)
    noisy = noise.truncated_laplace(values, scale=scale, reach=reach)
    pairs = zip(counts, noisy.tolist(), strict=True)
    return {key: count for key, count in pairs if count > reach}


def cut_off_scale(epsilon: float | Fraction, *, moved: int) -> float:
    """Return the scale of the noise before truncation, rounded up.

    >>> cut_off_scale(0.5, moved=2)
    4.0
    """
    return float_up(moved / Fraction(float_down(epsilon)))


def popular_event(epsilon: float | Fraction, reach: int, *, moved: int) -> Approximate:
    """Return the event of popular keys, if one user changes ``moved`` votes.

    >>> popular_event(1.0, 14, moved=1)
    Approximate(epsilon=1.0, delta=3.84...e-07)
    """
    failure = _failure(reach, scale=cut_off_scale(epsilon, moved=moved), moved=moved)
    return Approximate(float_down(epsilon), float_up(failure))


@lru_cache(maxsize=1024)
def _failure(reach: int, *, scale: float, moved: int) -> Fraction:
    return 1 - (1 - largest_mass(reach, scale=scale)) ** moved


def largest_mass(reach: int, *, scale: float) -> Fraction:
    r"""Return the probability, rounded up, that truncated noise is ``reach``, its largest value.

    With :math:`q = e^{-1/s}` it is :math:`q^A (1-q) / (1 + q - 2 q^{A+1})`.

    >>> round(float(largest_mass(14, scale=1.0)), 9)
    3.84e-07
    """
    rate = 1 / exact(scale)
    bits = _BITS + math.ceil(rate * reach * 3 / 2)
    one = 1 << bits
    q_low = exp_enclosure(rate, bits=bits)[0]
    above = exp_enclosure(rate * (reach + 1), bits=bits)[1]
    at = exp_enclosure(rate * reach, bits=bits)[1]
    return Fraction(at * (one - q_low), one * (one + q_low - 2 * above))


def listed(votes: Mapping[Key, int], size: int) -> dict[int, int]:
    """Return the votes for keys below ``size``, in the order of keys.

    >>> listed({4: 1, 3: 2, "a": 7, 9: 1}, 8)
    {3: 2, 4: 1}
    """
    return {int(key): count for key, count in sorted_votes(votes, size=size).items()}


def unseen_key(rank: int, seen: list[int]) -> int:
    """Return the unseen key with ``rank`` smaller unseen keys; ``seen`` is sorted.

    >>> [unseen_key(rank, [0, 3, 4, 9]) for rank in range(6)]
    [1, 2, 5, 6, 7, 8]
    """
    return rank + bisect_right([key - place for place, key in enumerate(seen)], rank)
