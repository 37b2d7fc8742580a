"""Popular phrases without a list: what is found, what is promised and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import quorate as qr
from quorate.core.account.account import Account
from quorate.core.account.costs import elementary, gdp_mu
from quorate.core.guarantees import Approximate, Gaussian
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError, SchemaError
from quorate.tabulate import PopularPhrases
from quorate.tabulate.phrases import as_lengths, needed, plan_unions

SAYINGS = ["the cat sat", "the cat ran", "a dog sat", "my own secret words"]
relations = pytest.mark.parametrize("relation", list(qr.Relation))


def said(people=2000, seed=0):
    rng = np.random.default_rng(seed)
    each = rng.choice(4, size=2 * people, p=[0.5, 0.3, 0.199, 0.001])
    return {"who": np.arange(2 * people) // 2, "text": [SAYINGS[i] for i in each]}


def fit(table, **known):
    with use_noise(SeededNoise(0)):
        return PopularPhrases(random_state=0, **known).fit(table, users="who")


class TestFound:
    @relations
    def test_words_and_phrases_of_many_people(self, relation):
        found = fit(pa.table(said()), of="words", lengths=3, relation=relation)
        assert found.phrases_ == (
            *("a", "cat", "dog", "ran", "sat", "the"),
            *("a dog", "cat ran", "cat sat", "dog sat", "the cat"),
            *("a dog sat", "the cat ran", "the cat sat"),
        )
        assert found.guarantee_.epsilon == 1.0
        assert found.guarantee_.relation is relation

    def test_whole_texts_whole_numbers_and_beginnings(self):
        assert fit(pa.table(said())).phrases_ == ("a dog sat", "the cat ran", "the cat sat")
        numbers = {"who": said()["who"], "n": np.arange(4000) % 3}
        assert fit(pa.table(numbers)).phrases_ == (0, 1, 2)
        begins = fit(pa.table(said()), of="characters", lengths=(1, 4, 7), start=True)
        assert begins.phrases_ == ("a", "t", "a do", "the ", "a dog s", "the cat")

    def test_every_frame_says_the_same(self):
        table = said()
        every = [pa.table(table), pd.DataFrame(table), pl.DataFrame(table), pl.LazyFrame(table)]
        found = [fit(each, of="words").phrases_ for each in every]
        assert found == [found[0]] * 4

    def test_a_crowd_of_whole_numbers(self):
        crowd = qr.UserData.from_arrays(np.arange(4000.0)[:, None] % 3, users=said()["who"])
        with use_noise(SeededNoise(0)):
            assert PopularPhrases(random_state=0).fit(crowd).phrases_ == (0, 1, 2)

    def test_conditions_and_other_columns(self):
        table = {**said(), "age": np.where(np.array(said()["text"]) == SAYINGS[0], 70, 20)}
        found = fit(pa.table(table), column="text", where={"age": (65, None)})
        assert found.phrases_ == (SAYINGS[0],)

    def test_the_order_of_rows_makes_no_difference(self):
        table = pa.table(said())
        order = np.random.default_rng(1).permutation(len(table))
        one, other = (
            fit(each, of="words", lengths=2, most=3) for each in (table, table.take(order))
        )
        assert one.phrases_ == other.phrases_

    def test_what_is_found_can_be_counted(self):
        found = fit(pa.table(said()))
        counts = qr.UserTable(
            1.0, by="text", keys=list(found.phrases_), statistics={"people": "users"}
        ).fit(pa.table(said()), users="who")
        assert counts.keys_ == tuple((text,) for text in found.phrases_)


class TestError:
    def test_as_many_people_as_it_says_are_enough(self):
        """Each of them uses ten words, nine of them nobody else's."""
        error = fit(pa.table(said(3)), of="words", most=10).error_
        (_, alone), (_, among) = error.people
        assert error.bound == among > alone
        texts = [" ".join(["tea", *(f"w{i}x{k}" for k in range(9))]) for i in range(among)]
        table = pa.table({"who": np.arange(among), "text": texts})
        runs = []
        for seed in range(40):
            with use_noise(SeededNoise(seed)):
                runs.append(PopularPhrases(of="words", most=10).fit(table, users="who").phrases_)
        assert sum(run == ("tea",) for run in runs) >= 38

    def test_longer_phrases_and_a_smaller_budget_need_more_people(self):
        base = fit(pa.table(said(3)), of="words").error_
        for harder in ({"lengths": 2}, {"epsilon": 0.5}, {"delta": 1e-9}):
            harder_error = fit(pa.table(said(3)), **({"of": "words"} | harder)).error_
            pairs = zip(harder_error.people, base.people, strict=True)
            assert all(more[1] > less[1] for more, less in pairs)

    def test_two_lengths_are_found_together_as_often_as_is_said(self):
        account = Account.open(epsilon=1.0, delta=1e-6, reserve=Fraction(5, 10**7))
        unions = plan_unions(account, (1, 2), most=50, failure=Fraction(5, 10**7))
        people = needed(unions, 2, beta=0.05)
        table = pa.table({"who": np.arange(people), "text": ["good tea"] * people})
        runs = []
        for seed in range(40):
            with use_noise(SeededNoise(seed)):
                one = PopularPhrases(of="words", lengths=2, most=50, relation=qr.Relation.REPLACE)
                runs.append(one.fit(table, users="who").phrases_)
        assert sum("good tea" in run for run in runs) >= 38


