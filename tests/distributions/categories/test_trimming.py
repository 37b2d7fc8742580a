"""What is asked of users around a centre follows their own shares."""

import numpy as np
import pytest

from crowds_of_shares import crowd_of
from quorate.distributions.categories.trimming import Apart, Distances, OwnShares
from quorate.distributions.shares import CategoryCodes

CENTRE = np.array([0.5, 0.3, 0.2])


def test_distances_follow_the_rows():
    crowd = crowd_of([[0, 1], [], [2]])
    for norm in (1, 2):
        found = Distances(CategoryCodes(3), tuple(CENTRE.tolist()), norm)(crowd)
        rows = OwnShares(CategoryCodes(3), 3)(crowd)
        expected = np.linalg.norm(rows - CENTRE, ord=norm, axis=1)
        assert found[[0, 2]] == pytest.approx(expected[[0, 2]])
        assert found[1] == 0.0


@pytest.mark.parametrize("norm", [1, 2])
def test_a_pair_is_as_far_apart_as_its_two_rows(norm):
    rows = OwnShares(CategoryCodes(3), 3)(crowd_of([[0, 1], [2], [1, 1], [0]]))
    expected = [np.linalg.norm(rows[0] - rows[1], norm), np.linalg.norm(rows[2] - rows[3], norm)]
    assert Apart(norm)(rows.reshape(2, 2, 3)) == pytest.approx(expected)
