r"""How much the output of a mechanism reveals about its sample: perfect generalisation (F3).

A mechanism is :math:`(\beta, \varepsilon', \delta')`-*sample perfectly generalising* on a
distribution D if its laws on two samples x, x' from D are :math:`(\varepsilon', \delta')`-close
except with probability :math:`\beta` (Definition 12 of [F]_); *perfectly generalising* if the law
on x is close to one law that does not depend on x, here the mean law (Definition 29). Privacy for
single records implies both with :math:`\varepsilon' \approx \varepsilon\sqrt{n}` (Theorems 13 and
31). This is why users can be protected at a cost of :math:`\sqrt m` instead of m.

Here it is measured in simulations: samples are simulated, laws are computed, and nothing about real
people is released. So neither private data nor a budget are needed.

References
----------
.. [F] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
   examples per user. NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.public_randomness import RandomState, public_generator
from quorate.exceptions import ParameterError

__all__ = [
    "ClosenessEstimate",
    "PerfectGeneralisation",
    "calibrated_radius",
    "clopper_pearson",
    "from_samples_to_simulator",
    "from_simulator_to_samples",
    "group_radius",
    "perfect_radius",
    "published_radius",
]

Floats = NDArray[np.float64]

MAX_SAMPLES = 4096
"""More samples than this are not enumerated: all pairs of them are compared."""


@dataclass(frozen=True)
class ClosenessEstimate:
    """The probability that two laws are *not* close, with a confidence interval.

    >>> estimate = ClosenessEstimate(beta=0.05, lower=0.03, upper=0.08, repetitions=500)
    >>> estimate.lower < estimate.beta < estimate.upper
    True
    """

    beta: float
    lower: float
    upper: float
    repetitions: int


@dataclass(frozen=True, kw_only=True)
class PerfectGeneralisation:
    r"""Measure how close a mechanism's laws on independent samples are.

    Parameters
    ----------
    law : callable
        Takes a sample (a sequence of ``records`` values), and returns the probabilities of finitely
        many outputs.
    values : sequence
        The possible records; public.
    probabilities : sequence of float
        The probabilities of the values: the distribution D.
    records : int
        The size n of a sample.
    simulator : bool, default=False
        Compare with the mean law (perfect generalisation) instead of a second sample.

    Examples
    --------
    Example: randomized response for a sum; how close are its laws on two samples of six fair coins?

    >>> def noisy_sum(sample):
    ...     from scipy.stats import binom
    ...     ones, n = sum(sample), len(sample)
    ...     zeros = binom.pmf(np.arange(n + 1), n - ones, 0.25)
    ...     return np.convolve(zeros, binom.pmf(np.arange(n + 1), ones, 0.75))[: n + 1]
    >>> lab = PerfectGeneralisation(
    ...     law=noisy_sum, values=(0, 1), probabilities=(0.5, 0.5), records=4
    ... )
    >>> exact = lab.enumerate(epsilon=1.0, delta=0.05)
    >>> estimate = lab.estimate(epsilon=1.0, delta=0.05, repetitions=300, random_state=0)
    >>> estimate.lower <= exact <= estimate.upper
    True
    """

    law: Callable[[Sequence[Any]], Any] = field(repr=False)
    values: Sequence[Any]
    probabilities: Sequence[float]
    records: int
    simulator: bool = False

    def __post_init__(self) -> None:
        _validate.positive_integer(records=self.records)
        _validate.one_of((True, False), simulator=self.simulator)
        if not callable(self.law):
            raise ParameterError("Expected law to be a function of a sample.")
        masses = np.asarray(self.probabilities, dtype=np.float64)
        if masses.shape != (len(self.values),) or np.any(masses < 0):
            raise ParameterError("Expected one probability of at least zero for each value.")
        if not abs(masses.sum() - 1) < 1e-9:
            raise ParameterError("Expected probabilities that add up to 1.")

    def enumerate(self, *, epsilon: float, delta: float) -> float:
        """Return beta exactly, over all samples; for very small examples."""
        _validate.non_negative(epsilon=epsilon)
        _validate.delta(delta=delta)
        laws, masses = self._all
        if self.simulator:
            far = self._far(laws, self._mean[None, :], epsilon, delta)[:, 0]
            return float(masses @ far)
        return float(masses @ self._far(laws, laws, epsilon, delta) @ masses)

    def estimate(
        self,
        *,
        epsilon: float,
        delta: float,
        repetitions: int = 1000,
        confidence: float = 0.95,
        random_state: RandomState = None,
    ) -> ClosenessEstimate:
        """Estimate beta from simulated samples, with a Clopper-Pearson interval.

        The mean law of the simulator version is exact if all samples can be enumerated; otherwise
        it is estimated from the same number of further samples.
        """
        _validate.non_negative(epsilon=epsilon)
        _validate.delta(delta=delta)
        _validate.positive_integer(repetitions=repetitions)
        one, two = self._simulated(repetitions, random_state)
        far = int(_apart(one, two, epsilon, delta).sum())
        lower, upper = clopper_pearson(far, repetitions, confidence=confidence)
        return ClosenessEstimate(far / repetitions, lower, upper, repetitions)

    def radius(
        self,
        *,
        beta: float,
        delta: float,
        repetitions: int = 1000,
        random_state: RandomState = None,
    ) -> float:
        """Return the smallest epsilon' that holds in all but a share ``beta`` of simulated pairs.

        >>> lab = PerfectGeneralisation(
        ...     law=lambda sample: [0.25 + 0.5 * sample[0], 0.75 - 0.5 * sample[0]],
        ...     values=(0, 1), probabilities=(0.5, 0.5), records=1,
        ... )
        >>> round(lab.radius(beta=0.1, delta=0.0, repetitions=200, random_state=0), 6)
        1.098612
        """
        _validate.probability(beta=beta)
        _validate.delta(delta=delta)
        _validate.positive_integer(repetitions=repetitions)
        one, two = self._simulated(repetitions, random_state)
        losses = np.sort([_smallest_epsilon(p, q, delta) for p, q in zip(one, two, strict=True)])
        return float(losses[min(math.ceil((1 - beta) * repetitions), repetitions) - 1])

    @property
    def _is_enumerable(self) -> bool:
        return self.records * math.log(len(self.values)) <= math.log(MAX_SAMPLES)

    @property
    def _mean(self) -> Floats:
        laws, masses = self._all
        return np.asarray(masses @ laws)

    @cached_property
    def _all(self) -> tuple[Floats, Floats]:
        """Laws and probabilities of all samples."""
        if not self._is_enumerable:
            raise ParameterError(f"Expected at most {MAX_SAMPLES} samples to enumerate; estimate.")
        places = list(product(range(len(self.values)), repeat=self.records))
        laws = np.array([self._law([self.values[i] for i in place]) for place in places])
        chances = np.asarray(self.probabilities, dtype=np.float64)
        return laws, np.array([np.prod(chances[list(place)]) for place in places])

    def _law(self, sample: Sequence[Any]) -> Floats:
        law = np.asarray(self.law(sample), dtype=np.float64)
        if law.ndim != 1 or np.any(law < 0) or not abs(law.sum() - 1) < 1e-9:
            raise ParameterError("Expected law to return probabilities that add up to 1.")
        return law

    def _simulated(self, repetitions: int, random_state: RandomState) -> tuple[Floats, Floats]:
        rng = public_generator(random_state)
        chances = np.asarray(self.probabilities, dtype=np.float64)

        def laws() -> Floats:
            drawn = rng.choice(len(self.values), (repetitions, self.records), p=chances)
            return np.array([self._law([self.values[i] for i in row]) for row in drawn])

        one = laws()
        if not self.simulator:
            return one, laws()
        mean = self._mean if self._is_enumerable else laws().mean(axis=0)
        return one, np.broadcast_to(mean, one.shape)

    @staticmethod
    def _far(laws: Floats, others: Floats, epsilon: float, delta: float) -> NDArray[np.bool_]:
        return np.array([_apart(law[None, :], others, epsilon, delta) for law in laws])


def _apart(one: Floats, two: Floats, epsilon: float, delta: float) -> NDArray[np.bool_]:
    """Return which rows are not (epsilon, delta)-close, up to rounding."""
    factor = math.exp(epsilon)
    there = np.maximum(one - factor * two, 0.0).sum(axis=-1)
    back = np.maximum(two - factor * one, 0.0).sum(axis=-1)
    return np.asarray(np.maximum(there, back) > delta + 1e-12)


def _smallest_epsilon(p: Floats, q: Floats, delta: float) -> float:
    """Return the smallest epsilon at which two laws are (epsilon, delta)-close."""

    def stick(epsilon: float) -> float:
        factor = math.exp(epsilon)
        there = np.maximum(p - factor * q, 0.0).sum()
        return float(max(there, np.maximum(q - factor * p, 0.0).sum()))

    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(p) - np.log(q))[(p > 0) | (q > 0)]
    high = float(ratios.max(initial=0.0))
    if delta == 0 or not math.isfinite(high):
        if delta == 0 or stick(700.0) > delta:
            return high
        high = 700.0
    low = 0.0
    if stick(low) <= delta:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if stick(middle) <= delta else (middle, high)
    return high


def clopper_pearson(hits: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact two-sided interval of a probability after ``hits`` in ``trials``.

    >>> tuple(round(x, 4) for x in clopper_pearson(0, 100))
    (0.0, 0.0362)
    """
    from scipy.stats import beta

    _validate.non_negative_integer(hits=hits)
    _validate.positive_integer(trials=trials)
    _validate.probability(confidence=confidence)
    side = (1 - confidence) / 2
    lower = 0.0 if hits == 0 else float(beta.ppf(side, hits, trials - hits + 1))
    upper = 1.0 if hits >= trials else float(beta.ppf(1 - side, hits + 1, trials - hits))
    return lower, upper


