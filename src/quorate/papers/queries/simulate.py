r"""Simulation of local algorithms by statistical queries, without data (K8).

Let a transparent randomizer answer for a user drawn from a distribution D. The answer is w with
probability :math:`p(w) = E_{z \sim D} P[R(z) = w]`. A simulation proposes w from the law of a fixed
reference record and accepts it with a probability proportional to :math:`p(w)/q(w)`, which one
query estimates. So everything that can be learned in the local model can be learned from
statistical queries. Nothing here is private, because no data are used. [1]_

Local queries that do not depend on each other's answers are simulated by statistical queries that
do not either (Claim 5.9): :meth:`Simulation.ask_all` draws all proposals beforehand and evaluates
them in one round.

The same user may answer several times. Given the answers so far, the next one has the law
:math:`E[r_2 P[R_k(z)=w]]/E[r_2]` with :math:`r_2 = \prod_{j<k} P[R_j(z) = a_j]`, which takes two
queries.

References
----------
.. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011, Lemma 5.8,
   Claims 5.9 and 5.10. In Claim 5.10 the relative error of a quotient needs a tolerance of
   :math:`\beta/(9t)` and an acceptance divisor of :math:`1 + 3\tau'`; the text's
   :math:`\beta/(3t)` and :math:`1 + \beta/(3t)` are too small there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.public_randomness import RandomState, public_generator
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.local.randomizers.known_laws import BinaryResponse, Randomizer
from quorate.papers.queries.oracles.empirical import EmpiricalOracle
from quorate.papers.queries.statistical import Evaluation, QueryOracle, StatisticalQuery

__all__ = ["RecordRandomizer", "SimulatedOracle", "SimulatedUser", "Simulation"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RecordRandomizer:
    """A randomizer of one record: a value of the record, and the law of the answer.

    Parameters
    ----------
    value : callable
        ``value(X, y)`` returns one value per record.
    randomizer : Randomizer
        It has finitely many answers.
    reference : value, default=0
        Proposals are drawn from the law of this value.

    Examples
    --------
    >>> from quorate.local.randomizers.known_laws import BinaryResponse
    >>> bit = RecordRandomizer(lambda X, y: X[:, 0], BinaryResponse(1.0))
    >>> bit.chances(1, np.array([[0.0], [1.0]]), np.zeros(2)).round(4)
    array([0.2689, 0.7311])
    """

    value: Evaluation = field(compare=False)
    randomizer: Randomizer
    reference: Any = 0

    def __post_init__(self) -> None:
        if self.randomizer.answers is None or self.randomizer.delta:
            raise ParameterError("Expected a purely private randomizer with finitely many answers.")

    @property
    def answers(self) -> tuple[Any, ...]:
        """All possible answers."""
        return self.randomizer.answers or ()

    @property
    def epsilon(self) -> float:
        """The cost of one answer."""
        return float(self.randomizer.cost)

    def proposals(self) -> Floats:
        """Return the law of the answer of the reference value."""
        chances = [self.randomizer.probability(w, self.reference) for w in self.answers]
        return np.array(chances)

    def chances(self, answer: Any, X: Floats, y: Floats) -> Floats:
        """Return the probability of ``answer`` for every record."""
        values, places = np.unique(np.asarray(self.value(X, y)), return_inverse=True)
        return np.array([self.randomizer.probability(answer, v) for v in values])[places]


@dataclass(frozen=True)
class AnswerLikelihood:
    """The probability of some answers of one user, relative to the reference, in [-1, 1]."""

    history: tuple[tuple[RecordRandomizer, Any], ...]

    @property
    def epsilon(self) -> float:
        """The cost of all answers together."""
        return sum(each.epsilon for each, _ in self.history)

    @property
    def reference(self) -> float:
        """The probability of the answers for the reference record."""
        return math.prod(
            each.randomizer.probability(answer, each.reference) for each, answer in self.history
        )

    def __call__(self, X: Floats, y: Floats) -> Floats:
        chances = np.ones(len(X))
        for each, answer in self.history:
            chances = chances * each.chances(answer, X, y)
        return (chances / self.reference - 1) / (2 * math.sinh(self.epsilon))

    def query(self, tolerance: float) -> StatisticalQuery:
        """Return the query whose answer :meth:`estimate` uses."""
        return StatisticalQuery(
            function=self, tolerance=tolerance, low=-1.0, high=1.0, name="chance of the answers"
        )

    def estimate(self, answer: float) -> float:
        """Return the mean probability of the answers."""
        return (answer * 2 * math.sinh(self.epsilon) + 1) * self.reference


class Simulation:
    r"""Simulate up to ``calls`` local queries, with statistical queries to an oracle.

    Lemma 5.8 of paper K: the transcript is within total variation ``beta`` of a real one. A call of
    :meth:`SimulatedUser.ask` costs :math:`(1+\varphi)/(1-\varphi) e^\varepsilon` rounds of queries
    on average; after :math:`50 e^\varepsilon` rounds, a public cap that is reached with probability
    below :math:`10^{-20}`, it gives up. All calls of :meth:`ask_all` cost one round.

    Parameters
    ----------
    oracle : QueryOracle
        An oracle that keeps tolerances of order ``beta / calls``: a known distribution. A sample
        would need a size of order :math:`(calls/beta)^2`, and is refused.
    calls : int
        The largest number of simulated local queries.
    beta : float, default=0.1
    random_state : public seed of proposals

    Examples
    --------
    >>> from quorate.learners.concepts import Constant
    >>> from quorate.local.randomizers.known_laws import BinaryResponse
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> oracle = ExactOracle(Population.uniform_cube(1, Constant(0)))
    >>> simulation = Simulation(oracle, calls=200, random_state=0)
    >>> smokes = RecordRandomizer(lambda X, y: X[:, 0], BinaryResponse(1.0))
    >>> answers = [simulation.user().ask(smokes) for _ in range(200)]
    >>> abs(np.mean(answers) - 0.5) < 0.2
    np.True_
    """

    def __init__(
        self,
        oracle: QueryOracle,
        *,
        calls: int,
        beta: float = 0.1,
        random_state: RandomState = None,
    ) -> None:
        _validate.positive_integer(calls=calls)
        _validate.probability(beta=beta)
        if isinstance(oracle, EmpiricalOracle):
            raise ParameterError(
                f"Expected an oracle that knows the distribution: answers within "
                f"{beta / (9 * calls):.1g} would take about {(9 * calls / beta) ** 2:.0e} records."
            )
        self.oracle = oracle
        self.calls, self.beta = calls, beta
        self.made = 0
        self._generator = public_generator(random_state)

    def user(self) -> SimulatedUser:
        """Return a new user of the distribution."""
        return SimulatedUser(self)

    def ask_all(self, randomizers: Sequence[RecordRandomizer]) -> list[Any]:
        r"""Send one query to each of this many new users, with one round of queries (Claim 5.9).

        Each call gets :math:`50 e^\varepsilon` proposals in advance, and every distinct proposal is
        one query. An answer is the first proposal that is accepted.

        >>> from quorate.learners.concepts import Constant
        >>> from quorate.local.randomizers.known_laws import BinaryResponse
        >>> from quorate.papers.queries.oracles import ExactOracle
        >>> from quorate.papers.queries.populations import Population
        >>> from quorate.papers.queries.statistical import OneRound
        >>> oracle = OneRound(ExactOracle(Population.uniform_cube(1, Constant(0))))
        >>> smokes = RecordRandomizer(lambda X, y: X[:, 0], BinaryResponse(1.0))
        >>> answers = Simulation(oracle, calls=200, random_state=0).ask_all([smokes] * 200)
        >>> oracle.n_rounds, oracle.n_queries, abs(np.mean(answers) - 0.5) < 0.2
        (1, 2, np.True_)
        """
        if self.made + len(randomizers) > self.calls:
            raise ParameterError(f"Expected at most calls={self.calls} questions.")
        users: dict[int, list[int]] = {}
        for user, each in enumerate(randomizers):
            users.setdefault(id(each), []).append(user)
        asked = [(randomizers[own[0]], own) for own in users.values()]
        proposals = [self._proposals(each, len(own)) for each, own in asked]
        places = [np.unique(drawn) for drawn in proposals]
        likelihoods = [
            AnswerLikelihood(((each, each.answers[place]),))
            for (each, _), drawn in zip(asked, places, strict=True)
            for place in drawn
        ]
        estimates = iter(self.estimates(likelihoods, first=True))
        self.made += len(randomizers)
        answers: list[Any] = [None] * len(randomizers)
        for (each, own), drawn, seen in zip(asked, proposals, places, strict=True):
            chances = np.zeros(len(each.answers))
            for place in seen:
                chances[place] = self.accepted(each, place, next(estimates), first=True)
            for user, place in zip(own, self._first_accepted(drawn, chances), strict=True):
                answers[user] = each.answers[place]
        return answers

    def _proposals(self, randomizer: RecordRandomizer, users: int) -> NDArray[np.int64]:
        law, shape = randomizer.proposals(), (users, self.cap(randomizer))
        return self._generator.choice(len(law), size=shape, p=law / law.sum())

    def _first_accepted(self, proposals: NDArray[np.int64], chances: Floats) -> list[int]:
        """Return the first accepted proposal of each row."""
        passed = self._generator.random(proposals.shape) < chances[proposals]
        if not passed.any(axis=1).all():
            raise NumericalFailure(
                f"No proposal was accepted in {proposals.shape[1]} rounds; no answer is given."
            )
        first = passed.argmax(axis=1)
        found: list[int] = proposals[np.arange(len(proposals)), first].tolist()
        return found

    @staticmethod
    def cap(randomizer: RecordRandomizer) -> int:
        """Return the largest number of proposals per local query."""
        return math.ceil(50 * math.exp(randomizer.epsilon))

    def estimates(self, likelihoods: Iterable[AnswerLikelihood], *, first: bool) -> list[float]:
        """Make one round of queries, and return the mean probabilities of the answers."""
        # A chance is at least e^-E times that of the reference, so an error of tau in the query is
        # a relative error of at most tau e^2E.
        asked, slack = tuple(likelihoods), self.slack(first=first)
        queries = [each.query(slack * math.exp(-2 * each.epsilon)) for each in asked]
        answers = self.oracle.answer(queries)
        return [each.estimate(float(answer)) for each, answer in zip(asked, answers, strict=True)]

    def accepted(
        self, randomizer: RecordRandomizer, place: int, chance: float, *, first: bool
    ) -> float:
        """Return the probability of accepting a proposal, given the probability of the answer."""
        slack = self.slack(first=first)
        divisor = 1 + slack if first else 1 + 3 * slack
        q = float(randomizer.proposals()[place])
        return chance / (q * divisor * math.exp(randomizer.epsilon))

    def slack(self, *, first: bool) -> float:
        """Return the relative error allowed for a first, or a later, query to a user."""
        return self.beta / ((3 if first else 9) * self.calls)

    def uniform(self) -> float:
        """Return a public random number in [0, 1)."""
        return float(self._generator.random())

    def choose(self, law: Floats) -> int:
        """Return a public random index with these probabilities."""
        return int(self._generator.choice(len(law), p=law / law.sum()))


class SimulatedUser:
    """A simulated user, who answers like one drawn from the distribution.

    Later questions may depend on earlier answers: Claim 5.10 of paper K.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.history: tuple[tuple[RecordRandomizer, Any], ...] = ()
        self.rounds: list[int] = []

    def ask(self, randomizer: RecordRandomizer) -> Any:
        """Return an answer, given all earlier answers of this user."""
        simulation = self._simulation
        if simulation.made >= simulation.calls:
            raise ParameterError(f"Expected at most calls={simulation.calls} questions.")
        law, answers = randomizer.proposals(), randomizer.answers
        cap = simulation.cap(randomizer)
        for turn in range(1, cap + 1):
            place = simulation.choose(law)
            if simulation.uniform() < self.acceptance(randomizer, place):
                simulation.made += 1
                self.history = (*self.history, (randomizer, answers[place]))
                self.rounds.append(turn)
                return answers[place]
        raise NumericalFailure(f"No proposal was accepted in {cap} rounds; no answer is given.")

    def acceptance(self, randomizer: RecordRandomizer, place: int) -> float:
        """Query the oracle, and return the probability with which a proposal is accepted."""
        simulation, first = self._simulation, not self.history
        likelihoods = [AnswerLikelihood((*self.history, (randomizer, randomizer.answers[place])))]
        if self.history:
            likelihoods.append(AnswerLikelihood(self.history))
        found = simulation.estimates(likelihoods, first=first)
        chance = found[0] if first else found[0] / found[1]
        return simulation.accepted(randomizer, place, chance, first=first)


