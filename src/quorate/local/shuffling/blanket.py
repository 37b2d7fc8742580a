r"""The privacy of n shuffled reports, by the privacy blanket with bounded tails.

Write a hashed report as a mixture: with probability :math:`\gamma = 1 - k` it is a uniform triple
of level, masks and answer, whoever sends it. Assume that the adversary sees every report of the
other users that is *not* uniform, and the number of these reports. Then :math:`C \sim Bin(n - 1,
\gamma)` uniform reports hide the user's own report. With it there are :math:`M = C + 1` reports
[1]_. Against uniform reports, the shuffled M have the density :math:`\frac1M \sum_i f_x(z_i)` with
:math:`f_x = \gamma + (1 - \gamma) l\,[y = h_a(x)]` and :math:`l = 2^s`. So two candidates are
distinguished by at most

.. math::
   \delta(\varepsilon) \le E_C \frac1M E \max\bigl(0,\; \gamma M (1 - e^\varepsilon)
   + (1 - \gamma) l\,(N_b + N_0 - e^\varepsilon (N_b + N_1))\bigr),

where :math:`N_b` reports agree with both candidates and :math:`N_0, N_1` with one of them only. Two
candidates that differ have equal hashes with probability exactly :math:`1/l`, so
:math:`(N_b, N_0, N_1)` is multinomial with chances
:math:`1/l^2, (l - 1)/l^2, (l - 1)/l^2`, and the formula is symmetric in the two candidates. With
several levels a pair of candidates with the same first prefixes cannot be distinguished by a share
of the reports; every such share is priced and the worst one is used.

The sum is truncated as follows, always upwards:

* in C: the inner value is a divergence that falls when one more uniform report is added, because
  this is post-processing. So a block of values of C is priced by its smallest one, and values of C
  below all blocks by :math:`1 - \gamma`, the total variation of one report;
* in :math:`S = N_0 + N_1`: the part outside a window is bounded by Chernoff's inequality, times
  :math:`(1 - \gamma) l`, the largest inner value;
* in :math:`N_b`: the inner value falls with :math:`N_b`, so a block is also priced by its smallest
  value;
* sums have positive terms with a relative error below 1e-7; the result is multiplied by 1 + 1e-6.

A user without a candidate sends a uniform report. Give every report a uniform tag, and let a
*balanced* function of masks and tag replace the hash of a candidate: a function that takes each of
the l answers for an l-th of the tags, whatever the masks are. Averaged over all balanced functions
its report is uniform. For each such function its answer is uniform and equals a candidate's hash
with probability exactly 1/l, so the formula holds; and a divergence is convex. So the bound covers
such users too.

n is the number of honest users. All other reports may be arbitrary, and the adversary sees them.

References
----------
.. [1] Balle, Bell, Gascón, Nissim. The privacy blanket of the shuffle model. arXiv:1903.02837v2,
   Section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import NumericalFailure
from quorate.local.randomizers.hashed import COIN_BITS, MAX_WIDTH, keep_threshold

__all__ = ["amplified_epsilon", "blanket_delta"]

Floats = NDArray[np.float64]

MAX_USERS = 100_000  # machine: time; more users only lower the price
"""More honest users are priced as this many, which is never too little."""

_OUTSIDE = math.log(1e-18)  # machine: below the rounding of a sum of floats near 1
"""Outcomes with at most this probability are cut off, and their probability is added to delta."""
_INFLATION = 1 + 1e-6
_BLOCKS = 24
_TABLE = 512
"""Tails of fair coins are kept for fewer throws than this."""
_STEP = 1e-4
"""Epsilons of reports are multiples of this."""


def blanket_delta(epsilon: float, *, users: int, width: int, keep: float, levels: int = 1) -> float:
    """Return the delta of shuffled reports of ``users`` honest users at ``epsilon``.

    Parameters
    ----------
    epsilon : float
    users : int
        Honest users, including the one who is protected.
    width : int
        Bits of an answer.
    keep : float
        Probability that a report is the user's true hash instead of random coins.
    levels : int, default=1
        The number of prefix lengths in the reports.

    Examples
    --------
    >>> loose = blanket_delta(1.0, users=100, width=5, keep=0.3)
    >>> tight = blanket_delta(1.0, users=400, width=5, keep=0.3)
    >>> 0 < tight < loose < 0.3
    True
    """
    _validate.positive(epsilon=epsilon)
    _validate.positive_integer(users=users, width=width, levels=levels)
    _validate.fraction(keep=keep)
    if keep == 0:
        return 0.0
    if keep == 1:
        return 1.0
    others = min(int(users), MAX_USERS) - 1
    problems = [
        _Reduced(math.exp(epsilon), 2**width, float(keep), same / levels) for same in range(levels)
    ]
    total = max(_average(problem, others) for problem in problems)
    if not math.isfinite(total):
        raise NumericalFailure("The privacy blanket could not be computed; nothing is claimed.")
    return min(1.0, total * _INFLATION)


def _average(problem: _Reduced, others: int) -> float:
    """Return an upper bound of the divergence over all sizes of the blanket."""
    alone = problem.value(1)
    if others == 0 or alone == 0.0:
        return alone
    starts = _block_starts(others, 1 - problem.keep)
    chances = _block_chances(starts, others, 1 - problem.keep)
    values = np.array([problem.value(int(start) + 1) for start in starts])
    return float(np.sum(chances[1:] * values)) + float(chances[0]) * problem.keep


@lru_cache(maxsize=256)
def amplified_epsilon(
    epsilon: float, delta: float, *, users: int, width: int, levels: int = 1
) -> float:
    """Return the largest epsilon of one report for which shuffled reports are (eps, delta)-DP.

    >>> amplified_epsilon(1.0, 1e-6, users=100, width=5)
    2.6...
    """
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    _validate.positive_integer(users=users)
    _validate.one_of(tuple(range(1, MAX_WIDTH + 1)), width=width)

    def excess(steps: int) -> float:
        """Return the logarithm of the cost minus the logarithm of delta."""
        keep = keep_threshold(steps * _STEP, width) / 2**COIN_BITS
        found = blanket_delta(epsilon, users=users, width=width, keep=keep, levels=levels)
        return math.log(max(found, 1e-300) / delta)

    # A report of the epsilon itself needs no shuffler.
    low = math.floor(epsilon / _STEP)
    high = low + math.ceil((2 * math.log(users + 1) + 1) / _STEP)
    if low < 1 or (below := excess(low)) > 0:
        return float(epsilon)
    if (above := excess(high)) <= 0:
        return max(float(epsilon), float(round(high * _STEP, 4)))
    halve = False
    while high - low > 1:
        # The logarithm is nearly straight: a secant, and every second time a half, to be safe.
        share = 0.5 if halve else min(0.98, max(0.02, below / (below - above)))
        middle = min(high - 1, max(low + 1, low + round(share * (high - low))))
        price = excess(middle)
        if price <= 0:
            low, below = middle, price
        else:
            high, above = middle, price
        halve = not halve
    return max(float(epsilon), float(round(low * _STEP, 4)))


@dataclass(frozen=True)
class _Reduced:
    """The problem that remains: among M uniform reports, the user's report replaces one."""

    factor: float
    answers: int
    keep: float
    same: float

    def value(self, reports: int) -> float:
        """Return an upper bound of the divergence with ``reports`` reports in all."""
        answers, largest = self.answers, self.keep * self.answers
        once = 2 * (1 - self.same) * (answers - 1) / answers**2
        both = self.same / answers + (1 - self.same) / answers**2
        low, high, outside = _window(reports, once)
        sums = np.arange(low, high + 1)
        masses = np.exp(_log_binomial(sums, reports, once))
        starts = _both_starts(reports, both)
        # Matches with both candidates, given how many match exactly one of them.
        chances = _both_chances(starts, reports - sums, both / (1 - once))
        shift = (self.factor - 1) * (starts + (1 - self.keep) * reports / largest)
        inner = _expected_excess(sums, shift, self.factor)
        mean = float(np.sum(masses[:, np.newaxis] * chances * inner))
        return min(self.keep, largest * (mean / reports + outside))


