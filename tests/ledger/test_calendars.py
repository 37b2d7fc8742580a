"""Promises of budgets per period."""

from __future__ import annotations

import pytest

from quorate.core.guarantees import Guarantee
from quorate.exceptions import BudgetExceededError, ParameterError, UnknownDatasetError
from quorate.ledger.ledger import Ledger


class TestPeriods:
    def test_every_month_has_the_budget_anew(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("visits", epsilon=1.0, unit="patient x month", period="month")
        promise = Guarantee(epsilon=0.7, unit="patient x month")
        for month in ("2026-10", "2026-11"):
            ledger.charge(f"visits@{month}", promise, purpose="a mean")
            with pytest.raises(BudgetExceededError):
                ledger.charge(f"visits@{month}", promise, purpose="a mean")
        assert ledger.remaining("visits@2026-11").epsilon == 0.3
        assert ledger.remaining("visits@2026-12").epsilon == 1.0
        assert set(ledger.export()["data"]) == {"visits@2026-10", "visits@2026-11"}

    @pytest.mark.parametrize("name", ["visits", "visits@2026", "visits@2026-13", "visits@today"])
    def test_a_charge_names_a_period_of_the_calendar(self, tmp_path, name):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("visits", epsilon=1.0, unit="patient x month", period="month")
        with pytest.raises(ParameterError, match="label of a month"):
            ledger.charge(name, Guarantee(epsilon=0.1, unit="patient x month"), purpose="a mean")

    @pytest.mark.parametrize(
        ("period", "good", "bad"),
        [
            ("day", "2026-02-28", "2026-02-30"),
            ("week", "2026-W53", "2025-W53"),
            ("quarter", "2026-Q4", "2026-Q5"),
            ("year", "2026", "26"),
        ],
    )
    def test_the_calendar_knows_its_labels(self, tmp_path, period, good, bad):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("visits", epsilon=1.0, unit=f"user x {period}", period=period)
        assert ledger.remaining(f"visits@{good}").epsilon == 1.0
        with pytest.raises(ParameterError):
            ledger.remaining(f"visits@{bad}")

    @pytest.mark.parametrize(
        ("period", "label", "others"),
        [
            (
                "day",
                "2026-11-16",
                ["20261116", "2026-W47-1", "2026W471", "2026-11-16 ", "2026-11-1６"],
            ),
            ("week", "2026-W47", ["2026W47", "2026-w47", "2026-W47-1", "2026-W4７", "2026-W47x"]),
            ("month", "2026-11", ["202611", "2026-11-01", "2026-1１", "2026-11 ", "11-2026"]),
            (
                "quarter",
                "2026-Q4",
                ["2026-q4", "2026-Q4 (late)", "2026-Q44", "２０２６-Q4", "2026Q4"],
            ),
            ("year", "2026", ["2026 ", "２０２６", "2026-", "2026 (spring)", "20266", "+2026"]),
        ],
    )
    def test_a_stretch_of_time_has_one_label(self, tmp_path, period, label, others):
        """Another word for it would be another budget for the same people and days."""
        ledger = Ledger(tmp_path / "ledger.db")
        unit = f"user x {period}"
        ledger.set_budget("visits", epsilon=1.0, unit=unit, period=period)
        promise = Guarantee(epsilon=1.0, unit=unit)
        ledger.charge(f"visits@{label}", promise, purpose="a mean")
        for other in others:
            with pytest.raises((ParameterError, BudgetExceededError)):
                ledger.charge(f"visits@{other}", promise, purpose="a mean")

    def test_years_that_never_were_are_refused(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        for period, label in [("year", "0000"), ("quarter", "0000-Q1")]:
            name = f"visits by {period}"
            ledger.set_budget(name, epsilon=1.0, unit=f"user x {period}", period=period)
            with pytest.raises(ParameterError):
                ledger.remaining(f"{name}@{label}")

    def test_the_unit_says_what_a_period_protects(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        with pytest.raises(ParameterError, match="user x month"):
            ledger.set_budget("visits", epsilon=1.0, unit="patient", period="month")

    def test_an_at_sign_without_a_period_is_only_a_name(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("a@b", epsilon=1.0)
        assert ledger.remaining("a@b").epsilon == 1.0
        with pytest.raises(UnknownDatasetError):
            ledger.remaining("a@b@2026-11")
