"""Noisy tallies: how far one user moves them, their noise, and what is refused."""

import itertools

import numpy as np
import pytest

from quorate.core.guarantees import Pure, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.exceptions import NumericalFailure, ParameterError, SchemaError, SealedError
from quorate.mechanisms.noisy_tally import NoisyTally
from sealing import sealed_for

LABELS = [0, 1, 2, -1, 7]


class Halved(NoisyTally):
    """A twin that pays for one count although who is replaced moves two."""

    sensitivity = property(lambda self: 1)


def tallied(labels, size=3):
    return np.bincount([label for label in labels if 0 <= label < size], minlength=size)


@pytest.mark.parametrize("relation", Relation)
def test_the_sensitivity_is_that_of_all_neighbours(relation):
    own = [tallied([label]) for label in LABELS]
    others = own if relation is Relation.REPLACE else [tallied([])]
    worst = max(np.abs(a - b).sum() for a, b in itertools.product(own, others))
    assert worst == NoisyTally(size=3, epsilon=1.0, relation=relation).sensitivity


@pytest.mark.parametrize("relation", Relation)
def test_an_account_takes_its_price_off_the_seal_and_refuses_a_twin(relation):
    people = People(UserData(np.ones((5, 1)), offsets=range(6)), relation)
    sealed = people.tally(lambda users: users.X[:, 0].astype(int), 3)
    assert NoisyTally(size=3, epsilon=1.0, relation=relation).event == Pure(1.0)
    NoisyTally(size=3, epsilon=1.0, relation=relation).release(sealed)
    if relation is Relation.REPLACE:
        with pytest.raises(NumericalFailure):
            Halved(size=3, epsilon=1.0, relation=relation).release(sealed)


def test_noise_is_as_wide_as_is_said_and_bounds_hold():
    mechanism = NoisyTally(size=4, epsilon=0.5)
    with use_noise(SeededNoise(0)):
        found = [mechanism.release_values(np.array([0, 0, 3, 9])) for _ in range(800)]
    off = np.array(found) - [2, 0, 0, 1]
    assert off.std() == pytest.approx(mechanism.standard_error, rel=0.1)
    worst = np.abs(off).max(axis=1)
    assert np.mean(worst > mechanism.error_bound(0.1)) <= 0.1
    assert np.mean(worst > 0.7 * mechanism.error_bound(0.1)) > 0.1


def test_what_is_no_tally_is_refused():
    tally = NoisyTally(size=2, epsilon=1.0)
    with pytest.raises(SealedError):
        tally.release(np.array([1, 2]))
    with pytest.raises(SchemaError):
        tally.release(sealed_for(tally, np.array([1, 2, 3])))
    with pytest.raises(SchemaError):
        tally.release_values(np.array([0.5]))
    for wrong in ({"size": 0}, {"epsilon": 0.0}, {"epsilon": 2.0**-60}):
        with pytest.raises((ParameterError, ValueError)):
            NoisyTally(**({"size": 2, "epsilon": 1.0} | wrong))
