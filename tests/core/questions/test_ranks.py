"""How many users want a point lower or higher: one user moves a loss no farther than the seal."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.questions.ranks import quantile_pieces, rank_of, rank_sensitivity
from quorate.core.sealed import opened, seal_rows
from quorate.exceptions import ParameterError, RelationMismatchError

# What a user may hold: two limits, in either order, or only one of them, or none.
LIMITS = list(product((0, 1, 2, None), repeat=2))
QUANTILES = [Fraction(0), Fraction(1, 2), Fraction(1, 5), Fraction(3, 4), Fraction(1)]


def present(limits):
    return np.array([limit for limit in limits if limit is not None], np.int64)


def losses(users, quantile):
    lower, upper = map(present, zip(*users, strict=True)) if users else (present(()), present(()))
    lengths, found = quantile_pieces(lower, upper, domain=(0, 2), quantile=quantile)
    return np.repeat(found, lengths.astype(np.int64))


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("relation", Relation)
def test_a_user_without_one_of_two_limits_moves_a_loss_no_farther(quantile, relation):
    reach = 0
    for other in [(), ((1, 0),), ((2, 2), (0, None))]:
        found = [losses((*other, user), quantile) for user in LIMITS]
        before = found if relation is Relation.REPLACE else [losses(other, quantile)]
        reach = max(reach, *(np.abs(x - y).max() for x in found for y in before))
    assert reach == rank_sensitivity(quantile, relation)


def test_the_loss_of_a_point_is_that_of_its_piece():
    users = [(0, None), (2, 1), (None, 1), (1, 1)]
    lower, upper = (
        seal_rows(present(limits), Relation.REPLACE) for limits in zip(*users, strict=True)
    )
    ask = [rank_of(lower, upper, point=u, quantile=Fraction(1, 5)) for u in range(3)]
    assert [int(opened(each)[0]) for each in ask] == losses(users, Fraction(1, 5)).tolist()


@pytest.mark.parametrize("quantile", [Fraction(-1000), Fraction(3, 2)])
def test_what_is_no_quantile_is_refused(quantile):
    """An absent user would move its loss by more than the denominator."""
    with pytest.raises(ParameterError):
        rank_sensitivity(quantile, Relation.REPLACE)


@pytest.mark.parametrize("first", [True, False])
def test_limits_of_users_and_of_pairs_are_not_mixed(first):
    """Somebody who comes replaces the row of a pair, which moves a loss farther."""
    lower, upper = (
        seal_rows(np.array([1]), Relation.ADD_REMOVE, paired=paired)
        for paired in (first, not first)
    )
    with pytest.raises(RelationMismatchError):
        rank_of(lower, upper, point=1, quantile=Fraction(1, 2))
