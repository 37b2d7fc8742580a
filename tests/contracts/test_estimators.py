"""Promises that every public estimator keeps; a new one joins by being in the catalogue.

Estimators are found by looking through all packages and fitted on the small example that their
descriptor gives. Row stability, free refusals and the bill of noise have contracts of their own.
"""

import inspect
import pickle
import re
from contextlib import suppress
from types import SimpleNamespace
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

import quorate
from fitted_examples import fit, fitted, make, released, rows, with_rows
from fitting_worlds import public_estimators
from quorate import UserMean
from quorate.app.catalogue import CATALOGUE, Target
from quorate.app.catalogue.examples import N_USERS
from quorate.app.tasks.unread import UnreadUsers
from quorate.auditing import replay
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.estimators import Route
from quorate.exceptions import BudgetExceededError, ParameterError, QuorateError, SchemaError
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.stated_error import StatedError

every_estimator = pytest.mark.parametrize("name", CATALOGUE)
LABELLED = [name for name, each in CATALOGUE.items() if each.target is Target.LABEL]

COMMON = {
    "epsilon": 1.0,
    "relation": Relation.REPLACE,
    "ledger": None,
    "data_name": None,
    "random_state": None,
}
SECTIONS = ["Learning", "Privacy", "Utility", "Complexity", "Parameters", "Attributes"]
SECTIONS += ["References", "Examples"]

# --- the exceptions: at most five in each list, each with its reason ------------------------------

WITHOUT_ERROR = {
    "HypothesisSelector": "a choice; how far the density is off was not asked",
    "UserQueries": "every answer has its own",
    "NeuralClassifier": "noise moves the weights of a network in ways that no formula follows",
    "NeuralRegressor": "noise moves the weights of a network in ways that no formula follows",
}
OF_WHO_IS_THERE = dict.fromkeys(
    ("PopularPhrases", "UserCount", "UserSum", "RecordMean", "UserTable", "UserSynthesizer"),
    "every other tool for tables hides who joins or leaves",
)
OF_PEOPLE_ONLY = {
    "UserVariation": "compares pairs of users, and who joins changes all pairs",
    "ParityLearner": "splits users into groups, whose number has to be public",
    "ConciseLearner": "splits users into groups, whose number has to be public",
}
SKLEARN_DISAGREES = {
    "check_dtype_object": "a column of objects may hold anything; it is refused by its type",
    "check_parameters_default_constructible": "relation is an Enum and not a string, by design",
}


@pytest.mark.parametrize("exceptions", [WITHOUT_ERROR, OF_PEOPLE_ONLY, SKLEARN_DISAGREES])
def test_exceptions_are_few_and_have_reasons(exceptions):
    assert len(exceptions) <= 5
    assert all(exceptions.values())


def documented(kind, section):
    """Return the names that a section of a docstring explains."""
    parts = re.split(r"^(\w[\w ]*)\n-+\n", inspect.getdoc(kind), flags=re.M)
    text = dict(zip(parts[1::2], parts[2::2], strict=True)).get(section, "")
    lines = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", text, re.M)
    return [name.strip() for line in lines for name in line.split(",")]


def check_form(stated):
    """Check that an error says what every error says."""
    assert isinstance(stated, StatedError)
    assert 0.0 < stated.confidence < 1.0
    assert stated.covers.endswith(".")
    assert all(each > 0.0 for each in stated.coordinates)
    assert stated.worst >= max(stated.coordinates, default=0.0) > -1.0
    assert np.all(np.asarray(stated.bound) >= 0.0)


class TestFront:
    def test_the_catalogue_has_every_public_estimator(self):
        assert set(CATALOGUE) == public_estimators()

    @every_estimator
    def test_everything_people_type_stands_at_the_front_door(self, name):
        assert getattr(quorate, name) is CATALOGUE[name].kind
        assert name in quorate.__all__
        assert name in dir(quorate)

    @every_estimator
    def test_docstrings_have_one_form(self, name):
        kind = CATALOGUE[name].kind
        found = re.findall(r"^(\w[\w ]*)\n-+$", inspect.getdoc(kind), re.M)
        required = [s for s in SECTIONS if s not in ("Learning", "Utility", "References")]
        assert [s for s in found if s in SECTIONS] == [s for s in SECTIONS if s in found]
        assert set(required) <= set(found)
        assert "Utility" in found or "Learning" in found

    @every_estimator
    def test_docstrings_explain_all_parameters_and_all_releases(self, name):
        descriptor = CATALOGUE[name]
        signature = list(inspect.signature(descriptor.kind).parameters)
        assert sorted(documented(descriptor.kind, "Parameters")) == sorted(signature)
        said = {"guarantee_", *descriptor.releases, *descriptor.follows, *descriptor.passing}
        assert set(documented(descriptor.kind, "Attributes")) == said

    @every_estimator
    def test_common_keywords_are_common(self, name):
        parameters = inspect.signature(CATALOGUE[name].kind).parameters
        usual = {"relation": Relation.ADD_REMOVE} if name in OF_WHO_IS_THERE else {}
        for keyword, default in (COMMON | usual).items():
            assert parameters[keyword].default == default, keyword
        assert parameters["delta"].default in (0.0, 1e-6)
        assert all(
            parameters[each].kind is inspect.Parameter.KEYWORD_ONLY
            for each in COMMON
            if each != "epsilon"
        )

    @every_estimator
    def test_no_keyword_hides_a_method_or_means_two_things(self, name):
        kind = CATALOGUE[name].kind
        keywords = set(inspect.signature(kind).parameters)
        methods = {each for each in dir(kind) if callable(getattr(kind, each, None))}
        assert keywords & methods == set()
        # One word each: algorithm=, and error=, excess= or failure= by what is meant.
        assert keywords & {"method", "score", "alpha", "beta"} == set()


