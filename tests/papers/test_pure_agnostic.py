"""Paper L, written from its text: choices by enumeration."""

import itertools
import math

import numpy as np
import pytest

from printed_laws import exponential, permute_and_flip
from quorate import UserData
from quorate.accounting.account import Account
from quorate.auditing import enumerate_runs
from quorate.concepts import FiniteTable
from quorate.core.people import People
from quorate.guarantees import Relation
from quorate.learners.scores import Surrogate
from quorate.learners.selection import choose_by_score
from quorate.planning.learner_bounds import counted_users

CONCEPTS = np.array([[0, 1], [1, 0]])
HYPOTHESES = np.array([[0, 0], [0, 1], [1, 1]])
EPSILON = 1.1
RECORDS = [(x, y) for x in (0, 1) for y in (0, 1)]


class TestTheorem34:
    """L1: min over c of mistakes of c + points on which c and h differ; it moves by 2."""

    def losses(self, held):
        return [
            min(sum(int(c[x] != y) + int(c[x] != h[x]) for x, y in held) for c in CONCEPTS.tolist())
            for h in HYPOTHESES.tolist()
        ]

    def law(self, held, *, published):
        x, y = np.array(held).T
        data = UserData.from_arrays(x[:, None].astype(float), y, users=np.arange(len(held)))
        score = Surrogate(target=FiniteTable(CONCEPTS), records=1)

        def choose(noise):
            account = Account.open(epsilon=EPSILON)
            return choose_by_score(
                FiniteTable(HYPOTHESES),
                People(data, Relation.REPLACE),
                score,
                account=account,
                published=published,
            )

        found = enumerate_runs(choose)
        return [found.get(h, 0.0) for h in range(len(HYPOTHESES))]

    @pytest.mark.parametrize("held", list(itertools.product(RECORDS, repeat=3))[::7])
    def test_weights_are_those_of_the_surrogate(self, held):
        expected = exponential(self.losses(held), rate=EPSILON / 4)
        np.testing.assert_allclose(self.law(held, published=True), expected, rtol=1e-9)

    @pytest.mark.parametrize("held", list(itertools.product(RECORDS, repeat=3))[::7])
    def test_calibrated_is_permute_and_flip(self, held):
        expected = permute_and_flip(self.losses(held), rate=EPSILON / 4)
        np.testing.assert_allclose(self.law(held, published=False), expected, rtol=1e-9)


@pytest.mark.parametrize(("size", "alpha", "beta"), [(20, 0.1, 0.05), (500, 0.3, 0.2)])
def test_a_counted_class_needs_what_lemma_4_2_says(size, alpha, beta):
    """4 |C| exp(-gamma xi n / (4 (gamma + 1))) with gamma = xi = alpha / 2, on either side."""
    users = int(
        counted_users(log_size=math.log(size), vc_dimension=9, records=16, alpha=alpha, beta=beta)
    )
    half = alpha / 2

    def chance(n):
        return 4 * size * math.exp(-half * half * n / (4 * (half + 1)))

    assert chance(users) <= beta / 2 * (1 + 1e-9)
    assert chance(users - 2) > beta / 2
