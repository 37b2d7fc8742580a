r"""How many users a parity needs, and into how many parts they are divided (K4).

All decisions depend on public numbers: users, features, epsilon, the desired error and the failure
probability. They are shared by :class:`~quorate.learners.parity_learner.ParityLearner` and the
planner.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from quorate import _validate
from quorate.mechanisms.linear_equations import full_rank_probability
from quorate.mechanisms.parity import SolveParity

__all__ = [
    "INPUTS",
    "ParityPlan",
    "any_inputs_plan",
    "published_plan",
    "run_success",
    "uniform_plan",
]

INPUTS = ("uniform", "any")
"""Whether features are independent fair coins, or follow any distribution."""


@dataclass(frozen=True)
class ParityPlan:
    """A plan: some runs on parts of the users, and a test on the rest."""

    runs: int
    part: int
    test: int

    @property
    def users(self) -> int:
        """The number of users that the plan needs."""
        return self.runs * self.part + self.test

    def stretched(self, users: int) -> ParityPlan:
        """Return the plan for more users: larger parts, and the rest for the test.

        >>> ParityPlan(runs=4, part=10, test=20).stretched(71)
        ParityPlan(runs=4, part=12, test=23)
        """
        part = (users - self.test) // self.runs
        return ParityPlan(self.runs, part, users - self.runs * part)


def run_success(solver: SolveParity, rows: int) -> float:
    """Return the probability that one run on uniform rows finds the parity.

    The run must not stop at once, and the rows that it keeps must have full rank.

    >>> round(run_success(SolveParity(features=64, epsilon=1.0), 214), 3)
    0.788
    """
    from scipy.stats import binom

    # With 64 equations more than unknowns a run fails with chance 2^-64; with more, less often.
    last = solver.features + 64
    kept = np.arange(solver.features, min(rows, last) + 1)
    if not len(kept):
        return 0.0
    chances = binom.pmf(kept, rows, solver.keep)
    ranks = [full_rank_probability(int(k), solver.features) for k in kept]
    beyond = binom.sf(last, rows, solver.keep) * full_rank_probability(last, solver.features)
    return float((1 - solver.stop) * (np.dot(chances, ranks) + beyond))


def uniform_plan(solver: SolveParity, *, beta: float) -> ParityPlan:
    r"""Return the plan that recovers a parity of uniform inputs except with probability ``beta``.

    Parts of :math:`1.3(d+12)/p` rows keep enough equations. With k runs it is unlikely that all of
    them stop or fail (``beta / 3``). The test distinguishes the parity from wrong solutions, which
    err on half of all inputs.

    >>> uniform_plan(SolveParity(features=256, epsilon=1.0), beta=0.01).users
    3065
    """
    _validate.probability(beta=beta)
    part = math.ceil(1.3 * (solver.features + 12) / solver.keep)
    runs = max(1, math.ceil(math.log(beta / 3) / math.log1p(-run_success(solver, part))))
    test = math.ceil(2 * (2 / solver.epsilon) * math.log(3 * runs / beta)) + 20
    return ParityPlan(runs, part, test)


def any_inputs_plan(solver: SolveParity, *, alpha: float, beta: float) -> ParityPlan:
    r"""Return the plan for errors of at most ``alpha`` on any inputs, except with chance ``beta``.

    With parts of :math:`n' = (d \ln 2 + \ln 4)/(p\alpha')` rows, a run that answers errs by at most
    :math:`\alpha' = \alpha/5` with probability 3/4 (Lemma 4.1 of the paper with a union bound). In
    the test, by Chernoff, a candidate of error :math:`\alpha/5` makes at most :math:`0.45\alpha`
    mistakes per row and one of error :math:`\alpha` at least :math:`0.7\alpha`, and the private
    choice is off by less than the difference of :math:`\alpha/4`. These are three events of ``beta
    / 3``.

    >>> any_inputs_plan(SolveParity(features=64, epsilon=1.0), alpha=0.05, beta=0.05).users
    51735
    """
    _validate.probability(alpha=alpha, beta=beta)
    part = math.ceil((solver.features * math.log(2) + math.log(4)) / (solver.keep * alpha / 5))
    runs = math.ceil(math.log(beta / 3) / math.log1p(-0.75 * (1 - solver.stop)))
    each = math.log(3 * (runs + 1) / beta)
    good = each / _divergence(0.45 * alpha, 0.2 * alpha)
    bad = each / _divergence(0.7 * alpha, alpha)
    choice = 2 / solver.epsilon * math.log(3 * runs / beta) / (0.25 * alpha)
    return ParityPlan(runs, part, math.ceil(max(good, bad, choice)))


def published_plan(solver: SolveParity, *, alpha: float, beta: float) -> ParityPlan:
    r"""Return the sizes of Theorem 4.4 as printed, with the constants of its proof.

    With :math:`\alpha' = \alpha/5` and :math:`\beta' = \beta/3` (step 1 prints a half, the proof
    uses three events) there are :math:`k = \lceil\log_{4/3}(1/\beta')\rceil` runs, because each
    succeeds with probability 1/4. Parts have :math:`8(d\ln2 + \ln4)/(\varepsilon\alpha')` rows
    (Lemma 4.1). The test has :math:`\max(10, k/\varepsilon)\ln(k/\beta')/\alpha'` rows, by Chernoff
    and by the tail of Laplace noise of scale :math:`k/(s\varepsilon)`.

    >>> solver = SolveParity(features=4, epsilon=0.5, published=True)
    >>> published_plan(solver, alpha=0.25, beta=0.05)
    ParityPlan(runs=15, part=1331, test=4082)
    """
    _validate.probability(alpha=alpha, beta=beta)
    good, third = alpha / 5, beta / 3
    part = math.ceil(8 * (solver.features * math.log(2) + math.log(4)) / (solver.epsilon * good))
    runs = math.ceil(math.log(1 / third) / math.log(4 / 3))
    test = max(10, runs / solver.epsilon) * math.log(runs / third) / good
    return ParityPlan(runs, part, math.ceil(test))


def _divergence(a: float, b: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli variables."""
    return a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b))
