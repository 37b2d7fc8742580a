"""The noise that was drawn costs what the guarantee says: never more, and hardly less.

Every public estimator and route, both relations, with and without delta, is fitted with a noise
source that keeps its own bill; see ``tests/bill.py``. Where less than nine tenths is drawn, the
reason stands in the table and in the docstring of the estimator.
"""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

from bill import Bill, gaussian_epsilon
from fitting_worlds import public_estimators
from measured_bill import Cost, recorded
from quorate.core.account.compose import price
from quorate.core.account.parts import SampleAccount
from quorate.core.bounds.simplex import Simplex
from quorate.core.bounds.trimmed import Trimmed
from quorate.core.guarantees import Composed, Gaussian, Relation, Repeated, Subsampled
from quorate.core.noise import use_noise
from quorate.core.users import UserData
from quorate.distributions import (
    DiscreteDistribution,
    DiscreteFamily,
    EmpiricalCDF,
    GaussianDistribution,
    Histogram,
    HypothesisSelector,
    ProductDistribution,
)
from quorate.learners import (
    ConceptLearner,
    ConciseLearner,
    LossSelector,
    PrivateMinError,
    PrivateThreshold,
    ThresholdLearner,
)
from quorate.learners.automatic import RuleAlgorithm
from quorate.learners.concepts import Thresholds
from quorate.learners.selection import choose_by_score
from quorate.means import (
    PrivateMedian,
    UserCovariance,
    UserMean,
    UserQuantiles,
    UserQueries,
    UserScaler,
    UserVariation,
)
from quorate.models import (
    HuberRegression,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PhasedMinimizer,
    PrivateGridSearch,
    Ridge,
    SquaredLoss,
    minimize,
)
from quorate.nets import NeuralClassifier, NeuralRegressor
from quorate.papers.queries.algorithms import ConjunctionQueries
from quorate.papers.queries.query_learner import QueryLearner
from quorate.papers.stability import StableLearner
from quorate.synth import UserSynthesizer
from quorate.tabulate import PopularPhrases, RecordMean, UserCount, UserSum, UserTable
from sealing import numbers_of

RNG = np.random.default_rng(0)
N, M = 1200, 3
IDS = np.repeat(np.arange(N), M)
ONE, TWO = RNG.integers(0, 100, (N * M, 1)).astype(float), RNG.normal(size=(N * M, 2))
WIDE = RNG.normal(size=(N * M, 60))
LABELS = (ONE[:, 0] > 50).astype(int) ^ (RNG.random(N * M) < 0.1)
PAIRS = RNG.integers(0, [2, 3], (N * M, 2))
NAMED = pa.table({"group": RNG.integers(0, 3, N * M), "value": RNG.uniform(0, 9, N * M)})
GAUSSIAN = {"epsilon": 2.0, "delta": 1e-6}
MODEL = {"progress": False, **GAUSSIAN}
BOTH, REPLACE = tuple(Relation), (Relation.REPLACE,)


def case(estimator, X, *, y=None, relations=BOTH, least=0.9):
    return estimator, X, y, relations, least