def published_radius(
    *,
    epsilon: float,
    delta: float,
    records: int,
    beta: float | None = None,
    log_inverse_beta: float | None = None,
) -> tuple[float, float]:
    r"""Return the radius of Theorem 13 of [F]_ with the constants of its proof.

    It is :math:`40\varepsilon\sqrt{n\ln(1/\delta)} + 2\varepsilon\sqrt{8n\ln(1/(2\beta))}`: Lemma
    35 with :math:`\tau = 100\ln(1/\delta)` at the ratio :math:`2\varepsilon`, two halves; then
    Talagrand's inequality on 2n coordinates, and group privacy in both directions. The second
    returned number is n delta, whose constant the proof does not state. The result is at most that
    of group privacy over all n records, :math:`n\varepsilon`. ``log_inverse_beta`` allows a beta
    too small for a float.

    >>> tuple(round(x, 6) for x in published_radius(
    ...     epsilon=1e-4, delta=1e-9, records=10_000, beta=0.05
    ... ))
    (1.0, 1e-05)
    >>> round(published_radius(epsilon=1e-6, delta=1e-9, records=10**8, beta=0.05)[0], 3)
    1.907
    """
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    _validate.positive_integer(records=records)
    if (beta is None) == (log_inverse_beta is None):
        raise ParameterError("Expected either beta or log_inverse_beta.")
    if beta is not None:
        _validate.probability(beta=beta)
        log_inverse_beta = -math.log(beta)
    spread = max(0.0, (log_inverse_beta or 0.0) - math.log(2))
    mean = 40 * epsilon * math.sqrt(records * math.log(1 / delta))
    boost = 2 * epsilon * math.sqrt(8 * records * spread)
    return min(mean + boost, records * epsilon), records * delta


