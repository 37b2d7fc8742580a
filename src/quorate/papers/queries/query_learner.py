"""Run any algorithm of statistical queries on users' records, privately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.guarantees import TRUST, Relation, Trust
from quorate.core.public_randomness import RandomState
from quorate.core.users.crowd import Crowd
from quorate.data.tables import check_classes, check_columns, check_labels
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.choices.choose import CONFIDENCE, ChoiceError
from quorate.papers.queries.oracles.central import CentralOracle
from quorate.papers.queries.oracles.local import LocalQueryOracle
from quorate.papers.queries.statistical import QueryAlgorithm

__all__ = ["QueryLearner"]


class QueryLearner(ClassifierMixin, UserEstimator):  # type: ignore[misc]
    r"""Learn by statistical queries, with noise added by a curator or by the users.

    It runs any algorithm that only uses statistical queries; no further privacy proof is needed.
    With ``trust="central"`` a trusted server answers all queries within one budget. With
    ``"local"`` every user answers one query with the whole budget.

    Learning
    --------
    concept class : whatever ``algorithm`` returns
    setting : that of ``algorithm``; its tolerances say how exact answers have to be
    users needed : centrally of order :math:`t/(\varepsilon\tau)` for t queries of tolerance
        :math:`\tau`, locally of order :math:`t/(\varepsilon\tau)^2`
        (:func:`~quorate.papers.queries.oracles.local.users_for_tolerance`); ``weak_`` names the
        queries that had fewer

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``, or
        :math:`(\varepsilon, \delta)`-DP
    neighbours : ``relation``: replace all records of one user, or (centrally) add or remove all
        records of one user
    trust : central or local, as ``trust`` says
    public : the algorithm, all parameters, the number of features and, under ``Relation.REPLACE``,
        of users
    numerics : exact
    proof : :class:`~quorate.papers.queries.oracles.central.CentralOracle` or
        :class:`~quorate.papers.queries.oracles.local.LocalQueryOracle` answers; the algorithm sees
        the answers only. Released are ``concept_`` and functions of the answers.

    Complexity
    ----------
    One pass over the records for each query.

    Parameters
    ----------
    algorithm : QueryAlgorithm
        See :mod:`quorate.papers.queries.algorithms`; you can write your own as a small class.
    epsilon : float, default=1.0
    trust : {"central", "local"}, default="central"
    shares : sequence of float, optional
        For ``trust="local"``: the part of the users for each round of queries.
    joint : sequence of float or None, optional
        For ``trust="local"``: whether a round is answered jointly; see
        :class:`~quorate.papers.queries.oracles.local.LocalQueryOracle`.
    classes : sequence of two labels, default=(0, 1)
        The labels of ``y``, negative first; records with another label are dropped.
    delta, relation, ledger, data_name, random_state
        As in every estimator; ``trust="local"`` needs ``Relation.REPLACE`` and no delta.

    Attributes
    ----------
    concept_ : Concept
    n_queries_, n_rounds_ : int
        The number of queries, and of rounds.
    weak_ : tuple of str
        The queries for which there were too few users for their tolerance.
    error_ : ChoiceError
        Bound on the error of the answers from which the rule was computed.
    algorithm_ : Route
    classes_ : array of shape (2,)
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011,
       Section 5.

    Examples
    --------
    >>> from quorate.papers.queries.algorithms import ConjunctionQueries
    >>> X = np.random.default_rng(0).integers(0, 2, size=(60_000, 4))
    >>> y = X[:, 0] & X[:, 2]
    >>> central = QueryLearner(ConjunctionQueries(4)).fit(X[:4000], y[:4000], users=range(4000))
    >>> local = QueryLearner(ConjunctionQueries(4, tolerance=0.06), trust="local")
    >>> local = local.fit(X, y, users=range(60_000))
    >>> print(central.concept_)
    Predict 1 if x0 and x2, else 0.
    >>> local.concept_ == central.concept_, local.guarantee_.trust.name
    (True, 'LOCAL')
    """

    _takes_crowds = True

    def __init__(
        self,
        algorithm: QueryAlgorithm,
        epsilon: float = 1.0,
        *,
        trust: str = "central",
        shares: Sequence[float] | None = None,
        joint: Sequence[float | None] | None = None,
        classes: Sequence[Any] = (0, 1),
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.algorithm = algorithm
        self.epsilon = epsilon
        self.trust = trust
        self.shares = shares
        self.joint = joint
        self.classes = classes
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    @property
    def _trust(self) -> Trust:
        return TRUST[self.trust]

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> QueryLearner:
        """Learn from records grouped by user: ``(X, y, users=...)`` or a ``UserData``."""
        self._check_parameters()
        check_columns(X, expected=self.algorithm.n_features)
        check_labels(y, self.classes)
        account = self._charge(X, y, users, target=True)
        data = self._crowd(X, y, users, classes=self.classes)
        oracle = self._oracle(data, account)
        concept = self.algorithm.run(oracle)
        self.guarantee_ = self._promise(account)
        self.concept_ = concept
        self.n_queries_, self.n_rounds_ = oracle.n_queries, oracle.n_rounds
        self.weak_ = tuple(oracle.weak)
        self.error_ = self._stated(oracle)
        self.algorithm_ = Route(
            name=type(self.algorithm).__name__,
            reason=f"{oracle.n_queries} queries, answered with {self.trust} trust.",
        )
        self.classes_ = np.asarray(self.classes)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict one of the two classes for every row of ``X`` by the released rule."""
        check_is_fitted(self, "concept_")
        concept: Concept = self.concept_
        labels: NDArray[Any] = self.classes_[concept.predict(self._features(X))]
        return labels

    def _stated(self, oracle: CentralOracle | LocalQueryOracle) -> ChoiceError:
        """Return a bound on the error of the answers from which the rule was computed."""
        if not isinstance(oracle, CentralOracle):
            return ChoiceError.unknown(
                "The errors of local answers are bounded by their tolerances."
            )
        return ChoiceError.of_share(
            oracle.error_bound(1.0 - CONFIDENCE),
            unit="of answers between -1 and 1",
            confidence=CONFIDENCE,
            covers="Noise in the answers from which the rule was computed; not sampling error, "
            "and not the error of the algorithm itself.",
        )

    def _check_parameters(self) -> None:
        if not isinstance(self.algorithm, QueryAlgorithm):
            raise ParameterError(
                f"Expected algorithm to be a QueryAlgorithm, got {type(self.algorithm).__name__}. "
                "See quorate.papers.queries.algorithms."
            )
        _validate.positive(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        _validate.one_of(tuple(TRUST), trust=self.trust)
        check_classes(self.classes)
        if self.trust == "shuffle":
            raise ParameterError(
                "Expected trust='central' or 'local'. With a shuffler, let users agree on a rule "
                "first: quorate.papers.stability.QueryRule makes a stable rule of the algorithm."
            )
        local = self.trust == "local"
        if local and (self.relation is not Relation.REPLACE or self.delta):
            raise ParameterError(
                "Expected Relation.REPLACE and delta=0 under trust='local': that a user answers is "
                "public, and answers are purely private."
            )
        rounds = len(self.algorithm.rounds)
        for name in ("shares", "joint"):
            given = getattr(self, name)
            if given is not None and (not local or len(given) != rounds):
                raise ParameterError(
                    f"Expected {name}= under trust='local' only, one entry for each of {rounds} "
                    "rounds."
                )

    def _oracle(self, data: Crowd, account: Account) -> CentralOracle | LocalQueryOracle:
        if self.trust == "central":
            queries = self.algorithm.max_queries
            return CentralOracle(data, max_queries=queries, account=account)
        return LocalQueryOracle(
            data,
            epsilon=self.epsilon,
            rounds=self.algorithm.rounds,
            shares=self.shares,
            joint=self.joint,
            account=account,
            random_state=self.random_state,
        )