class SimulatedOracle(QueryOracle):
    r"""Statistical queries answered by local users who are simulated by statistical queries.

    Theorem 5.14 of paper K says that statistical queries and the local model can learn the same
    classes, also without adaptivity on both sides. Here a query is answered as in
    :class:`~quorate.papers.queries.oracles.local.LocalQueryOracle` (Lemma 5.6): by randomized
    responses of new users. Those users are drawn by :meth:`Simulation.ask_all` (Lemma 5.8), which
    asks another oracle, once for each round. So an algorithm that runs on this oracle is converted
    to a local one and back.

    Parameters
    ----------
    oracle : QueryOracle
        An oracle that knows the distribution.
    users : int
        Number of users who answer one query.
    queries : int
        Largest number of queries.
    epsilon : float, default=1.0
    beta : float, default=0.1
        Total variation distance that the simulation may add to all answers.
    random_state : public seed

    Examples
    --------
    >>> from quorate.learners.concepts import Conjunctions
    >>> from quorate.papers.queries.algorithms import ConjunctionQueries
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> exact = ExactOracle(Population.uniform_cube(3, Conjunctions(3).concept(1)))
    >>> there_and_back = SimulatedOracle(exact, users=20_000, queries=8, random_state=0)
    >>> print(ConjunctionQueries(3).run(there_and_back), exact.n_rounds)
    Predict 1 if x0, else 0. 1
    """

    def __init__(
        self,
        oracle: QueryOracle,
        *,
        users: int,
        queries: int,
        epsilon: float = 1.0,
        beta: float = 0.1,
        random_state: RandomState = None,
    ) -> None:
        _validate.positive_integer(users=users, queries=queries)
        super().__init__(oracle.n_features)
        self.users = users
        self._response = BinaryResponse(epsilon)
        self._simulation = Simulation(
            oracle, calls=users * queries, beta=beta, random_state=random_state
        )

    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> Floats:
        asked = [RecordRandomizer(_ShareOf(query), self._response) for query in queries]
        answers = self._simulation.ask_all([each for each in asked for _ in range(self.users)])
        bits = np.array(answers).reshape(len(queries), self.users)
        shares = np.array([self._response.estimate(row) for row in bits])
        return np.array([q.low + q.width * s for q, s in zip(queries, shares, strict=True)])


@dataclass(frozen=True)
class _ShareOf:
    """The value of a query as a share of its range, for each record."""

    query: StatisticalQuery

    def __call__(self, X: Floats, y: Floats) -> Floats:
        return (self.query.on_records(X, y) - self.query.low) / self.query.width
