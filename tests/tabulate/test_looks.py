"""Looks find what they should, cost what they say, and leave the choice to public numbers."""

from fractions import Fraction

import numpy as np
import pytest

from quorate.accounting.account import Account
from quorate.guarantees import Relation
from quorate.noise import SeededNoise
from quorate.tabulate.gathering.cells import ValueColumn
from quorate.tabulate.looks import (
    Shape,
    cut_target,
    found_length,
    group_weights,
    number_of_users,
    pure_is_better,
    pure_part,
)
from quorate.users import UserData


def account(*, delta=1e-6, epsilon=1.0, relation=Relation.REPLACE, seed=0):
    return Account.open(epsilon=epsilon, delta=delta, relation=relation, noise=SeededNoise(seed))


def cells(n=20_000, seed=0):
    """Return people of very different activity in two groups, the second ten times rarer."""
    rng = np.random.default_rng(seed)
    groups = (rng.random(n) < 0.1).astype(float)
    counts = np.ceil(rng.lognormal(1.0, 1.0, n))
    return UserData(np.column_stack([groups, counts]), offsets=range(n + 1))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", Relation)
def test_about_as_many_people_as_planned_exceed_the_length(delta, relation):
    crowd, shape = cells(), Shape(weights=np.ones(2), norm=2 if delta else 1)
    for seed in range(5):
        purse = account(delta=delta, relation=relation, seed=seed)
        target, part = cut_target(noise=5.0, shape=shape, account=purse, n_users=2e4)
        length = found_length(crowd, shape, account=purse, target=target, part=part, n_users=2e4)
        above = int(np.sum(crowd.X[:, 1] > length))
        assert target / 4 < above < 4 * target


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_length_is_never_lost_in_the_noise_of_the_search(delta):
    """People who are all alike: every step of the ladder holds everybody or nobody."""
    crowd = UserData(np.tile([0.0, 8.0], (3000, 1)), offsets=range(3001))
    shape = Shape(weights=np.ones(1), norm=2 if delta else 1)
    for seed in range(30):
        purse = account(delta=delta, seed=seed)
        target, part = cut_target(noise=4.0, shape=shape, account=purse, n_users=3e3)
        length = found_length(crowd, shape, account=purse, target=target, part=part, n_users=3e3)
        assert 5.0 < length < 16.0


def test_a_pure_search_is_hardly_ever_astray():
    """Of 800 people at epsilon 4: one in thirty lengths had been too long, by any factor."""
    counts = np.repeat([14.0, 9.0, 5.0], [31, 150, 619])
    crowd = UserData(np.column_stack([np.zeros(800), counts]), offsets=range(801))
    shape, found = Shape(weights=np.ones(1), norm=1), []
    for seed in range(600):
        purse = account(epsilon=3.9, delta=0.0, seed=seed)
        target, part = cut_target(noise=1.0, shape=shape, account=purse, n_users=800.0)
        found.append(
            found_length(crowd, shape, account=purse, target=target, part=part, n_users=800.0)
        )
    assert np.mean(np.array(found) > 100.0) < 0.01
    assert np.median(found) < 16.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", Relation)
def test_a_small_budget_looks_as_long_as_it_must(delta, relation):
    """A tenth of it cannot tell a thousand people from nobody, and found lengths of a million."""
    crowd = UserData(np.tile([0.0, 8.0], (1000, 1)), offsets=range(1001))
    shape = Shape(weights=np.ones(1), norm=2 if delta else 1)
    for seed in range(30):
        purse = account(epsilon=0.15, delta=delta, relation=relation, seed=seed)
        target, part = cut_target(noise=30.0, shape=shape, account=purse, n_users=1e3)
        length = found_length(crowd, shape, account=purse, target=target, part=part, n_users=1e3)
        assert length < 20.0
        assert part < 0.41 * float(purse.square if delta else purse.epsilon)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_rare_groups_count_for_more(delta):
    weights = group_weights(
        cells(),
        groups=2,
        norm=2 if delta else 1,
        presence=False,
        account=account(delta=delta),
        n_users=2e4,
    )
    power = 1 / 2 if delta else 2 / 3
    assert weights[1] / weights[0] == pytest.approx(9.0**power, rel=0.2)


def test_groups_that_drown_in_noise_count_alike():
    few = UserData(np.array([[0.0, 1.0], [1.0, 1.0]]), offsets=[0, 1, 2])
    weights = group_weights(few, groups=2, norm=2, presence=True, account=account(), n_users=2.0)
    assert weights.max() / weights.min() < 2.0


def test_the_number_of_people_is_public_or_paid_for():
    crowd, public = cells(500), account()
    assert number_of_users(crowd, public) == 500.0
    assert public.square_left == public.square
    for delta in (0.0, 1e-6):
        private = account(delta=delta, relation=Relation.ADD_REMOVE)
        assert abs(number_of_users(crowd, private) - 500.0) < 300
        assert private.left < 1 if delta == 0 else private.square_left < private.square


def test_parts_cost_no_more_than_their_share():
    from quorate.accounting.costs import as_gaussian

    for share in (Fraction(1, 5), Fraction(1, 100)):
        for epsilon in (0.1, 1.0, 8.0):
            purse = account(epsilon=epsilon)
            assert as_gaussian(pure_part(purse, share)) <= share * purse.square


def test_few_coordinates_take_laplace_noise():
    assert pure_is_better(account(), 1)
    assert not pure_is_better(account(), 50)


def test_a_shape_knows_whether_coordinates_can_be_negative():
    column = ValueColumn(1, 0.0, 9.0)
    common = {"columns": (column,), "units": (1.0,), "weights": np.ones(2)}
    assert not Shape(centres=(0.0,), **common).signed
    assert Shape(centres=(4.0,), **common).signed
    assert not Shape(weights=np.ones(2)).signed
