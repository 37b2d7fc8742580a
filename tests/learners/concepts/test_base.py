"""Promises that every concept class keeps; a new class joins by being listed."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.users import UserData
from quorate.exceptions import ParameterError, SchemaError
from quorate.learners.concepts import (
    Classifiers,
    Concept,
    Conjunctions,
    Constant,
    DecisionLists,
    Direction,
    Disjunctions,
    FiniteTable,
    Intervals,
    Parities,
    PointFunctions,
    Rectangles,
    Stumps,
    Thresholds,
)
from quorate.learners.concepts.base import (
    MAX_ENUMERATED,
    ConceptClass,
    OrderedConceptClass,
    as_features,
    check_enumerable,
    feature_names,
    labelled_records,
)


class Above:
    """A model that scikit-learn could have fitted."""

    def __init__(self, cut):
        self.cut = cut

    def predict(self, X):
        return (X[:, 0] > self.cut).astype(int)


CLASSES = [
    Thresholds(0, 5),
    Thresholds(0, 5, direction=Direction.BELOW),
    Thresholds(0, 5, direction=Direction.EITHER),
    Thresholds(-1.0, 1.0, step=0.1),
    Thresholds(7, 7, direction=Direction.EITHER),
    Stumps([[0.0, 1.0, 2.5], [1.0], []]),
    Intervals(5),
    Intervals(4, lower=-0.5, step=0.5),
    Intervals(1),
    Rectangles((3, 4)),
    Rectangles((1, 2), lower=(-1.0, 0), step=(0.25, 2)),
    Conjunctions(3),
    Conjunctions(1),
    Disjunctions(3),
    DecisionLists(1),
    DecisionLists(3),
    Parities(4),
    PointFunctions(4),
    FiniteTable(np.random.default_rng(0).integers(0, 2, (7, 5))),
    FiniteTable([[0, 1, 1], [1, 0, 1]], domain=[[0, 1], [1, 0], [1, 1]]),
    Classifiers([Above(0), Above(1.5), Above(np.inf)], features=2),
]
every_class = pytest.mark.parametrize("concepts", CLASSES, ids=lambda c: type(c).__name__)

ORDINARY = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.5, -0.3, 0.7, 2.5, -1.0, 9.0]
EXTREME = [1e300, -1e300, 2.0**63, -(2.0**63), math.inf, -math.inf, math.nan]
FEATURE = st.sampled_from([*ORDINARY, *EXTREME])
LABEL = st.sampled_from([0.0, 1.0, 0.0, 1.0, 0.0, 1.0, math.nan, 0.5, -1.0, 2.0, math.inf])


def people_of(n_features):
    record = st.tuples(*[FEATURE] * n_features, LABEL)
    return st.lists(st.lists(record, max_size=6), max_size=4)


def count_one_by_one(concepts, people):
    """Count mistakes by asking every concept about every record, by the rules of the docs."""
    mistakes = np.zeros((len(people), concepts.size), dtype=int)
    for index in range(concepts.size):
        concept = concepts.concept(index)
        for user, records in enumerate(people):
            for *features, label in records:
                counts = label in (0, 1) and not any(map(math.isnan, features))
                if counts and isinstance(concepts, FiniteTable):
                    counts = features in concepts.points.tolist()
                if counts:
                    mistakes[user, index] += concept.predict([features])[0] != label
    return mistakes


class TestMistakes:
    @every_class
    @settings(max_examples=25)
    @given(data=st.data())
    def test_the_closed_form_equals_counting_one_by_one(self, concepts, data, make_users):
        people = data.draw(people_of(concepts.n_features))
        users = make_users(people, concepts.n_features)
        np.testing.assert_array_equal(concepts.mistakes(users), count_one_by_one(concepts, people))

    @every_class
    @settings(max_examples=10)
    @given(data=st.data(), max_users=st.integers(1, 5))
    def test_batches_add_up_to_the_whole(self, concepts, data, max_users, make_users):
        users = make_users(data.draw(people_of(concepts.n_features)), concepts.n_features)
        whole = concepts.mistakes(users)
        assert whole.dtype == np.int32
        seen = 0
        for where, block in concepts.mistakes_in_batches(users, max_users=max_users):
            assert where.start == seen
            assert block.shape == (where.stop - where.start, concepts.size)
            assert len(block) <= max_users
            np.testing.assert_array_equal(block, whole[where])
            seen = where.stop
        assert seen == users.n_users

    @every_class
    @settings(max_examples=10)
    @given(data=st.data())
    def test_a_user_s_row_depends_on_that_user_alone(self, concepts, data, make_users):
        people = data.draw(people_of(concepts.n_features))
        other = data.draw(people_of(concepts.n_features))
        together = concepts.mistakes(make_users(people + other, concepts.n_features))
        alone = concepts.mistakes(make_users(people, concepts.n_features))
        np.testing.assert_array_equal(together[: len(people)], alone)

    @every_class
    def test_nobody_is_wrong_more_often_than_they_hold_records(self, concepts, make_users):
        rng = np.random.default_rng(1)
        records = [
            [(*rng.integers(-2, 8, concepts.n_features), rng.integers(0, 2))] * 3 for _ in range(20)
        ]
        mistakes = concepts.mistakes(make_users(records, concepts.n_features))
        assert mistakes.min() >= 0
        assert mistakes.max() <= 3

    def test_labels_are_needed(self):
        with pytest.raises(SchemaError, match="labels"):
            Intervals(3).mistakes(UserData([[1.0]], offsets=[0, 1]))

    def test_the_number_of_features_must_fit(self, make_users):
        with pytest.raises(SchemaError, match="Expected 1 features in X, got 2"):
            Intervals(3).mistakes(make_users([[(1, 2, 0)]], 2))

    def test_a_batch_has_at_least_one_user(self, make_users):
        with pytest.raises(ParameterError, match="max_users"):
            list(Intervals(3).mistakes_in_batches(make_users([], 1), max_users=0))


class TestConcepts:
    @every_class
    def test_each_is_a_sentence_and_equal_to_its_own_copy(self, concepts):
        for index in range(concepts.size):
            concept = concepts.concept(index)
            assert isinstance(concept, Concept)
            assert concept == concepts.concept(index)
            assert hash(concept) == hash(concepts.concept(index))
            sentence = str(concept)
            assert sentence.endswith(".")
            assert sentence[0].isupper()
            assert "predict" in sentence.lower()
            assert "None" not in sentence

    @every_class
    def test_predictions_of_all_equal_the_predictions_of_each(self, concepts):
        values = [-math.inf, -1.0, 0.0, 0.5, 1.0, 2.0, 4.0, 5.0, math.inf, math.nan]
        X = np.random.default_rng(2).choice(values, (40, concepts.n_features))
        if isinstance(concepts, FiniteTable):
            # Outside its domain a row predicts 0, and the table ignores the record.
            X = np.repeat(concepts.points, 2, axis=0)
        table = concepts.predictions(X)
        assert table.shape == (len(X), concepts.size)
        for index in range(concepts.size):
            predicted = concepts.predict(index, X)
            assert predicted.dtype == np.int64
            np.testing.assert_array_equal(table[:, index], predicted)

    @every_class
    def test_different_sentences_mean_different_concepts(self, concepts):
        if isinstance(concepts, FiniteTable | Classifiers):
            return  # a list may hold one rule twice
        sentences = {str(concepts.concept(index)) for index in range(concepts.size)}
        assert len(sentences) == concepts.size

    @every_class
    @pytest.mark.parametrize("index", [-1, 0.5, True, None])
    def test_an_index_outside_is_refused(self, concepts, index):
        with pytest.raises(ParameterError, match="index"):
            concepts.concept(index)
        with pytest.raises(ParameterError, match="index"):
            concepts.concept(concepts.size)

    @every_class
    def test_a_class_can_be_sent_to_another_process(self, concepts):
        again = pickle.loads(pickle.dumps(concepts))
        assert again.size == concepts.size
        assert str(again.concept(0)) == str(concepts.concept(0))

    @every_class
    def test_a_class_cannot_be_changed(self, concepts):
        with pytest.raises(AttributeError):
            concepts.features = 1_000
        with pytest.raises(AttributeError):
            concepts.points = 1_000

    def test_a_constant_does_not_look(self):
        assert Constant(1).predict(np.zeros((2, 7))).tolist() == [1, 1]
        assert str(Constant(0)) == "Always predict 0."


class TestDimensions:
    @every_class
    def test_vc_is_at_most_littlestone_is_at_most_log2_of_the_size(self, concepts):
        if concepts.vc_is_exact:
            assert concepts.vc_dimension <= concepts.littlestone_dimension
        assert concepts.littlestone_dimension <= math.log2(concepts.size)


class TestInput:
    def test_as_features_takes_one_column_flat(self):
        assert as_features([1, 2], n_features=1).tolist() == [[1], [2]]

    @pytest.mark.parametrize("X", [[1.0, 2.0], [[[1.0]]], [[1.0, 2.0, 3.0]], 5.0])
    def test_as_features_refuses_other_shapes(self, X):
        with pytest.raises(SchemaError, match="2 columns"):
            as_features(X, n_features=2)

    def test_as_features_never_quotes_a_value(self):
        with pytest.raises(SchemaError) as caught:
            as_features([["secret"]], n_features=1)
        assert "secret" not in str(caught.value)

    def test_as_features_reads_objects_that_are_numbers(self):
        assert as_features(np.array([[1], [None]], dtype=object), n_features=1)[0, 0] == 1.0

    def test_huge_classes_are_refused_with_advice(self):
        check_enumerable(MAX_ENUMERATED, name="x", instead="y")
        with pytest.raises(ParameterError, match="Do this instead"):
            check_enumerable(MAX_ENUMERATED + 1, name="x", instead="Do this instead.")

    @pytest.mark.parametrize("names", [["a"], "ab", ["a", "b", "c"]])
    def test_there_is_one_name_a_feature(self, names):
        with pytest.raises(ParameterError, match="2 names"):
            feature_names(names, n_features=2)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Conjunctions(14),
        lambda: Disjunctions(14),
        lambda: DecisionLists(7),
        lambda: Parities(21),
        lambda: PointFunctions(2_000_001),
        lambda: Intervals(2_000),
        lambda: Rectangles((53, 53)),
        lambda: Stumps([np.arange(1_000_001.0)]),
    ],
)
def test_a_class_too_large_to_list_says_what_would_work(build):
    with pytest.raises(ParameterError, match=r"(Use|Group|Choose) "):
        build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: Conjunctions(13).size,
        lambda: Parities(20).size,
        lambda: Intervals(1_999).size,
        lambda: Rectangles((52, 52)).size,
        lambda: DecisionLists(6).size,
    ],
)
def test_the_largest_allowed_class_is_built_at_once(build):
    assert 200_000 < build() <= MAX_ENUMERATED


@pytest.mark.parametrize("features", [0, -1, 2.0, True, None])
@pytest.mark.parametrize("kind", [Conjunctions, Disjunctions, DecisionLists, Parities])
def test_boolean_classes_need_a_positive_number_of_features(kind, features):
    with pytest.raises(ParameterError, match="features"):
        kind(features)


@every_class
def test_a_class_that_claims_a_half_holds_two_rules_that_never_agree(concepts):
    rng = np.random.default_rng(0)
    X = rng.choice([*ORDINARY, 1e300, -1e300, math.inf, -math.inf], (200, concepts.n_features))
    if isinstance(concepts, FiniteTable):
        X = concepts.points
    predicted = concepts.predictions(X).T
    opposite = {row.tobytes() for row in (1 - predicted).astype(predicted.dtype)}
    assert any(row.tobytes() in opposite for row in predicted) or not concepts.errs_at_most_half


def test_classes_with_opposites_say_so():
    assert Thresholds(0, 5).errs_at_most_half
    assert FiniteTable([[0, 1, 1], [1, 1, 1], [1, 0, 0]]).errs_at_most_half
    assert not FiniteTable([[0, 1, 1], [1, 1, 1]]).errs_at_most_half
    assert not PointFunctions(4).errs_at_most_half


class OwnConcepts(ConceptClass):
    """Concepts of a caller, who may look at all records handed over at once."""

    size, n_features = 1, 1

    def __init__(self):
        self.seen = []

    def concept(self, index):
        return Constant(0)

    def _count_mistakes(self, records):
        self.seen.append(records.n_users)
        return np.zeros((records.n_users, 1), dtype=np.int64)


def test_concepts_of_a_caller_see_one_user_at_a_time():
    users = UserData(np.zeros((6, 1)), np.zeros(6), offsets=[0, 1, 3, 3, 6])
    own = OwnConcepts()
    assert own.mistakes(users).shape == (4, 1)
    assert own.seen == [1, 1, 1, 1]


class Fragile(OwnConcepts):
    """Concepts of a caller that fail on some users and count too much on others."""

    answers = ([[99]], [["many"]], [[np.nan]], [[-7]], [[1, 2]])

    def _count_mistakes(self, records):
        if len(records.X) == 9:
            raise SystemExit("31337")
        return np.array(self.answers[int(records.X[0, 0])])


def test_whatever_concepts_of_a_caller_answer_is_cut_to_what_the_user_holds():
    x = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0, 0.0], [2, 3, 4, 5, 6, 9])[:, None]
    users = UserData(x, np.zeros(29), offsets=[0, 2, 5, 9, 14, 20, 29])
    assert Fragile().mistakes(users)[:, 0].tolist() == [2, 3, 4, 0, 6, 9]


class OwnLine(OrderedConceptClass):
    """Cut-offs of a caller, whose events follow who else is there."""

    size, n_features = 2**40, 1

    def concept(self, index):
        return Constant(0)

    def _count_mistakes(self, records):
        raise NotImplementedError

    def mistake_events(self, users):
        if np.any(users.X > 99):
            raise ValueError("31337")
        events = Thresholds(0, 2**40 - 2).mistake_events(users)
        return dataclasses.replace(events, after=events.after + (users.n_users > 1))


def test_a_line_of_a_caller_is_described_by_each_user_alone():
    x = np.array([3.0, 5.0, 5.0, 7.0, 100.0, 4.0])[:, None]
    users = UserData(x, [0, 1, 1, 0, 1, 0], offsets=[0, 2, 3, 4, 5, 5, 6])
    ours = Thresholds(0, 2**40 - 2).mistake_events(users)
    found = OwnLine().events_of(users)
    wanted = ours.total()[np.searchsorted(ours.starts, found.starts, side="right") - 1]
    # The user whose record raises is wrong everywhere; ours is wrong from 101 on.
    wanted += (found.starts <= 100).astype(int)
    np.testing.assert_array_equal(found.total(), wanted)
    assert found.initial.tolist() == [1, 0, 1, 1, 0, 1]
    # Shown everybody, it fails for everybody.
    with pytest.raises(ValueError, match="31337"):
        OwnLine().mistake_events(users)


def test_a_record_with_a_missing_feature_counts_for_nobody():
    users = UserData(np.array([[np.nan], [2.0], [np.nan]]), [0, 1, 1], offsets=[0, 2, 3])
    assert labelled_records(users, n_features=1).counts().tolist() == [1, 0]
    assert Thresholds(0, 3).mistakes(users).max() <= 1
    assert Thresholds(0, 3).mistake_events(users).initial.tolist() == [0, 0]