CASES = {
    "mean clip pure": case(UserMean(bounds=9.0, algorithm="clip"), TWO),
    "mean auto pure": case(UserMean(bounds=9.0), TWO),
    "mean interval": case(UserMean(bounds=900.0, algorithm="interval"), TWO),
    "mean interval, delta": case(UserMean(bounds=900.0, algorithm="interval", **GAUSSIAN), TWO),
    "mean clip": case(UserMean(bounds=9.0, algorithm="clip", **GAUSSIAN), TWO),
    "mean ball": case(UserMean(bounds=9.0, algorithm="ball", **GAUSSIAN), TWO),
    "mean auto": case(UserMean(bounds=500.0, **GAUSSIAN), WIDE),
    "mean weighted": case(UserMean(bounds=9.0, records="auto", **GAUSSIAN), TWO, relations=REPLACE),
    "mean robust": case(UserMean(bounds=9.0, robust=0.05, **GAUSSIAN), TWO, relations=REPLACE),
    "mean of stated records": case(
        UserMean(bounds=9.0, records=M, **GAUSSIAN), TWO, relations=REPLACE
    ),
    "winsorized": case(
        UserMean(bounds=99.0, algorithm="winsorized", radius=2.0, **GAUSSIAN),
        TWO,
        relations=REPLACE,
    ),
    "winsorized pure": case(
        UserMean(bounds=99.0, algorithm="winsorized", radius=2.0), ONE, relations=REPLACE
    ),
    "scaler": case(UserScaler(bounds=9.0, **GAUSSIAN), TWO),
    "scaler pure": case(UserScaler(bounds=9.0), TWO),
    "covariance": case(UserCovariance(bounds=9.0, **GAUSSIAN), TWO),
    "covariance diagonal": case(UserCovariance(bounds=9.0, shape="diagonal", **GAUSSIAN), TWO),
    "median": case(PrivateMedian(bounds=(0.0, 100.0)), ONE),
    "quantiles": case(UserQuantiles(bounds=(0.0, 100.0)), TWO),
    "logistic": case(LogisticRegression(**MODEL), TWO, y=LABELS),
    "svc": case(LinearSVC(**MODEL), TWO, y=LABELS),
    "linear": case(LinearRegression(target_bounds=(0, 1), **MODEL), TWO, y=LABELS),
    "ridge": case(Ridge(target_bounds=(0, 1), **MODEL), TWO, y=LABELS),
    "huber": case(HuberRegression(target_bounds=(0, 1), **MODEL), TWO, y=LABELS),
    "net": case(NeuralClassifier(hidden=2, steps=48, **MODEL), TWO, y=LABELS),
    "net, number": case(NeuralRegressor(hidden=2, target_bounds=(0, 1), **MODEL), TWO, y=LABELS),
    "constant": case(
        LinearRegression(target_bounds=(0, 1), hopeless="constant", epsilon=0.001, delta=1e-9),
        TWO,
        y=LABELS,
    ),
    "cut-off auto": case(ThresholdLearner(domain=(0, 2**32)), ONE, y=LABELS),
    "cut-off for users who are alike": case(
        ThresholdLearner(domain=(0, 2**32), alike=True), ONE, y=LABELS
    ),
    "rule auto": case(ConceptLearner(Thresholds(0, 99)), ONE, y=LABELS),
    "cut-off published": case(
        PrivateThreshold(domain=(0, 2**20), records=M, constants="published"), ONE, y=LABELS
    ),
    "cut-off binary search": case(PrivateThreshold(domain=(0, 2**20), records=M), ONE, y=LABELS),
    "smallest error": case(PrivateMinError(Thresholds(0, 99), records=M), ONE, y=LABELS),
    "variation": case(UserVariation(bounds=9.0), TWO, relations=REPLACE),
    "shares": case(DiscreteDistribution(categories=range(100)), ONE),
    "shares of records": case(DiscreteDistribution(categories=range(100), records=M), ONE),
    "shares of records, bought": case(
        DiscreteDistribution(categories=range(100), records="auto"), ONE
    ),
    "shares with delta": case(
        DiscreteDistribution(categories=range(100), algorithm="gaussian", **GAUSSIAN), ONE
    ),
    "shares in a ball": case(
        DiscreteDistribution(categories=range(100), algorithm="ball", **GAUSSIAN),
        ONE,
        relations=REPLACE,
    ),
    "shares in a polytope": case(
        DiscreteDistribution(categories=range(100), algorithm="polytope"), ONE, relations=REPLACE
    ),
    "few shares": case(DiscreteDistribution(categories=range(3)), PAIRS[:, 1:]),
    "few shares in a polytope": case(
        DiscreteDistribution(categories=range(3), algorithm="polytope"),
        PAIRS[:, 1:],
        relations=REPLACE,
    ),
    "shares auto": case(DiscreteDistribution(categories=range(100), **GAUSSIAN), ONE),
    "histogram": case(Histogram(bounds=(0.0, 100.0)), ONE),
    "histogram of quantiles": case(Histogram(edges="quantiles", bounds=(0.0, 100.0), bins=5), ONE),
    "curve": case(EmpiricalCDF(bounds=(0.0, 100.0)), ONE),
    "two columns": case(ProductDistribution(categories=[range(2), range(3)]), PAIRS),
    "two columns with delta": case(
        ProductDistribution(categories=[range(2), range(3)], **GAUSSIAN), PAIRS
    ),
    "two columns from covers": case(
        ProductDistribution(categories=[range(2), range(3)], algorithm="cover"), PAIRS
    ),
    "normal from a cover": case(
        GaussianDistribution(bounds=0.5, deviations=(1.0, 1.2), error=0.9), TWO[:, :1]
    ),
    "normal": case(GaussianDistribution(bounds=9.0, covariance=np.eye(2)), TWO),
    "normal by its mean": case(
        GaussianDistribution(bounds=9.0, covariance=np.eye(2), algorithm="mean"), TWO
    ),
    "normal with delta": case(
        GaussianDistribution(bounds=9.0, covariance=np.eye(2), **GAUSSIAN), TWO
    ),
    "normal of unknown spread": case(
        GaussianDistribution(bounds=9.0, deviations=(0.1, 9.0), **GAUSSIAN), TWO
    ),
    "hypotheses": case(
        HypothesisSelector(DiscreteFamily([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])), PAIRS[:, 1:]
    ),
    "count of people": case(UserCount(), NAMED),
    "count of records": case(UserCount(of="records"), NAMED),
    # So few people look for a cap with a third of the square; beside Gaussian noise the account
    # pays more for a pure look than this bill, which adds up both.
    "count of records with delta": case(
        UserCount(of="records", algorithm="gaussian", **GAUSSIAN), NAMED, least=0.75
    ),
    "sum": case(UserSum(bounds=(0.0, 9.0)), NAMED),
    "sum with delta": case(UserSum(bounds=(0.0, 9.0), **GAUSSIAN), NAMED),
    # Half of delta is for keys that one person alone holds, and in no noise.
    "phrases": case(PopularPhrases(column="group"), NAMED),
    "mean of records": case(RecordMean(bounds=(0.0, 9.0)), NAMED),
    "synthetic people": case(
        UserSynthesizer(
            categories={"group": range(3)}, bounds={"value": (0.0, 9.0)}, bins=4, **GAUSSIAN
        ),
        NAMED,
    ),
    "table": case(
        UserTable(
            by="group",
            keys=range(3),
            statistics={"people": "users", "total": ("value", "sum")},
            bounds={"value": (0.0, 9.0)},
        ),
        NAMED,
    ),
    "queries": case(QueryLearner(ConjunctionQueries(2)), TWO, y=LABELS),
    "queries with delta": case(QueryLearner(ConjunctionQueries(2), **GAUSSIAN), TWO, y=LABELS),
    "agreement": case(StableLearner(Thresholds(0, 99)), ONE, y=LABELS),
    "agreement that is told": case(
        StableLearner(Thresholds(0, 99), agreement=True), ONE, y=LABELS, relations=REPLACE
    ),
    "agreement with delta": case(StableLearner(Thresholds(0, 2**40), **GAUSSIAN), ONE, y=LABELS),
    **{
        f"rule {way.value}": case(
            ConceptLearner(Thresholds(0, 99), algorithm=way.value, records=M, error_level=0.1),
            ONE,
            y=LABELS,
        )
        for way in RuleAlgorithm
    },
}


