"""Masked parity by one randomized bit a user, also where the secret is a Hadamard row."""

import numpy as np
import pytest

from quorate import UserData
from quorate.core.account.account import Account
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.learners.concepts.masked_parities import MaskedParity
from quorate.papers.queries.local_masked_parity import (
    AgreesWithParity,
    LocalMaskedParity,
    SignOfVotes,
)

D = 16
HADAMARD = [sum(((a & j).bit_count() % 2) << j for j in range(D)) for a in range(D)]


def draw(rule, users, records, seed):
    rng = np.random.default_rng(seed)
    rows = users * records
    X = np.column_stack(
        [rng.integers(0, 2, (rows, D)), rng.integers(0, D, rows), rng.integers(0, 2, rows)]
    ).astype(float)
    return UserData(X, rule.predict(X), offsets=np.arange(0, rows + 1, records), ids=range(users))


@pytest.mark.parametrize("kind", ["random", "hadamard"])
def test_two_thousand_users_of_sixty_four_records_find_the_rule(kind):
    """Eight runs; measured over many more in the benchmark."""
    rng = np.random.default_rng(3)
    found = 0
    for seed in range(8):
        secret = int(rng.integers(2**D)) if kind == "random" else HADAMARD[1 + seed]
        rule = MaskedParity(D, secret, seed % 2)
        with use_noise(SeededNoise(seed)):
            data = draw(rule, 2000, 64, seed)
            found += LocalMaskedParity(D).learn(data, random_state=seed) == rule
    assert found >= 7


def hadamard_signs(keys, count, seed):
    """Return a row of the Hadamard matrix for each user, in place of signs of the user's own."""
    row = (keys % np.uint64(count))[:, np.newaxis]
    odd = np.bitwise_count(row & np.arange(count, dtype=np.uint64)) % 2
    return 1.0 - 2.0 * odd


def test_a_hadamard_projection_fails_where_the_secret_is_close_to_a_row(monkeypatch):
    """The broken twin: all votes of a user add up or cancel together."""
    monkeypatch.setattr("quorate.papers.queries.local_masked_parity.random_signs", hadamard_signs)
    found = 0
    for seed in range(8):
        rule = MaskedParity(D, HADAMARD[1 + seed], seed % 2)
        with use_noise(SeededNoise(seed)):
            data = draw(rule, 2000, 64, seed)
            found += LocalMaskedParity(D).learn(data, random_state=seed) == rule
    assert found <= 6


def test_each_user_is_asked_once_and_pays_everything():
    rule = MaskedParity(D, 5, 0)
    account = Account.open(epsilon=1.0)
    LocalMaskedParity(D).learn(draw(rule, 400, 4, 0), account=account, random_state=0)
    assert account.left == 0


@pytest.mark.parametrize("values", [SignOfVotes(D, np.uint64(3)), AgreesWithParity(D, 0b1011)])
def test_the_value_of_a_user_is_a_function_of_their_own_records(values):
    data = draw(MaskedParity(D, 77, 1), 60, 5, 1)
    together = values(data)
    alone = [float(values(data.take([i]))[0]) for i in range(60)]
    assert together.tolist() == alone
    assert set(together) <= {0.0, 0.5, 1.0}


def test_odd_records_and_absent_users_are_ties():
    X = np.full((2, D + 2), np.nan)
    data = UserData(np.nan_to_num(X), [7.0, np.pi], offsets=[0, 2, 2], ids=["odd", "absent"])
    assert SignOfVotes(D, np.uint64(0))(data).tolist() == [0.5, 0.5]
    assert AgreesWithParity(D, 3)(data).tolist() == [0.5, 0.5]


def test_refusals():
    with pytest.raises(ParameterError, match="first_round"):
        LocalMaskedParity(D, first_round=1.0)
    with pytest.raises(ParameterError, match="features"):
        LocalMaskedParity(0)
