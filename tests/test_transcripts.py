"""The tool that compares released numbers sees one bit, and misses no estimator."""

import numpy as np
import pytest

import quorate
import transcripts as tool
from crowd_worlds import ESTIMATORS
from quorate.app.catalogue import CATALOGUE
from quorate.estimators import UserEstimator

ALL = dict(tool.transcripts())
SOME = ["route: median, seed 0", "route: sums, seed 0", "route: categories, seed 0"]


@pytest.mark.parametrize("name", SOME)
def test_the_same_noise_gives_the_same_transcript(name):
    assert tool.digest(ALL[name]) == tool.digest(ALL[name])


@pytest.mark.parametrize("name", SOME)
def test_other_noise_gives_another(name):
    assert tool.digest(ALL[name]) != tool.digest(ALL[name.replace("seed 0", "seed 1")])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1.0, np.nextafter(1.0, 2.0)),
        (np.array([0.0]), np.array([-0.0])),
        (np.array([1.0]), np.array([1.0], dtype=np.float32)),
        ({"a": 1}, {"a": True}),
        ([1, 2], [2, 1]),
    ],
)
def test_the_last_bit_and_the_type_are_seen(one, other):
    assert tool.digest(lambda: one) != tool.digest(lambda: other)


def test_a_refusal_is_an_answer():
    def refuse(sentence):
        raise ValueError(sentence)

    assert tool.digest(lambda: refuse("a")) != tool.digest(lambda: refuse("b"))


def test_every_public_estimator_has_a_transcript():
    fitted = {
        type(make())
        for make, _ in ESTIMATORS.values()
        if isinstance(make, type(lambda: 0)) and make.__name__ == "<lambda>"
    }
    fitted |= {descriptor.kind for descriptor in CATALOGUE.values()}
    public = {
        each
        for each in (getattr(quorate, name) for name in quorate.__all__)
        if isinstance(each, type) and issubclass(each, UserEstimator)
    }
    assert public - fitted == set()


def test_a_recorded_file_says_with_which_arithmetic():
    document = tool.recorded()
    assert len(document["arithmetic"]) == 16
    assert set(document["transcripts"]) == set(ALL)