def from_simulator_to_samples(
    *, beta: float, epsilon: float, delta: float
) -> tuple[float, float, float]:
    r"""Convert perfect generalisation to closeness of two samples: Lemma 30 of [F]_, first half.

    Both samples are close to the simulator except with probability
    :math:`1-(1-\beta)^2 = 2\beta-\beta^2`, and then

    .. math:: P[A(x) \in S] \le e^\varepsilon(e^\varepsilon P[A(x') \in S] + \delta) + \delta:

    The laws are :math:`(2\varepsilon, (1+e^\varepsilon)\delta)`-close, at most :math:`3\delta` for
    :math:`\varepsilon \le \ln 2`. (In print the probability stays :math:`\beta`. This cannot hold:
    let each of a share :math:`\beta` of the samples have a law of its own.)

    >>> from_simulator_to_samples(beta=0.1, epsilon=0.0, delta=0.01)
    (0.19, 0.0, 0.02)
    """
    _check_closeness(beta, epsilon, delta)
    both = 1.0 - (1.0 - beta) ** 2
    return round(both, 15), 2.0 * epsilon, min(1.0, (1.0 + math.exp(min(epsilon, 700.0))) * delta)


def from_samples_to_simulator(
    *, beta: float, epsilon: float, delta: float
) -> tuple[float, float, float]:
    r"""Convert closeness of samples to that of a sample and the mean law: Lemma 30 of [F]_.

    By Markov's inequality all but a share :math:`\sqrt\beta` of the samples are close to all but a
    share :math:`\sqrt\beta` of the others, and so to the mean of their laws with that much more
    delta: :math:`(\sqrt\beta, \varepsilon, \delta + \sqrt\beta)`.

    >>> from_samples_to_simulator(beta=0.01, epsilon=0.5, delta=0.01)
    (0.1, 0.5, 0.11)
    """
    _check_closeness(beta, epsilon, delta)
    share = math.sqrt(beta)
    return share, epsilon, min(1.0, delta + share)


