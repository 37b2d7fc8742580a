"""Runs of real code are enumerated completely, and glue code with a mistake is seen."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from quorate.auditing import (
    Cells,
    EnumerationError,
    Raised,
    SmallWorld,
    audit_exactly,
    discrete_laplace_mass,
    enumerate_runs,
)
from quorate.auditing.enumeration import freeze
from quorate.auditing.laws import gaussian_interval
from quorate.core.guarantees import Guarantee, Numerics, Relation
from quorate.core.noise import ambient_noise


class TestLawsOfSingleDraws:
    def test_additive_noise_on_single_integers_is_the_formula(self):
        law = enumerate_runs(
            lambda noise: int(noise.discrete_laplace(np.array([1]), scale=1.5)[0]),
            cells=Cells(reach=4.0),
        )
        oracle = discrete_laplace_mass(1, scale=1.5, window=(-6, 6))
        assert set(law) == set(oracle)
        assert [law[z] for z in oracle] == pytest.approx(list(oracle.values()), rel=1e-12)
        assert law.coarse == pytest.approx(oracle.coarse, rel=1e-9)

    @pytest.mark.parametrize("method", ["discrete_laplace", "discrete_gaussian", "geometric"])
    def test_cells_add_up_whatever_the_scale_and_the_values(self, method):
        parameter = "sigma" if method == "discrete_gaussian" else "scale"
        for value, scale in ((0, 2.0**40), (-(2**50), 2.0**40), (2**62, 3.0), (7, 0.1)):
            law = enumerate_runs(
                lambda noise, value=value, scale=scale: int(
                    getattr(noise, method)(np.array([value]), **{parameter: scale})[0]
                ),
                cells=Cells(width=0.5, reach=3.0),
            )
            assert math.fsum(law.values()) == pytest.approx(1.0, abs=1e-12)

    def test_a_cell_holds_the_mass_of_its_integers(self):
        law = enumerate_runs(
            lambda noise: int(noise.discrete_gaussian(np.array([2]), sigma=10.0)[0]),
            cells=Cells(width=0.5, reach=2.0),
        )
        assert sorted(law) == list(range(-20, 21, 5))
        assert law[5] == pytest.approx(gaussian_interval(3 - 2, 7 - 2, sigma=10.0))
        assert law[20] == pytest.approx(gaussian_interval(18 - 2, None, sigma=10.0))
        assert law.coarse > 0.7

    def test_every_vector_of_outcomes_is_visited(self):
        law = enumerate_runs(
            lambda noise: noise.discrete_laplace(np.array([0, 3]), scale=1.0),
            cells=Cells(reach=3.0),
        )
        assert len(law) == 49

    def test_coins_uniforms_and_choices(self):
        def run(noise):
            heads = noise.bernoulli_exp(Fraction(1, 2))
            place = noise.uniform_below(3) if heads else None
            chosen = noise.gumbel_max(np.array([0, 1]), scale=1.0)
            return heads, place, chosen, noise.permute_and_flip(np.array([5, 5]), scale=1.0)

        law = enumerate_runs(run)
        assert len(law) == 16
        assert law[True, 2, 0, 1] == pytest.approx(math.exp(-0.5) / 3 / (1 + math.e) / 2, rel=1e-12)
        assert law.slack == pytest.approx(0.0, abs=1e-12)

    def test_huge_uniforms_are_reported_in_cells(self):
        law = enumerate_runs(lambda noise: noise.uniform_below(2**80), max_uniform=8)
        assert list(law.values()) == [0.125] * 8
        assert law.coarse == pytest.approx(1.0)

    def test_certain_outcomes_do_not_branch(self):
        assert enumerate_runs(lambda noise: noise.bernoulli_exp(Fraction(0)))[True] == 1.0


class TestRuns:
    def test_the_ambient_source_is_the_enumerating_one_and_voids_guarantees(self):
        law = enumerate_runs(lambda noise: (ambient_noise() is noise, noise.numerics))
        assert law[True, Numerics.VOID] == 1.0

    def test_exceptions_are_outputs(self):
        def run(noise):
            if noise.uniform_below(4) == 0:
                raise ValueError("no luck")
            return "fine"

        law = enumerate_runs(run)
        assert law[Raised("ValueError", "no luck")] == 0.25

    def test_an_endless_rejection_loop_becomes_lost_mass(self):
        def run(noise):
            while noise.uniform_below(2):
                pass
            return "done"

        law = enumerate_runs(run, max_draws=10)
        assert law["done"] == pytest.approx(1 - 2**-10)
        assert law.lost == pytest.approx(2**-10)

    def test_a_program_cannot_swallow_the_cut(self):
        def run(noise):
            try:
                while True:
                    noise.uniform_below(1)
            except Exception:
                return "swallowed"

        assert enumerate_runs(run, max_draws=5).lost == 1.0

    def test_too_many_runs_are_refused(self):
        with pytest.raises(EnumerationError, match="at most max_runs=10"):
            enumerate_runs(lambda noise: noise.uniform_below(11), max_runs=10)

    def test_a_program_with_a_memory_is_refused(self):
        calls = []

        def run(noise):
            calls.append(None)
            return noise.uniform_below(2 + len(calls))

        with pytest.raises(EnumerationError, match="random_state"):
            enumerate_runs(run)

    def test_outputs_that_cannot_be_compared_are_refused(self):
        with pytest.raises(EnumerationError, match="type bytearray"):
            enumerate_runs(lambda noise: bytearray(3))

    def test_freezing_keeps_shape_dtype_and_nan(self):
        a = freeze({"coef": np.array([[1.0, math.nan]]), "count": np.int64(3), "set": {1}})
        b = freeze({"coef": np.array([[1.0, math.nan]]), "count": np.int64(3), "set": {1}})
        assert a == b
        assert freeze(np.zeros(2)) != freeze(np.zeros((2, 1)))
        assert freeze(np.zeros(2)) != freeze(np.zeros(2, dtype=np.float32))


def two_step_estimate(records, noise, *, clip_second=True, epsilon=1.0):
    """Adaptive glue: choose a private bound, then a sum clipped at it; each costs epsilon / 2."""
    values = np.array(records)
    options = np.array([1, 3])
    within = np.array([np.sum(values <= option) for option in options]) - 2 * options
    bound = int(options[noise.permute_and_flip(within, scale=2 / (epsilon / 2))])
    clipped = np.clip(values, 0, bound) if clip_second else values
    total = noise.discrete_laplace(np.array([clipped.sum()]), scale=bound / (epsilon / 2))
    return bound, int(total[0])


class TestGlueCode:
    world = SmallWorld(records=(0, 1, 3, 8), n_users=2)
    claim = Guarantee(epsilon=1.0, relation=Relation.REPLACE)

    def law(self, records, **options):
        return enumerate_runs(
            lambda noise: two_step_estimate(records, noise, **options), cells=Cells(reach=3.0)
        )

    def test_the_honest_two_steps_keep_their_claim(self):
        audit = audit_exactly(self.law, self.world, self.claim)
        assert audit.holds
        assert audit.tightness > 0.7

    def test_a_forgotten_clip_in_the_second_step_is_seen(self):
        audit = audit_exactly(lambda d: self.law(d, clip_second=False), self.world, self.claim)
        assert not audit.holds

    def test_cells_see_it_on_a_grid_too_fine_to_enumerate(self):
        def law(records, *, factor=1.0, step=2.0**-40):
            totals = np.array([round(sum(min(r, 3) for r in records) / step)])
            return enumerate_runs(
                lambda noise: noise.discrete_laplace(totals, scale=factor * 3 / step),
                cells=Cells(width=0.25, reach=4.0),
            )

        honest = audit_exactly(law, self.world, self.claim)
        assert honest.holds
        assert honest.tightness > 0.99
        assert honest.slack == pytest.approx(1.0)
        assert not audit_exactly(lambda d: law(d, factor=0.5), self.world, self.claim).holds

    def test_an_error_that_depends_on_a_record_is_seen(self):
        def run(records, noise):
            if max(records) > 3:
                raise ValueError("outlier")
            return two_step_estimate(records, noise)

        audit = audit_exactly(
            lambda d: enumerate_runs(lambda noise: run(d, noise)), self.world, self.claim
        )
        assert audit.epsilon == math.inf
