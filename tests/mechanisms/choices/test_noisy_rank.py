"""A look at the rank of a released number: what one user moves, and how often the bound holds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from quorate.auditing import SmallWorld, audit_exactly
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.questions.ranks import quantile_pieces, rank_loss
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.choices.noisy_rank import NoisyRank
from sealing import release_by_hand

QUANTILES = [Fraction(1, 2), Fraction(9, 10)]
every_quantile = pytest.mark.parametrize("quantile", QUANTILES, ids=str)
every_relation = pytest.mark.parametrize("relation", list(Relation), ids=lambda r: r.name)


@every_quantile
def test_the_loss_of_a_point_is_that_of_its_piece(quantile):
    rng = np.random.default_rng(0)
    lower, upper = rng.integers(0, 9, (2, 7))
    lengths, losses = quantile_pieces(lower, upper, domain=(0, 8), quantile=quantile)
    each = np.repeat(losses, lengths.astype(np.int64))
    found = [rank_loss(lower, upper, point=u, quantile=quantile) for u in range(9)]
    assert found == each.tolist()


@every_quantile
@every_relation
def test_the_draw_pays_for_what_one_user_moves(quantile, relation):
    look = NoisyRank(epsilon=Fraction(1, 3), quantile=quantile, relation=relation)
    moved = 0
    for base in ([0, 1, 5], [5, 5, 5], [0] * 9 + [5]):
        before = np.array(base)
        for new in (0, 3, 5):
            after = before.copy()
            after[0] = new
            other = after if relation is Relation.REPLACE else before[1:]
            found = [rank_loss(x, x, point=3, quantile=quantile) for x in (before, other)]
            moved = max(moved, abs(found[0] - found[1]))
    assert moved == look.sensitivity
    assert look.scale >= look.sensitivity / Fraction(1, 3)


@every_relation
def test_an_audit_confirms_the_claim_and_a_twin_is_caught(relation):
    look = NoisyRank(epsilon=1.0, quantile=Fraction(1, 2), relation=relation)
    world = SmallWorld(records=(0, 3, 6), n_users=3)

    def law(held, look=look):
        values = np.array(held, dtype=np.int64)
        loss = rank_loss(values, values, point=3, quantile=look.quantile)
        z = np.arange(-60, 61) - loss
        mass = np.exp(-np.abs(z) / look.scale)
        return mass / np.exp(-np.abs(np.arange(-500, 501)) / look.scale).sum()

    assert audit_exactly(law, world, look.guarantee).holds
    twin = replace(look, epsilon=2.1)
    assert not audit_exactly(
        lambda held: law(held, twin), world, look.guarantee, thorough=False
    ).holds


@pytest.mark.parametrize("off", [-30, 0, 12])
def test_the_bound_holds_as_often_as_stated(off):
    look = NoisyRank(epsilon=0.2, quantile=Fraction(1, 2))
    # 500 users below and 500 above 500; so many more below, or as many at the point itself.
    values = np.repeat([0, 500, 1000], [500 + min(off, 0), -2 * min(off, 0), 500 + min(off, 0)])
    values[500 + min(off, 0) :][: max(off, 0)] = 0
    truth = max(0.0, rank_loss(values, values, point=500, quantile=look.quantile) / 2)
    assert truth == max(off, 0)
    with use_noise(SeededNoise(1)):
        bounds = np.array(
            [
                look.upper_bound(release_by_hand(look, values, values, point=500), 0.05)
                for _ in range(1000)
            ]
        )
    kept = np.mean(bounds >= truth)
    assert kept >= 0.92
    if off > 0:
        assert kept <= 0.98
        assert np.median(bounds) < truth + 14
    elif off < 0:
        assert np.median(bounds) == 0.0


def test_what_are_no_limits_of_users_is_refused():
    look = NoisyRank(epsilon=1.0, quantile=Fraction(1, 2))
    with pytest.raises(SchemaError):
        release_by_hand(look, np.zeros((3, 2), np.int64), np.zeros((3, 2), np.int64), point=0)
    with pytest.raises(SchemaError):
        release_by_hand(look, np.zeros(3), np.zeros(3), point=0)


def test_noise_that_does_not_fit_is_refused_before_it_is_asked_for():
    with pytest.raises(ParameterError, match="epsilon"):
        NoisyRank(epsilon=1e-12, quantile=Fraction(1, 10**6))


def test_ranks_fit_into_64_bits_whatever_people_hold():
    """A loss that overflows for some values only would tell of them."""
    with pytest.raises(ParameterError, match="denominator"):
        NoisyRank(epsilon=1e4, quantile=Fraction(1, 10**17))