class TestRefused:
    @pytest.mark.parametrize(
        ("wrong", "says"),
        [
            ({"delta": 0.0}, "delta > 0"),
            ({"of": "letters"}, "letters"),
            ({"lengths": 0}, "lengths"),
            ({"of": "words", "lengths": (2, 2)}, "increasing"),
            ({"of": "words", "lengths": "2"}, "lengths"),
            ({"lengths": 2}, "of='words'"),
            ({"most": 0}, "most"),
            ({"delta": 1e-290}, "delta of an ordinary size"),
            ({"most": 2**21}, "at most"),
            ({"start": "yes"}, "start"),
            ({"column": 3}, "column"),
        ],
        ids=str,
    )
    def test_parameters(self, wrong, says):
        with pytest.raises(ParameterError, match=says):
            PopularPhrases(**wrong).fit(pa.table(said(5)), users="who")

    @pytest.mark.parametrize(
        ("texts", "says"),
        [
            (["a", "b"] * 50, "a list"),
            (("a", "b") * 50, "a list"),
            (np.array(["a", "b"] * 50), "an array without numbers"),
            (np.array(["a", "b"] * 50, dtype=object), "an array without numbers"),
            (pa.table({"text": pa.array([], pa.string())}), "at least one row"),
            (pd.DataFrame({"text": pd.Series([], dtype=str)}), "at least one row"),
        ],
        ids=range(6),
    )
    def test_texts_without_a_table_and_empty_tables_are_refused_before_the_charge(
        self, texts, says, tmp_path
    ):
        ledger = qr.Ledger(tmp_path / "ledger.db")
        ledger.set_budget("texts", epsilon=3.0, delta=1e-3)
        paid = {"ledger": ledger, "data_name": "texts", "relation": qr.Relation.REPLACE}
        with pytest.raises(SchemaError, match=says):
            PopularPhrases(**paid).fit(texts, users=list(range(len(texts))))
        assert ledger.spent("texts").epsilon == 0.0

    def test_nobody_uses_a_phrase_where_anybody_may_join(self):
        empty = pa.table({"who": pa.array([], pa.int64()), "text": pa.array([], pa.string())})
        assert fit(empty).phrases_ == ()

    def test_a_table_with_several_columns_needs_a_name(self):
        table = pa.table({**said(5), "other": ["x"] * 10})
        with pytest.raises(ParameterError, match="column="):
            PopularPhrases().fit(table, users="who")
        with pytest.raises(SchemaError, match="none"):
            PopularPhrases(column="none").fit(table, users="who")

    def test_words_of_a_crowd_of_numbers(self):
        crowd = qr.UserData.from_arrays([[1.0]], users=[1])
        with pytest.raises(SchemaError, match="texts"):
            PopularPhrases(of="words").fit(crowd)

    def test_lengths(self):
        assert as_lengths(np.int64(2), "words") == (1, 2)
        assert as_lengths([2, np.int64(4)], "characters") == (2, 4)
        for wrong in (True, 65, [], [0, 1], [1, 65], [1.5], None):
            with pytest.raises(ParameterError, match="lengths"):
                as_lengths(wrong, "words")


class TestPrivacy:
    def test_every_length_is_paid_from_one_account(self):
        """Three lengths in three rounds each, and no more than the budget for all of them."""
        found = fit(pa.table(said(5)), of="words", lengths=3)
        drawn = elementary(found.guarantee_.events[0])
        squares = [n / e.noise_multiplier**2 for e, n in drawn.items() if isinstance(e, Gaussian)]
        failures = [n * e.delta for e, n in drawn.items() if isinstance(e, Approximate)]
        assert len(squares) == len(failures) == 3
        assert 0.999 < sum(squares) / gdp_mu(1.0, 5e-7) ** 2 <= 1
        assert 0.999 < sum(failures) / 5e-7 <= 1

    def test_one_person_alone_is_never_named(self):
        table = said(300)
        table["text"][0] = "my very own words"
        for seed in range(30):
            with use_noise(SeededNoise(seed)):
                found = PopularPhrases(20.0, of="words", lengths=2).fit(
                    pa.table(table), users="who"
                )
            assert "own" not in found.phrases_
