"""Learn a parity of Boolean features, hiding any one user (K3, K4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.users import UserData
from quorate.data.tables import check_classes, check_labels, declared_columns, declared_users
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.learners.concepts.base import Concept, Constant, feature_names
from quorate.learners.concepts.boolean.parities import Parity
from quorate.learners.parity_plan import (
    INPUTS,
    ParityPlan,
    any_inputs_plan,
    published_plan,
    uniform_plan,
)
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.choices.choose import CONFIDENCE, ChoiceError
from quorate.mechanisms.choices.stable_choice import StableChoice
from quorate.mechanisms.choices.universe import ChooseKey
from quorate.mechanisms.linear_equations import pack_bits, solve
from quorate.mechanisms.parity import AmplifiedParity, SolveParity

__all__ = ["ParityLearner"]

ALGORITHMS = ("auto", "one_record", "vote")
CONSTANTS = ("calibrated", "published")

MAX_FEATURES = 1024
"""Elimination of 1024 unknowns takes a tenth of a second a run."""

SPARE_RECORDS = 10  # derived: a random square system has full rank but for 2^-10
"""A user with this many records more than features solves alone but for one chance in 1000."""

_ANSWERING = 0.9
_LESS_THAN_HALF = 0.49


class ParityLearner(ClassifierMixin, UserEstimator):  # type: ignore[misc]
    r"""Learn a parity, the rule "an odd number of these features is true".

    Parities cannot be learned from statistical queries, but they can be learned privately. Each
    record is a linear equation over the field with two elements. A random subset of the equations
    is solved, which protects each single equation. Users with at least as many records as features
    solve their own equations and vote.

    Learning
    --------
    concept class : parities of d <= 1024 Boolean features; VC dimension d
    setting : labels come from a parity; ``inputs="uniform"`` (features are independent fair coins:
        exact recovery) or ``inputs="any"`` (error at most ``error`` on the same distribution)
    users needed : ``users_needed(d)``: about :math:`1.3(d+12)k/\tanh(\varepsilon/2)` with
        k = 4 runs at epsilon = 1; with votes :math:`(2/\varepsilon) d \ln 2` whatever the error, or
        :math:`O(\ln(1/\delta)/\varepsilon)` with a delta

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``; with votes and
        ``delta`` > 0 :math:`(\varepsilon, \delta)`-DP
    neighbours : replace all records of one user
    trust : central
    public : all parameters, the number of users and of features, ``random_state``
    numerics : exact
    proof : One record of each user is kept, chosen by the user's id and a public seed, and
        :class:`~quorate.mechanisms.parity.AmplifiedParity` releases the parity. Or every user names
        at most one parity, a function of the user's own records, and
        :class:`~quorate.mechanisms.choices.universe.ChooseKey` or
        :class:`~quorate.mechanisms.choices.stable_choice.StableChoice` chooses among them. Released
        are ``answered_``, ``concept_`` and functions of them.

    Complexity
    ----------
    :math:`O(n d^2/64)` time for n users with one record each.

    Parameters
    ----------
    epsilon : float, default=1.0
    inputs : {"uniform", "any"}, default="uniform"
        What is known about the features; it determines how many users are needed.
    error : float, default=0.05
        Allowed error under ``inputs="any"``.
    failure : float, default=0.01
        Allowed probability of a wrong rule.
    algorithm : {"auto", "one_record", "vote"}, default="auto"
        ``"vote"`` needs users with enough records to solve the equations alone. ``"auto"`` votes if
        ``records`` is at least d + 10 and there are enough users, and uses one record of each user
        otherwise.
    records : int, optional
        The number of records of a typical user, if it is publicly known.
    constants : {"calibrated", "published"}, default="calibrated"
        ``"published"`` uses the probabilities, the noise and the sizes of the paper; it needs
        epsilon <= 1/2.
    classes : sequence of two labels, default=(0, 1)
        The labels of ``y``, "even" first; records with another label are dropped.
    delta : float, default=0.0
        Only for ``"vote"``, which may then count only the parities that occur; refused elsewhere.
    relation, ledger, data_name, random_state
        As in every estimator; ``relation`` must be ``Relation.REPLACE``.

    Attributes
    ----------
    concept_ : Concept The parity, or "always even" if none was found.
    answered_ : bool
        Whether a parity was found.
    error_ : ChoiceError
        How much worse than the best rule the chosen one may be, or the reason why this is unknown.
    algorithm_ : Route
        How users took part (``name``), and why (``reason``).
    classes_ : array of shape (2,)
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011,
       Section 4.

    Examples
    --------
    >>> X = np.random.default_rng(0).integers(0, 2, size=(700, 16))
    >>> y = (X[:, 2] + X[:, 5] + X[:, 11]) % 2
    >>> learner = ParityLearner(epsilon=2.0).fit(X, y, users=range(700))
    >>> print(learner.concept_)
    Predict 1 if an odd number of x2, x5, x11 is true, else 0.
    >>> ParityLearner(epsilon=2.0).users_needed(16)
    178
    """

    _takes_crowds = True

    def __init__(  # noqa: PLR0913 - the common keywords and those of a parity
        self,
        epsilon: float = 1.0,
        *,
        inputs: str = "uniform",
        error: float = 0.05,
        failure: float = 0.01,
        algorithm: str = "auto",
        records: int | None = None,
        constants: str = "calibrated",
        classes: Sequence[Any] = (0, 1),
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.inputs = inputs
        self.error = error
        self.failure = failure
        self.algorithm = algorithm
        self.records = records
        self.constants = constants
        self.classes = classes
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def users_needed(self, features: int, *, algorithm: str = "one_record") -> int:
        """Return how many users a parity of this many features needs, from public numbers only."""
        self._check_parameters(features)
        _validate.one_of(ALGORITHMS[1:], algorithm=algorithm)
        return self._plan(features).users if algorithm == "one_record" else self._voters(features)

    def refuse_hopeless(self, n_users: int, n_features: int) -> None:
        """Raise an error if there are too few users."""
        self._decide(n_features, n_users)

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> ParityLearner:
        """Learn from records grouped by user: ``(X, y, users=...)`` or a ``UserData``."""
        features = _columns(X)
        self._check_parameters(features)
        check_classes(self.classes)
        check_labels(y, self.classes)
        self._check_use(X, y, users, target=True)
        route = self._decide(features, declared_users(X, users) or 0)
        account = self._charge(X, y, users, target=True, reserve=self.delta)
        people = self._population(X, y, users, classes=self.classes)
        if route.name == "vote":
            secret = self._by_votes(people, features, account)
        else:
            secret = self._by_one_record(people, features, account)
        self.guarantee_ = self._promise(account)
        self.answered_ = secret is not None
        self.concept_ = _concept(secret or 0, features, getattr(self, "feature_names_in_", None))
        self.algorithm_ = route
        self.error_ = self._stated(route, features, people.n_users, answered=secret is not None)
        self.classes_ = np.asarray(self.classes)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict one of the two classes for every row of ``X`` by the released rule."""
        check_is_fitted(self, "concept_")
        concept: Concept = self.concept_
        labels: NDArray[Any] = self.classes_[concept.predict(self._features(X))]
        return labels

    def _check_parameters(self, features: int) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        _validate.one_of(INPUTS, inputs=self.inputs)
        _validate.one_of(ALGORITHMS, algorithm=self.algorithm)
        _validate.one_of(CONSTANTS, constants=self.constants)
        _validate.probability(error=self.error, failure=self.failure)
        if self.records is not None:
            _validate.positive_integer(records=self.records)
        if self.relation is not Relation.REPLACE:
            raise ParameterError(
                "Expected relation=Relation.REPLACE: whether there are enough users, and how they "
                "are split, depends on their number, which has to be public."
            )
        if not 1 <= features <= MAX_FEATURES:
            raise ParameterError(f"Expected 1 to {MAX_FEATURES} Boolean features, got {features}.")
        _ = self._solver(features)

    def _solver(self, features: int) -> SolveParity:
        return SolveParity(
            features=features, epsilon=self.epsilon, published=self.constants == "published"
        )

    def _plan(self, features: int) -> ParityPlan:
        solver = self._solver(features)
        if self.constants == "published":
            # Of uniform inputs parities differ on half: whatever errs less is the right one.
            alpha = _LESS_THAN_HALF if self.inputs == "uniform" else self.error
            return published_plan(solver, alpha=alpha, beta=self.failure)
        if self.inputs == "uniform":
            return uniform_plan(solver, beta=self.failure)
        return any_inputs_plan(solver, alpha=self.error, beta=self.failure)

    def _voters(self, features: int) -> int:
        """Return how many users a vote needs if nine of ten users vote for the same parity."""
        if self.delta:
            choice = StableChoice(epsilon=self.epsilon, delta=self.delta)
            needed = 2 * choice.reach + 2
        else:
            rest = features * math.log(2) + math.log(1 / self.failure)
            needed = math.ceil(2 / self.epsilon * rest)
        return math.ceil(needed / _ANSWERING)

    def _decide(self, features: int, users: int) -> Route:
        """Choose between votes and single records, or refuse; from public numbers only."""
        name, reason = self.algorithm, "it was requested."
        if name == "auto":
            name, reason = "one_record", "users cannot be counted on to solve alone."
            if self.records is not None and self.records >= features + SPARE_RECORDS:
                if users >= self._voters(features):
                    name, reason = "vote", "users hold enough records to solve alone."
                else:
                    reason = "too few users for a vote."
        if name == "one_record" and self.delta != 0:
            raise ParameterError(
                f"algorithm='one_record' is purely private: it would charge delta={self.delta!r} "
                "and not use it. Leave delta out, or ask for algorithm='vote'."
            )
        needed = self.users_needed(features, algorithm=name)
        if users < needed:
            raise NotEnoughUsersError(
                f"Expected at least {needed} users for a parity of {features} features by "
                f"{name!r} at epsilon={self.epsilon!r}, got {users}: insufficient samples."
            )
        return Route(name=name, reason=reason)

    def _by_one_record(self, people: People, features: int, account: Account) -> int | None:
        """Run the solver on blocks of users, one record each, and choose among the answers."""
        capped = people.capped(1, random_state=self.random_state)
        equations = capped.each_in_order(_own_equations, random_state=self.random_state)
        plan = self._plan(features).stretched(people.n_users)
        learner = AmplifiedParity(
            features=features,
            epsilon=self.epsilon,
            runs=plan.runs,
            published=self.constants == "published",
        )
        parts = np.arange(people.n_users) // plan.part
        return learner.release_rows(equations, parts=parts, account=account)

    def _stated(self, route: Route, features: int, n_users: int, *, answered: bool) -> ChoiceError:
        """Return a bound on the error of the parity, or on its number of missing votes."""
        if not answered:
            return ChoiceError.unknown("No parity was found.")
        if route.name == "one_record":
            return ChoiceError.of_share(
                self.error,
                unit="share of people whose record is predicted wrongly",
                confidence=1.0 - self.failure,
                covers="The error of the parity among all people like these if a parity has none.",
            )
        if self.delta:
            stable = StableChoice(epsilon=self.epsilon, delta=self.delta)
            people = stable.error_bound(1.0 - CONFIDENCE, keys=max(2, n_users))
        else:
            people = ChooseKey(size=2**features, epsilon=self.epsilon).error_bound(1.0 - CONFIDENCE)
        counts = "people whose own records leave this parity alone"
        return ChoiceError.of_people(people, counts=counts, n_users=n_users)

    def _by_votes(self, people: People, features: int, account: Account) -> int | None:
        ballots = people.ballots(partial(_own_solutions, features=features))
        if self.delta:
            stable = StableChoice(epsilon=self.epsilon, delta=self.delta)
            chosen = stable.release(ballots.votes(), account=account)
            return None if chosen is None else int(chosen)
        choice = ChooseKey(size=2**features, epsilon=self.epsilon)
        return choice.release(ballots.votes(choice.size), account=account)