def billed(estimator, X, y):
    bill = Bill()
    with use_noise(bill):
        fitted = estimator.fit(X, users=IDS) if y is None else estimator.fit(X, y, users=IDS)
    return bill, fitted.guarantee_


@pytest.mark.parametrize("name", CASES)
def test_what_was_drawn_costs_what_is_promised(name):
    estimator, X, y, relations, least = CASES[name]
    for relation in relations:
        bill, guarantee = billed(estimator.set_params(relation=relation), X, y)
        cost = bill.epsilon(guarantee.delta)
        assert cost <= guarantee.epsilon * (1 + 1e-9), relation  # rounding of this bill itself
        assert cost >= least * guarantee.epsilon, relation
        # What was written down, for whoever adds up several fits, is what was drawn: pure losses
        # and squares apart, since together they are cheaper than this bill knows.
        events = sum(map(recorded, guarantee.events), Cost())
        assert bill.cost.share_of(events) <= 1 + 1e-9, relation
        assert events.share_of(bill.cost) <= 1.12, relation


@pytest.mark.parametrize(
    ("name", "bound"), [("histogram", Simplex), ("few shares in a polytope", Trimmed)]
)
def test_shares_that_count_half_of_what_a_user_moves_are_caught(name, bound, monkeypatch):
    honest = bound.joint_in_steps

    def half(self, step, relation):
        law, balanced, change = honest(self, step, relation)
        return law, balanced, change // 2

    monkeypatch.setattr(bound, "joint_in_steps", half)
    estimator, X, y, _, _ = CASES[name]
    bill, guarantee = billed(clone(estimator).set_params(relation=Relation.REPLACE), X, y)
    assert bill.epsilon(guarantee.delta) > 1.5 * guarantee.epsilon


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(
    ("algorithm", "queries"),
    [("auto", 1), ("auto", 5), ("clip", 5), ("ball", 5), ("winsorized", 5)],
)
def test_questions_share_one_budget(relation, algorithm, queries):
    if algorithm == "winsorized" and relation is Relation.ADD_REMOVE:
        pytest.skip("its means divide by the public number of users")
    bill = Bill()
    desk = UserQueries(
        bounds=9.0,
        queries=queries,
        dimension=2,
        relation=relation,
        algorithm=algorithm,
        radius=2.0 if algorithm == "winsorized" else None,
        **GAUSSIAN,
    )
    with use_noise(bill):
        desk.fit(TWO, users=IDS)
    for _ in range(queries):
        desk.ask(lambda records: records.mean(axis=0))
    assert 0.9 * 2.0 <= bill.epsilon(1e-6) <= 2.0