class TestFits:
    @every_estimator
    def test_the_default_delta_works(self, name):
        example = CATALOGUE[name].example()
        parameters = {n: v for n, v in example.parameters.items() if n != "delta"}
        with use_noise(SeededNoise(0)):
            estimator = CATALOGUE[name].kind(**parameters)
            estimator.fit(example.X, example.y, users=example.users)
        assert estimator.guarantee_.delta == estimator.delta

    @every_estimator
    def test_one_vocabulary(self, name):
        estimator = fitted(name)
        promise, route = estimator.guarantee_, estimator.algorithm_
        assert isinstance(promise, Guarantee)
        assert (promise.epsilon, promise.delta) == (estimator.epsilon, estimator.delta)
        assert (promise.relation, promise.unit) == (estimator.relation, "user")
        assert isinstance(route, Route)
        assert route.name
        assert route.reason

    @every_estimator
    def test_one_form_of_error(self, name):
        estimator = fitted(name)
        assert hasattr(estimator, "error_") is (name not in WITHOUT_ERROR)
        assert ("error_" in CATALOGUE[name].releases) is (name not in WITHOUT_ERROR)
        if name not in WITHOUT_ERROR:
            check_form(estimator.error_)

    def test_another_form_is_seen(self):
        with pytest.raises(AssertionError):
            check_form(SimpleNamespace(bound=1.0, confidence=0.95))

    @every_estimator
    def test_parameters_are_stored_untouched(self, name):
        estimator = make(name)
        before = {key: id(value) for key, value in estimator.get_params(deep=False).items()}
        example = CATALOGUE[name].example()
        with use_noise(SeededNoise(0)):
            estimator.fit(example.X, example.y, users=example.users)
        after = {key: id(value) for key, value in estimator.get_params(deep=False).items()}
        assert after == before

    @every_estimator
    def test_clones_and_pickles_are_the_same_again(self, name):
        estimator = fitted(name)
        copy = clone(estimator)
        assert released(copy) == {}
        assert repr(copy) == repr(estimator)
        again = pickle.loads(pickle.dumps(estimator))
        for key, value in released(estimator).items():
            assert repr(getattr(again, key)) == repr(value), key
        if hasattr(estimator, "predict"):
            X = CATALOGUE[name].example().X
            np.testing.assert_array_equal(again.predict(X), estimator.predict(X))

    @every_estimator
    def test_users_are_passed_on_by_pipelines_and_searches(self, name):
        with sklearn.config_context(enable_metadata_routing=True):
            routing = make(name).get_metadata_routing()
        assert routing.fit.requests["users"] is True

    @every_estimator
    def test_names_of_columns_are_kept_and_others_refused(self, name):
        example = CATALOGUE[name].example()
        columns = [f"column {j}" for j in range(rows(example).shape[1])]
        frame = pd.DataFrame(rows(example), columns=columns)
        with use_noise(SeededNoise(0)):
            estimator = make(name).fit(frame, example.y, users=example.users)
        assert estimator.n_features_in_ == len(columns)
        assert estimator.feature_names_in_.tolist() == columns
        other = frame.rename(columns={columns[0]: "another"})
        for verb in ("predict", "transform", "predict_proba", "decision_function"):
            if hasattr(estimator, verb):
                assert len(getattr(estimator, verb)(frame)) == len(frame)
                with pytest.raises(QuorateError, match="feature names"):
                    getattr(estimator, verb)(other)
        if hasattr(estimator, "transform"):
            assert estimator.get_feature_names_out().tolist() == columns

    @every_estimator
    def test_what_is_not_fitted_says_so(self, name):
        estimator = make(name)
        X = CATALOGUE[name].example().X
        for verb in ("predict", "transform", "predict_proba", "cdf", "score_samples"):
            if hasattr(estimator, verb):
                with pytest.raises(NotFittedError):
                    getattr(estimator, verb)(X)
        if hasattr(estimator, "sample"):
            with pytest.raises(NotFittedError):
                estimator.sample()


