"""A private estimate of the smallest error of a class, at user level (L3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.data.tables import check_classes, check_columns, check_labels
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError
from quorate.learners.base import HeldRecords
from quorate.learners.concepts.base import ConceptClass
from quorate.learners.smallest_error_search import MinErrorSearch
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.choices.choose import CONFIDENCE, ChoiceError

__all__ = ["PrivateMinError"]


class PrivateMinError(UserEstimator):
    r"""Estimate the smallest error that any rule of a class can reach.

    Use it before you spend the rest of the budget on a rule. It shows whether a class is worth
    learning, and which ``error_level`` to state.

    Learning
    --------
    concept class : any :class:`~quorate.learners.concepts.ConceptClass`
    setting : agnostic; users i.i.d., records of one user i.i.d.
    users needed : ``MinErrorSearch(...).users_needed(...)``, of order
        :math:`\ln(1/\beta)/(\varepsilon\sqrt{m}\alpha) + \ln|C|/(m\alpha^2)` (Lemma 4.5)

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the class and all parameters; under ``Relation.REPLACE`` the number of users
    numerics : exact
    proof : ``rounds`` comparisons of
        :class:`~quorate.mechanisms.search.private_compare.PrivateCompare`, each chosen adaptively,
        with epsilon/rounds each; costs add up. Released: ``min_error_`` and ``records_``.

    Complexity
    ----------
    One pass over the mistakes of all rules in each round.

    Parameters
    ----------
    concepts : ConceptClass
    epsilon : float, default=1.0
    excess : float, default=0.05
        Desired accuracy, the paper's alpha.
    records : int or "auto", default="auto"
        Records per user, for which exact tails are computed; further records of a user are dropped.
        ``"auto"`` spends some budget on a rough private estimate.
    constants : {"calibrated", "published"}, default="calibrated"
    classes : sequence of two labels, default=(0, 1)
        The labels of ``y``, negative first, compared as numbers if both are numbers and as text
        otherwise; records with another label are dropped. For a ``UserData`` pass the labels to
        ``UserData.from_arrays(classes=...)`` instead.
    delta : 0.0
        Only pure differential privacy is supported; any other value is refused.
    relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    min_error_ : float
    records_ : RecordRange
    error_ : ChoiceError
        ``excess``, if there are enough users for it (Lemma 4.5).
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Li, Wang, Ye. Improved bounds for pure private agnostic learning: item-level and
       user-level privacy. ICML 2024, Lemma 4.5 and Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.learners.concepts import Thresholds
    >>> x = np.tile(np.arange(10), 200)
    >>> search = PrivateMinError(Thresholds(0, 9), epsilon=4.0, records=10)
    >>> search = search.fit(x.reshape(-1, 1), x >= 4, users=np.arange(2000) // 10)
    >>> search.min_error_ < 0.1
    True
    """

    _takes_crowds = True
    _uses_delta = False

    def __init__(
        self,
        concepts: ConceptClass,
        epsilon: float = 1.0,
        *,
        excess: float = 0.05,
        records: int | str = "auto",
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
        self.excess = excess
        self.records = records
        self.constants = constants
        self.classes = classes
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    @property
    def _caveat(self) -> str | None:
        return self.concepts.caveat

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> PrivateMinError:
        """Estimate from records grouped by user: ``(X, y, users=...)`` or a ``UserData``."""
        if not isinstance(self.concepts, ConceptClass):
            raise ParameterError(
                f"Expected concepts to be a ConceptClass, got {type(self.concepts).__name__}. See "
                "quorate.learners.concepts."
            )
        _validate.probability(excess=self.excess)
        _validate.one_of(("calibrated", "published"), constants=self.constants)
        if self.records != "auto":
            _validate.positive_integer(records=self.records)
        check_classes(self.classes)
        check_columns(X, expected=self.concepts.n_features)
        check_labels(y, self.classes)
        account = self._charge(X, y, users, target=True)
        people = self._population(X, y, users, classes=self.classes)
        held = HeldRecords.stated(self.records, account)
        search = MinErrorSearch.of_class(
            self.concepts,
            alpha=self.excess,
            records=held.typical(people),
            published=self.constants == "published",
        )
        kept = people.capped(search.kept_records, random_state=self.random_state)
        min_error = search.run(self.concepts, kept, account=account)
        self.guarantee_ = self._promise(account)
        self.min_error_, self.records_ = min_error, held.known
        self.error_ = self._stated(search, people)
        self.algorithm_ = Route(
            name="binary_search",
            reason=f"{search.rounds} private comparisons with {self.constants} constants.",
        )
        return self

    def _stated(self, search: MinErrorSearch, people: People) -> ChoiceError:
        """Return the requested accuracy if public numbers show that it is reached, else None."""
        if self.relation is not Relation.REPLACE:
            return ChoiceError.unknown("Whether users are enough follows from their number.")
        needed = search.users_needed(
            epsilon=float(self.epsilon), beta=1.0 - CONFIDENCE, size=self.concepts.size
        )
        if people.n_users < needed:
            return ChoiceError.unknown(
                f"The requested accuracy needs {needed:,} users who are alike."
            )
        return ChoiceError.of_share(
            self.excess,
            unit="share of mistakes",
            confidence=CONFIDENCE,
            covers="Noise and the sampling of people, if they are alike (Lemma 4.5); not the "
            "effect of differences between users on shares of people above a rate.",
        )
