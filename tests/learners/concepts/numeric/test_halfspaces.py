"""A weighted vote: predictions row by row, and a sentence."""

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts.boolean.booleans import all_patterns
from quorate.learners.concepts.numeric.halfspaces import Halfspace

RULE = Halfspace(weights=(0.1, -0.7, 0.2, 0.3), offset=0.05, names=("a", "b", "c", "d"))


def test_predictions_are_signs_of_the_vote():
    X = all_patterns(4)
    votes = RULE.offset + (2 * X - 1) @ np.array(RULE.weights)
    assert np.array_equal(RULE.predict(X), votes > 0)


def test_a_row_is_predicted_alike_in_every_table():
    X = all_patterns(4)
    alone = [int(RULE.predict(X[i : i + 1])[0]) for i in range(16)]
    assert RULE.predict(X).tolist() == alone


def test_the_sentence_names_signs():
    assert str(RULE).startswith("Predict 1 if +-0.1 (a) -+0.7 (b)")
    assert "upper sign" in str(RULE)


def test_weights_without_names_are_refused():
    with pytest.raises(ParameterError, match="one weight"):
        Halfspace(weights=(1.0,), offset=0.0, names=("a", "b"))
