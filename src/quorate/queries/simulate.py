r"""Any local algorithm by statistical queries, without data (K8).

An answer of a transparent randomizer to a user drawn from a distribution D is an answer w with
probability :math:`p(w) = E_{z \sim D} P[R(z) = w]`. A simulation proposes w as if from a fixed
reference record and accepts it in proportion to :math:`p(w)/q(w)`, which one query estimates. So
what can be learned in the local model can be learned from statistical queries, and nothing here is
private: no data are touched. [1]_

The same user may be asked several times. Given the answers so far, the next one has the law
:math:`E[r_2 P[R_k(z)=w]]/E[r_2]` with :math:`r_2 = \prod_{j<k} P[R_j(z) = a_j]`: two queries.

References
----------
.. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011, Lemma 5.8,
   Claims 5.9 and 5.10. In Claim 5.10 the relative error of a quotient needs a tolerance of
   :math:`\beta/(9t)` and an acceptance divisor of :math:`1 + 3\tau'`; the text's
   :math:`\beta/(3t)` and :math:`1 + \beta/(3t)` are too small there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.mechanisms.local.randomizers import Randomizer
from quorate.public_randomness import RandomState, public_generator
from quorate.queries.oracles.empirical import EmpiricalOracle
from quorate.queries.statistical import Evaluation, QueryOracle, StatisticalQuery

__all__ = ["RecordRandomizer", "SimulatedUser", "Simulation"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RecordRandomizer:
    """A transparent randomizer of one record: a value of it, and the law of the answer.

    Parameters
    ----------
    value : callable
        ``value(X, y)`` returns one value per record.
    randomizer : Randomizer
        With finitely many answers.
    reference : value, default=0
        Proposals are drawn as if a record had this value.

    Examples
    --------
    >>> from quorate.mechanisms.local.randomizers import BinaryResponse
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
        """What one answer costs."""
        return float(self.randomizer.cost)

    def proposals(self) -> Floats:
        """Return the law of the answer of the reference value."""
        chances = [self.randomizer.probability(w, self.reference) for w in self.answers]
        return np.array(chances)

    def chances(self, answer: Any, X: Floats, y: Floats) -> Floats:
        """Return the chance of ``answer`` for every record."""
        values, places = np.unique(np.asarray(self.value(X, y)), return_inverse=True)
        return np.array([self.randomizer.probability(answer, v) for v in values])[places]


@dataclass(frozen=True)
class Told:
    """The chance that one user gave all of some answers, relative to the reference, in [-1, 1]."""

    history: tuple[tuple[RecordRandomizer, Any], ...]

    @property
    def epsilon(self) -> float:
        """What all answers cost together."""
        return sum(each.epsilon for each, _ in self.history)

    @property
    def reference(self) -> float:
        """The chance of the answers for the reference record."""
        return math.prod(
            each.randomizer.probability(answer, each.reference) for each, answer in self.history
        )

    def __call__(self, X: Floats, y: Floats) -> Floats:
        chances = np.ones(len(X))
        for each, answer in self.history:
            chances = chances * each.chances(answer, X, y)
        return (chances / self.reference - 1) / (2 * math.sinh(self.epsilon))

    def query(self, tolerance: float) -> StatisticalQuery:
        """Return the query whose answer :meth:`estimate` reads."""
        return StatisticalQuery(
            function=self, tolerance=tolerance, low=-1.0, high=1.0, name="chance of the answers"
        )

    def estimate(self, answer: float) -> float:
        """Return the mean chance of the answers."""
        return (answer * 2 * math.sinh(self.epsilon) + 1) * self.reference


class Simulation:
    r"""Simulate up to ``calls`` questions to users of a distribution that an oracle knows.

    Lemma 5.8 and Claim 5.9 of paper K: the transcript is within total variation ``beta`` of a real
    one. A call costs :math:`(1+\varphi)/(1-\varphi) e^\varepsilon` rounds of queries in the mean;
    after :math:`50 e^\varepsilon` rounds, a public cap that is reached with probability below
    :math:`10^{-20}`, it gives up.

    Parameters
    ----------
    oracle : QueryOracle
        One that keeps tolerances of order ``beta / calls``: a known distribution. A sample would
        have to be of order :math:`(calls/beta)^2`, and is refused.
    calls : int
        At most how many questions are simulated.
    beta : float, default=0.1
    random_state : public seed of proposals

    Examples
    --------
    >>> from quorate.concepts import Constant
    >>> from quorate.mechanisms.local.randomizers import BinaryResponse
    >>> from quorate.queries.oracles import ExactOracle
    >>> from quorate.queries.populations import Population
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
        """Return a fresh user of the distribution."""
        return SimulatedUser(self)

    def slack(self, *, first: bool) -> float:
        """Return the relative error that a first, or a later, question to a user may have."""
        return self.beta / ((3 if first else 9) * self.calls)

    def uniform(self) -> float:
        """Return a public random number in [0, 1)."""
        return float(self._generator.random())

    def choose(self, law: Floats) -> int:
        """Return a public random place with these probabilities."""
        return int(self._generator.choice(len(law), p=law / law.sum()))


class SimulatedUser:
    """One user who was never there, answering like one drawn from the distribution.

    Later questions see what earlier ones were told: Claim 5.10 of paper K.
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
        cap = math.ceil(50 * math.exp(randomizer.epsilon))
        for turn in range(1, cap + 1):
            place = simulation.choose(law)
            if simulation.uniform() < self.acceptance(randomizer, answers[place]):
                simulation.made += 1
                self.history = (*self.history, (randomizer, answers[place]))
                self.rounds.append(turn)
                return answers[place]
        raise NumericalFailure(f"No proposal was accepted in {cap} rounds; no answer is given.")

    def acceptance(self, randomizer: RecordRandomizer, answer: Any) -> float:
        """Ask the oracle, and return the chance with which a proposal is accepted."""
        first = not self.history
        slack = self._simulation.slack(first=first)
        longer = Told((*self.history, (randomizer, answer)))
        if self.history:
            shorter = Told(self.history)
            above, below = self._estimates((longer, shorter), slack)
            chance = above / below
        else:
            (chance,) = self._estimates((longer,), slack)
        q = randomizer.randomizer.probability(answer, randomizer.reference)
        divisor = 1 + slack if first else 1 + 3 * slack
        return chance / (q * divisor * math.exp(randomizer.epsilon))

    def _estimates(self, told: tuple[Told, ...], slack: float) -> list[float]:
        # A chance is at least e^-E times that of the reference, so an error of tau in the query is
        # a relative error of at most tau e^2E.
        queries = [each.query(slack * math.exp(-2 * each.epsilon)) for each in told]
        answers = self._simulation.oracle.answer(queries)
        return [each.estimate(float(answer)) for each, answer in zip(told, answers, strict=True)]
