"""How a budget is split follows from public numbers, and is the least that its formula allows."""

import math
from dataclasses import replace

import numpy as np
import pytest

from quorate.guarantees import Relation
from quorate.tabulate.budget import COUNTED, LEAST, Terms, evenness

TERMS = Terms(
    epsilon=1.0,
    mu=0.2367,
    relation=Relation.ADD_REMOVE,
    groups=6,
    parts=3,
    looks=3,
    measured=4,
)


def test_many_groups_a_person_take_gaussian_noise_and_few_do_not():
    many = replace(TERMS, groups=200)
    assert many.gaussian(20.0)
    assert not many.gaussian(1.0)
    assert not replace(many, mu=0.0).gaussian(20.0)
    assert not replace(TERMS, groups=1).gaussian(1.0)


@pytest.mark.parametrize("groups", [1, 2, 30, 400])
def test_the_share_of_looks_minimises_what_it_says(groups):
    terms = replace(TERMS, groups=groups)
    kinds = COUNTED * terms.looks + terms.measured_price
    shares = np.linspace(0.001, 0.999, 9999)
    total = terms.laplace_noise / (1 - shares) + kinds / (2 * shares * groups * terms.epsilon)
    assert terms.pure_look * kinds == pytest.approx(shares[np.argmin(total)], abs=0.002)
    kinds = COUNTED * terms.looks + 1
    noise = terms.gaussian_noise / evenness(9.0)
    look = math.sqrt(math.pi * kinds / 2) / (terms.mu * groups) / 2
    total = noise / np.sqrt(1 - shares) + look / np.sqrt(shares)
    found = terms.squared_look(9.0) * kinds / terms.mu**2
    assert found == pytest.approx(shares[np.argmin(total)], abs=0.002)


def test_few_people_look_longer_but_not_at_any_price():
    for gaussian in (False, True):
        looks = [TERMS.look(3.0, gaussian=gaussian, n_users=n) for n in (20, 200, 20_000)]
        assert looks == sorted(looks, reverse=True)
        assert looks[0] * (TERMS.looks + TERMS.measured_price) <= 0.5 * TERMS.epsilon


def test_a_look_never_aims_below_what_it_can_see():
    assert TERMS.aim(3.0, 0.01, gaussian=False) == LEAST / 0.01
    assert TERMS.aim(3.0, 10.0, gaussian=False) == pytest.approx(6 * TERMS.laplace_noise)


def test_replacing_people_costs_twice_the_noise_but_in_one_group():
    other = replace(TERMS, relation=Relation.REPLACE)
    assert other.laplace_noise == pytest.approx(2 * TERMS.laplace_noise)
    assert other.gaussian_noise == pytest.approx(math.sqrt(2) * TERMS.gaussian_noise)
    one, two = (replace(each, groups=1) for each in (TERMS, other))
    assert one.laplace_noise == two.laplace_noise


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_an_outlook_leaves_something_for_the_cells(delta):
    for groups in (1, 3, 60):
        for users in (50, 5000):
            terms = replace(TERMS, groups=groups, mu=0.2367 if delta else 0.0)
            seen = terms.outlook(min(groups, 9), users=users, columns=1)
            assert seen.stated < seen.noise < 4 * seen.stated
            assert seen.measured == (users == 5000)