def example_with(name, values):
    """Return the example in which the first user holds these values."""
    example = CATALOGUE[name].example()
    X, mine = rows(example).copy(), example.users == example.users[0]
    X[mine] = np.resize(values, X[mine].shape)
    return with_rows(example, X)


class CountsRecords(UserMean):
    """The broken twin that looks first and keeps what it saw."""

    def fit(self, X, y=None, *, users=None):
        total = float(np.nansum(getattr(X, "X", X)))
        super().fit(X, y, users=users)
        self.total_ = total
        return self


class StopsForMissingValues(UserMean):
    """The broken twin that complains about a value."""

    def fit(self, X, y=None, *, users=None):
        if np.isnan(X).any():
            raise ValueError("Input contains NaN.")
        return super().fit(X, y, users=users)


def replayed(name, estimator):
    """Fit on the example and on a neighbour with the same transcript; compare what can be seen."""

    def run(example):
        fresh = clone(estimator).fit(example.X, example.y, users=example.users)
        return fresh.ask(len) if name == "UserQueries" else fresh

    return replay(run, CATALOGUE[name].example(), example_with(name, [np.nan, 9.0, 0.0]))


def fit_beyond_the_budget(name, estimator, folder):
    """Let a ledger refuse a fit on a table that nobody may read."""
    ledger = Ledger(folder / "ledger.db")
    ledger.set_budget("people", epsilon=1e-3, relation=estimator.relation)
    example = CATALOGUE[name].example()

    def read():
        raise AssertionError("the table was read")

    people = UnreadUsers(
        read,
        names=[f"column {j}" for j in range(rows(example).shape[1])],
        target=example.y is not None,
        count=lambda: N_USERS,
    )
    estimator.set_params(ledger=ledger, data_name="people")
    with pytest.raises(BudgetExceededError):
        estimator.fit(people)
    assert released(estimator) == {}


class TestPrivacy:
    @every_estimator
    @pytest.mark.parametrize(
        "values",
        [[np.nan], [np.inf, -np.inf, 1e308], [5e-324, 2.0**-1000]],
        ids=["NaN", "inf", "tiny"],
    )
    def test_bad_values_raise_nothing_and_change_no_shape(self, name, values):
        example = example_with(name, values)
        with use_noise(SeededNoise(0)), np.errstate(all="raise"):
            estimator = make(name).fit(example.X, example.y, users=example.users)
        usual = released(fitted(name))
        for key, value in released(estimator).items():
            assert np.shape(value) == np.shape(usual[key]), key
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                assert np.isfinite(value).all(), key

    @every_estimator
    def test_a_neighbour_with_the_same_answers_looks_the_same(self, name):
        report = replayed(name, make(name))
        assert report.same, str(report)

    @pytest.mark.parametrize("twin", [CountsRecords, StopsForMissingValues])
    def test_a_twin_that_tells_something_unreleased_is_told_apart(self, twin):
        assert not replayed("UserMean", clone(twin(**make("UserMean").get_params()))).same

    @every_estimator
    def test_a_ledger_is_charged_once_with_what_is_promised(self, name, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=99.0, delta=0.1, relation=make(name).relation)
        estimator = fit(name, secure=True, ledger=ledger, data_name="people")
        (charge,) = [each for each in ledger.history("people") if hasattr(each, "purpose")]
        assert charge.purpose == name
        assert charge.guarantee.epsilon == estimator.epsilon
        assert estimator.guarantee_.data_name == "people"

    @every_estimator
    def test_beyond_the_budget_nothing_is_read(self, name, tmp_path):
        fit_beyond_the_budget(name, make(name), tmp_path)

    def test_a_twin_that_reads_first_is_caught(self, tmp_path):
        twin = CountsRecords(**make("UserMean").get_params())
        with pytest.raises(SchemaError, match="withheld"):
            fit_beyond_the_budget("UserMean", twin, tmp_path)

    @pytest.mark.parametrize("name", [n for n, d in CATALOGUE.items() if not d.kind._uses_delta])
    def test_a_pure_estimator_refuses_a_delta_instead_of_charging_it(self, name, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=99.0, delta=0.1)
        with pytest.raises(ParameterError, match="purely private"):
            fit(name, secure=True, delta=1e-6, ledger=ledger, data_name="people")
        assert ledger.spent("people").epsilon == 0.0

    @every_estimator
    def test_both_relations_are_kept_or_one_is_refused(self, name):
        if name in OF_PEOPLE_ONLY:
            with pytest.raises(ParameterError, match="REPLACE"):
                fit(name, relation=Relation.ADD_REMOVE)
        else:
            estimator = fit(name, relation=Relation.ADD_REMOVE)
            assert estimator.guarantee_.relation is Relation.ADD_REMOVE