def test_candidates_of_a_search_are_fitted_on_users_who_are_in_one_half():
    bill, halves = Bill(), iter("aabb")

    class Marked(PrivateGridSearch):
        def _fitted(self, data, X, setting, account):
            bill.group = next(halves, None)
            return super()._fitted(data, X, setting, account)

        def _marks(self, data, models):
            bill.group = None
            return super()._marks(data, models)

    search = Marked(
        LogisticRegression(records=M, steps=4), {"penalty": [0.0, 1.0]}, epsilon=8.0, delta=1e-6
    )
    with use_noise(bill):
        search.fit(TWO, LABELS, users=IDS)
    # Both halves have a bill, and the choice is about everybody.
    assert {"a", "b", None} <= set(bill.squares) | set(bill.pure)
    assert 0.9 * 8.0 <= bill.epsilon(1e-6) <= 8.0


def test_blocks_of_a_concise_learner_have_one_release_each(monkeypatch):
    """Who chooses a rule tests none: one user is in one block, which costs the whole epsilon."""
    bill, blocks = Bill(), itertools.count()

    def in_a_block_of_its_own(release):
        def released(*given, **named):
            bill.group = next(blocks)
            return release(*given, **named)

        return released

    module = "quorate.learners.concise_learner"
    monkeypatch.setattr(f"{module}.choose_by_score", in_a_block_of_its_own(choose_by_score))
    noisy = in_a_block_of_its_own(ConciseLearner._noisy_error)
    monkeypatch.setattr(ConciseLearner, "_noisy_error", noisy)
    learner = ConciseLearner([Thresholds(0, 9), Thresholds(0, 99)], 4.0, error=0.99, failure=0.9)
    with use_noise(bill):
        learner.fit(ONE, LABELS, users=IDS)
    assert len(bill.pure) == 2 * learner.round_
    assert 0.9 * 4.0 <= bill.epsilon(0.0) <= 4.0 * (1 + 1e-9)


def test_phases_see_users_who_are_in_one_of_them():
    people = UserData(TWO[:, :1], TWO[:, 0], offsets=np.arange(0, N * M + 1, M))
    phases = PhasedMinimizer(
        epsilon=2.0,
        delta=1e-6,
        gradient_bound=5.0,
        gradient_spread=1.0,
        smoothness=1.0,
        radius=3.0,
        records=M,
    )
    bill = Bill()
    with use_noise(bill):
        found = phases.minimize(people, SquaredLoss(intercept=False))
    whole = sum(bill.squares.values())
    count = len(phases.schedule(n_users=N, dimension=1))
    assert found.guarantee.epsilon == 2.0
    # Equal phases: each has its part of the bill.
    assert 0.9 * 2.0 <= gaussian_epsilon((whole / count) ** 0.5, 1e-6) <= 2.0


