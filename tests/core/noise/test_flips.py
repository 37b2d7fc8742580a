"""Permute-and-flip over very many points: exact numbers of heads, and the law of a race."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from goodness import FALSE_ALARM, p_value
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.noise.flips import _Arrival, binomial, first_heads
from quorate.exceptions import ParameterError
from quorate.mechanisms.choices.choose import ChooseBest, Selection
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.laws import flip_probabilities
from sealing import release_by_hand


@pytest.mark.parametrize("exponent", [Fraction(1, 100), Fraction(1, 2), Fraction(3), Fraction(40)])
@pytest.mark.parametrize("halvings", [0, 1, 4])
def test_arrivals_enclose_their_chance_as_tightly_as_asked(exponent, halvings):
    heads, stretches = np.exp(-float(exponent)), 1 << halvings
    for at in {0, stretches // 2, stretches - 1}:
        chance = heads / (stretches - at * heads)
        for bits in (8, 80, 200):
            low, high = _Arrival(exponent, at, halvings)(bits)
            assert 0 <= high - low <= 3
            assert low / 2**bits <= chance * (1 + 1e-12)
            assert high / 2**bits >= chance * (1 - 1e-12)
            away = _Arrival(exponent, at, halvings, stays_away=True)(bits)
            assert away == ((1 << bits) - high, (1 << bits) - low)


@pytest.mark.parametrize(
    ("trials", "exponent"), [(3, Fraction(1, 10)), (9, Fraction(1)), (400, Fraction(1, 5))]
)
def test_numbers_of_heads_have_their_binomial_law(trials, exponent):
    noise = SeededNoise(7)
    drawn = [binomial(trials, exponent, noise=noise) for _ in range(1500)]
    law = binom(trials, np.exp(-float(exponent)))
    # Equally likely classes of numbers, so that no class is rare.
    edges = np.unique(law.ppf(np.linspace(0, 1, 7)[1:-1]))
    counts = np.bincount(np.searchsorted(edges, drawn), minlength=edges.size + 1)
    chances = np.diff(np.concatenate([[0], law.cdf(edges), [1]]))
    held = chances > 0
    assert p_value(counts[held], chances[held]) > FALSE_ALARM


def test_all_of_those_who_cannot_fail_arrive_in_the_last_stretch():
    assert binomial(7, Fraction(0), at=3, halvings=2, noise=SeededNoise(0)) == 7


@pytest.mark.parametrize(
    ("sizes", "losses"),
    [
        ([1, 2, 0, 1, 3], [0, 1, 0, 3, 1]),
        ([1, 1], [0, 0]),
        ([40, 5, 40], [2, 0, 3]),
    ],
)
def test_the_law_is_that_of_permute_and_flip_among_all_points(sizes, losses):
    sizes, losses = np.array(sizes), np.array(losses)
    choice = ChooseOrdered(epsilon=2.0, selection=Selection.PERMUTE_AND_FLIP)
    points = ChooseBest(candidates=int(sizes.sum()), epsilon=2.0)
    expected = points.probabilities(-np.repeat(losses, sizes))
    by_piece = [part.sum() for part in np.split(expected, np.cumsum(sizes)[:-1])]
    np.testing.assert_allclose(choice.probabilities(sizes, losses), by_piece, atol=1e-9)
    with use_noise(SeededNoise(3)):
        drawn = [release_by_hand(choice, sizes, losses) for _ in range(1500)]
    counts = np.bincount(drawn, minlength=int(sizes.sum()))
    assert p_value(counts, expected) > FALSE_ALARM


def test_a_twin_that_takes_the_number_of_points_for_the_number_of_heads_is_caught():
    sizes, losses = np.array([1, 2, 0, 1, 3]), np.array([0, 1, 0, 3, 1])
    weights = sizes * np.exp(-losses.astype(float))
    honest = ChooseOrdered(epsilon=2.0, selection=Selection.PERMUTE_AND_FLIP)
    found = honest.probabilities(sizes, losses)
    assert np.abs(found - weights / weights.sum()).max() > 0.05


def test_few_good_points_among_very_many_are_found_more_often_than_by_weights():
    sizes, losses = np.array([2**31, 8, 2**31]), np.array([24, 0, 24])
    flips = ChooseOrdered(epsilon=2.0, selection=Selection.PERMUTE_AND_FLIP)
    weights = ChooseOrdered(epsilon=2.0)
    by_flips, by_weights = (c.probabilities(sizes, losses)[1] for c in (flips, weights))
    assert by_flips > by_weights > 0.9


def test_a_domain_of_2_to_the_63_points_costs_as_many_numbers_as_losses():
    sizes = np.array([2**62, 1000, 2**62], dtype=np.uint64)
    choice = ChooseOrdered(epsilon=4.0, selection=Selection.PERMUTE_AND_FLIP)
    with use_noise(SeededNoise(0)):
        for _ in range(20):
            assert 0 <= release_by_hand(choice, sizes, np.array([90, 0, 90]), lower=-(2**62)) < 1000


def test_time_is_cut_finely_enough_for_very_many_heads():
    noise = SeededNoise(1)
    sizes = [2**40, 2**41]
    drawn = [first_heads(sizes, [0, 1], rate=Fraction(1), noise=noise) for _ in range(300)]
    assert 0.3 < np.mean(drawn) < 0.55
    law = flip_probabilities(np.array(sizes, dtype=float), np.array([0.0, -1.0]))
    assert law[1] == pytest.approx(2 / (np.e + 2), abs=1e-6)


def test_another_selection_is_refused():
    with pytest.raises(ParameterError, match="selection"):
        ChooseOrdered(epsilon=1.0, selection="flip")
