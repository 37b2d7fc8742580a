"""The small tables are the same everywhere, and each column is its own."""

import numpy as np

from quorate.app.catalogue.examples import N_USERS, bits, labelled, measured, numbers, whose


def test_everybody_holds_four_records():
    assert np.bincount(whose()).tolist() == [4] * N_USERS


def test_columns_lie_between_0_and_9_and_are_not_copies_of_each_other():
    X = numbers(4).X
    assert X.min() == 0
    assert X.max() == 9
    assert np.abs(np.corrcoef(X.T) - np.eye(4)).max() < 0.3


def test_labels_and_targets_follow_from_the_columns():
    few = labelled(1)
    assert np.array_equal(few.y, few.X[:, 0] >= 5)
    assert np.array_equal(measured(2).y, measured(2).X.mean(axis=1))
    odd = bits(3)
    assert np.array_equal(odd.y, odd.X[:, :2].sum(axis=1) % 2)


def test_parameters_are_passed_on():
    assert numbers(1, bounds=3.0).parameters == {"bounds": 3.0}
