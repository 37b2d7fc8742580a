"""Private choice among finitely many candidates, and a bound on its loss compared to the best.

Permute-and-flip is the default: it never errs more than the exponential mechanism and costs the
same. The exponential mechanism (a maximum of scores with Gumbel noise) is available for
compositions of many choices, because its privacy loss has a bounded range. :class:`ChoiceError` is
the type of ``error_`` of a choice.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.sealed import Sealed, check_sealed
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.pure import PureMechanism
from quorate.mechanisms.stated_error import StatedError

__all__ = [
    "CONFIDENCE",
    "ChoiceError",
    "ChooseBest",
    "ExponentialMechanism",
    "Selection",
    "exponential_rate",
    "permute_and_flip_probabilities",
]


CONFIDENCE = 0.95  # public: 95 % is the convention of stated errors
"""With which most errors are stated."""

_COVERS = (
    "The private choice among all candidates for these people, measured by {counts}; not "
    "sampling error, and nothing that this measure leaves out."
)


def exponential_rate(
    epsilon: float | Fraction,
    *,
    sensitivity: int | Fraction,
    relation: Relation,
    one_sided: bool,
) -> Fraction:
    """Return the largest rate at which weights exp(rate * score) cost at most ``epsilon``.

    One user changes each score by at most the sensitivity D. A weight and the sum of all weights
    then change by a factor of at most exp(rate * D) each, in the worst case in opposite directions:
    epsilon = 2 rate D. If a user can only move all scores in the same direction, both factors are
    at least 1 or both at most 1, and epsilon = rate D. Replacing a user removes one and adds
    another, so scores move in both directions; one-sided scores are refused under
    ``Relation.REPLACE``.

    >>> exponential_rate(1.0, sensitivity=2, relation=Relation.REPLACE, one_sided=False)
    Fraction(1, 4)
    >>> exponential_rate(1.0, sensitivity=2, relation=Relation.ADD_REMOVE, one_sided=True)
    Fraction(1, 2)
    """
    _validate.positive(epsilon=epsilon)
    if not isinstance(sensitivity, numbers.Rational):
        raise ParameterError(
            f"Expected an integer or Fraction sensitivity > 0, got sensitivity={sensitivity!r}."
        )
    _validate.positive(sensitivity=sensitivity)
    _validate.one_of((True, False), one_sided=one_sided)
    _validate.one_of(tuple(Relation), relation=relation)
    if one_sided and relation is not Relation.ADD_REMOVE:
        raise ParameterError(
            "Expected one_sided=False under Relation.REPLACE: replacing a user changes scores up "
            "and down. Use Relation.ADD_REMOVE for one-sided scores."
        )
    return exact(epsilon) / exact(sensitivity) / (1 if one_sided else 2)


class ExponentialMechanism(PureMechanism):
    """A choice by weights exp(rate * score): base of dataclasses with these fields.

    >>> from quorate.mechanisms import ChooseBest
    >>> ChooseBest(candidates=3, epsilon=1.0, sensitivity=2).rate
    Fraction(1, 4)
    """

    sensitivity: int | Fraction
    one_sided: bool

    @cached_property
    def rate(self) -> Fraction:
        """The factor of the score, or of the loss, in the exponent."""
        return exponential_rate(
            self.epsilon,
            sensitivity=self.sensitivity,
            relation=self.relation,
            one_sided=self.one_sided,
        )

    @cached_property
    def spread(self) -> Fraction:
        """The largest change of the difference of two scores by one user."""
        return exact(self.sensitivity) * (1 if self.one_sided else 2)


class Selection(Enum):
    """How the winner is sampled.

    >>> Selection.PERMUTE_AND_FLIP.value
    'permute and flip: the largest score plus exponential noise'
    """

    PERMUTE_AND_FLIP = "permute and flip: the largest score plus exponential noise"
    GUMBEL = "exponential mechanism: the largest score plus Gumbel noise"


def permute_and_flip_probabilities(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return the law of permute-and-flip for scores divided by the scale.

    With :math:`p_j = e^{x_j - \max x}`, candidate i wins with probability :math:`\int_0^1 p_i
    \prod_{j \ne i} (1 - u p_j) \, du`: it is visited at a uniform time u, its coin flip succeeds,
    and all candidates visited before failed. The integrand is a polynomial without negative values,
    so Gauss-Legendre quadrature is exact up to rounding.

    >>> permute_and_flip_probabilities(np.array([0.0, -np.log(2.0)])).round(6).tolist()
    [0.75, 0.25]
    """
    flips = np.exp(exponents - np.max(exponents))
    nodes, weights = np.polynomial.legendre.leggauss(len(flips) // 2 + 1)
    nodes, weights = (nodes + 1) / 2, weights / 2
    failures = 1 - np.outer(nodes, flips)
    return np.array(
        [
            flip * np.sum(weights * np.prod(np.delete(failures, i, axis=1), axis=1))
            for i, flip in enumerate(flips)
        ]
    )


@dataclass(frozen=True, kw_only=True)
class ChooseBest(ExponentialMechanism):
    r"""Choose a candidate whose score is close to the largest.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : number of ``candidates`` and all other parameters
    numerics : exact
    proof : Let one user change score j by :math:`d_j`. Both laws depend on differences of scores
        only, so shift the scores until :math:`0 \le d_j \le R := \max d - \min d`. Permute-and-flip
        is the largest of :math:`x_j = q_j/s` plus independent exponential noise :math:`E_j` [2]_,
        so i wins with probability :math:`\mathbb{E} \exp(-(\max_{j \ne i} (x_j + E_j) - x_i)_+)`,
        and both terms of the difference grow by at most :math:`R/s`: the loss is at most
        :math:`R/s`. For the exponential mechanism a weight and the sum of weights grow by factors
        in :math:`[1, e^{R/s}]`. Now :math:`R \le 2\Delta` with :math:`\Delta` = ``sensitivity``,
        and :math:`R \le \Delta` for one-sided scores; :math:`s = 2\Delta/\varepsilon` (one-sided
        :math:`\Delta/\varepsilon`) is rounded up to a float whose exact value the sampler uses. See
        also Theorem 1 of [1]_ and [3]_. The exponential mechanism is :math:`\varepsilon^2/8`-zCDP
        as well, by its bounded range [4]_; ``event`` does not use that.

    Utility
    -------
    With probability at least :math:`1 - \beta` the chosen score is at most ``error_bound(beta)``
    below the largest. The bound is the smallest integer for which this holds for all scores; the
    worst case is one best candidate and all others at the same distance. It is :math:`O(s
    \log(k/\beta))` for k candidates.

    Complexity
    ----------
    Time and memory :math:`O(k)` in OpenDP; up to k random flips when few candidates are good.

    Parameters
    ----------
    candidates : int
        Public number of candidates.
    epsilon : float
    sensitivity : int or Fraction, default=1
        The most by which one user changes any one score.
    relation : Relation, default=Relation.REPLACE
    one_sided : bool, default=False
        Whether a user can only move all scores in the same direction (counts of satisfied users).
        It halves the noise; it is valid under ``Relation.ADD_REMOVE`` only and refused otherwise.
    selection : Selection, default=Selection.PERMUTE_AND_FLIP

    References
    ----------
    .. [1] McKenna, Sheldon. Permute-and-Flip: a new mechanism for differentially private selection.
       arXiv:2010.12603v1, Theorem 1 (privacy), Section 4 (worst case).
    .. [2] Ding et al. The permute-and-flip mechanism is identical to report-noisy-max with
       exponential noise. arXiv:2105.07260.
    .. [3] McSherry, Talwar. Mechanism design via differential privacy. FOCS 2007.
    .. [4] Cesar, Rogers. Bounding, concentrating, and truncating: unifying privacy loss composition
       for data analytics. arXiv:2004.07223.

    Examples
    --------
    >>> from quorate.core.by_hand import rows_by_hand
    >>> votes = rows_by_hand([1] * 90 + [0] * 3 + [2] * 5).tally(3)
    >>> best = ChooseBest(candidates=3, epsilon=2.0)
    >>> best.release(votes)
    1
    >>> best.error_bound(0.01)
    4
    >>> best.guarantee.epsilon
    2.0
    """

    candidates: int
    epsilon: float | Fraction
    sensitivity: int | Fraction = 1
    relation: Relation = Relation.REPLACE
    one_sided: bool = False
    selection: Selection = Selection.PERMUTE_AND_FLIP

    def __post_init__(self) -> None:
        _validate.positive_integer(candidates=self.candidates)
        _validate.one_of(tuple(Selection), selection=self.selection)
        if self.scale == math.inf:
            raise ParameterError(
                "Expected sensitivity / epsilon to fit into a float, got "
                f"epsilon={self.epsilon!r} and sensitivity={self.sensitivity!r}."
            )

    @property
    def scale(self) -> float:
        """Scale of the noise on the scores, rounded up."""
        return float_up(1 / self.rate)

    def release(self, scores: Sealed, *, account: Account | None = None) -> int:
        """Return the index of a candidate with a large score (integers, one per candidate)."""
        check_sealed(scores, Sealed)
        if scores.shape != (self.candidates,):
            raise SchemaError(
                f"Expected one score for each of {self.candidates} candidates, got an array of "
                f"shape {scores.shape}."
            )
        paying = Account.of_release(account, self)
        if self.selection is Selection.GUMBEL:
            return paying.gumbel_max(scores, scale=self.scale)
        return paying.permute_and_flip(scores, scale=self.scale)

    def probabilities(self, scores: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the law of :meth:`release` in floating point; for audits, not for release.

        >>> ChooseBest(candidates=2, epsilon=2.0).probabilities(np.array([1, 0])).round(4).tolist()
        [0.8161, 0.1839]
        """
        exponents = np.asarray(scores, dtype=np.float64) / self.scale
        if self.selection is Selection.PERMUTE_AND_FLIP:
            return permute_and_flip_probabilities(exponents)
        weights = np.exp(exponents - np.max(exponents))
        return np.asarray(weights / weights.sum())

    def error_bound(self, beta: float) -> int:
        """Bound how far the chosen score is below the largest, except with probability ``beta``."""
        _validate.probability(beta=beta)
        if self.candidates == 1:
            return 0
        # Gaps are integers, so a gap above t is at least t + 1.
        return max(0, math.ceil(-math.log(self._largest_flip(beta)) * self.scale) - 1)

    def _largest_flip(self, beta: float) -> float:
        """Return the largest exp(-gap / scale) at which the best candidate is rarely missed.

        It is missed with probability at most ``beta``.
        """
        others = self.candidates - 1
        if self.selection is Selection.GUMBEL:
            return min(1.0, beta / (1 - beta) / others)
        if _miss_the_best(1.0, others) <= beta:
            return 1.0
        low, high = math.log(beta / others), 0.0
        for _ in range(80):
            middle = (low + high) / 2
            if _miss_the_best(math.exp(middle), others) <= beta:
                low = middle
            else:
                high = middle
        return math.exp(low)


@dataclass(frozen=True, kw_only=True)
class ChoiceError(StatedError):
    """A bound on how much worse than the best candidate the chosen one is, in a stated unit.

    ``worst`` is the proven bound of the mechanism, which needs no assumption about people.
    ``bound`` is the same, or less under the assumption that ``covers`` names.

    Attributes
    ----------
    bound : float
        The bound in ``unit``; infinite if no bound is known.
    unit : str
        With "people" it is the number of people whose full contribution it equals.
    share : float or None
        The same as a share of all people, if their number is public.
    confidence, coordinates, worst, covers
        See :class:`~quorate.mechanisms.stated_error.StatedError`.

    Examples
    --------
    >>> error = ChoiceError.of_people(24.0, counts="mistakes", n_users=1000)
    >>> print(error)
    at most 24 people (2.4%) worse than the best, with probability 95%
    >>> ChoiceError.unknown("Nobody knows.").covers
    'No error is stated: nobody knows.'
    """

    bound: float
    unit: str = "people"
    share: float | None = None
    confidence: float = CONFIDENCE
    coordinates: tuple[float, ...] = ()
    worst: float = math.inf
    covers: str

    @classmethod
    def of_people(
        cls, people: float, *, counts: str, n_users: int | None, confidence: float = CONFIDENCE
    ) -> ChoiceError:
        """Return the error of a choice whose score is worse by at most this many people's maximum.

        ``n_users`` is the number of users if it is public.
        """
        return cls(
            bound=float(people),
            share=None if n_users is None else min(1.0, people / max(1, n_users)),
            confidence=confidence,
            coordinates=(float(people),) if people > 0 else (),
            worst=float(people),
            covers=_COVERS.format(counts=counts),
        )

    def assuming(self, people: float, assumption: str, *, n_users: int) -> ChoiceError:
        """Return the error with a smaller bound that holds under a stated assumption.

        >>> proved = ChoiceError.of_people(80.0, counts="mistakes", n_users=1000)
        >>> usual = proved.assuming(20.0, "people are as usual", n_users=1000)
        >>> usual.bound, usual.worst, usual.covers[-59:]
        (20.0, 80.0, 'The bound assumes that people are as usual; worst, nothing.')
        """
        return replace(
            self,
            bound=float(people),
            share=min(1.0, people / max(1, n_users)),
            coordinates=(float(people),),
            covers=f"{self.covers} The bound assumes that {assumption}; worst, nothing.",
        )

    @classmethod
    def of_share(cls, share: float, *, unit: str, confidence: float, covers: str) -> ChoiceError:
        """Return an error that is a share, either of records or of an answer."""
        return cls(
            bound=float(share),
            unit=unit,
            confidence=confidence,
            coordinates=(float(share),) if share > 0 else (),
            worst=math.inf,
            covers=covers,
        )

    @classmethod
    def unknown(cls, reason: str) -> ChoiceError:
        """Return an infinite error bound, with the reason."""
        covers = f"No error is stated: {reason[0].lower()}{reason[1:]}"
        return cls(bound=math.inf, coordinates=(math.inf,), covers=covers)

    @property
    def stated(self) -> bool:
        """Whether the error bound is finite."""
        return math.isfinite(self.bound)

    def __str__(self) -> str:
        if not self.stated:
            return self.covers
        sure = f"with probability {self.confidence:.0%}"
        if self.unit != "people":
            return f"at most {self.bound:.3g} ({self.unit}), {sure}"
        share = "" if self.share is None else f" ({self.share:.1%})"
        most = math.ceil(self.bound)  # a bound rounded down would state too little
        people = "1 person" if most == 1 else f"{most:,} people"
        return f"at most {people}{share} worse than the best, {sure}"


def _miss_the_best(flip: float, others: int) -> float:
    """Return the probability that permute-and-flip misses the best of ``others + 1`` candidates.

    The best candidate comes after i others with probability 1 / (others + 1) for each i, and wins
    if all of them failed: 1 - sum of (1 - flip)**i / (others + 1).
    """
    k = others + 1
    if flip == 1.0:
        return others / k
    if k * flip < 1e-4:  # the difference below would cancel
        return others * flip / 2 * (1 - (k - 2) * flip / 3 * (1 - (k - 3) * flip / 4))
    return 1 + math.expm1(k * math.log1p(-flip)) / (k * flip)
