r"""Private solutions of linear equations: the parity learner and its amplification (K3, K4).

Each user has one equation. Each equation is kept with a probability below 1, which hides whether a
user has it. A uniform solution of the kept equations is released, or nothing. No noise is added to
any number: the only randomness is in the coins that decide which equations are kept, and in the
uniform choice among the solutions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.core.account.account import Account, sample_for
from quorate.core.guarantees import Relation
from quorate.core.noise import NoiseSource
from quorate.core.noise.coins import Coin
from quorate.core.sealed import SealedRows, check_one_row_each, check_rows, opened
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.choices.choose import permute_and_flip_probabilities
from quorate.mechanisms.laws import PiecewiseLaw
from quorate.mechanisms.linear_equations import solve
from quorate.mechanisms.pure import PureMechanism

__all__ = ["AmplifiedParity", "SolveParity"]

Words = NDArray[np.uint64]
Bits = NDArray[np.bool_]
Integers = NDArray[np.int64]

NOTHING = -1
"""Stands for "nothing" where outcomes are integers."""


class _OfEquations(PureMechanism):
    """Checks that both mechanisms share."""

    features: int

    def _check(self) -> None:
        _validate.positive_integer(features=self.features)
        _validate.positive(epsilon=self.epsilon)
        _validate.one_of(tuple(Relation), relation=self.relation)
        # exp(-epsilon) is worked out to as many digits as it has zeros.
        if not 2.0**-40 <= self.epsilon <= 2.0**10:
            raise ParameterError(
                f"Expected 2**-40 <= epsilon <= 2**10, got epsilon={self.epsilon!r}."
            )

    def _check_equations(self, rows: Words, labels: Bits) -> None:
        words = -(-self.features // 64)
        if rows.dtype != np.uint64 or rows.ndim != 2 or rows.shape[1] != words:
            raise SchemaError(f"Expected packed rows of {words} words; see pack_bits.")
        if labels.dtype != np.bool_ or labels.shape != rows.shape[:1]:
            raise SchemaError("Expected one Boolean label for each row.")


@dataclass(frozen=True, kw_only=True)
class SolveParity(_OfEquations):
    r"""Release a solution of the users' linear equations, or nothing.

    With probability s there is no answer. Otherwise each row is kept independently with probability
    p. If the kept equations contradict each other nothing is released, else a uniform point of
    their solution space.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters; under replacement the number of rows. Each user owns one row.
    numerics : exact
    proof : Fix the coins of all other rows. Let :math:`P` be the probability of a solution r if row
        i is not kept. Keeping it leaves the solution space unchanged, halves it, or makes it empty:
        r then has probability :math:`P`, :math:`2P` or 0. So with row i in the data the probability
        of r lies between :math:`(1-p)P` and :math:`(1+p)P`. Replacing the row costs at most
        :math:`\ln\frac{1+p}{1-p} = \varepsilon` for :math:`p = \tanh(\varepsilon/2)`; adding or
        removing it at most :math:`-\ln(1-p) = \varepsilon` for :math:`p = 1 - e^{-\varepsilon}`.
        No answer: one more row can only add contradictions, with probability at most p, so the
        probability of no answer grows from :math:`s + (1-s)b` to at most :math:`s + (1-s)(b +
        p(1-b))`. The ratio is largest at b = 0, where :math:`1 + (1-s)p/s \le e^\varepsilon` for
        :math:`s = p/(p + e^\varepsilon - 1)`, which is :math:`1/(e^\varepsilon+2)` or
        :math:`1/(e^\varepsilon+1)`. Both are tight. [1]_ has :math:`p = \varepsilon/4` and s = 1/2,
        for :math:`\varepsilon \le 1/2` and replacement.

    Utility
    -------
    A parity with an error above :math:`\alpha` is consistent with n independent rows with
    probability at most :math:`(1-p\alpha)^n`. So, if the rows come from a parity, the released one
    errs by at most ``error_bound(beta, rows=n)`` except with probability :math:`\beta`, by a union
    bound over :math:`2^d` parities. With uniform rows it *is* the parity as soon as the kept rows
    have full rank.

    Complexity
    ----------
    Elimination of about p n packed rows: :math:`O(p n d^2/64)` time.

    Parameters
    ----------
    features : int
        Number d of unknowns.
    epsilon : float
    relation : Relation, default=Relation.REPLACE
    published : bool, default=False
        Whether to use p and s of the paper.

    References
    ----------
    .. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011,
       Section 4, Lemma 4.1.

    Examples
    --------
    >>> from quorate.mechanisms.linear_equations import pack_bits
    >>> from quorate.core.public_randomness import public_generator
    >>> X = public_generator(0).integers(0, 2, size=(200, 8)).astype(bool)
    >>> labels = X[:, 0] ^ X[:, 3]
    >>> SolveParity(features=8, epsilon=1.0).release(pack_bits(X), labels) in (0b1001, None)
    True
    """

    features: int
    epsilon: float
    relation: Relation = Relation.REPLACE
    published: bool = False

    def __post_init__(self) -> None:
        self._check()
        if self.published and (self.relation is not Relation.REPLACE or self.epsilon > 0.5):
            raise ParameterError(
                "Expected epsilon <= 1/2 and Relation.REPLACE for the published coins, got "
                f"epsilon={self.epsilon!r}. Use published=False."
            )

    @property
    def sensitivity(self) -> int:
        """The number of rows of one user."""
        return 1

    @property
    def keep(self) -> float:
        """The probability with which a row is kept."""
        return float(exact(self.epsilon) / 4) if self.published else self._keep_coin.probability

    @property
    def stop(self) -> float:
        """The probability of stopping without an answer."""
        return 0.5 if self.published else self._stop_coin.probability

    @property
    def _keep_coin(self) -> Coin:
        # tanh(eps/2) = (1 - q)/(1 + q), or 1 - q.
        return Coin(exact(self.epsilon), 1, -1, 1, int(self.relation is Relation.REPLACE))

    @property
    def _stop_coin(self) -> Coin:
        # 1/(e^eps + 2) = q/(1 + 2 q), or q/(1 + q).
        return Coin(exact(self.epsilon), 0, 1, 1, 2 if self.relation is Relation.REPLACE else 1)

    def release(self, rows: Words, labels: Bits, *, account: Account | None = None) -> int | None:
        """Return a parity as an integer of bits, or None for nothing.

        Parameters
        ----------
        rows : packed rows, see :func:`~quorate.mechanisms.linear_equations.pack_bits`
            One row per user. A user without a record has a row of zeros with label 0, which has no
            effect whether it is kept or not.
        labels : array of bool
        account : Account, optional
            The account to charge; by default a new one for this release.
        """
        self._check_equations(rows, labels)
        outcome = sample_for(
            Account.of_release(account, self),
            "solve_parity",
            lambda noise: self._draw(rows, labels, noise),
            held=lambda: _piecewise(self.probabilities(rows, labels)),
            loss=exact(self.epsilon),
            features=self.features,
        )
        return None if outcome == NOTHING else outcome

    def _draw(self, rows: Words, labels: Bits, noise: NoiseSource) -> int:
        """Throw all coins and return the outcome; the number of draws is public."""
        stop = self._draw_stop(noise)
        kept = self._draw_kept(len(rows), noise)
        free = noise.uniform_below(1 << self.features)
        if stop:
            return NOTHING
        space = solve(rows[kept], labels[kept], unknowns=self.features)
        # The lowest bits of a uniform integer are uniform: as many as there are free unknowns.
        return NOTHING if space is None else space.point(free & ((1 << space.dimension) - 1))

    def _draw_stop(self, noise: NoiseSource) -> bool:
        return bool(noise.uniform_below(2)) if self.published else self._stop_coin.throw_one(noise)

    def _draw_kept(self, count: int, noise: NoiseSource) -> Bits:
        if not self.published:
            return self._keep_coin.throw(count, noise)
        quarter = exact(self.epsilon) / 4
        draws = (noise.uniform_below(quarter.denominator) for _ in range(count))
        return np.fromiter((draw < quarter.numerator for draw in draws), np.bool_, count=count)

    def _kept_law(self, count: int) -> Iterator[tuple[Bits, float]]:
        """Yield every set of rows with the probability that exactly these are kept."""
        for kept in product((False, True), repeat=count):
            weight = self.keep ** sum(kept) * (1 - self.keep) ** (count - sum(kept))
            yield np.array(kept, dtype=np.bool_), weight

    def probabilities(self, rows: Words, labels: Bits) -> NDArray[np.float64]:
        """Return the law of :meth:`release`: of all parities, then of no answer; for audits.

        All 2**n sets of rows are enumerated, so n and d must be small.
        """
        law = np.zeros(2**self.features + 1)
        law[-1] = self.stop
        for kept, weight in self._kept_law(len(rows)):
            space = solve(rows[kept], labels[kept], unknowns=self.features)
            share = (1 - self.stop) * weight
            if space is None:
                law[-1] += share
                continue
            points = [space.point(free) for free in range(2**space.dimension)]
            law[points] += share / len(points)
        return law

    def error_bound(self, beta: float, *, rows: int) -> float:
        """Bound the error of a released parity, except with probability ``beta``.

        >>> round(SolveParity(features=8, epsilon=1.0).error_bound(0.01, rows=1000), 4)
        0.0219
        """
        _validate.probability(beta=beta)
        _validate.positive_integer(rows=rows)
        # (1 - p alpha)^n 2^d = beta.
        survival = math.log(beta) - self.features * math.log(2)
        return -math.expm1(survival / rows) / self.keep


@dataclass(frozen=True, kw_only=True)
class AmplifiedParity(_OfEquations):
    r"""Solve the equations of several parts of the users; choose the best solution by the rest.

    Every row belongs to a part or to the test, by a public choice. The rows of each part are solved
    with :class:`SolveParity`; on the test the mistakes of the solutions are counted, and one
    private choice (permute-and-flip) selects a solution with few mistakes. A run without an answer
    gives no candidate; if no run has an answer, nothing is released.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, and which part a row belongs to. Each user owns one row.
    numerics : exact
    proof : A user's row is in one part or in the test, by a public choice. In a part it changes the
        law of one run by a factor of at most :math:`e^\varepsilon`, and given the answers of all
        runs nothing else depends on it. In the test it changes the mistakes of every candidate by
        at most 1 (all in one direction if it is added), so the choice,
        :class:`~quorate.mechanisms.choices.choose.ChooseBest` with scale :math:`2/\varepsilon`
        (one-sided :math:`1/\varepsilon`), by a factor of at most :math:`e^\varepsilon`, and no run
        depends on it. So the total is :math:`\varepsilon`, not the sum. [1]_ (Theorem 4.4) releases
        noisy errors of all runs with Laplace noise of scale :math:`k/\varepsilon`: ``published``.

    Utility
    -------
    The candidate chosen makes at most ``error_bound(beta)`` more mistakes on the test than the best
    one, except with probability :math:`\beta`.

    Complexity
    ----------
    ``runs`` eliminations, and :math:`O(k \cdot \text{test} \cdot d/64)` for the test.

    Parameters
    ----------
    features : int
        Number d of unknowns.
    epsilon : float
    runs : int
        Number k of parts.
    relation : Relation, default=Relation.REPLACE
    published : bool, default=False
        Whether to use the coins and the noise of the paper.

    References
    ----------
    .. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011,
       Section 4, Theorem 4.4.

    Examples
    --------
    >>> from quorate.mechanisms.linear_equations import pack_bits
    >>> from quorate.core.public_randomness import public_generator
    >>> X = public_generator(0).integers(0, 2, size=(600, 8)).astype(bool)
    >>> labels = X[:, 0] ^ X[:, 3]
    >>> learner = AmplifiedParity(features=8, epsilon=2.0, runs=8)
    >>> learner.release(pack_bits(X), labels, parts=np.arange(600) % 10 - 2)
    9
    """

    features: int
    epsilon: float
    runs: int
    relation: Relation = Relation.REPLACE
    published: bool = False

    def __post_init__(self) -> None:
        self._check()
        _validate.positive_integer(runs=self.runs)
        _ = self.solver

    @property
    def solver(self) -> SolveParity:
        """The mechanism that runs on each part."""
        return SolveParity(
            features=self.features,
            epsilon=self.epsilon,
            relation=self.relation,
            published=self.published,
        )

    @property
    def sensitivity(self) -> int:
        """The largest change of the mistakes of a candidate by one user."""
        return 1

    @property
    def scale(self) -> float:
        """Scale of the noise on mistakes, rounded up."""
        times = 2 if self.relation is Relation.REPLACE else 1
        return float_up((self.runs if self.published else times) / exact(self.epsilon))

    def release(
        self, rows: Words, labels: Bits, *, parts: Integers, account: Account | None = None
    ) -> int | None:
        """Return a parity as an integer of bits, or None if no run answered.

        Parameters
        ----------
        rows, labels
            As for :meth:`SolveParity.release`.
        parts : array of integers
            The run of each row, 0 to ``runs`` - 1; every other number means the test.
        account : Account, optional
            The account to charge; by default a new one for this release.
        """
        self._check_equations(rows, labels)
        if parts.shape != labels.shape or parts.dtype.kind not in "iu":
            raise SchemaError("Expected the number of a part for each row.")
        outcome = sample_for(
            Account.of_release(account, self),
            "amplified_parity",
            lambda noise: self._draw(rows, labels, parts, noise),
            held=lambda: _piecewise(self.probabilities(rows, labels, parts)),
            loss=exact(self.epsilon),
            features=self.features,
            runs=self.runs,
        )
        return None if outcome == NOTHING else outcome

    def release_rows(
        self, equations: SealedRows, *, parts: Integers, account: Account | None = None
    ) -> int | None:
        """Release an answer from sealed rows.

        A row has the packed words of one equation of a user, and its label.

        ``parts`` is public and assigns each position to a part.
        """
        check_rows(equations, self.relation)
        Account.of_release(account, self).check_seal(equations)
        check_one_row_each(equations)
        held = opened(equations)
        labels = held[:, -1] == 1
        words = np.ascontiguousarray(held[:, :-1])
        return self.release(words, labels, parts=parts, account=account)

    def _draw(self, rows: Words, labels: Bits, parts: Integers, noise: NoiseSource) -> int:
        solver = self.solver
        runs = [parts == run for run in range(self.runs)]
        answers = [solver._draw(rows[mine], labels[mine], noise) for mine in runs]
        candidates = self._candidates(answers)
        if not candidates:
            return NOTHING
        scores = -self._mistakes(candidates, rows, labels, parts)
        return candidates[self._choose(scores, noise)]

    def _candidates(self, answers: list[int]) -> list[int]:
        return [answer for answer in answers if answer != NOTHING]

    def _mistakes(
        self, candidates: list[int], rows: Words, labels: Bits, parts: Integers
    ) -> NDArray[np.int64]:
        """Count the test rows that each candidate gets wrong."""
        test = (parts < 0) | (parts >= self.runs)
        rest, expected = rows[test], labels[test]
        counts = []
        for candidate in candidates:
            chosen = np.frombuffer(candidate.to_bytes(8 * rows.shape[1], "little"), dtype="<u8")
            odd = np.bitwise_count(rest & chosen).sum(axis=1) % 2 == 1
            counts.append(np.count_nonzero(odd != expected))
        return np.array(counts, dtype=np.int64)

    def _choose(self, scores: NDArray[np.int64], noise: NoiseSource) -> int:
        if self.published:
            return int(np.argmax(noise.discrete_laplace(scores, scale=self.scale)))
        return noise.permute_and_flip(scores, scale=self.scale)

    def probabilities(self, rows: Words, labels: Bits, parts: Integers) -> NDArray[np.float64]:
        """Return the law of :meth:`release`: of all parities, then of no answer; for audits."""
        if self.published:
            raise ParameterError("Expected published=False: this law is that of one choice.")
        members = [parts == run for run in range(self.runs)]
        runs = [self.solver.probabilities(rows[mine], labels[mine]) for mine in members]
        outcomes = [*range(2**self.features), NOTHING]
        law = np.zeros(len(outcomes))
        for answers in product(outcomes, repeat=self.runs):
            weight = math.prod(run[answer] for run, answer in zip(runs, answers, strict=True))
            candidates = self._candidates(list(answers))
            if not candidates:
                law[NOTHING] += weight
                continue
            scores = -self._mistakes(candidates, rows, labels, parts)
            chances = permute_and_flip_probabilities(scores / self.scale)
            for candidate, chance in zip(candidates, chances, strict=True):
                law[candidate] += weight * chance
        return law

    def error_bound(self, beta: float) -> int:
        """Bound the mistakes beyond those of the best candidate, except with ``beta``."""
        _validate.probability(beta=beta)
        # Permute-and-flip is no worse than P(gap >= t) <= k e^(-t / scale); of two Laplace noises
        # each is within scale ln(k / beta).
        times = 2 if self.published else 1
        return math.ceil(times * self.scale * math.log(self.runs / beta))


def _piecewise(law: NDArray[np.float64]) -> PiecewiseLaw:
    """Return the law of the index of the answer, with -1 for no answer."""
    lengths = np.ones(len(law), dtype=np.int64)
    return PiecewiseLaw(NOTHING, lengths, np.concatenate([law[-1:], law[:-1]]))
