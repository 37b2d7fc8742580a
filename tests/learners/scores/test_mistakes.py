"""Item-level mistakes (K1): bounded records, group privacy as its price."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.learners.scores import Mistakes
from rule_worlds import losses_of


def test_sensitivity_is_the_number_of_records_that_count():
    for relation in Relation:
        assert Mistakes(records=7).sensitivity(relation) == 7


def test_more_mistakes_than_records_are_cut_even_if_the_cap_was_forgotten():
    assert losses_of(Mistakes(records=2), np.array([[9, 1]]), np.array([9])).tolist() == [2, 1]


def test_the_learner_is_told_to_cap():
    assert Mistakes(records=3).record_cap == 3


@pytest.mark.parametrize("records", [0, -1, 1.5, True])
def test_a_cap_that_is_no_positive_integer_is_refused(records):
    with pytest.raises(ParameterError, match="records"):
        Mistakes(records=records)