def _expected_excess(sums: NDArray[np.int64], shift: NDArray[Any], factor: float) -> Floats:
    """Return E max(0, (1 + e) N - e S - shift) with N ~ Bin(S, 1/2), for all S and shifts."""
    needed = factor * sums[:, np.newaxis] + shift
    first = np.floor(needed / (1 + factor)).astype(np.int64) + 1
    at_least, weighted = (_table_tails if sums[-1] < _TABLE else _large_tails)(sums, first)
    return np.asarray(np.maximum((1 + factor) * weighted - needed * at_least, 0.0))


def _table_tails(sums: NDArray[np.int64], first: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return P(N >= first) and E[N; N >= first] for N ~ Bin(S, 1/2), S small, by a table."""
    at_least, weighted = _fair_tails()
    rows, columns = sums[:, np.newaxis], np.minimum(first, _TABLE)
    return at_least[rows, columns], weighted[rows, columns]


@cache
def _fair_tails() -> tuple[Floats, Floats]:
    """Return the tails of fewer than _TABLE fair coins, one row for each number of throws."""
    draws = np.arange(_TABLE)
    masses = np.exp(_log_binomial(draws, draws[:, np.newaxis], 0.5))
    tails = [np.cumsum(terms[:, ::-1], axis=1)[:, ::-1] for terms in (masses, masses * draws)]
    at_least, weighted = (np.pad(tail, ((0, 0), (0, 1))) for tail in tails)
    return at_least, weighted


def _large_tails(sums: NDArray[np.int64], first: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the tails for many throws: E[N; N >= j] = S/2 P(Bin(S - 1, 1/2) >= j - 1)."""
    from scipy.special import bdtrc

    throws = np.broadcast_to(sums[:, np.newaxis], first.shape)
    place = np.minimum(first, throws + 1)
    at_least = np.where(place > throws, 0.0, bdtrc(place - 1.0, throws, 0.5))
    fewer = np.maximum(throws - 1, 1)
    rest = np.where(place > throws, 0.0, bdtrc(np.minimum(place - 2.0, fewer), fewer, 0.5))
    return at_least, throws / 2 * rest


def _log_binomial(k: NDArray[np.int64], n: NDArray[np.int64] | int, chance: float) -> Floats:
    from scipy.special import gammaln

    n = np.asarray(n, dtype=np.float64)
    rest = n - k
    logs = gammaln(n + 1) - gammaln(k + 1.0) - gammaln(np.maximum(rest, 0.0) + 1)
    logs = logs + k * math.log(chance) + rest * math.log1p(-chance)
    return np.where(rest >= 0, logs, -np.inf)


def _window(trials: int, chance: float) -> tuple[int, int, float]:
    """Return an interval of successes and a bound on the probability outside it."""
    counts = np.arange(trials + 1, dtype=np.float64)
    exponent = -trials * _relative_entropy(counts / trials, chance)
    inside = np.flatnonzero(exponent > _OUTSIDE)
    low, high = int(inside[0]), int(inside[-1])
    outside = (math.exp(exponent[low - 1]) if low > 0 else 0.0) + (
        math.exp(exponent[high + 1]) if high < trials else 0.0
    )
    return low, high, outside


def _relative_entropy(share: Floats, chance: float) -> Floats:
    from scipy.special import rel_entr

    return np.asarray(rel_entr(share, chance) + rel_entr(1 - share, 1 - chance))


def _block_starts(trials: int, chance: float) -> NDArray[np.int64]:
    """Return where blocks of blanket sizes start: fine around the mean, the lowest far below it."""
    mean, deviation = trials * chance, math.sqrt(trials * chance * (1 - chance))
    low, _, _ = _window(trials, chance)
    places = np.linspace(low, mean + 1.5 * deviation, _BLOCKS)
    return np.unique(np.clip(np.floor(places), 0, trials).astype(np.int64))


def _block_chances(starts: NDArray[np.int64], trials: int, chance: float) -> Floats:
    """Return the probability below the first block, and of every block."""
    from scipy.special import bdtr

    below = np.where(starts > 0, bdtr(np.maximum(starts - 1, 0), trials, chance), 0.0)
    return np.diff(np.concatenate([[0.0], below, [1.0]])) + 1e-16


def _both_starts(trials: int, chance: float) -> NDArray[np.int64]:
    mean, deviation = trials * chance, math.sqrt(trials * chance)
    places = mean + deviation * np.linspace(-5.0, 5.0, _BLOCKS)
    return np.unique(np.clip(np.floor(np.append(places, 0.0)), 0, trials).astype(np.int64))


def _both_chances(starts: NDArray[np.int64], trials: NDArray[np.int64], chance: float) -> Floats:
    """Return the probability of each block of matches, one row per number of trials."""
    from scipy.special import bdtr

    edges = np.where(
        starts[None, 1:] - 1 >= trials[:, None],
        1.0,
        bdtr(starts[None, 1:] - 1.0, np.maximum(trials, 1)[:, None], chance),
    )
    edges = np.where(trials[:, None] == 0, 1.0, edges)
    ones = np.ones((len(trials), 1))
    return np.asarray(np.diff(np.concatenate([0 * ones, edges, ones], axis=1), axis=1) + 1e-16)