def test_minibatches_are_priced_at_the_rate_at_which_users_were_drawn(monkeypatch):
    drawn = []
    members = SampleAccount.members

    def counted(self, n_users):
        places = members(self, n_users)
        drawn.append(places.size)
        return places

    monkeypatch.setattr(SampleAccount, "members", counted)
    people = UserData(TWO, LABELS.astype(float), offsets=np.arange(0, N * M + 1, M))
    bill = Bill()
    with use_noise(bill):
        found = minimize(people, SquaredLoss(), steps=40, batch_rate=0.1, curvature=1.0, **GAUSSIAN)
    rate = sum(drawn) / (40 * N)
    # 48,000 coins of chance 0.1: six standard deviations are 0.0082.
    assert abs(rate - 0.1) < 0.0082
    assert len(bill.sampled) == 40
    # On a sample one user's presence moves a sum by the radius: half of what replacing moves.
    chain = Composed(
        (
            Gaussian(1 / bill._total(bill.squares) ** 0.5),
            Repeated(Subsampled(Gaussian(1 / max(bill.sampled)), min(1.0, rate)), 40),
        )
    )
    assert price(chain, delta=1e-6) <= 1.1 * found.guarantee.epsilon
    # 0.82 was measured; the docstring of minimize says why it is not more.
    assert price(chain, delta=1e-6) >= 0.75 * found.guarantee.epsilon
    assert "four fifths" in minimize.__doc__


class TestTheBillItself:
    def test_it_knows_the_profile_of_gaussian_noise(self):
        # Calibrated in closed form elsewhere: 4.2247 at (1, 1e-6).
        assert gaussian_epsilon(1 / 4.2247, 1e-6) == pytest.approx(1.0, abs=1e-4)

    def test_a_look_that_nobody_owns_is_seen(self):
        with pytest.raises(AssertionError, match="unpaid look"):
            Bill().discrete_laplace(np.array([3]), scale=1.0)

    def test_half_the_noise_is_seen(self, monkeypatch):
        from quorate.core.account.account import Account

        def careless(self, total, *, sigma):
            return self._noise.discrete_gaussian(numbers_of(total), sigma=sigma / 2)

        monkeypatch.setattr(Account, "gaussian", careless)
        bill, guarantee = billed(UserMean(bounds=9.0, algorithm="clip", **GAUSSIAN), WIDE, None)
        assert bill.epsilon(guarantee.delta) > 1.5 * guarantee.epsilon

    def test_a_look_that_no_account_wrote_down_is_seen(self, monkeypatch):
        from quorate.core.account.account import Account

        monkeypatch.setattr(Account, "_pay", lambda self, event, costs: self._noise)
        bill, guarantee = billed(UserMean(bounds=9.0, algorithm="ball", **GAUSSIAN), TWO, None)
        assert str(guarantee.events[0]) == "Nothing()"
        assert bill.epsilon(guarantee.delta) > 0.5 * guarantee.epsilon

    def test_every_public_estimator_has_its_bill(self):
        known = {type(estimator).__name__ for estimator, *_ in CASES.values()}
        known |= {"UserQueries", "PrivateGridSearch", "LossSelector"}
        # Coins of its own, whose law is enumerated exactly in tests/mechanisms/test_parity.py.
        known |= {"ParityLearner"}
        known |= {"ConciseLearner"}
        assert known == public_estimators()


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("algorithm", ["auto", "exponential", "duels", "reference", "published"])
def test_losses_are_chosen_for_what_is_promised(relation, algorithm):
    if algorithm == "published" and relation is Relation.ADD_REMOVE:
        pytest.skip("its means divide by the public number of users")
    selector = LossSelector(1.0, records=M, algorithm=algorithm, relation=relation)
    bill, guarantee = billed(selector, np.abs(TWO) / 9, None)
    assert 0.9 * guarantee.epsilon <= bill.epsilon(0.0) <= guarantee.epsilon * (1 + 1e-9)
