"""Whatever holds an open budget spends it once: no fork, no copy and no second call spends more.

``decisions/0038-once-means-once.md`` lists what can be asked twice; each line is asked here.
"""

import copy
import os
import pickle
import sys
import threading
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from forks import in_a_fork
from quorate import (
    Ledger,
    LogisticRegression,
    ThresholdLearner,
    UserData,
    UserMean,
    UserQueries,
    UserScaler,
    private_cross_val_score,
    private_score,
)
from quorate.app.model_files import StoredModel
from quorate.app.serve.message_store import MessageStore
from quorate.app.serve.tallying import tally_store
from quorate.core.account.account import Account
from quorate.core.account.parts import SampleAccount, SharedAccount, disjoint_groups
from quorate.core.guarantees import Composed, Gaussian, Repeated, Subsampled
from quorate.core.once import OnceOnly
from quorate.exceptions import (
    BudgetExceededError,
    NotEnoughUsersError,
    NumericalFailure,
    ParameterError,
    QueriesExhaustedError,
)
from quorate.local.messages import MessageFormat
from quorate.local.oracle import LocalOracle, Report
from quorate.local.randomizers.known_laws import BinaryResponse
from quorate.local.shuffler import Shuffler
from quorate.local.task import Task
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.papers.queries.oracles.central import CentralOracle
from quorate.papers.queries.oracles.local import LocalQueryOracle
from quorate.papers.queries.statistical import OneRound, StatisticalQuery
from sealing import moved, release_by_hand

HALF = Fraction(1, 2)
X = np.random.default_rng(0).uniform(size=(400, 1))
PEOPLE = UserData.from_arrays(X, users=range(400))
QUERY = StatisticalQuery(function=lambda X, y: X[:, 0], tolerance=0.1)
SMOKES = Report(lambda users: users.user_means()[:, 0], BinaryResponse(0.5))


@cache
def task():
    """Make it when a test asks: its noise is a second's work."""
    return Task.shuffle(name="s", candidates=8, epsilon=1.0, delta=1e-6, users=4, seed="13" * 32)


def messages(count):
    reports = task().response.respond(np.full(count, 5))
    return [row.tobytes() for row in MessageFormat(task()).write(reports)]


def account(**options):
    return Account.open(**({"epsilon": 1.0, "delta": 1e-6} | options))


def planned_account():
    made = account()
    made.reserve_chain(Composed((Gaussian(8.0), Repeated(Subsampled(Gaussian(2.0), rate=0.01), 2))))
    return made


def foreseen_account():
    made = account()
    made.draw_ahead([50.0], size=1)
    return made


def gaussian(made):
    return made.gaussian(moved(np.zeros(1, np.int64), squared=1), sigma=50.0)


def desk():
    return UserQueries(1.0, delta=1e-6, queries=2, bounds=1.0).fit(PEOPLE)


def full_shuffler():
    made = Shuffler(task())
    made.admit_all(messages(4))
    return made


def full_store(folder):
    made = MessageStore(folder / "messages.db")
    made.open_task(task())
    for place, message in enumerate(messages(4)):
        made.keep(task(), b"%d" % place, message)
    return made


