"""Learn a cut-off on one ordered feature, over domains of up to 2^63 points (K1, L2, L5, F5)."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from quorate import _validate
from quorate._validate import described
from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.learners.automatic import RuleAlgorithm
from quorate.learners.base import RuleLearner
from quorate.learners.concepts.numeric.thresholds import Direction, Thresholds
from quorate.learners.scores.base import Score
from quorate.ledger.ledger import Ledger

__all__ = ["ThresholdLearner", "threshold_class"]

_ALGORITHMS = tuple(algorithm.value for algorithm in RuleAlgorithm)

# Binary digits of a domain of floats, unless a step is stated.
_DIGITS = 32


def threshold_class(
    domain: tuple[int | float, int | float] | None,
    *,
    step: int | float | None,
    direction: Direction,
) -> Thresholds:
    """Return the cut-offs of a public domain; raise an error if the domain is missing.

    >>> threshold_class((0, 9), step=None, direction=Direction.ABOVE).size
    11
    >>> threshold_class((0.0, 1.0), step=None, direction=Direction.ABOVE).step == 2.0**-32
    True
    """
    if domain is None:
        raise UnboundedContributionError(
            "Expected domain=(lower, upper): the range of the feature must not be taken from the "
            "data. Choose it from public knowledge; it may be as wide as 2**63 points."
        )
    pair = isinstance(domain, tuple | list) and len(domain) == 2
    if not (pair and all(isinstance(end, numbers.Real) for end in domain)):
        raise ParameterError(f"Expected domain=(lower, upper), got {described(domain)}.")
    if step is None:
        step = _default_step(*domain)
    return Thresholds(domain[0], domain[1], step=step, direction=direction)


def _default_step(lower: int | float, upper: int | float) -> int | float:
    """Return 1 between integers, else the power of two that makes 2^32 to 2^33 points."""
    if isinstance(lower, numbers.Integral) and isinstance(upper, numbers.Integral):
        return 1
    _validate.finite(lower=lower, upper=upper)
    ends = float(lower), float(upper)
    width = ends[1] / 2 - ends[0] / 2  # half of it, because the whole may overflow
    if not width > 0:
        return 1
    finest = math.ulp(max(map(abs, ends)))
    return max(math.ldexp(0.5, math.frexp(width)[1] - _DIGITS + 1), finest)


class ThresholdLearner(RuleLearner):
    r"""Learn the cut-off with the fewest errors, over an ordered domain of any size.

    All cut-offs between two neighbouring records make the same predictions, so a domain of 2^32
    points consists of few pieces. A piece is chosen by the exponential mechanism, by its length and
    its loss, and then a point inside it. With few users the private median of each user's own best
    cut-off is released. With very few users it is the median over all cut-offs that are nearly best
    for a user. With more users the exponential mechanism searches near a private median of their
    records. A user contributes the number of errors above the user's own minimum, capped at half of
    the user's records (not capped with very many users).

    Learning
    --------
    concept class : "x >= threshold" over {lower, ..., upper} (or "x <", or both); VC dimension 1
        (2 with both directions); Littlestone dimension the number of binary digits
    setting : agnostic or realizable, proper; users i.i.d., records of one user i.i.d.; privacy
        needs none of this. Users may differ, each with a best cut-off of their own. With many users
        the automatic choice has the smallest total error over all of them; every user has the same
        weight, whatever the number of records. The median, for few users, favours what most of them
        would choose for themselves, and so does ``alike=True``
    users needed : of order :math:`\ln|X| / \varepsilon` whatever the records, plus
        :math:`\ln|X| / (\varepsilon\alpha\sqrt{m})` and :math:`1/(m\alpha^2)` (Section 5 of [1]_)

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``domain``, ``step`` and all parameters; under ``Relation.REPLACE`` the number of
        users. How many records a user has is private.
    numerics : exact
    proof : Each score proves its sensitivity (:mod:`quorate.learners.scores`); the choice is
        :class:`~quorate.mechanisms.choices.ordered.ChooseOrdered` or
        :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`; costs of several releases
        add up. Released are ``index_``, ``records_`` and functions of them: ``threshold_``,
        ``concept_``, ``algorithm_``; nothing else.

    Complexity
    ----------
    One sort of all records, and O(N) for each score.

    Parameters
    ----------
    epsilon : float, default=1.0
    domain : tuple of two numbers
        Lowest and highest value of the feature, public; values outside are clipped.
    step : int or float, optional
        Distance between points; with integers for ``domain`` and ``step`` the domain is exact. The
        default is 1 between integers, and about 2^-32 of the width between floats.
    direction : Direction, default=Direction.ABOVE
        The side of the threshold on which 1 is predicted; ``EITHER`` learns the side too.
    algorithm : str or Score, default="auto"
        A :class:`~quorate.learners.scores.Score`, or "capped_regret", "regret", "two_stages",
        "median", "slack_median", "own_best", "any_mistake", "more_than", "crossing",
        "kolmogorov_smirnov", "duels", "mistakes", "clipped_pairwise" or "estimated_level"
        (:class:`~quorate.learners.automatic.RuleAlgorithm`).
        ``"auto"`` decides from public numbers (with
        ``alike=True`` and ``Relation.ADD_REMOVE`` also from a rough private estimate of the records
        per user), and says why in ``algorithm_``. The paper's binary search is
        :class:`~quorate.learners.private_threshold.PrivateThreshold`.
    records : int or "auto", default="auto"
        The number of records of a typical user: a public number, or a rough private estimate, which
        costs budget.
    error_level : float, optional
        The error of the best threshold, if it is known publicly; 0 means realizable.
    alike : bool, default=False
        Whether users are alike, that is, whether their records come from one distribution. This
        allows algorithms that are better for such users and worse for users who differ: "own_best"
        for ordered classes, "duels" and "crossing" for others. Privacy does not depend on it.
    excess : float, default=0.05
        Excess error that "more than t" should detect; the papers' alpha.
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
    threshold_ : int or float
    concept_ : Concept
        The rule; ``print(concept_)`` is a sentence.
    index_ : int
        The index of the rule among all cut-offs.
    algorithm_ : Route
        Which algorithm was used (``name``), and why (``reason``).
    records_ : RecordRange or None
    classes_ : array of shape (2,)
    error_ : ChoiceError
        How much worse than the best rule the chosen one may be, according to the score of the
        algorithm.
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Li, Wang, Ye. Improved bounds for pure private agnostic learning: item-level and
       user-level privacy. ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.tile([3, 900, 1100, 70_000], 200)
    >>> cutoff = ThresholdLearner(epsilon=1.0, domain=(0, 2**32 - 1), records=4)
    >>> cutoff = cutoff.fit(x, x >= 1000, users=np.arange(800) // 4)
    >>> 900 < cutoff.threshold_ <= 1100, cutoff.algorithm_.name
    (True, 'two_stages')
    """

    _single_feature = True

    def __init__(  # noqa: PLR0913 - the common keywords and those of a domain
        self,
        epsilon: float = 1.0,
        *,
        domain: tuple[int | float, int | float] | None = None,
        step: int | float | None = None,
        direction: Direction = Direction.ABOVE,
        algorithm: str | Score = "auto",
        records: int | str = "auto",
        error_level: float | None = None,
        alike: bool = False,
        excess: float = 0.05,
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
        self.algorithm = algorithm
        self.records = records
        self.error_level = error_level
        self.alike = alike
        self.excess = excess
        self.constants = constants
        self.classes = classes
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> ThresholdLearner:
        """Learn from records grouped by user: ``(X, y, users=...)`` or a ``UserData``."""
        if not isinstance(self.algorithm, Score) and self.algorithm not in ("auto", *_ALGORITHMS):
            raise ParameterError(
                f"Expected algorithm to be a Score or one of {('auto', *_ALGORITHMS)}, got "
                f"algorithm={self.algorithm!r}."
            )
        self._validate_common()
        concepts = threshold_class(self.domain, step=self.step, direction=self.direction)
        self._refuse(concepts, self.algorithm, X, y)
        account = self._charge(X, y, users, target=True)
        people = self._population(X, y, users, classes=self.classes)
        self._learn(concepts, people, self.algorithm, account)
        self.threshold_ = concepts.cut_off(self.index_)
        return self
