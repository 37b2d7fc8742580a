"""A series through its public door: right numbers, stated errors, free mistakes, odd rows."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quorate import Ledger, Relation, UserSeries
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import (
    ParameterError,
    QuorateError,
    SchemaError,
    SeriesStoreError,
    UnboundedContributionError,
)
from quorate.series import user_series
from quorate.series.period import Rows
from series_worlds import NoNoise

GROUPS, LABELS = ["a", "b"], ["web", "shop", "phone"]


def sales(seed, size=400, people=3000):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "who": rng.integers(0, people, size),
            "group": rng.choice([*GROUPS, "other"], size),
            "value": rng.uniform(0.0, 10.0, size),
            "way": rng.choice([*LABELS, "fax"], size),
        }
    )


def opened(folder, **changes):
    parameters = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "horizon": 12,
        "by": "group",
        "keys": GROUPS,
        "statistics": {
            "records": "count",
            "buyers": "users",
            "value": "sum",
            "average": ("value", "mean"),
            "way": "distribution",
        },
        "bounds": {"value": (0, 10)},
        "labels": {"way": LABELS},
        # So long that nobody is cut: what comes out without noise is the truth.
        "touched": 12,
        "caps": {"records": 30},
        "store": folder / "sales.sqlite",
    }
    return UserSeries(**(parameters | changes))


def truth(frames, *, running):
    """Compute the tables by another way."""
    rows = []
    for number, frame in enumerate(frames, start=1):
        part = pl.concat(frames[:number] if running else [frame])
        for group in GROUPS:
            own = part.filter(pl.col("group") == group)
            ways = own.filter(pl.col("way").is_in(LABELS))
            single = frames[:number] if running else [frame]
            buyers = sum(f.filter(pl.col("group") == group)["who"].n_unique() for f in single)
            rows.append(
                {
                    "records": len(own),
                    "buyers": buyers,
                    "value": own["value"].sum(),
                    "average": own["value"].mean(),
                }
                | {f"way={way}": (ways["way"] == way).mean() for way in LABELS}
            )
    return rows


class TestNumbers:
    @pytest.mark.parametrize("noise", ["independent", "square-root"])
    def test_without_noise_the_tables_are_the_truth(self, tmp_path, noise):
        frames = [sales(seed, size=4000, people=10**6) for seed in range(3)]
        known = {"noise": noise, "touched": 3, "caps": {"records": 3}}
        with use_noise(NoNoise()):
            for frame in frames:
                series = opened(tmp_path, **known).update(frame, users="who")
        for table, running in ((series.table_, False), (series.running_, True)):
            found = table.to_pylist()
            assert [row["period"] for row in found] == ["1", "1", "2", "2", "3", "3"]
            for row, expected in zip(found, truth(frames, running=running), strict=True):
                for name, value in expected.items():
                    assert row[name] == pytest.approx(value, rel=2e-4, abs=1e-3), name
                    assert row[f"{name}_bound"] > row[f"{name}_error"] > 0

    def test_noise_is_as_large_as_stated(self, tmp_path):
        """Eight series of four weeks: the deviation of all errors over the stated ones."""
        frames = [sales(seed, size=60) for seed in range(4)]
        errors = {"periods": [], "running": []}
        for seed in range(8):
            folder = tmp_path / str(seed)
            folder.mkdir()
            with use_noise(SeededNoise(seed)):
                for frame in frames:
                    series = opened(folder, noise="square-root", horizon=4, touched=4).update(
                        frame, users="who"
                    )
            for name, table in (("periods", series.table_), ("running", series.running_)):
                rows = zip(table.to_pylist(), truth(frames, running=name == "running"), strict=True)
                for row, expected in rows:
                    errors[name] += [
                        (row[each] - expected[each]) / row[f"{each}_error"]
                        for each in ("records", "buyers", "value")
                    ]
        for found in errors.values():
            # 192 numbers, in groups of four that share noise; seeds are fixed.
            assert 0.75 < np.std(found) < 1.25
            assert np.mean(np.abs(found) < 1.96) > 0.88

    def test_means_and_shares_of_noise_alone_say_that_nothing_is_known(self, tmp_path):
        series = opened(tmp_path).update(sales(0, size=0), users="who")
        for row in series.table_.to_pylist():
            assert 0.0 <= row["average"] <= 10.0
            assert row["average_bound"] >= 5.0 or abs(row["records"]) > row["records_bound"]
            assert 0.0 <= row["way=web"] <= 1.0

    def test_errors_are_public_before_the_first_period(self, tmp_path):
        series = opened(tmp_path, statistics={"buyers": "users"}, touched=3, caps=None)
        stated = series.design.noise(series.design.parts[0])
        # A tenth of the square counts who is cut.
        assert stated == pytest.approx(4.2247 * math.sqrt(3 * 1.1), rel=1e-3)
        rows = series.update(sales(1), users="who").table_.to_pylist()
        assert {row["buyers_error"] for row in rows} == {stated}
        assert series.error_.standard_error["people"][0] == stated

    def test_frames_of_other_libraries_give_the_same(self, tmp_path):
        frame = sales(3).with_columns(pl.col("who").cast(pl.Int64))
        made = (frame, frame.to_arrow(), pd.DataFrame(frame.to_dict(as_series=False)))
        found = []
        with use_noise(NoNoise()):
            for number, each in enumerate(made):
                series = opened(tmp_path, store=tmp_path / f"{number}.sqlite")
                found.append(series.update(each, users="who").table_.to_pylist())
        assert found[0] == found[1] == found[2]

    def test_columns_may_be_negative_and_people_replaced(self, tmp_path):
        frame = sales(2).with_columns(pl.col("value") - 5.0)
        known = {"statistics": {"value": "sum"}, "labels": None, "bounds": {"value": (-5, 5)}}
        scales = {}
        for relation in Relation:
            series = opened(
                tmp_path, store=tmp_path / relation.name, relation=relation, caps=None, **known
            )
            scales[relation] = series.design.mechanism.sigma
            with use_noise(NoNoise()):
                rows = series.update(frame, users="who").table_.to_pylist()
            for row in rows:
                own = frame.filter(pl.col("group") == row["group"])
                assert row["value"] == pytest.approx(own["value"].sum(), abs=0.01)
        assert scales[Relation.REPLACE] == pytest.approx(2 * scales[Relation.ADD_REMOVE])


class TestCalendar:
    def test_weeks_that_never_came_are_released_without_rows(self, tmp_path):
        with use_noise(NoNoise()) as noise:
            series = opened(tmp_path, start="2026-W01")
            series.update(sales(0), users="who", period="2026-W04")
        assert series.periods_ == tuple(f"2026-W0{n}" for n in (1, 2, 3, 4))
        assert [bool(totals.any()) for totals, _ in noise.drawn] == [False, False, False, True]

    def test_a_week_that_is_over_is_not_read_again(self, tmp_path):
        series = opened(tmp_path)
        first = series.update(sales(0), users="who", period=1).table_
        assert series.update(sales(1), users="who", period=1).table_.equals(first)

    def test_a_horizon_ends(self, tmp_path):
        series = opened(tmp_path, horizon=1, touched=1)
        series.update(sales(0), users="who")
        with pytest.raises(ParameterError, match="is over"):
            series.update(sales(0), users="who")
        with pytest.raises(ParameterError, match="from '1' to '1'"):
            series.update(sales(0), users="who", period=2)

    def test_a_series_is_read_by_another_program(self, tmp_path):
        before = opened(tmp_path).update(sales(0), users="who")
        after = opened(tmp_path).read()
        assert after.table_.equals(before.table_)
        assert after.running_.equals(before.running_)


MISTAKES = {
    "epsilon": {"epsilon": -1.0},
    "delta": {"delta": 0.0},
    "horizon": {"horizon": 0},
    "every": {"every": "fortnight"},
    "start": {"start": "2026-01"},
    "touched": {"touched": 13},
    "no touched": {"touched": None},
    "statistics": {"statistics": None},
    "median": {"statistics": {"value": "median"}},
    "quantile": {"statistics": {"value": ("value", "quantile", 0.9)}},
    "unknown": {"statistics": {"value": "mode"}},
    "bounds": {"bounds": None},
    "labels": {"labels": None},
    "keys": {"keys": None},
    "keys without by": {"by": None},
    "caps": {"caps": {"visits": 3}},
    "cap": {"caps": {"records": -3}},
    "view": {"view": "totals"},
    "noise": {"noise": "laplace"},
    "relation": {"relation": "replace"},
    "column": {"statistics": {"price": "sum"}, "bounds": {"price": (0, 1)}},
    "text": {"statistics": {"way": "sum"}, "bounds": {"way": (0, 1)}},
    "store": {"store": "no such folder/x.sqlite"},
    "unit": {"unit": ""},
    "period column": {"by": "period", "keys": GROUPS},
}


class TestFreeMistakes:
    @pytest.mark.parametrize("name", MISTAKES)
    def test_a_wrong_parameter_costs_nothing(self, tmp_path, name):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("sales", epsilon=1.0, delta=1e-6, relation=Relation.ADD_REMOVE)
        with pytest.raises((QuorateError, ValueError)):
            opened(tmp_path, ledger=ledger, data_name="sales", **MISTAKES[name]).update(
                sales(0), users="who"
            )
        assert ledger.spent("sales").epsilon == 0.0

    def test_a_ledger_of_patients_is_charged_for_patients(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        kind = {"relation": Relation.ADD_REMOVE, "unit": "patient"}
        ledger.set_budget("visits", epsilon=1.0, delta=1e-6, **kind)
        known = {"ledger": ledger, "data_name": "visits"}
        with pytest.raises(QuorateError, match="patient"):
            opened(tmp_path, **known).update(sales(0), users="who")
        (tmp_path / "sales.sqlite").unlink()
        series = opened(tmp_path, unit="patient", **known).update(sales(0), users="who")
        assert "for each patient" in str(series.guarantee_)

    def test_missing_bounds_say_what_to_do(self, tmp_path):
        with pytest.raises(UnboundedContributionError, match="touched="):
            opened(tmp_path, touched=None).update(sales(0), users="who")

    @pytest.mark.parametrize(
        ("rows", "users"),
        [
            (sales(0), None),
            (sales(0), "nobody"),
            (sales(0), "value"),
            (sales(0).drop("group"), "who"),
            (np.zeros((3, 2)), [1, 2, 3]),
            (sales(0), [1, 2, 3]),
            (sales(0).to_arrow(), (np.arange(400), np.arange(400))),
        ],
    )
    def test_wrong_rows_cost_nothing(self, tmp_path, rows, users):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("sales", epsilon=1.0, delta=1e-6, relation=Relation.ADD_REMOVE)
        with pytest.raises(QuorateError):
            opened(tmp_path, ledger=ledger, data_name="sales").update(rows, users=users)
        assert ledger.spent("sales").epsilon == 0.0
        assert not (tmp_path / "sales.sqlite").exists()

    def test_ids_of_another_kind_would_be_other_people(self, tmp_path):
        opened(tmp_path).update(sales(0), users="who")
        with pytest.raises(SchemaError, match="one person would be two"):
            opened(tmp_path).update(
                sales(0).with_columns(pl.col("who").cast(pl.String)), users="who"
            )
        assert opened(tmp_path).read().periods_ == ("1",)

    def test_nor_are_they_of_another_program_that_was_quicker(self, tmp_path, monkeypatch):
        def after_the_other(*arguments):
            monkeypatch.undo()
            opened(tmp_path).update(sales(0), users="who")
            return Rows(*arguments)

        monkeypatch.setattr(user_series, "Rows", after_the_other)
        texts = sales(0).with_columns(pl.col("who").cast(pl.String))
        with pytest.raises(SchemaError, match="one person would be two"):
            opened(tmp_path).update(texts, users="who")
        assert opened(tmp_path).read().periods_ == ("1",)

    def test_nothing_is_there_before_the_first_update(self, tmp_path):
        with pytest.raises(QuorateError, match="released nothing yet"):
            _ = opened(tmp_path).table_
        with pytest.raises(SeriesStoreError, match="is not there"):
            opened(tmp_path).read()


ODD = {
    "nan": {"value": [math.nan, 1.0]},
    "infinite": {"value": [math.inf, -math.inf]},
    "huge": {"value": [1e308, -1e308]},
    "null value": {"value": pa.array([None, 1.0])},
    "null group": {"group": pa.array([None, "a"])},
    "null id": {"who": pa.array([None, 7])},
    "no such group": {"group": ["zzz", "a"]},
    "odd text": {"group": pa.array([b"\xff\xfe".decode("latin-1"), "a"])},
    "null way": {"way": pa.array([None, "web"])},
}


class TestOddRows:
    """Privacy holds for every input, and nothing that stands in a row ends a program."""

    @pytest.mark.parametrize("name", ODD)
    def test_a_row_moves_nothing_but_its_person(self, tmp_path, name):
        plain = {"who": [7, 8], "group": ["a", "a"], "value": [1.0, 2.0], "way": ["web", "shop"]}
        odd = pa.table(plain | ODD[name])
        with use_noise(NoNoise()) as noise:
            opened(tmp_path).update(odd, users="who")
            opened(tmp_path).update(pa.table(plain), users="who")
        for totals, scale in noise.drawn:
            assert np.abs(totals).max() <= 2 * opened(tmp_path).design.radius
            assert scale == opened(tmp_path).design.mechanism.sigma

    def test_one_person_with_everything_moves_no_further_than_the_radius(self, tmp_path):
        rows = sales(0, size=20_000, people=1)
        series = opened(tmp_path, touched=2, caps=None)
        with use_noise(NoNoise()) as noise:
            for _ in range(3):
                series.update(rows, users="who")
        vector = np.concatenate([totals for totals, _ in noise.drawn])
        length = sum(int(x) ** 2 for x in vector)
        assert 0.99 < length / series.design.radius**2 <= 1.0

    def test_the_order_of_rows_says_nothing(self, tmp_path):
        frame = sales(4)
        with use_noise(NoNoise()) as noise:
            for number, each in enumerate((frame, frame.reverse(), frame.sample(fraction=1.0))):
                opened(tmp_path, store=tmp_path / f"{number}.sqlite", touched=1, caps=None).update(
                    each, users="who"
                )
        assert all(np.array_equal(totals, noise.drawn[0][0]) for totals, _ in noise.drawn)
