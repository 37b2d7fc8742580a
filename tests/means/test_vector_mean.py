"""Several means of one account: the shares add up, whatever routes are taken."""

from fractions import Fraction

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.bounds.grid import Box
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.means.vector_mean import gaussian_run, private_mean
from quorate.means.weighted_users import bounded_vectors
from sealing import vectors_of

BOX = Box([0.0, 0.0], [20.0, 20.0])
VECTORS = np.random.default_rng(0).normal(size=(3000, 2)) + 12.0


USERS = {each: vectors_of(bounded_vectors(VECTORS, BOX), relation=each) for each in Relation}


def open_account(epsilon=1.0, relation=Relation.REPLACE):
    return Account.open(epsilon=epsilon, delta=1e-6, relation=relation)


class TestPrice:
    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
    @pytest.mark.parametrize("relation", list(Relation))
    def test_two_means_cost_what_was_declared(self, epsilon, relation):
        account = open_account(epsilon, relation)
        for _ in range(2):
            private_mean(account, USERS[account.relation], BOX, share=Fraction(1, 2))
        cost = price(account.event, delta=1e-6, relation=relation)
        assert 0.9 * epsilon <= cost <= epsilon

    def test_a_second_mean_with_the_whole_share_is_starved(self):
        account = open_account()
        first = gaussian_run(account, USERS[account.relation], BOX).clip("first")
        second = gaussian_run(account, USERS[account.relation], BOX).clip("second")
        assert second.error.standard_error > 1e5 * first.error.standard_error
        assert price(account.event, delta=1e-6) <= 1.0

    def test_shares_divide_the_account(self):
        account = open_account()
        runs = [
            gaussian_run(account, USERS[account.relation], BOX, share=share)
            for share in (0.25, 0.75)
        ]
        assert sum(run.account.square for run in runs) == account.square


class TestUtility:
    def test_a_mean_with_a_share_is_released_as_an_offset(self):
        with use_noise(SeededNoise(0)):
            release = private_mean(
                open_account(), USERS[Relation.REPLACE], BOX, share=Fraction(1, 2)
            )
        assert np.abs(release.mean - 2.0).max() < 0.5
