"""What a person adds to tables does not depend on who else is there."""

import numpy as np

from quorate.core.users import UserData
from quorate.synth.contributions import Contrasts, Repeats, Tables

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


WORK = Contrasts((2, 5, 3))
CODES = np.random.default_rng(0).integers(0, (2, 5, 3), (40, 3)).astype(float)
MANY = UserData(CODES, offsets=[0, 1, 1, 30, 40], ids=[1, 2, 3, 4])


def test_contrasts_and_their_lengths_are_those_of_each_person_alone():
    rows, lengths = WORK(MANY), WORK.lengths(MANY)
    for person in range(4):
        alone = MANY.take([person])
        assert WORK(alone)[0].tolist() == rows[person].tolist()
        assert WORK.lengths(alone)[0] == lengths[person]
    assert np.allclose(lengths, np.linalg.norm(rows, axis=1))
    assert lengths[1] == 0.0


def test_contrasts_give_back_the_shares_and_are_shorter_than_the_counts():
    found = WORK.shares(WORK(MANY).sum(axis=0), 1.0)
    for codes, size, each in zip(CODES.T.astype(int), WORK.sizes, found, strict=True):
        assert np.allclose(each, np.bincount(codes, minlength=size) / len(codes))
    tables = Tables(((0,), (1,), (2,)), tuple(tuple(range(n)) for n in (2, 5, 3)), ())
    assert (WORK.lengths(MANY) <= 0.9 * tables.lengths(MANY)).all()
