"""Learn a rule with a short description privately (the compression version of Occam's razor)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from quorate import _validate
from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.account.parts import cut_by_draws, disjoint_groups
from quorate.core.bounds.grid import Bound, Interval
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.users import UserData
from quorate.data.tables import check_classes, check_columns, check_labels, declared_users
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.learners.concepts.base import Concept, ConceptClass, labelled_records
from quorate.learners.occam import concise_rounds
from quorate.learners.scores import Mistakes
from quorate.learners.selection import choose_by_score
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.choices.choose import ChoiceError
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.sums import choose_grid

__all__ = ["ConciseLearner"]


class ConciseLearner(ClassifierMixin, UserEstimator):  # type: ignore[misc]
    r"""Try larger and larger classes of rules on new users, and stop at the first rule that fits.

    A rule with a short description belongs to a small class, and few users suffice to search a
    small class. The length of the best rule need not be known in advance. Each round uses new
    users: some choose a rule of the next class, others test it.

    Learning
    --------
    concept class : the last of ``classes_of_rules``; each is meant to hold the shorter rules of the
        next
    setting : realizable; one record of each user counts
    users needed : ``users_needed()`` in the worst case; those of the first rounds if a short rule
        fits, which is what compression means

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : replace all records of one user
    trust : central
    public : all parameters, the classes, the number of users
    numerics : exact
    proof : Blocks of users are formed from public ids and a seed, so a user takes part in one
        choice or in one test, each of which is :math:`\varepsilon`-DP. Whether later blocks are
        used depends on released answers only. Released are ``concept_``, ``round_`` and
        ``accepted_``.

    Complexity
    ----------
    Like the private choices: mistakes of all rules of a class for each user of its block.

    Parameters
    ----------
    classes_of_rules : sequence of ConceptClass
        Classes of increasing size, over the same features.
    epsilon : float, default=1.0
    error : float, default=0.1
        Error that an accepted rule may have.
    failure : float, default=0.05
        Allowed probability of failure.
    classes : sequence of two labels, default=(0, 1)
        The labels of ``y``, negative first; records with another label are dropped.
    delta : 0.0
        Only pure differential privacy is supported; any other value is refused.
    relation, ledger, data_name, random_state
        As in every estimator; ``relation`` must be ``Relation.REPLACE``.

    Attributes
    ----------
    concept_ : Concept
        The accepted rule, or the last one tried.
    accepted_ : bool
        Whether the rule passed its test.
    round_ : int
        Number of classes that were tried.
    error_ : ChoiceError
        ``error``, if a rule passed its test.
    algorithm_ : Route
    classes_ : array of shape (2,)
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011, end of
       Section 3.1.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds, Intervals
    >>> ages = np.random.default_rng(0).integers(0, 16, size=20_000)
    >>> learner = ConciseLearner([Thresholds(0, 15), Intervals(16)], epsilon=2.0, error=0.2)
    >>> learner = learner.fit(ages.reshape(-1, 1), ages >= 9, users=range(20_000))
    >>> learner.round_, learner.accepted_
    (1, True)
    """

    _takes_crowds = True
    _uses_delta = False

    def __init__(
        self,
        classes_of_rules: Sequence[ConceptClass],
        epsilon: float = 1.0,
        *,
        error: float = 0.1,
        failure: float = 0.05,
        classes: Sequence[Any] = (0, 1),
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.classes_of_rules = classes_of_rules
        self.epsilon = epsilon
        self.error = error
        self.failure = failure
        self.classes = classes
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def users_needed(self) -> int:
        """Return how many users all rounds need together; it depends on public numbers only."""
        self._check_parameters()
        return sum(map(sum, self._rounds()))

    def refuse_hopeless(self, n_users: int, n_features: int) -> None:
        """Raise an error if there are too few users."""
        if n_users < (needed := self.users_needed()):
            raise NotEnoughUsersError(
                f"Expected at least {needed} users for {len(self.classes_of_rules)} classes at "
                f"error={self.error!r} and epsilon={self.epsilon!r}, got {n_users}."
            )

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> ConciseLearner:
        """Learn from records grouped by user: ``(X, y, users=...)`` or a ``UserData``."""
        self._check_parameters()
        check_columns(X, expected=self.classes_of_rules[0].n_features)
        check_labels(y, self.classes)
        self._check_use(X, y, users, target=True)
        if (present := declared_users(X, users)) is not None:
            self.refuse_hopeless(present, self.classes_of_rules[0].n_features)
        account = self._charge(X, y, users, target=True)
        people = self._population(X, y, users, classes=self.classes)
        sizes = [size for sizes in self._rounds() for size in sizes]
        owners = disjoint_groups(account, len(sizes))
        accounts = [owner.part_of(epsilon=self.epsilon) for owner in owners]
        # A user is in one group at most, and brings one record.
        capped = people.capped(1, random_state=self.random_state)
        groups = cut_by_draws(capped, sizes, owners, random_state=self.random_state)
        for turn, concepts in enumerate(self.classes_of_rules):
            choosers, testers = groups[2 * turn : 2 * turn + 2]
            choose, test = accounts[2 * turn : 2 * turn + 2]
            index = choose_by_score(concepts, choosers, Mistakes(records=1), account=choose)
            concept = concepts.concept(index)
            accepted = self._noisy_error(concept, testers, test) <= 0.75 * self.error
            if accepted:
                break
        self.guarantee_ = self._promise(account)
        self.concept_, self.accepted_, self.round_ = concept, bool(accepted), turn + 1
        self.error_ = ChoiceError.unknown("No rule passed its test.")
        if accepted:
            self.error_ = ChoiceError.of_share(
                self.error,
                unit="share of people whose record is predicted wrongly",
                confidence=1.0 - self.failure,
                covers="The error of the rule among all people like these: noise and sampling.",
            )
        self.algorithm_ = Route(
            name="exponential",
            reason=f"the rule of class {turn + 1} "
            + ("passed its test." if accepted else "is the last; no test was passed."),
        )
        self.classes_ = np.asarray(self.classes)
        return self

    @property
    def _caveat(self) -> str | None:
        caveats = (each.caveat for each in self.classes_of_rules)
        return next((each for each in caveats if each is not None), None)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict one of the two classes for every row of ``X`` by the released rule."""
        check_is_fitted(self, "concept_")
        concept: Concept = self.concept_
        labels: NDArray[Any] = self.classes_[concept.predict(self._features(X))]
        return labels

    def _check_parameters(self) -> None:
        rules = self.classes_of_rules
        if not rules or not all(isinstance(each, ConceptClass) for each in rules):
            raise ParameterError("Expected classes_of_rules to hold at least one ConceptClass.")
        if len({each.n_features for each in rules}) > 1 or any(
            first.size > second.size for first, second in pairwise(rules)
        ):
            raise ParameterError("Expected classes over the same features, in order of size.")
        _validate.positive(epsilon=self.epsilon)
        _validate.probability(error=self.error, failure=self.failure)
        check_classes(self.classes)
        if self.relation is not Relation.REPLACE:
            raise ParameterError("Expected relation=Relation.REPLACE: blocks are of public sizes.")

    def _rounds(self) -> list[tuple[int, int]]:
        return concise_rounds(
            log_sizes=[math.log(each.size) for each in self.classes_of_rules],
            alpha=self.error,
            beta=self.failure,
            epsilon=float(self.epsilon),
        )

    def _noisy_error(self, concept: Concept, testers: People, account: Account) -> float:
        """Return a noisy share of users whose record the rule gets wrong."""
        wrong = _Wrong(concept, Interval(0.0, 1.0, centre=0.0))
        grid = choose_grid(wrong.bound, n_users=testers.n_users, max_steps=2)
        noisy = LaplaceSum(grid=grid, epsilon=float_down(account.left))
        total = noisy.release(testers.total(wrong, grid), count=testers.n_users, account=account)
        return float(total[0]) / max(1, testers.n_users)


@dataclass(frozen=True)
class _Wrong:
    """Whether a rule is wrong about a user's only record; it is not wrong about ignored records.

    A rule written by the caller is called for one user at a time; if it raises, it counts as wrong.
    """

    concept: Concept
    bound: Bound

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        records = labelled_records(users, n_features=users.n_features)
        missed = self.concept.predict_by_user(records) != records.y
        wrong = np.zeros((users.n_users, 1))
        wrong[records.user[missed]] = 1.0
        return wrong
