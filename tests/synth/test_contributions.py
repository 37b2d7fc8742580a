"""What a person adds to tables does not depend on who else is there."""

import numpy as np

from quorate.core.users import UserData
from quorate.synth.contributions import Repeats, Tables

PEOPLE = UserData(
    np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]), offsets=[0, 1, 4], ids=[3, 8]
)
TABLES = Tables(((0, 1), (2,)), ((0, 1), (0, 1), (0, 1, 2)), (1.0, 2.0, 4.0))


def test_cells_and_repeats_are_those_of_each_person_alone():
    owners, places, counts = TABLES.held(PEOPLE)
    for person in range(2):
        alone = TABLES.held(PEOPLE.take([person]))
        assert places[owners == person].tolist() == alone[1].tolist()
        assert counts[owners == person].tolist() == alone[2].tolist()
        own = Repeats(columns=2)(PEOPLE.take([person]))
        assert Repeats(columns=2)(PEOPLE)[person].tolist() == own[0].tolist()
    # One record is the first bin, three are the third.
    assert places.tolist() == [1, 4, 0, 2, 3, 6]
