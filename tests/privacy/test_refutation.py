"""Samples of real releases do not refute the claims, and do refute the twins with half the noise.

The noise is the secure one, so these tests are random: a claim that is true is refuted with a
probability of at most 1e-6 (the confidence of the bound), and the sample sizes are such that a twin
escapes with a probability below 1e-6 too (its bound lies five standard deviations above the claim).

Quantiles are not sampled here: they add to the ordered choice only how the domain is cut, which
the exact audit covers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from drawing import Drawing
from quorate.auditing import epsilon_lower_bound
from quorate.core.bounds.grid import Grid, Interval
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.noise import SecureNoise
from quorate.mechanisms.choices.choose import ChooseBest, Selection
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum
from sealing import release_by_hand

HONEST_RUNS = 1_000
TWIN_RUNS = 4_000


class PrefetchedNoise(SecureNoise):
    """Secure noise, drawn in blocks: one call of OpenDP costs as much as a thousand draws."""

    def __init__(self):
        self._blocks = {}

    def _add(self, law, values, scale):
        block = self._blocks.setdefault((law, scale), [])
        if len(block) < values.size:
            block.extend(super()._add(law, np.zeros(5000, dtype=np.int64), scale))
        return values + np.array([block.pop() for _ in range(values.size)])


@dataclass(frozen=True, kw_only=True)
class Case:
    """Two neighbours and a mechanism, built with its noise scaled by a factor."""

    name: str
    make: Callable
    release: Callable
    data: object
    neighbour: object

    @property
    def claim(self) -> Guarantee:
        return self.make(1.0).guarantee

    def bound(self, runs, factor=1.0):
        mechanism = Drawing(self.make(factor), PrefetchedNoise())
        first, second = (
            [self.release(mechanism, held) for _ in range(runs)]
            for held in (self.data, self.neighbour)
        )
        return epsilon_lower_bound(first, second, delta=self.claim.delta)


GRID = Grid(Interval(-1.0, 1.0), step=2.0**-20)


def choose_best(selection, epsilon):
    return Case(
        name=f"ChooseBest-{selection.name}",
        make=lambda factor: ChooseBest(
            candidates=2,
            epsilon=epsilon / factor,
            relation=Relation.ADD_REMOVE,
            one_sided=True,
            selection=selection,
        ),
        release=lambda mechanism, scores: mechanism.release(scores),
        data=np.array([0, 1]),
        neighbour=np.array([0, 0]),
    )


CASES = [
    Case(
        name="LaplaceSum",
        make=lambda factor: LaplaceSum(grid=GRID, epsilon=1.0 / factor),
        release=lambda mechanism, values: mechanism.release_values(values)[0],
        data=np.array([0.4, -1.0]),
        neighbour=np.array([0.4, 50.0]),
    ),
    Case(
        name="GaussianSum",
        # At a large delta a twin is told from few runs: the claim is an epsilon of 0.65.
        make=lambda factor: GaussianSum(grid=GRID, noise_multiplier=factor, delta=0.2),
        release=lambda mechanism, values: mechanism.release_values(values)[0],
        data=np.array([0.4, -1.0]),
        neighbour=np.array([0.4, 50.0]),
    ),
    Case(
        name="NoisyCount",
        make=lambda factor: NoisyCount(epsilon=1.0 / factor),
        release=lambda mechanism, values: mechanism.release_values(values),
        data=np.array([1, 1, 0]),
        neighbour=np.array([1, 1, 1]),
    ),
    choose_best(Selection.PERMUTE_AND_FLIP, 1.0),
    choose_best(Selection.GUMBEL, 2.0),
    Case(
        # With seven points against one both the point's weight and the total move by a factor.
        name="ChooseOrdered",
        make=lambda factor: ChooseOrdered(epsilon=2.0 / factor),
        release=lambda mechanism, losses: release_by_hand(mechanism, np.array([1, 7]), losses) > 0,
        data=np.array([0, 1]),
        neighbour=np.array([1, 0]),
    ),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_case
def test_the_claim_is_not_refuted(case):
    bound = case.bound(HONEST_RUNS)
    assert not bound.refutes(case.claim), str(bound)


@every_case
def test_half_the_noise_is_refuted(case):
    bound = case.bound(TWIN_RUNS, factor=0.5)
    assert bound.refutes(case.claim), str(bound)


def test_prefetched_noise_is_secure_noise():
    """The block changes when OpenDP is called, not what it draws."""
    noise = PrefetchedNoise()
    drawn = [int(noise.discrete_laplace(np.array([7]), scale=0.5)[0]) for _ in range(6000)]
    again = [int(noise.discrete_laplace(np.array([7]), scale=0.5)[0]) for _ in range(6000)]
    assert drawn != again
    # P(z = 0) = tanh(1) = 0.762; five standard deviations of 12000 draws are 0.0195.
    assert abs(np.mean(np.array([*drawn, *again]) == 7) - np.tanh(1)) < 0.0195