def _check_closeness(beta: float, epsilon: float, delta: float) -> None:
    _validate.fraction(beta=beta)
    _validate.non_negative(epsilon=epsilon)
    _validate.delta(delta=delta)


def perfect_radius(
    *, epsilon: float, delta: float, records: int, beta: float
) -> tuple[float, float]:
    r"""Return the radius of Theorem 31 of [F]_: a private mechanism is perfectly generalising.

    Theorem 13 (:func:`published_radius`) at the probability :math:`\min(\beta, n\delta)^2`, of
    which Lemma 30 (:func:`from_samples_to_simulator`) takes the square root: with probability
    :math:`1-\beta` the law on a sample is :math:`(\varepsilon', 2n\delta)`-close to the mean law,
    with :math:`\varepsilon' = O(\varepsilon\sqrt{n\ln(1/(\beta\delta))})`. The constant of
    :math:`n\delta` in Theorem 13 is set to 1.

    >>> radius, slack = perfect_radius(epsilon=1e-6, delta=1e-12, records=10**8, beta=0.05)
    >>> round(radius, 3), round(slack, 9)
    (2.341, 0.0002)
    """
    _validate.probability(beta=beta)
    _validate.probability(delta=delta)
    _validate.positive_integer(records=records)
    share = min(math.log(beta), math.log(records) + math.log(delta))
    radius, far = published_radius(
        epsilon=epsilon, delta=delta, records=records, log_inverse_beta=-2.0 * share
    )
    return radius, min(1.0, far + math.exp(share))


def calibrated_radius(*, epsilon: float, records: int, outputs: int, beta: float) -> float:
    r"""Return :math:`\varepsilon\sqrt{n\ln(2|O|/\beta)}`, which holds for pure privacy at delta' 0.

    It is McDiarmid's inequality for :math:`\ln P[A(x)=o] - \ln P[A(x')=o]`, a function of 2n
    records that each move it by at most epsilon, and of mean zero; both signs and all outputs by a
    union bound: :math:`2|O|\exp(-2t^2/(2n\varepsilon^2)) = \beta`. The result is at most that of
    group privacy.

    >>> [round(calibrated_radius(epsilon=0.1, records=n, outputs=16, beta=0.05), 2)
    ...  for n in (25, 100, 400)]
    [1.27, 2.54, 5.08]
    """
    _validate.positive(epsilon=epsilon)
    _validate.positive_integer(records=records, outputs=outputs)
    _validate.probability(beta=beta)
    radius = epsilon * math.sqrt(records * math.log(2 * outputs / beta))
    return min(radius, records * epsilon)


def group_radius(*, epsilon: float, records: int) -> float:
    """Return n epsilon, because two samples differ in at most n records.

    >>> group_radius(epsilon=0.1, records=25)
    2.5
    """
    _validate.positive(epsilon=epsilon)
    _validate.positive_integer(records=records)
    return records * epsilon
