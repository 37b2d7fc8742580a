"""A rejection loop is one outcome to an audit, over cells that are public."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from drawing import Drawing
from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs, replay
from quorate.auditing.outcomes import Outcomes, cell_outcomes, uniform_cells
from quorate.core.guarantees import Guarantee
from quorate.core.noise import SeededNoise, ambient_noise, use_noise
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.laws import PiecewiseLaw
from sealing import release_by_hand


def distance_from_half(values, domain):
    """Pieces between sorted values; the loss counts how many users are on the larger side."""
    cuts = sorted(min(max(v, 0), domain) for v in values)
    lengths = np.diff([0, *cuts, domain]).astype(np.uint64)
    n = len(cuts)
    losses = np.array([max(i, n - i) for i in range(n + 1)])
    return lengths, losses


def median(values, domain=12, epsilon=1.0):
    return release_by_hand(ChooseOrdered(epsilon=epsilon), *distance_from_half(values, domain))


class TestEnumeration:
    def test_every_point_of_a_small_domain_has_its_exact_chance(self):
        lengths, losses = distance_from_half([3, 3, 8], 12)
        law = enumerate_runs(lambda noise: median([3, 3, 8]))
        by_piece = ChooseOrdered(epsilon=1.0).probabilities(lengths, losses)
        assert sorted(law) == list(range(12))
        assert sum(law[u] for u in range(3)) == pytest.approx(by_piece[0])
        assert law[5] == pytest.approx(by_piece[2] / 5)
        assert law.slack == pytest.approx(0.0, abs=1e-12)

    def test_the_law_agrees_with_the_real_sampler(self):
        """2000 draws in 12 cells; a chi-squared above 60 has probability below 1e-8."""
        law = enumerate_runs(lambda noise: median([3, 3, 8]))
        with use_noise(SeededNoise(5)):
            drawn = np.bincount([median([3, 3, 8]) for _ in range(2000)], minlength=12)
        expected = 2000 * np.array([law[u] for u in range(12)])
        assert np.sum((drawn - expected) ** 2 / expected) < 60

    def test_cells_of_a_huge_domain_are_public(self):
        laws = [
            enumerate_runs(lambda noise, v=v: median(v, domain=2**62), max_uniform=16)
            for v in ([2**61, 5, 2**60], [2**61, 5, 77])
        ]
        assert set(laws[0]) == set(laws[1])
        assert all(law.coarse > 0.99 for law in laws)
        assert all(math.fsum(law.values()) == pytest.approx(1.0) for law in laws)

    def test_the_audit_of_the_median_is_tight_and_sees_halved_noise(self):
        world = SmallWorld(records=(0, 1, 12), n_users=3)

        def law(values, factor=1.0):
            return enumerate_runs(lambda noise: median(values, epsilon=factor))

        honest = audit_exactly(law, world, Guarantee(epsilon=1.0))
        assert honest.holds
        assert honest.tightness > 0.9
        assert not audit_exactly(lambda d: law(d, 2.0), world, Guarantee(epsilon=1.0)).holds


class TestReplay:
    @pytest.mark.parametrize("seed", range(5))
    def test_the_chosen_point_is_forced_and_the_pieces_may_differ(self, seed):
        report = replay(median, [3, 3, 8], [3, 3, 0], seed=seed)
        assert report.same, str(report)
        assert len(report.calls) == 1
        assert report.calls[0].startswith(
            "ordered_choice(rate=Fraction(1, 2), lower=0, size=12, scales=((1, 1),))"
        )

    def test_a_domain_taken_from_the_data_is_seen(self):
        assert not replay(lambda v: median(v, domain=max(v) + 1), [3, 3, 8], [3, 3, 9]).same

    def test_an_error_inside_the_sampler_is_seen(self):
        def run(values):
            lengths = np.array([values[0], 5], dtype=np.int64)  # a negative length is refused
            return release_by_hand(ChooseOrdered(epsilon=1.0), lengths, np.array([0, 1]))

        report = replay(run, [1], [-1])
        assert not report.same
        assert any("raised" in difference for difference in report.differences)


class TestSurroundings:
    def test_two_audits_at_once_do_not_disturb_each_other(self):
        expected = enumerate_runs(lambda noise: median([3, 3, 8])).masses
        with ThreadPoolExecutor(4) as pool:
            runs = [pool.submit(enumerate_runs, lambda noise: median([3, 3, 8])) for _ in range(8)]
            assert all(run.result().masses == expected for run in runs)

    def test_a_mechanism_with_another_source_is_left_alone(self):
        outside = Drawing(ChooseOrdered(epsilon=1.0), SeededNoise(0))
        law = enumerate_runs(lambda noise: (ambient_noise() is noise, outside._noise is noise))
        assert law[True, False] == 1.0
        points = enumerate_runs(lambda noise: outside.release(*distance_from_half([3, 8], 12)) < 12)
        assert points[True] == 1.0

    def test_any_sampler_is_audited_by_the_law_it_brings(self):
        def loop(noise):
            while (drawn := noise.uniform_below(8)) >= 3:
                pass
            return drawn

        def run(offset, size=3):
            law = PiecewiseLaw(0, np.array([size]), np.array([1.0]))
            source = ambient_noise()
            return offset + source.sample("a new rejection loop", loop, held=lambda: law, size=size)

        assert enumerate_runs(lambda noise: run(5)).masses == pytest.approx(
            dict.fromkeys((5, 6, 7), 1 / 3)
        )
        assert replay(lambda values: run(0), [1], [2]).same
        assert not replay(lambda values: run(0, size=values[0]), [1], [2]).same

    def test_impossible_outcomes_are_left_out(self):
        outcomes = Outcomes.possible([1, 2, 3], [0.5, 0.0, 0.5], [1.0, 1.0, 1.1])
        assert outcomes.values == (1, 3)
        assert outcomes.exact == (1.0, 1.0)

    def test_a_cell_across_pieces_adds_their_shares_up(self):
        law = PiecewiseLaw(-4, np.array([2, 0, 6]), np.array([0.5, 0.0, 0.5]))
        outcomes = cell_outcomes(law, 2)
        assert outcomes.values == (-2, 2)
        assert outcomes.masses == pytest.approx((0.5 + 2 / 12, 4 / 12))
        assert outcomes.exact == pytest.approx((1 / 8, 1 / 4))

    @pytest.mark.parametrize(("size", "cells"), [(1, 5), (7, 7), (1000, 7), (2**63, 3)])
    def test_cells_cover_the_domain_without_gaps(self, size, cells):
        cut = uniform_cells(size, cells)
        assert cut[0][0] == 0
        assert cut[-1][1] == size
        assert all(high == low for (_, high), (low, _) in pairwise(cut))
        assert all(low < high for low, high in cut)