def _counting(data: UserData) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[Any]]:
    """Return the records whose label is one of the two classes, and their users."""
    labels = np.zeros(data.n_records) if data.y is None else data.y
    good = (labels == 0) | (labels == 1)
    return data.X[good] > 0.5, labels[good] == 1, data.user_index()[good]


def _own_equations(data: UserData) -> NDArray[np.uint64]:
    """Return the packed equation and the label of each user, who has at most one record."""
    truth = np.zeros((data.n_users, data.n_features), dtype=np.bool_)
    labels = np.zeros((data.n_users, 1), dtype=np.uint64)
    X, y, owner = _counting(data)
    truth[owner], labels[owner, 0] = X, y
    return np.concatenate([pack_bits(truth), labels], axis=1)


def _own_solutions(data: UserData, features: int) -> NDArray[np.object_]:
    """Return the parity of each user whose records determine it, and None for others."""
    X, y, owner = _counting(data)
    packed = pack_bits(X)
    ends = np.searchsorted(owner, np.arange(data.n_users + 1))
    found = np.full(data.n_users, None, dtype=object)
    for user, (first, last) in enumerate(pairwise(ends.tolist())):
        if last - first < features:
            continue
        space = solve(packed[first:last], y[first:last], unknowns=features)
        if space is not None and space.dimension == 0:
            found[user] = space.point(0)
    return found


def _columns(X: Any) -> int:
    """Return the number of columns of a table, if it is known without reading a record."""
    if (declared := declared_columns(X)) is not None:
        return declared
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2:
        return int(shape[1])
    return len(X[0]) if isinstance(X, list) and X and isinstance(X[0], list | tuple) else 1


def _concept(secret: int, features: int, names: Any) -> Concept:
    chosen = tuple(j for j in range(features) if secret >> j & 1)
    if not chosen:
        return Constant(0)
    given = None if names is None else tuple(str(name) for name in names)
    return Parity(chosen=chosen, names=feature_names(given, n_features=features))
