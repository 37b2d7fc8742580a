"""Promises of budgets per period."""

from __future__ import annotations

import pytest

from quorate.accounting.ledger import Ledger
from quorate.exceptions import (
    BudgetExceededError,
    ParameterError,
    UnknownDatasetError,
)
from quorate.guarantees import Guarantee


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
