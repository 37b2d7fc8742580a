"""Clips: units, widths and what one user can move."""

import math

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.distributions.hypotheses.clip import WEIGHT_UNIT, Clip, Votes
from quorate.exceptions import ParameterError


def test_the_width_of_own_scales_covers_every_number_of_records():
    for cap in (1, 2, 3, 10, 100, 70_000):
        clip = Clip(200.0, records=cap)
        held = np.unique(np.r_[np.arange(1, min(cap, 3000) + 1), cap])
        assert (held * clip.weights(held)).max() <= clip.width(1)


def test_own_scales_put_everybody_on_the_size_of_chance():
    held = np.array([0, 1, 4, 64, 10_000])
    weights = Clip(0.5).weights(held)
    expected = [WEIGHT_UNIT / math.sqrt(max(m, 1)) for m in held]
    assert weights == pytest.approx(expected, abs=0.5)
    assert (Clip(3.0, own_scale=False).weights(held) == 1).all()


def test_a_user_of_billions_of_records_still_counts():
    assert Clip(0.5).weights(np.array([2**40]))[0] == 1


def test_one_user_more_moves_a_duel_by_half_of_what_another_user_does():
    clip = Clip(0.5)
    assert clip.sensitivity(100, Relation.REPLACE) == 2 * clip.limit(100)
    assert clip.sensitivity(100, Relation.ADD_REMOVE) == clip.limit(100)


def test_published_and_group():
    assert Clip.published(64, alpha=0.05).tau == pytest.approx(
        0.05 * 64 + math.sqrt(64 * math.log(20))
    )
    assert Clip.none(64).sensitivity(10, Relation.REPLACE) == 640


@pytest.mark.parametrize(
    "make",
    [
        lambda: Clip(0.0),
        lambda: Clip(1000.0),
        lambda: Clip(2.0**21, own_scale=False),
        lambda: Clip(math.nan),
        lambda: Clip(1.0, records=0),
        lambda: Clip(1.0, own_scale="yes"),
        lambda: Clip.published(0, alpha=0.1),
    ],
)
def test_wrong_clips_are_refused(make):
    with pytest.raises(ParameterError):
        make()


class TestVotes:
    def test_rows_without_numbers_say_nothing(self):
        heights = np.array([[-np.inf, -np.inf], [np.nan, 1.0], [np.inf, 0.0], [-1e308, -1e308]])
        assert np.all(Votes().marks(heights) == 0)

    def test_marks_are_bounded_integers_whatever_the_heights(self):
        heights = np.array([[0.0, -1e308, -np.inf], [700.0, 1e-320, -700.0]])
        marks = Votes().marks(heights)
        assert np.all(marks == np.rint(marks))
        # The mean of the family holds at least a third of the best density.
        assert marks.min() >= 2**20 * np.log(0.2 / 3) - 1
        assert marks.max() <= 0

    @pytest.mark.parametrize("mixed", [0.0, 1.0, -1.0, np.nan, "much"])
    def test_shares_that_make_no_sense_are_refused(self, mixed):
        with pytest.raises(ParameterError):
            Votes(mixed)
