"""How a budget is split follows from public numbers, and is the least that its formula allows."""

import math
from dataclasses import replace

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.tabulate.budget import KNOWN, Terms, evenness

TERMS = Terms(epsilon=1.0, mu=0.2367, relation=Relation.ADD_REMOVE, groups=6, parts=3, looks=3)


def test_many_groups_a_person_take_gaussian_noise_and_few_do_not():
    many = replace(TERMS, groups=200)
    assert many.gaussian(20.0)
    assert not many.gaussian(1.0)
    assert not replace(many, mu=0.0).gaussian(20.0)
    assert not replace(TERMS, groups=1).gaussian(1.0)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("groups", [1, 2, 30, 400])
def test_the_share_of_looks_minimises_what_it_says(groups, relation):
    """By trying all shares, up to a third: noise, and one size of a look missed in each look."""
    terms = replace(TERMS, groups=groups, relation=relation)
    shares = np.linspace(0.0005, 0.9995, 19_999)
    size = terms.tally * terms.looks / (shares * terms.epsilon)
    total = np.hypot(terms.laplace_noise / (1 - shares), size / (2 * groups))
    found = terms.look(9.0, gaussian=False, n_users=1e9) * terms.looks / terms.epsilon
    assert found == pytest.approx(min(1 / 3, shares[np.argmin(total)]), abs=0.001)
    look = terms.mu * np.sqrt(2 * shares / (math.pi * terms.looks))
    noise = terms.gaussian_noise / evenness(9.0) / np.sqrt(1 - shares)
    total = np.hypot(noise, terms.tally / look / (2 * groups))
    found = terms.look(9.0, gaussian=True, n_users=1e9) ** 2 * math.pi * terms.looks / 2
    assert found / terms.mu**2 == pytest.approx(min(1 / 3, shares[np.argmin(total)]), abs=0.001)


@pytest.mark.parametrize("gaussian", [False, True])
def test_few_people_look_longer_but_not_at_any_price(gaussian):
    looks = [TERMS.look(3.0, gaussian=gaussian, n_users=n) for n in (20, 400, 20_000)]
    assert looks == sorted(looks, reverse=True)
    seen = TERMS.outlook(3.0, users=20)
    assert seen.noise <= 3 * seen.stated
    assert not seen.known
    assert looks[2] * 20_000 > KNOWN


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
            seen = terms.outlook(min(groups, 9), users=users)
            assert seen.stated < seen.noise < 3 * seen.stated
            assert seen.known == (users == 5000)
