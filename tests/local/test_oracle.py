"""The charging oracle: exact, adaptive, and impossible to overrun."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from quorate import UserData
from quorate.core.account.account import Account
from quorate.core.guarantees import Numerics, Relation, Trust
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import (
    NumericalFailure,
    ParameterError,
    QueriesExhaustedError,
    ReplayMismatchError,
)
from quorate.local.oracle import LocalOracle, Report
from quorate.local.randomizers.known_laws import (
    BinaryResponse,
    BitVectorResponse,
    FiniteRandomizer,
    GaussianResponse,
    KaryResponse,
)

EPSILON = 1.0


def own(users):
    return users.user_means()[:, 0]


def other(users):
    return 1 - users.user_means()[:, 0]


FIRST = Report(own, BinaryResponse(EPSILON / 2), name="first")
SECOND = {
    0: Report(own, BinaryResponse(EPSILON / 2), name="same"),
    1: Report(other, BinaryResponse(EPSILON / 2), name="opposite"),
}


def world(*bits):
    return UserData.from_arrays([[float(b)] for b in bits], users=range(len(bits)))


class Scripted(SeededNoise):
    """Noise under which randomized response tells given bits, whatever the values."""

    def __init__(self, told):
        super().__init__(0)
        self.told = list(told)
        self.draws = 0

    def _uniform_words(self, count):
        self.draws += 1
        return super()._uniform_words(count)


class TellsScript(BinaryResponse):
    """Randomized response whose answers come from a script; its law is the real one."""

    def draw(self, values, noise):
        noise.uniform_words(len(values))
        return np.array([noise.told.pop(0) for _ in values], dtype=np.int8)


def transcript(data, told):
    """Ask two users twice each; what the second question is depends on the first answer."""
    with use_noise(Scripted(told)) as noise:
        oracle = LocalOracle(data, epsilon=EPSILON)
        for user in (0, 1):
            first = Report(own, TellsScript(EPSILON / 2), name="first")
            answer = int(oracle.ask([user], first)[0])
            question = own if answer == 0 else other
            oracle.ask([user], Report(question, TellsScript(EPSILON / 2), name=f"after {answer}"))
        return oracle, noise


@pytest.mark.claim("K5: Definition 5.2")
class TestTranscript:
    def test_two_users_with_adaptive_second_questions_cost_exactly_epsilon(self):
        """All sixteen transcripts, all neighbouring pairs of data sets."""
        worst = 0.0
        for data in itertools.product((0, 1), repeat=2):
            chances = []
            for told in itertools.product((0, 1), repeat=4):
                oracle, _ = transcript(world(*data), told)
                found = oracle.transcript.log_probability(world(*data))
                chances.append(math.exp(found))
                for place in (0, 1):
                    changed = list(data)
                    changed[place] = 1 - changed[place]
                    ratio = found - oracle.transcript.log_probability(world(*changed))
                    worst = max(worst, abs(ratio))
            assert sum(chances) == pytest.approx(1.0)
        assert worst == pytest.approx(EPSILON, abs=1e-12)

    def test_a_further_question_raises_and_draws_nothing(self):
        oracle, noise = transcript(world(0, 1), (0, 1, 0, 1))
        before = noise.draws
        for place in (0, 1):
            with pytest.raises(
                QueriesExhaustedError, match=f"User {place} has 0 of epsilon=1 left"
            ):
                oracle.ask([place], Report(own, TellsScript(1e-9)))
        assert noise.draws == before
        assert len(oracle.transcript.exchanges) == 4

    def test_a_refused_batch_changes_nothing(self):
        oracle = LocalOracle(world(0, 1), epsilon=EPSILON)
        oracle.ask([0], FIRST)
        whole = Report(own, BinaryResponse(EPSILON))
        with pytest.raises(QueriesExhaustedError, match="nothing was drawn"):
            oracle.ask([1, 0], whole)
        assert oracle.left(1) == 1
        assert oracle.left(0) == Fraction(1, 2)
        oracle.ask([1], whole)

    def test_prices_are_exact_fractions(self):
        tenth = Report(own, BinaryResponse(Fraction(1, 10)))
        oracle = LocalOracle(world(0), epsilon=Fraction(3, 10))
        for _ in range(3):
            oracle.ask([0], tenth)
        assert oracle.left(0) == 0
        assert oracle.transcript.epsilon == Fraction(3, 10)
        with pytest.raises(QueriesExhaustedError):
            oracle.ask([0], tenth)

    def test_a_transcript_can_be_replayed_without_data(self):
        oracle = LocalOracle(world(0, 1), epsilon=EPSILON)
        first = oracle.ask([1, 0], FIRST)
        second = oracle.ask([0], SECOND[0])
        replay = oracle.transcript.replay()
        assert replay.ask([1, 0], FIRST).tolist() == first.tolist()
        assert replay.ask([0], SECOND[0]).tolist() == second.tolist()
        with pytest.raises(ReplayMismatchError):
            replay.ask([0], SECOND[0])
        with pytest.raises(ReplayMismatchError):
            oracle.transcript.replay().ask([0, 1], FIRST)


class DrawsFirst(LocalOracle):
    """Broken: draws before it charges, so a refused question has still been drawn."""

    def _ask(self, questions):
        for places, report in questions:
            report.randomizer.draw(report.of(self._users.take(places)), self._noise)
        return super()._ask(questions)


class ForgetsEarlierAccesses(LocalOracle):
    """Broken: each access of an entry has the whole budget again."""

    def _charge(self, questions):
        self._spent = [Fraction(0)] * self.n_users
        super()._charge(questions)


class TestBrokenTwins:
    @staticmethod
    def draws_of_a_refused_question(kind):
        with use_noise(Scripted([0] * 9)) as noise:
            oracle = kind(world(0, 1), epsilon=EPSILON)
            oracle.ask([0], Report(own, TellsScript(EPSILON)))
            before = noise.draws
            with pytest.raises(QueriesExhaustedError):
                oracle.ask([0], Report(own, TellsScript(EPSILON)))
            return noise.draws - before

    def test_a_refused_question_that_still_draws_is_caught(self):
        assert self.draws_of_a_refused_question(LocalOracle) == 0
        assert self.draws_of_a_refused_question(DrawsFirst) > 0

    @staticmethod
    def loss_of_three_questions(kind):
        oracle = kind(world(1), epsilon=EPSILON)
        for _ in range(3):
            try:
                oracle.ask([0], FIRST)
            except QueriesExhaustedError:
                break
        answers = [1] * len(oracle.transcript.exchanges)
        for exchange, answer in zip(oracle.transcript.exchanges, answers, strict=True):
            exchange.answers[:] = answer
        told = oracle.transcript.log_probability
        return told(world(1)) - told(world(0))

    def test_a_budget_that_is_not_shared_between_accesses_is_caught(self):
        assert self.loss_of_three_questions(LocalOracle) <= EPSILON + 1e-12
        assert self.loss_of_three_questions(ForgetsEarlierAccesses) > 1.4 * EPSILON


@pytest.mark.claim("K5: Definition 5.3")
class TestOneShot:
    def test_one_batch_and_then_never_again(self):
        oracle = LocalOracle(world(0, 1), epsilon=EPSILON, one_shot=True)
        with pytest.raises(ParameterError, match="ask_all"):
            oracle.ask([0], FIRST)
        answers = oracle.ask_all([([0, 1], FIRST), ([0], SECOND[1])])
        assert [len(each) for each in answers] == [2, 1]
        with pytest.raises(QueriesExhaustedError, match="closed"):
            oracle.ask_all([([1], FIRST)])

    def test_a_batch_that_does_not_fit_leaves_the_oracle_open(self):
        oracle = LocalOracle(world(0, 1), epsilon=EPSILON, one_shot=True)
        with pytest.raises(QueriesExhaustedError):
            oracle.ask_all([([0], FIRST), ([0], FIRST), ([0], FIRST)])
        assert len(oracle.ask_all([([0], FIRST), ([0], FIRST)])) == 2


class TestValues:
    def test_a_function_sees_one_user_at_a_time(self):
        seen = []

        def curious(users):
            seen.append(users.n_users)
            return own(users)

        LocalOracle(world(0, 1, 1), epsilon=1.0).ask(
            [0, 1, 2], Report(curious, BinaryResponse(1.0))
        )
        assert seen == [1, 1, 1]

    def test_odd_values_of_one_user_change_no_other(self):
        def odd(users):
            value = users.user_means()[0, 0]
            if value == 7:
                raise ValueError("I met 7")
            return ["text"] if value == 8 else [[1.0, 2.0]] if value == 9 else [value]

        values = Report(odd, BinaryResponse(1.0)).of(world(1, 7, 8, 9, 0))
        assert np.array_equal(values, [1.0, np.nan, np.nan, np.nan, 0.0], equal_nan=True)
        rows = Report(lambda users: np.ones((1, 3)), BitVectorResponse(1.0, length=3))
        assert rows.of(world(1, 2)).shape == (2, 3)

    def test_values_of_a_finite_table_may_be_words(self):
        half, third = Fraction(1, 2), Fraction(1, 3)
        table = {
            "yes": {0: half, 1: third, 2: Fraction(1, 6)},
            "no": {0: third, 1: half, 2: Fraction(1, 6)},
        }
        report = Report(
            lambda users: ["yes" if own(users)[0] else "no"], FiniteRandomizer(table, epsilon=0.5)
        )
        assert LocalOracle(world(0, 1), epsilon=0.5).ask([0, 1], report).shape == (2,)
        assert report.probability(1, world(0)) == 0.5

    def test_categories(self):
        report = Report(own, KaryResponse(1.0, categories=3))
        assert set(LocalOracle(world(*[2] * 50), 1.0).ask(range(50), report)) <= {0, 1, 2}


class TestPromises:
    def test_the_guarantee_is_local_and_void_with_a_double(self):
        guarantee = LocalOracle(world(0), epsilon=1.0).guarantee
        assert (guarantee.epsilon, guarantee.delta, guarantee.trust) == (1.0, 0.0, Trust.LOCAL)
        assert guarantee.holds
        with use_noise(SeededNoise(0)):
            assert LocalOracle(world(0), 1.0).guarantee.numerics is Numerics.VOID

    def test_the_account_pays_once_and_in_advance(self):
        account = Account.open(epsilon=1.0)
        LocalOracle(world(0, 1), epsilon=1.0, account=account)
        assert account.left == 0
        with pytest.raises(NumericalFailure):
            LocalOracle(world(0, 1), epsilon=0.1, account=account)

    def test_failure_probabilities_add_up_too(self):
        gaussian = Report(own, GaussianResponse(0.4, 1e-6))
        oracle = LocalOracle(world(0), epsilon=1.0, delta=1.5e-6)
        oracle.ask([0], gaussian)
        with pytest.raises(QueriesExhaustedError, match="delta"):
            oracle.ask([0], gaussian)
        pure = LocalOracle(world(0), epsilon=1.0)
        with pytest.raises(QueriesExhaustedError, match="delta"):
            pure.ask([0], gaussian)

    def test_a_pickled_oracle_holds_no_records_and_answers_nothing(self):
        oracle = LocalOracle(world(0.123456, 1), epsilon=1.0)
        stored = pickle.dumps(oracle)
        assert np.float64(0.123456).tobytes() not in stored
        copy = pickle.loads(stored)
        assert copy.guarantee.epsilon == 1.0
        with pytest.raises(QueriesExhaustedError, match="closed"):
            copy.ask([0], FIRST)

    def test_no_attribute_prints_records(self):
        assert repr(LocalOracle(world(0, 1), 1.0)) == "LocalOracle(epsilon=1, delta=0)"


class TestRefusals:
    @pytest.mark.parametrize("places", [[2], [-1], [0, 0], [[0]], [0.5]])
    def test_places_that_are_none(self, places):
        with pytest.raises((ParameterError, ValueError)):
            LocalOracle(world(0, 1), 1.0).ask(places, FIRST)

    def test_an_account_about_joining_is_refused(self):
        account = Account.open(epsilon=1.0, relation=Relation.ADD_REMOVE)
        with pytest.raises(ParameterError, match="replacing"):
            LocalOracle(world(0), 1.0, account=account)

    def test_a_report_needs_a_function_and_a_randomizer(self):
        with pytest.raises(ParameterError, match="Randomizer"):
            Report(own, "laplace")
        with pytest.raises(ParameterError, match="UserData"):
            LocalOracle([1, 2], 1.0)
