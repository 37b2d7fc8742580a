"""Quantiles of pairs: one user may change a pair at will, under either relation."""

import itertools
import math

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.mechanisms.choices.quantiles import PrivateQuantile
from quorate.mechanisms.means.pair_quantile import PairQuantile

VALUES = (0, 1, 3, None)
"""What users hold; pairs with somebody who holds nothing have no number."""


def pairings(users):
    """Yield all ways to pair users; one is left over if their number is odd."""
    if len(users) < 2:
        yield ()
        return
    first, rest = users[0], users[1:]
    for other in range(len(rest)):
        for more in pairings(rest[:other] + rest[other + 1 :]):
            yield ((first, rest[other]), *more)
    if len(users) % 2:
        yield from pairings(rest)


def law(users, kind, relation):
    """Return the exact law of a release, over all pairings of those who hold something."""
    there = [value for value in users if value is not None]
    mechanism = kind(domain=(0, 3), epsilon=1.0, quantile=0.75, relation=relation)
    laws = [
        mechanism.probabilities(np.array([abs(a - b) for a, b in pairs], dtype=np.int64))
        for pairs in pairings(there)
    ]
    return np.mean(laws, axis=0)


def worst(kind, relation):
    """Return the largest ratio of probabilities between neighbours of three or four users."""
    found = 0.0
    for users in itertools.product(VALUES, repeat=4):
        for other in VALUES:
            neighbour = (*users[:-1], other) if relation is Relation.REPLACE else users[:-1]
            ratio = law(users, kind, relation) / law(neighbour, kind, relation)
            found = max(found, float(np.abs(np.log(ratio)).max()))
            if relation is Relation.ADD_REMOVE:
                break
    return found


class TestPrivacy:
    @pytest.mark.parametrize("relation", list(Relation))
    def test_the_claim_holds_over_all_pairings(self, relation):
        assert worst(PairQuantile, relation) <= 1.0 + 1e-9

    def test_a_twin_that_counts_a_pair_as_one_user_is_caught(self):
        class Twin(PrivateQuantile):
            sensitivity = 1

        assert worst(Twin, Relation.REPLACE) > 1.5

    @pytest.mark.parametrize("relation", list(Relation))
    def test_a_changed_pair_is_paid_for(self, relation):
        mechanism = PairQuantile(domain=(0, 3), epsilon=1.0, quantile=0.75, relation=relation)
        assert mechanism.sensitivity == 4
        assert mechanism.event.epsilon == 1.0
        assert math.isclose(float(mechanism.choice.rate), 1 / 8)
