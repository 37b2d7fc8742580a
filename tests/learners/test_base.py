"""What all rule learners promise: the order of a fit, replay, cost, refusals, clones."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from quorate.auditing.replay import replay
from quorate.core.account.account import Account
from quorate.core.guarantees import Numerics, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.exceptions import BudgetExceededError, NumericalFailure, ParameterError, SchemaError
from quorate.learners import (
    ConceptLearner,
    LossSelector,
    PrivateMinError,
    PrivateThreshold,
    ThresholdLearner,
)
from quorate.learners.automatic import RuleAlgorithm
from quorate.learners.base import HeldRecords
from quorate.learners.concepts import Direction, FiniteTable, Thresholds
from quorate.learners.scores import Crossing, Duels, Surrogate
from quorate.learners.scores.pairwise import MAX_DUELLISTS
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.search.rough_records import RecordRange

SMALL = Thresholds(0, 20)
WIDE = {"domain": (0, 2**32 - 1)}
LEVEL = {"more_than": {"error_level": 0.1}}
LINE_DUELS = {"duels": {"records": 3}, "clipped_pairwise": {"records": 3}}


def crowd(n=40, m=6, seed=0, *, odd=False):
    """Users with unequal records; ``odd`` replaces the last user by an adversarial one."""
    rng = np.random.default_rng(seed)
    counts = np.where(np.arange(n) % 7 == 0, 1, m)
    x = rng.integers(0, 21, counts.sum()).astype(float)
    y = ((x >= 9) ^ (rng.random(x.size) < 0.1)).astype(float)
    owner = np.repeat(np.arange(n), counts)
    if odd:
        keep = owner < n - 1
        worst = np.array([-1e300, 1e300, 0.0, 0.0] * 30)
        x, y = np.r_[x[keep], worst], np.r_[y[keep], np.tile([1.0, 0.0, 9.0, 0.0], 30)]
        owner = np.r_[owner[keep], np.full(worst.size, n - 1)]
    return UserData.from_arrays(x.reshape(-1, 1), y, users=owner)


def learners(relation=Relation.REPLACE):
    common = {"relation": relation, "random_state": 0}
    for way in RuleAlgorithm:
        extra = LEVEL.get(way.value, {})
        yield ConceptLearner(SMALL, algorithm=way.value, **extra, **common)
        if relation is Relation.REPLACE or way.value not in LINE_DUELS:
            extra = {**extra, **LINE_DUELS.get(way.value, {})}
            yield ThresholdLearner(algorithm=way.value, **extra, **WIDE, **common)
    yield ConceptLearner(SMALL, **common)
    yield ConceptLearner(SMALL, constants="published", **common)
    yield ConceptLearner(SMALL, algorithm=Surrogate(target=SMALL), **common)
    yield ConceptLearner(SMALL, error_level=0.0, **common)
    yield ConceptLearner(SMALL, records=1, **common)
    yield ThresholdLearner(**WIDE, **common)
    yield ThresholdLearner(direction=Direction.EITHER, **WIDE, **common)
    yield ThresholdLearner(direction=Direction.BELOW, algorithm="median", **WIDE, **common)
    yield PrivateThreshold(**WIDE, **common)
    yield PrivateThreshold(constants="published", excess=0.3, **WIDE, **common)
    yield PrivateThreshold(error_level=0.1, **WIDE, **common)
    yield PrivateMinError(SMALL, **common)
    yield PrivateMinError(SMALL, constants="published", records=4, **common)


LEARNERS = [
    pytest.param(learner, id=f"{number}-{type(learner).__name__}-{learner.relation.name}")
    for relation in Relation
    for number, learner in enumerate(learners(relation))
]
every_learner = pytest.mark.parametrize("learner", LEARNERS)


def check_that_a_failed_promise_leaves_nothing(learner, data, monkeypatch):
    public = {*learner.get_params(), "_declared", "_receipt", "n_features_in_"}

    def refuse(*_, **__):
        raise NumericalFailure("no guarantee is claimed")

    monkeypatch.setattr("quorate.estimators.UserEstimator._promise", refuse)
    with pytest.raises(NumericalFailure, match="no guarantee"), use_noise(SeededNoise(0)):
        learner.fit(data)
    assert set(vars(learner)) <= public


@every_learner
class TestEveryLearner:
    def test_it_fits_and_keeps_its_budget(self, learner):
        with use_noise(SeededNoise(0)):
            fitted = clone(learner).fit(crowd())
        assert fitted.guarantee_.epsilon == 1.0
        assert fitted.guarantee_.relation is learner.relation
        assert fitted.guarantee_.events

    def test_an_adversarial_user_changes_nothing_but_released_values(self, learner):
        report = replay(lambda data: clone(learner).fit(data), crowd(), crowd(odd=True), seed=1)
        assert report.same, str(report)

    def test_parameters_survive_a_fit(self, learner):
        before = clone(learner).get_params()
        with use_noise(SeededNoise(0)):
            fitted = clone(learner).fit(crowd())
        assert fitted.get_params().keys() == before.keys()
        assert fitted.get_params()["epsilon"] == before["epsilon"]

    def test_an_empty_data_set_is_data_too_where_the_number_of_users_is_private(self, learner):
        empty = UserData(np.zeros((0, 1)), np.zeros(0), offsets=[0])
        with use_noise(SeededNoise(0)):
            if learner.relation is Relation.ADD_REMOVE:
                assert clone(learner).fit(empty).guarantee_ is not None
                return
            with pytest.raises(SchemaError, match="at least one user"):
                clone(learner).fit(empty)

    def test_nothing_is_set_that_was_not_promised(self, learner, monkeypatch):
        check_that_a_failed_promise_leaves_nothing(clone(learner), crowd(), monkeypatch)


class TestTheReplayCanFail:
    def test_a_twin_that_takes_its_class_from_the_data_is_caught(self):
        def fit_on_seen_values(data):
            low, high = np.nanmin(data.X), np.nanmax(data.X)
            concepts = Thresholds(int(max(low, -99)), int(min(high, 99)))
            return ConceptLearner(concepts).fit(data)

        assert not replay(fit_on_seen_values, crowd(), crowd(odd=True)).same

    def test_a_twin_that_tells_how_many_records_there_are_is_caught(self):
        def tell(data):
            learner = ConceptLearner(SMALL).fit(data)
            learner.n_records_ = data.n_records
            return learner

        assert not replay(tell, crowd(), crowd(odd=True)).same


class TestTheOrderOfAFit:
    def test_the_budget_is_charged_before_data_are_read(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.sqlite")
        ledger.set_budget("clinic", epsilon=1.5)
        learner = ConceptLearner(SMALL, ledger=ledger, data_name="clinic")
        learner.fit(crowd())
        assert learner.guarantee_.data_name == "clinic"
        with pytest.raises(BudgetExceededError):
            learner.fit(crowd())

    def test_a_refused_parameter_costs_nothing(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.sqlite")
        ledger.set_budget("clinic", epsilon=1.0)
        paid = {"ledger": ledger, "data_name": "clinic"}
        many = FiniteTable(np.random.default_rng(0).integers(0, 2, (MAX_DUELLISTS + 1, 20)))
        for wrong in (
            ConceptLearner(SMALL, algorithm="luck", **paid),
            ConceptLearner(SMALL, algorithm="more_than", **paid),
            ConceptLearner(FiniteTable([[0, 1]]), algorithm="median", **paid),
            ConceptLearner(many, algorithm="duels", **paid),
            ThresholdLearner(algorithm="duels", **WIDE, **paid),
            ThresholdLearner(**paid),
            ThresholdLearner(algorithm="duels", records=500, **WIDE, **paid),
            ThresholdLearner(algorithm=Duels(), records=500, **WIDE, **paid),
            ThresholdLearner(algorithm=Surrogate(target=SMALL), **WIDE, **paid),
            ConceptLearner(many, constants="published", **paid),
            ConceptLearner(many, algorithm=Surrogate(target=many), **paid),
            ConceptLearner(FiniteTable([[0, 1]] * 3), random_state="seed", **paid),
            ConceptLearner(SMALL, classes=("a", "b", "c"), **paid),
            PrivateMinError(SMALL, classes="ab", **paid),
            LossSelector(candidates=range(MAX_DUELLISTS + 1), loss=min, algorithm="duels", **paid),
        ):
            with pytest.raises(ParameterError):
                wrong.fit(crowd())
        text, wide = np.array(["a", "b"] * 3), np.zeros((6, 2))
        for wrong in (
            ConceptLearner(SMALL, **paid),
            ThresholdLearner(domain=(0, 9), **paid),
            PrivateThreshold(domain=(0, 9), **paid),
            PrivateMinError(SMALL, **paid),
        ):
            with pytest.raises(SchemaError, match="classes="):
                wrong.fit(wide[:, :1], text, users=range(6))
            with pytest.raises(SchemaError, match="1 features"):
                wrong.fit(wide, np.zeros(6), users=range(6))
            with pytest.raises(SchemaError, match="1 features"):
                wrong.fit(UserData(wide, np.zeros(6), offsets=np.arange(7)))
        columns = np.zeros((2, MAX_DUELLISTS + 1))
        for table, users in ((columns, [0, 1]), (UserData(columns, offsets=[0, 1, 2]), None)):
            with pytest.raises(ParameterError, match="at most"):
                LossSelector(algorithm="duels", **paid).fit(table, users=users)
        ConceptLearner(SMALL, ledger=ledger, data_name="clinic").fit(crowd())

    def test_real_noise_gives_a_guarantee_that_holds(self):
        learner = ConceptLearner(SMALL, epsilon=2.0).fit(crowd())
        assert learner.guarantee_.holds
        assert learner.guarantee_.numerics is Numerics.EXACT
        with use_noise(SeededNoise(0)):
            assert not ConceptLearner(SMALL).fit(crowd()).guarantee_.holds


class TestClasses:
    X, PLACES = np.tile([[1.0], [18.0]], (400, 1)), np.tile([0, 1], 400)
    WHO = np.arange(800) // 4

    @pytest.mark.parametrize(
        "classes", [(0, 1), (-1, 1), (1, 0), (False, True), ("healthy", "ill"), np.array([2, 7])]
    )
    @pytest.mark.parametrize(
        "learner",
        [ConceptLearner(SMALL, 8.0), ThresholdLearner(8.0, **WIDE), PrivateThreshold(8.0, **WIDE)],
        ids=lambda learner: type(learner).__name__,
    )
    def test_predictions_speak_the_language_of_the_caller(self, learner, classes):
        y = np.asarray(classes)[self.PLACES]
        with use_noise(SeededNoise(0)):
            fitted = clone(learner).set_params(classes=classes).fit(self.X, y, users=self.WHO)
        assert (fitted.classes_ == np.asarray(classes)).all()
        assert (fitted.predict(self.X) == y).all()

    def test_the_smallest_error_sees_the_labels_too(self):
        search = PrivateMinError(SMALL, 8.0, records=4, classes=("healthy", "ill"))
        y = np.array(["healthy", "ill"])[1 - self.PLACES]
        flipped = clone(search).set_params(classes=("ill", "healthy"))
        with use_noise(SeededNoise(0)):
            assert search.fit(self.X, y, users=self.WHO).min_error_ > 0.2
            assert flipped.fit(self.X, y, users=self.WHO).min_error_ < 0.1

    def test_a_target_of_one_column_is_a_target(self):
        y = pd.DataFrame({"ill": self.PLACES})
        with use_noise(SeededNoise(0)):
            fitted = ConceptLearner(SMALL, 8.0).fit(self.X, y, users=self.WHO)
        assert (fitted.predict(self.X) == self.PLACES).all()

    @pytest.mark.parametrize("classes", [(1,), (0, 1, 2), "ab", 3, (1, 1), None, np.zeros((2, 2))])
    def test_other_than_two_labels_are_refused(self, classes):
        with pytest.raises(ParameterError, match="classes"):
            ConceptLearner(SMALL, classes=classes).fit(self.X, self.PLACES, users=self.WHO)


class TestRefusals:
    @pytest.mark.parametrize(
        "learner",
        [
            ConceptLearner("rules"),
            ConceptLearner(SMALL, algorithm="luck"),
            ConceptLearner(SMALL, records=0),
            ConceptLearner(SMALL, error_level=1.5),
            ConceptLearner(SMALL, excess=0.0),
            ConceptLearner(SMALL, constants="mine"),
            ConceptLearner(SMALL, epsilon=-1.0),
            ConceptLearner(SMALL, algorithm="more_than"),
            ConceptLearner(FiniteTable([[0, 1], [1, 0]]), algorithm="median"),
            ThresholdLearner(),
            ThresholdLearner(domain=(5, 1)),
            ThresholdLearner(domain=3),
            ThresholdLearner(algorithm="luck", **WIDE),
            ThresholdLearner(algorithm="duels", **WIDE),
            ThresholdLearner(algorithm="duels", records=500, **WIDE),
            ThresholdLearner(algorithm=Duels(), **WIDE),
            ThresholdLearner(algorithm=Surrogate(target=SMALL), **WIDE),
            ThresholdLearner(algorithm="duels", records=2, relation=Relation.ADD_REMOVE, **WIDE),
            PrivateThreshold(direction=Direction.EITHER, **WIDE),
            PrivateMinError(SMALL, excess=0.0),
            PrivateMinError("rules"),
        ],
        ids=repr,
    )
    def test_wrong_parameters_are_refused(self, learner):
        with pytest.raises(ParameterError):
            learner.fit(crowd())

    def test_users_are_never_guessed(self):
        with pytest.raises(ParameterError, match="users"):
            ConceptLearner(SMALL).fit(np.zeros((3, 1)), np.zeros(3))

    def test_labels_are_needed(self):
        with pytest.raises(SchemaError, match="y"):
            ConceptLearner(SMALL).fit(np.zeros((3, 1)), users=[1, 2, 3])

    def test_prediction_wants_the_columns_of_the_fit(self):
        learner = ConceptLearner(SMALL).fit(crowd())
        with pytest.raises(SchemaError, match="features"):
            learner.predict(np.zeros((2, 3)))

    def test_loss_selector_joins_the_same_contract(self):
        selector = LossSelector(random_state=0)
        table = UserData(np.random.default_rng(0).random((30, 4)), offsets=np.arange(31))
        other = UserData(np.full((30, 4), np.inf), offsets=np.arange(31))
        assert replay(lambda data: clone(selector).fit(data), table, other).same

    @pytest.mark.parametrize("algorithm", ["auto", "reference", "exponential", "duels"])
    def test_loss_selector_sets_nothing_that_was_not_promised(self, algorithm, monkeypatch):
        table = UserData(np.random.default_rng(0).random((30, 4)), offsets=np.arange(31))
        selector = LossSelector(algorithm=algorithm)
        check_that_a_failed_promise_leaves_nothing(selector, table, monkeypatch)


def test_the_number_of_pieces_never_decides_whether_a_fit_is_refused():
    # Pieces are private: one user with thousands of records must not turn a fit into an error.
    x = np.r_[np.arange(9000.0), np.arange(40.0)]
    owner = np.r_[np.zeros(9000, dtype=int), np.arange(1, 41)]
    wide = UserData.from_arrays(x.reshape(-1, 1), np.ones(9040), users=owner)
    learner = ThresholdLearner(algorithm=Duels(), records=3, random_state=0, **WIDE)
    assert learner.fit(wide).algorithm_.name == "duels"


def test_a_crossing_given_as_an_object_chooses_its_rate_first():
    learner = ConceptLearner(SMALL, algorithm=Crossing(rates=(0.0, 0.2))).fit(crowd())
    assert learner.algorithm_.name == "crossing"
    assert learner.guarantee_.epsilon == 1.0


def test_a_custom_score_is_named_in_the_result():
    learner = ConceptLearner(SMALL, algorithm=Duels(loss=3, gain=2)).fit(crowd())
    assert learner.algorithm_.name == "duels"
    assert "requested" in learner.algorithm_.reason


class TestHeldRecords:
    DATA = UserData(np.zeros((900, 1)), offsets=np.arange(0, 901, 3))
    PEOPLE = People(DATA, Relation.REPLACE)

    def test_what_is_stated_costs_nothing(self):
        account = Account.open(epsilon=0.7)
        held = HeldRecords.stated(5, account)
        assert held.known == RecordRange.exactly(5)
        assert held.typical(self.PEOPLE) == 5
        assert account.left == Fraction(0.7)

    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1 / 3, 7.7, 1e4])
    def test_what_is_bought_is_paid_by_a_tenth_of_the_account_at_most(self, epsilon, relation):
        account = Account.open(epsilon=epsilon, relation=relation, noise=SeededNoise(0))
        held = HeldRecords.stated("auto", account)
        held.buy(People(self.DATA, relation), (4, 8))
        spent = Fraction(epsilon) - account.left
        assert 0 < spent <= Fraction(epsilon) / 10
        assert held.known is not None

    def test_it_is_bought_once(self):
        account = Account.open(epsilon=4.0, noise=SeededNoise(0))
        held = HeldRecords.stated("auto", account)
        assert held.typical(self.PEOPLE) == 2
        left = account.left
        assert held.typical(self.PEOPLE) == 2
        assert account.left == left