LABELS = {"signs": (-1, 1), "texts": ("no", "yes"), "truth values": (False, True)}


def with_classes(name, classes):
    """Return the estimator that is told these labels."""
    if name == "PrivateGridSearch":
        inner = make(name).estimator
        return make(name, estimator=clone(inner).set_params(classes=classes))
    return make(name, classes=classes)


@pytest.mark.parametrize("name", LABELLED)
class TestLabels:
    @pytest.mark.parametrize("classes", LABELS.values(), ids=LABELS)
    def test_labels_of_any_kind_give_the_same_release(self, name, classes):
        example = CATALOGUE[name].example()
        y = np.array(classes)[example.y]
        with use_noise(SeededNoise(0)):
            estimator = with_classes(name, classes).fit(example.X, y, users=example.users)
        usual = released(fitted(name))
        for key, value in released(estimator).items():
            if key not in ("classes_", "best_estimator_", "best_params_"):
                assert repr(value) == repr(usual[key]), key
        if is_classifier(estimator) or hasattr(estimator, "classes_"):
            assert estimator.classes_.tolist() == list(classes)
            assert set(estimator.predict(example.X).tolist()) <= set(classes)

    def test_a_record_with_another_label_is_as_if_it_were_not_there(self, name):
        example = CATALOGUE[name].example()
        odd = np.arange(len(example.X)) % 40 == 0
        y = np.array(["no", "yes"])[example.y]
        fits = []
        for X, labels, users in [
            (example.X, np.where(odd, "perhaps", y), example.users),
            (example.X[~odd], y[~odd], example.users[~odd]),
        ]:
            with use_noise(SeededNoise(0)):
                fits.append(with_classes(name, ("no", "yes")).fit(X, labels, users=users))
        with_odd, without = map(released, fits)
        for key in with_odd:
            if key not in ("best_estimator_", "guarantee_"):
                assert repr(with_odd[key]) == repr(without[key]), key

    def test_the_docs_say_so(self, name):
        text = " ".join(inspect.getdoc(CATALOGUE[name].kind).split())
        kind = CATALOGUE[name].kind
        if "classes" in inspect.signature(kind).parameters:
            assert re.search(r"records with another label (are dropped|do not count)", text)


# Tables of whatever numbers suit these; models are checked in tests/models/test_base.py, and all
# others say in a parameter what their table must look like.
ANY_NUMBERS = {
    "UserMean": {"bounds": 1e6, "delta": 1e-6},
    "UserScaler": {"bounds": 1e6, "delta": 1e-6},
    "PrivateMedian": {"bounds": 1e6},
    "UserQuantiles": {"bounds": 1e6},
    "UserCovariance": {"bounds": 1e6},
    "UserQueries": {"bounds": 1e6},
    "LossSelector": {"records": 1},
}
# What scikit-learn asks of an estimator before it has seen a table.
WITHOUT_DATA = {
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_estimators_unfitted",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_get_params_invariance",
    "check_set_params",
}


def each_row_a_user(name, parameters):
    """Return the estimator as scikit-learn knows it: without ``users``, every row is a person."""
    kind = CATALOGUE[name].kind

    class Checked(kind):
        def fit(self, X, y=None, *, users=None):
            rows = X.shape if hasattr(X, "shape") else np.asarray(X).shape
            ids = range(rows[0]) if users is None else users
            with use_noise(SeededNoise(0)):
                return super().fit(X, y, users=ids)

    Checked.__name__ = Checked.__qualname__ = f"Checked{name}"
    globals()[Checked.__name__] = Checked
    return Checked(**parameters)


@every_estimator
def test_scikit_learn_agrees(name):
    parameters = ANY_NUMBERS.get(name, CATALOGUE[name].example().parameters)
    estimator = each_row_a_user(name, parameters)
    asked = 0
    for _, check in estimator_checks.estimator_checks_generator(
        estimator, legacy=name in ANY_NUMBERS, mark=None
    ):
        title = getattr(check, "func", check).__name__
        if title in SKLEARN_DISAGREES or not (name in ANY_NUMBERS or title in WITHOUT_DATA):
            continue
        asked += 1
        with suppress(SkipTest):  # what scikit-learn skips by itself, such as equal fits
            check(clone(estimator))
    assert asked >= (30 if name in ANY_NUMBERS else 6)
