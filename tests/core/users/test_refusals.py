"""Refusals before the charge: types and shapes are asked, records are not."""

import numpy as np
import pandas as pd
import pytest

from quorate import Ledger
from quorate.core.users import UserData
from quorate.data.tables import check_classes, check_columns, check_labels
from quorate.exceptions import ParameterError, SchemaError
from quorate.learners import (
    ConceptLearner,
    LossSelector,
    PrivateMinError,
    PrivateThreshold,
    ThresholdLearner,
)
from quorate.learners.concepts import Thresholds


class TestClasses:
    @pytest.mark.parametrize("classes", [(0, 1), [1, -1], np.array(["a", "b"]), (False, True)])
    def test_two_labels_are_fine(self, classes):
        check_classes(classes)

    @pytest.mark.parametrize("classes", [None, 2, "ab", b"ab", (1,), (1, 2, 3), (1, 1), {0, 1}])
    def test_anything_else_is_refused(self, classes):
        with pytest.raises(ParameterError, match="classes"):
            check_classes(classes)


class TestLabels:
    @pytest.mark.parametrize("y", [np.array(["a"]), pd.Series(["a"]), np.array([1], dtype=object)])
    def test_a_declared_type_that_is_no_number_is_refused_for_numbers(self, y):
        with pytest.raises(SchemaError, match="classes="):
            check_labels(y, (0, 1))
        check_labels(y, ("a", "b"))

    @pytest.mark.parametrize("y", [None, ["a"], [0], np.array([7.0]), pd.Series([1])])
    def test_what_it_holds_is_not_looked_at(self, y):
        check_labels(y, (0, 1))


class TestColumns:
    TABLE = np.zeros((3, 2))

    @pytest.mark.parametrize(
        "X", [TABLE, pd.DataFrame(TABLE), UserData(TABLE, offsets=[0, 3])], ids=type
    )
    def test_another_number_of_columns_is_refused(self, X):
        check_columns(X, expected=2)
        with pytest.raises(SchemaError, match="3 features"):
            check_columns(X, expected=3)

    def test_a_vector_is_one_column_where_there_is_one(self):
        check_columns(np.zeros(3), expected=1, single=True)
        with pytest.raises(SchemaError, match="2 features"):
            check_columns(np.zeros(3), expected=2, single=True)

    def test_what_does_not_tell_is_let_through(self):
        check_columns(object(), expected=1)
        check_columns(np.zeros(3), expected=2)

    def test_a_list_is_as_wide_as_most_of_its_rows(self):
        check_columns([[1.0, 2.0], [3.0], [4.0, 5.0]], expected=2)
        with pytest.raises(SchemaError, match="got 2"):
            check_columns([[1.0, 2.0], [3.0], [4.0, 5.0]], expected=1)


@pytest.mark.parametrize(
    "learner",
    [
        ThresholdLearner(domain=(0, 9), delta=1e-6),
        ConceptLearner(Thresholds(0, 9), delta=1e-6),
        PrivateThreshold(domain=(0, 9), delta=1e-6),
        PrivateMinError(Thresholds(0, 9), delta=1e-6),
        LossSelector(delta=1e-6),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_a_delta_that_would_be_charged_and_not_used_is_refused(learner, tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.set_budget("visits", epsilon=9.0, delta=0.5)
    learner.set_params(ledger=ledger, data_name="visits")
    with pytest.raises(ParameterError, match="delta=1e-06 and not use it"):
        learner.fit(np.zeros((8, 1)), np.zeros(8), users=range(8))
    assert ledger.spent("visits").delta == 0.0
