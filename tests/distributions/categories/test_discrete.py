"""Distributions over categories, as callers use them."""

import math

import numpy as np
import pyarrow as pa
import pytest

from crowds_of_shares import alike, mean_shares
from quorate.auditing import replay
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.distributions import DiscreteDistribution
from quorate.distributions.categories.label_columns import label_places
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError
from quorate.ledger.ledger import Ledger

NAMES = ["pitcher", "catcher", "shortstop"]


@pytest.fixture(scope="module")
def fitted():
    labels, users = alike(900, 6, 3)
    names = np.array(NAMES)[labels.astype(int)]
    with use_noise(SeededNoise(1)):
        return DiscreteDistribution(1.0, categories=NAMES).fit(names, users=users)


class TestFit:
    def test_labels_of_every_kind_mean_the_same(self, fitted):
        labels, users = alike(900, 6, 3)
        names = np.array(NAMES)[labels.astype(int)]
        import polars as pl

        kinds = [names, names.tolist(), names[:, None], pl.Series(names), names.astype(object)]
        for kind in kinds:
            with use_noise(SeededNoise(1)):
                again = DiscreteDistribution(1.0, categories=NAMES).fit(kind, users=users)
            assert np.array_equal(again.pmf_, fitted.pmf_)

    def test_texts_in_a_crowd_mean_the_same(self):
        rng = np.random.default_rng(3)
        names, users = ["gp", "eye", "skin"], np.repeat(np.arange(300), 4)
        seen = rng.choice([*names, "none"], 1200)
        table = pa.table({"id": users, "visit": seen})
        found = []
        for X, given in (
            (seen, users),
            (UserData.from_frame(table, user="id", categories={"visit": names}), None),
        ):
            with use_noise(SeededNoise(1)):
                shares = DiscreteDistribution(1.0, categories=names).fit(X, users=given)
            found.append(shares.pmf_)
        # Records of no category are left out before, or counted as none: the rule is the same.
        assert np.array_equal(*found)
        other = UserData.from_frame(table, user="id", categories={"visit": names[::-1]})
        with pytest.raises(SchemaError, match="in this order"):
            DiscreteDistribution(1.0, categories=names).fit(other)

    def test_numbers_and_crowds_mean_the_same(self):
        labels, users = alike(400, 6, 4)
        crowd = UserData.from_arrays(10.0 * labels[:, None], users=users)
        released = []
        for X, given in ((10 * labels.astype(int), users), (crowd, None)):
            with use_noise(SeededNoise(2)):
                one = DiscreteDistribution(2.0, categories=[0, 10, 20, 30]).fit(X, users=given)
            released.append(one.pmf_)
        assert np.array_equal(*released)
        assert released[0] == pytest.approx(mean_shares(labels, users, 4), abs=0.1)

    def test_columns_of_any_type_are_read_for_numbers(self):
        for column in (
            np.array([1, 2, None, "x", 2.0], dtype=object),
            np.array(["1", "no", "2"]),
            [1, None, "x"],
            np.array(["2020-01-01"], dtype="datetime64[D]"),
        ):
            with use_noise(SeededNoise(0)):
                one = DiscreteDistribution(1.0, categories=[1, 2])
                one.fit(column, users=range(len(column)))
            assert one.pmf_.shape == (2,)

    def test_other_labels_are_dropped(self):
        with use_noise(SeededNoise(3)):
            one = DiscreteDistribution(50.0, categories=["a", "b"]).fit(
                ["a", "zzz", None, "b", "a"] * 200, users=np.arange(1000) // 5
            )
        assert one.pmf_ == pytest.approx([2 / 3, 1 / 3], abs=0.01)

    def test_ten_thousand_categories_are_quick(self):
        rng = np.random.default_rng(0)
        labels, users = rng.integers(0, 10_000, 20_000), np.repeat(np.arange(2000), 10)
        with use_noise(SeededNoise(4)):
            one = DiscreteDistribution(1.0, categories=range(10_000)).fit(labels, users=users)
        assert one.pmf_.sum() == pytest.approx(1.0)
        assert one.algorithm_.name == "laplace"

    def test_the_ledger_is_charged_before_and_mistakes_cost_nothing(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=1.5)
        known = {"ledger": ledger, "data_name": "people"}
        labels, users = alike(60, 2, 3)
        with pytest.raises(UnboundedContributionError):
            DiscreteDistribution(1.0, **known).fit(labels, users=users)
        crowd = UserData.from_arrays(labels[:, None], users=users)
        with pytest.raises(SchemaError):
            DiscreteDistribution(1.0, categories=["a", "b"], **known).fit(crowd)
        DiscreteDistribution(1.0, categories=range(3), **known).fit(labels, users=users)
        with pytest.raises(Exception, match="budget"):
            DiscreteDistribution(1.0, categories=range(3), **known).fit(labels, users=users)

    @pytest.mark.parametrize(
        "categories", [["a"], ["a", "a"], "ab", 7, np.zeros((2, 2)), [1, 1.0]], ids=str
    )
    def test_categories_that_make_no_sense_are_refused(self, categories):
        with pytest.raises(ParameterError):
            DiscreteDistribution(1.0, categories=categories).fit(["a"], users=[1])

    @pytest.mark.parametrize("relation", list(Relation))
    def test_neighbours_look_the_same(self, relation):
        others = ["a", "b", "b"] * 30

        def run(mine):
            users = [*np.repeat(np.arange(30), 3), *[99] * len(mine)]
            one = DiscreteDistribution(1.0, categories=["a", "b"], relation=relation)
            one.fit([*others, *mine], users=users)
            return one.pmf_, one.error_, one.algorithm_, one.categories_, one.guarantee_

        for mine in (["b"], ["a"] * 500, ["c", None]):
            report = replay(run, ["a"], mine)
            assert report.same, str(report)


class TestReleased:
    def test_shares_and_scores(self, fitted):
        assert fitted.pmf(["catcher", "umpire"]) == pytest.approx([fitted.pmf_[1], 0.0])
        scores = fitted.score_samples(["pitcher", "umpire"])
        assert scores == pytest.approx([np.log(fitted.pmf_[0]), -np.inf])

    def test_samples_are_labels(self, fitted):
        drawn = fitted.sample(4000, random_state=0)
        assert set(drawn) == set(NAMES)
        assert np.mean(drawn == "pitcher") == pytest.approx(fitted.pmf_[0], abs=0.04)
        assert np.array_equal(drawn, fitted.sample(4000, random_state=0))

    def test_the_figure_is_drawn(self, fitted, tmp_path):
        fitted.plot(tmp_path / "shares.png")
        assert (tmp_path / "shares.png").stat().st_size > 1000


@pytest.mark.parametrize("categories", [[1, 2], ["a", "b"]], ids=["numbers", "text"])
@pytest.mark.parametrize(
    "cell",
    [(1, 2), [1], {}, None, object(), b"x", 10**400, math.nan, "1", 2.5, 1 + 2j, np.array([1, 2])],
    ids=lambda cell: type(cell).__name__,
)
def test_no_cell_raises_or_moves_another(categories, cell):
    column = np.empty(9, dtype=object)
    column[:] = categories[0]
    expected = label_places(column, tuple(categories))
    column[4] = cell
    found = label_places(column, tuple(categories))
    np.testing.assert_array_equal(np.delete(found, 4), np.delete(expected, 4))