# How each is opened, and how it is asked.
OPEN = {
    "an account": (account, lambda held: held.pay(HALF)),
    "a part of it": (lambda: account().part(HALF), lambda held: held.pay(Fraction(1, 4))),
    "a part that is cut later": (account, lambda held: held.part(HALF).pay(Fraction(1, 4))),
    "the rest": (account, lambda held: held.rest().pay(HALF)),
    "a plan": (planned_account, lambda held: held.pay(Gaussian(8.0))),
    "a sample": (
        lambda: SampleAccount(planned_account(), rate=0.01),
        lambda held: held.pay(Gaussian(2.0)),
    ),
    "a group": (lambda: disjoint_groups(account(), 2)[0], lambda held: held.pay(HALF)),
    "a shared account": (
        lambda: SharedAccount.open(epsilon=1.0),
        lambda held: held.lend(epsilon=HALF).pay(HALF),
    ),
    "what it lends": (
        lambda: SharedAccount.open(epsilon=1.0).lend(epsilon=HALF),
        lambda held: held.pay(HALF),
    ),
    "noise that was foreseen": (foreseen_account, gaussian),
    "a mechanism": (
        account,
        lambda held: release_by_hand(NoisyCount(epsilon=0.5), 3, account=held),
    ),
    "a fit that borrows": (
        lambda: UserMean(0.5, bounds=1.0).draw_from(SharedAccount.open(epsilon=1.0)),
        lambda held: held.fit(PEOPLE),
    ),
    "a desk": (desk, lambda held: held.ask(lambda records: records.mean(axis=0))),
    "a curator": (
        lambda: CentralOracle(PEOPLE, max_queries=2, account=account()),
        lambda held: held.ask(QUERY),
    ),
    "one round of a curator": (
        lambda: OneRound(CentralOracle(PEOPLE, max_queries=2, account=account())),
        lambda held: held.ask(QUERY),
    ),
    "users who answer": (
        lambda: LocalOracle(PEOPLE, epsilon=1.0),
        lambda held: held.ask([0], SMOKES),
    ),
    "blocks of users who answer": (
        lambda: LocalQueryOracle(PEOPLE, epsilon=1.0, rounds=(1,)),
        lambda held: held.ask(QUERY),
    ),
    "a shuffler": (full_shuffler, lambda held: held.release()),
}
everything_open = pytest.mark.parametrize("name", OPEN)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@needs_fork
class TestForks:
    @everything_open
    def test_a_fork_is_refused_and_the_process_that_opened_it_is_not(self, name):
        opened, ask = OPEN[name]
        held = opened()
        assert in_a_fork(lambda: ask(held)) == "OtherProcessError"
        ask(held)

    def test_the_answers_of_many_forks_are_those_that_were_paid_for(self):
        """There were 101 to one planned question: epsilon 5.05 under a claim of .05."""
        asked = UserQueries(0.05, delta=1e-6, queries=1, bounds=1.0).fit(PEOPLE)

        def ask():
            asked.ask(lambda records: records.mean(axis=0))

        said = [in_a_fork(ask) for _ in range(10)]
        assert "answered" not in said
        ask()
        assert asked.remaining == 0

    def test_a_fork_takes_no_ticket_and_runs_no_question(self):
        asked = desk()

        def ask():
            try:
                asked.ask(lambda records: os._exit(1))  # what runs it says nothing any more
            finally:
                assert asked.remaining == 2

        assert in_a_fork(ask) == "OtherProcessError"

    def test_a_fork_may_open_its_own(self):
        assert in_a_fork(lambda: account().pay(HALF)) == "answered"

    def test_a_lock_that_a_thread_held_at_the_fork_does_not_hang_it(self):
        held, oracle = account(), LocalOracle(PEOPLE, epsilon=1.0)
        with held._lock:
            # An RLock knows its thread, and the child has one of the same number.
            assert in_a_fork(lambda: held.pay(HALF)) == "OtherProcessError"
        with oracle._lock:
            assert in_a_fork(lambda: oracle.ask([0], SMOKES)) == "OtherProcessError"

    def test_a_store_that_a_fork_carries_closes_no_crowd(self, tmp_path):
        store = full_store(tmp_path)
        for ask in (
            lambda: store.make_batch(task()),
            lambda: tally_store(store, task()),
            lambda: store.keep(task(), b"another", messages(1)[0]),
        ):
            assert in_a_fork(ask) == "OtherProcessError"
        assert store.waiting(task()) == 4
        store.close()


