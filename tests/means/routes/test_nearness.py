"""Pairs of people: who is paired, how far apart they are, and what one user moves."""

import numpy as np
import pytest

from quorate.auditing import replay
from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.means.routes.nearness import are_near, typical_distance
from sealing import rows_of, vectors_of


class TestPairs:
    def test_pairs_are_of_people_who_are_there(self):
        vectors = np.full((40, 2), np.nan)
        vectors[::2] = np.arange(20)[:, None]
        account = Account.open(epsilon=1.0, noise=SeededNoise(0))
        apart = vectors_of(vectors).pair_distances(account, most=2**17, only_present=True)
        assert rows_of(apart).size == 10
        assert np.all(rows_of(apart) > 0)

    @pytest.mark.parametrize("d", [1, 8])
    def test_the_typical_distance_is_found_within_a_step(self, d):
        users = vectors_of(np.random.default_rng(0).normal(size=(8000, d)) * 0.01)
        account = Account.open(epsilon=1.0, noise=SeededNoise(1))
        found = typical_distance(users, epsilon=0.2, account=account)
        assert 0.007 < found < 0.0145

    def test_people_in_one_place_are_no_distance_apart(self):
        account = Account.open(epsilon=1.0, noise=SeededNoise(1))
        assert typical_distance(vectors_of(np.ones((900, 2))), epsilon=0.5, account=account) is None

    @pytest.mark.parametrize(("spread", "near"), [(0.01, True), (0.5, False)])
    def test_people_say_whether_they_are_near(self, spread, near):
        users = vectors_of(np.random.default_rng(0).normal(size=(2000, 1)) * spread)
        account = Account.open(epsilon=1.0, noise=SeededNoise(1))
        assert are_near(users, 0.12, epsilon=0.2, account=account) is near

    @pytest.mark.parametrize("relation", list(Relation))
    def test_a_question_costs_what_it_says_and_hides_who_answers(self, relation):
        people = np.random.default_rng(0).normal(size=(300, 2)) * 0.1
        changed = np.r_[people[1:], [[1.0, -1.0]]]
        neighbour = changed if relation is Relation.REPLACE else people[1:]

        def ask(rows):
            account = Account.open(epsilon=0.5, relation=relation)
            users = vectors_of(rows, relation=relation)
            found = are_near(users, 0.1, epsilon=0.5, account=account)
            assert 0.499 < price(account.event) <= 0.5
            return found

        report = replay(ask, people, neighbour)
        assert report.same, str(report)
