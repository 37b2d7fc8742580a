"""Pairs of users: nobody is in two, their order is secret, and one user changes one row."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.account.account import Account
from quorate.core.account.secret_pairs import secret_pairs
from quorate.core.bounds.grid import Grid, Interval
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.noise.composed_laws import secret_order
from quorate.core.people import People
from quorate.core.sealed import seal_rows
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from sealing import rows_of


def named(values):
    rows = np.asarray(values, dtype=float)[:, None]
    return UserData.from_arrays(rows, users=np.arange(len(rows)))


def pairs_of(values, *, seed=None, most=2**16, relation=Relation.REPLACE, only_present=False):
    """Return the rows of random pairs of users with one value each, in the open."""
    people = People(named(values), relation)
    noise = None if seed is None else SeededNoise(seed)
    account = Account.open(epsilon=1.0, relation=relation, noise=noise)
    found = secret_pairs(
        people, UserData.user_means, account=account, most=most, only_present=only_present
    )
    assert found.paired
    assert account.left == 1
    return rows_of(found)


@given(n=st.integers(0, 50), seed=st.integers(0, 2**32), most=st.integers(0, 60))
def test_nobody_is_in_two_pairs(n, seed, most):
    pairs = pairs_of(np.arange(float(n)), seed=seed, most=most)
    assert pairs.shape == (min(n, most) // 2, 2, 1)
    assert len(set(pairs.ravel().tolist())) == pairs.size


def test_they_are_drawn_anew_in_every_call():
    # The chance of equal pairs is below 1e-40.
    seen = [pairs_of(np.arange(60.0)) for _ in range(3)]
    assert all(not np.array_equal(a, b) for a, b in itertools.combinations(seen, 2))


def test_they_are_in_the_order_that_the_noise_source_keeps_secret(monkeypatch):
    """Of 60 people there are more orders than seeds of a generator for simulations."""
    secrets = []
    watched = SeededNoise.uniform_below

    def watch(source, upper):
        secrets.append(watched(source, upper))
        return secrets[-1]

    monkeypatch.setattr(SeededNoise, "uniform_below", watch)
    with use_noise(SeededNoise(3)):
        found = pairs_of(np.arange(60.0))
    assert secrets[0] > 2**128
    by_key = named(np.arange(60.0)).take_ranked(np.arange(60)).X.ravel()
    assert np.array_equal(found.ravel(), by_key[secret_order(60, secret=secrets[0])])


def test_random_pairs_of_neighbours_can_be_matched_up_to_one_pair():
    """The coupling of the proof, for a replacement whose id sorts elsewhere."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=30)
    # Person 0 leaves; the replacement comes last, so everybody else moves one place down.
    others = np.append(values[1:], 1e6)
    moved = np.concatenate([[29], np.arange(29)])
    pairs = rng.permutation(30).reshape(15, 2)
    before, after, twin = values[pairs], others[moved[pairs]], others[pairs]
    assert np.count_nonzero((before != after).any(axis=1)) == 1
    # The broken twin: the same pairs of places.
    assert np.count_nonzero((before != twin).any(axis=1)) > 5


@pytest.mark.parametrize("seed", range(5))
def test_one_user_changes_one_pair_and_a_twin_with_chained_pairs_two(seed):
    values = np.random.default_rng(seed).normal(size=40)
    changed = values.copy()
    changed[7] = 1e6
    before, after = (pairs_of(each, seed=seed) for each in (values, changed))
    assert np.count_nonzero((before != after).any(axis=(1, 2))) == 1
    chained = np.column_stack([np.arange(39), np.arange(1, 40)])
    assert np.count_nonzero((values[chained] != changed[chained]).any(axis=1)) == 2


def test_pairs_of_everybody_are_refused_where_users_may_join():
    with pytest.raises(ParameterError, match=r"Relation\.REPLACE"):
        pairs_of(np.arange(4.0), relation=Relation.ADD_REMOVE)


@pytest.mark.parametrize("relation", list(Relation))
def test_only_those_who_are_present_are_paired(relation):
    values = np.where(np.arange(41) % 2 == 0, np.arange(41.0), np.nan)
    found = pairs_of(values, relation=relation, only_present=True)
    assert found.shape == (10, 2, 1)
    assert not np.isnan(found).any()


def test_who_leaves_may_give_a_row_of_a_pair_to_another_as_a_replacement_would():
    """With three users one is left over; when another goes, that one takes the place."""
    grid = Grid(Interval(-1.0, 1.0), step=0.25)
    paired, alone = (
        seal_rows(np.array([1.0, -1.0]), Relation.ADD_REMOVE, paired=each) for each in (True, False)
    )
    assert paired.total(grid).moves.l1 == 8 > alone.total(grid).moves.l1 == 4
    assert paired.tally(2).moves.l1 == 2 > alone.tally(2).moves.l1 == 1