@pytest.mark.parametrize(
    "name",
    sorted({*OPEN} - {"a fit that borrows"}),  # once: then they have a budget of their own
)
def test_threads_get_no_more_answers_than_one_would(name):
    opened, ask = OPEN[name]
    held, found = opened(), []
    begin = threading.Barrier(4)
    switching = sys.getswitchinterval()

    def work():
        begin.wait()
        found.append(answers(ask, [held]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switching)
    assert len(found) == 4
    assert 0 < sum(found) <= answers(ask, [opened()])


def copies(held):
    for twice in (copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        try:
            yield twice(held)
        except (TypeError, AttributeError, pickle.PicklingError):
            continue  # there is no copy


def answers(ask, several):
    """Return how often several of them answer in all, each until it is refused."""
    found = 0
    refusals = (QueriesExhaustedError, NumericalFailure, ParameterError, NotEnoughUsersError)
    for each in several:
        for _ in range(1000):
            try:
                ask(each)
            except refusals:
                break
            found += 1
    return found


@pytest.mark.parametrize("name", sorted({*OPEN} - {"a fit that borrows"}))
def test_with_copies_there_are_as_many_answers_as_without(name):
    """No copy is made, or it is closed, or it draws from the one account."""
    opened, ask = OPEN[name]
    held = opened()
    assert 0 < answers(ask, [*copies(held), held]) == answers(ask, [opened()]) < 1000


def test_copies_of_a_fit_that_borrows_borrow_from_one_account():
    lender = SharedAccount.open(epsilon=1.0)
    mean = UserMean(0.5, bounds=1.0).draw_from(lender)
    several = [mean, copy.copy(mean), copy.copy(mean)]
    several[0].fit(PEOPLE)
    several[1].fit(PEOPLE)
    with pytest.raises(NumericalFailure, match="does not fit"):
        several[2].fit(PEOPLE)


def test_a_store_is_not_copied(tmp_path):
    store = full_store(tmp_path)
    assert list(copies(store)) == []
    store.close()


class TestLedgers:
    """What a fit does again, it pays for again."""

    @pytest.fixture
    def paid(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=2.5, delta=1e-5)
        return {"ledger": ledger, "data_name": "people"}

    def spent(self, paid):
        return paid["ledger"].spent("people").epsilon

    def test_a_second_fit(self, paid):
        mean = UserMean(1.0, bounds=1.0, **paid).fit(PEOPLE)
        mean.fit(PEOPLE)
        with pytest.raises(BudgetExceededError):
            mean.fit(PEOPLE)
        assert self.spent(paid) == 2.0

    @pytest.mark.parametrize("again", [clone, copy.copy, copy.deepcopy])
    def test_the_fit_of_a_copy(self, paid, again):
        mean = UserMean(1.0, bounds=1.0, **paid).fit(PEOPLE)
        again(mean).fit(PEOPLE)
        assert self.spent(paid) == 2.0

    def test_the_fit_of_what_was_saved(self, paid):
        mean = UserMean(1.0, bounds=1.0, **paid).fit(PEOPLE)
        pickle.loads(pickle.dumps(mean)).fit(PEOPLE)
        assert self.spent(paid) == 2.0

    @needs_fork
    def test_the_fit_of_a_fork(self, paid):
        mean = UserMean(1.0, bounds=1.0, **paid).fit(PEOPLE)
        assert [in_a_fork(lambda: mean.fit(PEOPLE)) for _ in range(2)] == [
            "answered",
            "BudgetExceededError",
        ]
        assert self.spent(paid) == 2.0

    @needs_fork
    def test_a_fork_does_not_settle_what_its_parent_still_draws(self, tmp_path):
        ledger = Ledger(tmp_path / "tight.db")
        ledger.set_budget("people", epsilon=2.0, delta=1e-5, composition="gaussian")
        mean = UserMean(1.0, delta=1e-6, bounds=1.0, ledger=ledger, data_name="people")
        opened = mean._charge(PEOPLE)
        assert in_a_fork(lambda: mean._promise(opened)) == "OtherProcessError"
        assert [type(each).__name__ for each in ledger.history()] == ["BudgetChange", "Charge"]
        opened.pay(Gaussian(9.0))
        mean._promise(opened)
        assert ledger.history()[-1].events[0].to_dict() == Gaussian(9.0).to_dict()

    def test_a_warm_start(self, paid):
        sides = X[:, 0] > 0.5
        model = LogisticRegression(1.0, delta=1e-6, bounds=1.0, warm_start=True, **paid)
        model.fit(X, sides, users=range(400)).fit(X, sides, users=range(400))
        assert self.spent(paid) == 2.0

    def test_a_score_and_a_cross_validation(self, paid):
        sides = (X[:, 0] > 0.5).astype(int)
        learner = ThresholdLearner(1.0, domain=(0, 1), step=0.25)
        told = {"users": range(400), "random_state": 0, **paid}
        for _ in range(2):
            private_cross_val_score(learner, X, sides, epsilon=1.0, folds=2, **told)
        with pytest.raises(BudgetExceededError):
            private_cross_val_score(learner, X, sides, epsilon=1.0, folds=2, **told)
        fitted = learner.fit(X, sides, users=range(400))
        with pytest.raises(BudgetExceededError):
            private_score(fitted, X, sides, epsilon=1.0, users=range(400), **paid)
        private_score(fitted, X, sides, epsilon=0.5, users=range(400), **paid)
        assert self.spent(paid) == 2.5

    def test_a_pipeline_and_its_clone(self, paid):
        with config_context(enable_metadata_routing=True):
            scaler = UserScaler(1.0, delta=1e-6, bounds=1.0, **paid).set_fit_request(users=True)
            pipeline = make_pipeline(scaler)
            pipeline.fit(X, users=range(400))
            clone(pipeline).fit(X, users=range(400))
            with pytest.raises(BudgetExceededError):
                pipeline.fit(X, users=range(400))
        assert self.spent(paid) == 2.0

    def test_a_model_file_holds_what_was_released_and_nothing_that_spends(self, paid, tmp_path):
        mean = UserMean(1.0, bounds=1.0, **paid).fit(PEOPLE)
        path = StoredModel(mean).write(tmp_path / "model.json")
        read = StoredModel.read(path).estimator
        assert read.guarantee_.epsilon == mean.guarantee_.epsilon
        assert np.array_equal(read.mean_, mean.mean_)
        assert not any(isinstance(held, OnceOnly) for held in vars(read).values())
        assert self.spent(paid) == 1.0

    def test_a_partial_fit_is_refused(self, paid):
        with pytest.raises(AttributeError):
            _ = LogisticRegression(1.0, delta=1e-6, bounds=1.0, **paid).partial_fit
        assert self.spent(paid) == 0.0

    def test_a_desk_that_is_fitted_again(self, paid):
        asked = UserQueries(1.0, delta=1e-6, queries=1, bounds=1.0, **paid).fit(PEOPLE)
        asked.ask(lambda records: records.mean(axis=0))
        asked.fit(PEOPLE)
        assert (asked.remaining, self.spent(paid)) == (1, 2.0)

    def test_the_clone_of_one_that_borrows_pays_for_itself(self):
        lender = SharedAccount.open(epsilon=1.0)
        mean = UserMean(0.5, bounds=1.0).draw_from(lender)
        again = clone(mean).fit(PEOPLE)
        assert lender.left == 1
        assert again.guarantee_.epsilon == 0.5
        mean.fit(PEOPLE)
        assert lender.left == HALF
        mean.fit(PEOPLE)  # borrowed once: the second fit has an account of its own
        assert lender.left == HALF
