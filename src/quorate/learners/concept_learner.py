"""Learn one rule of a finite or ordered class, hiding any one user (K1, F4 to F6, L1 to L4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.exceptions import ParameterError
from quorate.learners.automatic import RuleAlgorithm
from quorate.learners.base import RuleLearner
from quorate.learners.concepts.base import ConceptClass
from quorate.learners.scores.base import Score
from quorate.ledger.ledger import Ledger

__all__ = ["ConceptLearner"]

_ALGORITHMS = tuple(algorithm.value for algorithm in RuleAlgorithm)


class ConceptLearner(RuleLearner):
    r"""Learn the rule of a class with the fewest errors, by a private choice among all rules.

    Each user's records give one bounded score for every rule. The scores are summed over users into
    a loss for each rule, and one rule is chosen privately by its loss. More records make the scores
    of a user more accurate at no extra cost: for a fixed number of users the error falls with the
    number of records per user. Group privacy and using one record per user do not have this
    property.

    Learning
    --------
    concept class : any :class:`~quorate.learners.concepts.ConceptClass`
    setting : agnostic or realizable; proper (improper with a ``Surrogate`` score); users i.i.d.,
        records of one user i.i.d.; privacy needs none of this
    users needed : of order :math:`\ln|H| / \varepsilon` whatever the records, plus
        :math:`\ln|H| / (\varepsilon\alpha\sqrt{m})` and :math:`d/(m\alpha^2)` for excess error
        :math:`\alpha` (Theorem 40 of [1]_, Theorem 4.6 of [2]_)

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the class, all parameters, the features' names; under ``Relation.REPLACE`` the number
        of users. How many records a user has is private.
    numerics : exact
    proof : Each score proves its sensitivity (:mod:`quorate.learners.scores`); the choice is
        :class:`~quorate.mechanisms.choices.choose.ChooseBest` or
        :class:`~quorate.mechanisms.choices.ordered.ChooseOrdered`; costs of several releases add
        up. Released are ``index_``, ``records_`` and functions of them: ``concept_``,
        ``algorithm_``; nothing else.

    Complexity
    ----------
    Mistakes of all rules are counted by the class's closed form, in blocks of users. Duels take
    :math:`O(n |H|^2)` time and :math:`O(|H|^2)` memory, for up to 4096 rules; all other scores take
    :math:`O(n |H|)` time and :math:`O(|H|)` memory.

    Parameters
    ----------
    concepts : ConceptClass
        The rules; chosen without looking at the data.
    epsilon : float, default=1.0
    algorithm : str or Score, default="auto"
        A :class:`~quorate.learners.scores.Score`, or "capped_regret", "regret", "duels",
        "own_best", "any_mistake", "more_than", "crossing", "kolmogorov_smirnov", "mistakes",
        "clipped_pairwise", "estimated_level", "median", "slack_median" or "two_stages"
        (:class:`~quorate.learners.automatic.RuleAlgorithm`).
        It turns users' mistakes into a loss for each rule. ``"auto"`` decides from public numbers
        (:mod:`quorate.learners.automatic`) and says why in ``algorithm_``.
    records : int or "auto", default="auto"
        The number of records of a typical user: a public number, or a rough private estimate that
        costs budget, if the decision needs one.
    error_level : float, optional
        The error of the best rule, if it is known publicly; 0 means realizable.
    alike : bool, default=False
        Whether users are alike, that is, whether their records come from one distribution. This
        allows algorithms that are better for such users and worse for users who differ: "own_best"
        for ordered classes, "duels" and "crossing" for others. Privacy does not depend on it.
    excess : float, default=0.05
        Excess error that "more than t" should detect; the papers' alpha.
    constants : {"calibrated", "published"}, default="calibrated"
        ``"published"`` with ``algorithm="auto"`` is the learner of Theorem 4.6 of [2]_ as printed.
    classes : sequence of two labels, default=(0, 1)
        The labels of ``y``, negative first, compared as numbers if both are numbers and as text
        otherwise; records with another label are dropped. ``predict`` returns these labels;
        ``concept_`` uses 0 and 1 instead. For a ``UserData`` pass the labels to
        ``UserData.from_arrays(classes=...)`` instead.
    delta : 0.0
        Only pure differential privacy is supported; any other value is refused.
    relation, ledger, data_name, random_state
        As in every estimator; ``random_state`` is public and decides which records are kept under a
        cap.

    Attributes
    ----------
    concept_ : Concept
        The rule; ``print(concept_)`` is a sentence.
    index_ : int
        The index of the rule in the class.
    algorithm_ : Route
        Which algorithm was used (``name``), and why (``reason``).
    records_ : RecordRange or None
        What is known about the records of a user: stated, estimated privately, or nothing.
    classes_ : array of shape (2,)
    error_ : ChoiceError
        How much worse than the best rule the chosen one may be, according to the score of the
        algorithm.
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Ghazi et al. User-level differential privacy with few examples per user. NeurIPS 2023.
    .. [2] Li, Wang, Ye. Improved bounds for pure private agnostic learning: item-level and
       user-level privacy. ICML 2024.
    .. [3] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.learners.concepts import Thresholds
    >>> ages = np.tile([20, 30, 40, 50, 60, 70], 100)
    >>> learner = ConceptLearner(Thresholds(0, 120, name="age"), epsilon=1.0)
    >>> learner = learner.fit(ages.reshape(-1, 1), ages >= 45, users=np.arange(600) // 6)
    >>> 41 <= learner.index_ <= 50, learner.algorithm_.name, learner.guarantee_.epsilon
    (True, 'duels', 1.0)
    >>> learner.predict([[25.0], [90.0]])
    array([0, 1])
    """

    def __init__(  # noqa: PLR0913 - the common keywords and those of a class
        self,
        concepts: ConceptClass,
        epsilon: float = 1.0,
        *,
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
        self.concepts = concepts
        self.epsilon = epsilon
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

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> ConceptLearner:
        """Learn from records grouped by user: ``(X, y, users=...)`` or a ``UserData``."""
        if not isinstance(self.concepts, ConceptClass):
            raise ParameterError(
                f"Expected concepts to be a ConceptClass, got {type(self.concepts).__name__}. See "
                "quorate.learners.concepts."
            )
        if not isinstance(self.algorithm, Score) and self.algorithm not in ("auto", *_ALGORITHMS):
            raise ParameterError(
                f"Expected algorithm to be a Score or one of {('auto', *_ALGORITHMS)}, got "
                f"algorithm={self.algorithm!r}."
            )
        self._validate_common()
        self._refuse(self.concepts, self.algorithm, X, y)
        account = self._charge(X, y, users, target=True)
        people = self._population(X, y, users, classes=self.classes)
        self._learn(self.concepts, people, self.algorithm, account)
        return self
