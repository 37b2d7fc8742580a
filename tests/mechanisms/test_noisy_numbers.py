"""Noise for sealed numbers of any kind: its size is read off the seal, and so is its price."""

from fractions import Fraction

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.moves import Moves
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.exceptions import NumericalFailure, ParameterError, SealedError
from quorate.mechanisms.noisy_numbers import NoisyNumbers
from sealing import moved, release_by_hand


class Halved(NoisyNumbers):
    """A twin with half of the noise."""

    sigma = property(lambda self: NoisyNumbers.sigma.fget(self) / 2)


def made(kind=NoisyNumbers, moves=None, **known):
    moves = Moves.of_counts(4).times(10) if moves is None else moves
    return kind(**{"size": 4, "moves": moves, "noise_multiplier": 3.0, "delta": 1e-6, **known})


def test_noise_is_as_wide_as_the_seal_says_and_bounds_hold():
    mechanism = made()
    # 4 numbers that move by 10 each: a length of 20, times 3, and a little for whole numbers.
    assert mechanism.sigma == pytest.approx(np.sqrt(3600.0 + 4.0))
    with use_noise(SeededNoise(0)):
        off = np.array([release_by_hand(mechanism, np.full(4, 90)) for _ in range(1500)]) - 90
    assert off.std() == pytest.approx(mechanism.sigma, rel=0.03)
    worst = np.abs(off).max(axis=1)
    assert np.mean(worst > mechanism.error_bound(0.1)) <= 0.12
    assert np.mean(worst > 0.8 * mechanism.error_bound(0.1)) > 0.15


@pytest.mark.parametrize("relation", Relation)
def test_a_computed_number_costs_what_its_seal_says_and_a_twin_is_refused(relation):
    people = People(UserData(np.ones((5, 1)), offsets=range(6)), relation)
    tally = people.tally(lambda users: users.X[:, 0].astype(int), 4)
    numbers = (8 * tally - 3).clip(0, 99)
    known = {"moves": numbers.moves, "relation": relation}
    account = Account.open(epsilon=3.0, delta=1e-6, relation=relation)
    made(**known).release(numbers, account=account)
    spent = account.square - account.square_left
    assert float(spent) == pytest.approx(1 / 9, rel=1e-6)
    with pytest.raises(NumericalFailure):
        made(Halved, **known).release(numbers)


def test_numbers_that_move_further_or_are_open_are_refused():
    with pytest.raises(ParameterError, match="sensitivity at most"):
        made().release(moved(np.zeros(4, int), squared=Fraction(401)))
    with pytest.raises(ParameterError, match="4 numbers"):
        made().release(moved(np.zeros(3, int), squared=Fraction(9)))
    with pytest.raises(SealedError):
        made().release(np.zeros(4, int))
