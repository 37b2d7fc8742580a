"""Promises of budgets that compose tightly, and of budgets per period."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate import LogisticRegression, UserMean
from quorate.accounting import (
    Approximate,
    Composed,
    Gaussian,
    Pure,
    Repeated,
    Subsampled,
    gaussian_multiplier,
    gdp_mu,
    price,
)
from quorate.accounting import spending as spending_module
from quorate.accounting.events import read_event
from quorate.accounting.ledger import Ledger, Settlement
from quorate.accounting.spending import Cost, Spending, cost_of
from quorate.exceptions import (
    BudgetExceededError,
    LedgerError,
    LedgerFileError,
    NumericalFailure,
    ParameterError,
    UnknownDatasetError,
)
from quorate.guarantees import Guarantee, Relation


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db", actor="officer")
    ledger.set_budget("visits", epsilon=1.0, delta=1e-5, composition="gaussian")
    return ledger


def gaussian(epsilon, delta):
    noise = Gaussian(gaussian_multiplier(epsilon=epsilon, delta=delta))
    return Guarantee(epsilon=epsilon, delta=delta, events=(noise,))


class TestComposition:
    def test_a_hundred_small_gaussian_releases_fit_where_adding_needs_epsilon_ten(self, ledger):
        small = gaussian(0.1, 1e-8)
        possible = ledger.fits("visits", small)
        assert possible >= 100
        for _ in range(100):
            ledger.charge("visits", small, purpose="a count")
        assert ledger.fits("visits", small) == possible - 100
        assert ledger.spent("visits").epsilon < 1.0
        basic = Ledger(ledger.path.with_name("basic.db"))
        basic.set_budget("visits", epsilon=1.0, delta=1e-5)
        assert basic.fits("visits", small) == 10

    def test_what_fits_is_what_is_let_through_and_no_more(self, ledger):
        release = gaussian(0.3, 1e-6)
        for _ in range(ledger.fits("visits", release)):
            ledger.charge("visits", release, purpose="a mean")
        with pytest.raises(BudgetExceededError):
            ledger.charge("visits", release, purpose="a mean")

    def test_half_of_delta_buys_the_squares(self, ledger):
        # Chains of both readings: a quarter of delta may fail by either, so half is left.
        mu = gdp_mu(1.0, 5e-6)
        whole = Gaussian(1 / mu * (1 + 1e-9))
        promise = Guarantee(epsilon=price(whole, delta=1e-7), delta=1e-7, events=(whole,))
        assert ledger.fits("visits", promise) == 1
        above = Gaussian(1 / mu * (1 - 1e-6))
        promise = Guarantee(epsilon=price(above, delta=1e-7), delta=1e-7, events=(above,))
        assert ledger.fits("visits", promise) == 0

    @settings(max_examples=40, deadline=None)
    @given(
        parts=st.lists(
            st.one_of(
                st.floats(0.5, 100).map(Gaussian),
                st.floats(1e-3, 0.5).map(Pure),
                st.builds(Approximate, st.floats(1e-3, 0.5), st.sampled_from([0.0, 1e-8])),
            ),
            min_size=1,
            max_size=6,
        )
    )
    def test_never_above_what_an_exact_composition_allows(self, parts):
        limit = spending_module.Amount(Fraction(1), Fraction(1, 10**5))
        total = spending_module._total([])
        admitted = []
        for event in parts:
            declared = price(event, delta=1e-7)
            cost = cost_of(Fraction(declared), Fraction(1, 10**7), json.dumps([event.to_dict()]))
            spending = Spending(_change(), limit, total)
            if spending.admits(cost):
                admitted.append(event)
                total = total.plus(cost)
        assert not admitted or price(Composed(tuple(admitted)), delta=1e-5) <= 1.0

    def test_a_twin_that_forgets_the_squares_of_pure_releases_is_caught(self, monkeypatch):
        events = [Gaussian(6.0)] + [Pure(0.2)] * 30
        monkeypatch.setattr(
            spending_module, "pure_costs", lambda epsilon, delta: (epsilon, Fraction(0), delta)
        )
        monkeypatch.setattr(
            spending_module, "costs_of", lambda event: (None, Fraction(1, 36), Fraction(0))
        )
        spending_module._second_reading.cache_clear()
        total = spending_module._total([])
        limit = spending_module.Amount(Fraction(1), Fraction(1, 10**5))
        admitted = []
        for event in events:
            documents = [] if isinstance(event, Pure) else [event.to_dict()]
            cost = cost_of(Fraction(price(event, delta=1e-7)), Fraction(0), json.dumps(documents))
            if Spending(_change(), limit, total).admits(cost):
                admitted.append(event)
                total = total.plus(cost)
        spending_module._second_reading.cache_clear()
        assert price(Composed(tuple(admitted)), delta=1e-5) > 1.0

    def test_order_does_not_change_what_was_spent(self, tmp_path):
        spent = set()
        releases = [gaussian(0.1, 1e-8), Guarantee(epsilon=0.05), gaussian(0.2, 1e-7)]
        for place, order in enumerate([(0, 1, 2), (2, 1, 0), (1, 2, 0)]):
            ledger = Ledger(tmp_path / f"{place}.db")
            ledger.set_budget("visits", epsilon=1.0, delta=1e-5, composition="gaussian")
            for index in order:
                ledger.charge("visits", releases[index], purpose="a mean")
            spent.add(ledger.spent("visits"))
        assert len(spent) == 1

    def test_one_release_as_a_chain_costs_what_its_parts_cost(self, ledger):
        noise = gaussian_multiplier(epsilon=0.1, delta=1e-8)
        chain = Guarantee(
            epsilon=price(Repeated(Gaussian(noise), 4), delta=1e-8),
            delta=1e-8,
            events=(Repeated(Gaussian(noise), 4),),
        )
        single = gaussian(0.1, 1e-8)
        assert 4 * ledger.fits("visits", chain) <= ledger.fits("visits", single)
        assert 4 * ledger.fits("visits", chain) >= ledger.fits("visits", single) - 4

    def test_what_is_left_can_be_charged(self, ledger):
        ledger.charge("visits", gaussian(0.5, 1e-7), purpose="a mean")
        left = ledger.remaining("visits")
        assert left.epsilon > 0
        promise = Guarantee(epsilon=left.epsilon, delta=left.delta)
        assert ledger.fits("visits", promise) == 1
        ledger.charge("visits", promise, purpose="the rest")
        assert ledger.fits("visits", Guarantee(epsilon=0.01)) == 0

    def test_secret_samples_count_as_what_they_declare(self, ledger):
        chain = Repeated(Subsampled(Gaussian(2.0), rate=0.01), 10)
        promise = Guarantee(epsilon=price(chain, delta=1e-7), delta=1e-7, events=(chain,))
        declared = Guarantee(epsilon=promise.epsilon, delta=1e-7)
        assert ledger.fits("visits", promise) == ledger.fits("visits", declared)

    def test_events_that_cost_more_than_declared_are_refused(self, ledger):
        lie = Guarantee(epsilon=0.01, delta=1e-9, events=(Gaussian(1.0),))
        with pytest.raises(LedgerError, match="cost at most"):
            ledger.charge("visits", lie, purpose="a mean")
        assert ledger.spent("visits").epsilon == 0

    def test_a_pure_budget_and_a_change_of_composition_are_refused(self, ledger):
        with pytest.raises(ParameterError, match="delta > 0"):
            ledger.set_budget("other", epsilon=1.0, composition="gaussian")
        with pytest.raises(LedgerError, match="first set"):
            ledger.set_budget("visits", epsilon=1.0, delta=1e-5, composition="basic")
        assert ledger.set_budget("visits", epsilon=2.0, delta=1e-5).composition == "gaussian"

    def test_every_event_reads_back_as_it_was_written(self):
        for event in (
            Composed((Pure(0.1), Repeated(Subsampled(Gaussian(2.0), rate=0.1), 3))),
            Approximate(0.1, 1e-6),
        ):
            assert read_event(json.loads(json.dumps(event.to_dict()))) == event


def _change():
    from quorate.accounting.ledger import BudgetChange

    return BudgetChange(
        id=1,
        when="",
        who="",
        data_name="visits",
        epsilon=1.0,
        delta=1e-5,
        relation=Relation.REPLACE,
        unit="user",
        composition="gaussian",
    )


class TestSettlement:
    def test_a_fit_is_charged_before_and_settled_after(self, ledger):
        rng = np.random.default_rng(0)
        data = rng.normal(size=(600, 1)), np.repeat(np.arange(200), 3)
        mean = UserMean(
            bounds=(-5, 5), epsilon=0.2, delta=1e-7, ledger=ledger, data_name="visits"
        ).fit(data[0], users=data[1])
        charge, settlement = ledger.history("visits")[1:]
        assert isinstance(settlement, Settlement)
        assert settlement.charge == charge.id
        drawn = mean.guarantee_.events[0].to_dict()
        assert [event.to_dict() for event in settlement.events] == [drawn]

    def test_nothing_is_drawn_after_the_settlement(self, ledger):
        model = _model(ledger)
        account = []
        charge = model._charge
        model._charge = lambda *a, **k: account.append(charge(*a, **k)) or account[0]
        _fit(model)
        with pytest.raises(NumericalFailure):
            account[0].laplace(np.zeros(1, np.int64), sensitivity=1, scale=1e9)
        with pytest.raises(NumericalFailure):
            account[0].gaussian(np.zeros(1, np.int64), sensitivity_squared=1, sigma=1e9)

    def test_models_are_charged_with_a_square_so_that_many_of_them_fit(self, ledger):
        for _ in range(5):
            _fit(_model(ledger))
        assert ledger.spent("visits").epsilon < 0.8
        assert len(ledger.history("visits")) == 11

    def test_a_charge_is_settled_once(self, ledger):
        charge = ledger.charge("visits", gaussian(0.1, 1e-8), purpose="a mean")
        ledger.settle(charge, (Gaussian(100.0),))
        with pytest.raises(LedgerError, match="not settled yet"):
            ledger.settle(charge, (Gaussian(1000.0),))

    def test_a_settlement_never_makes_a_charge_dearer(self, ledger):
        charge = ledger.charge("visits", Guarantee(epsilon=0.1), purpose="a mean")
        before = ledger.fits("visits", gaussian(0.1, 1e-8))
        ledger.settle(charge, (Gaussian(0.5),))
        assert ledger.fits("visits", gaussian(0.1, 1e-8)) == before

    def test_a_fit_that_fails_stays_charged_in_full(self, ledger):
        class Broken(UserMean):
            def _crowd(self, *args, **kwargs):
                raise RuntimeError

        broken = Broken(bounds=(0, 1), epsilon=0.2, ledger=ledger, data_name="visits")
        with pytest.raises(RuntimeError):
            broken.fit(np.zeros((4, 1)), users=[1, 2, 3, 4])
        assert ledger.spent("visits").epsilon >= 0.19
        assert len(ledger.history("visits")) == 2


def _model(ledger):
    return LogisticRegression(
        bounds=(-3, 3),
        epsilon=0.3,
        delta=1e-6,
        steps=3,
        ledger=ledger,
        data_name="visits",
        classes=[0, 1],
    )


def _fit(model):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 2))
    y = (X[:, 0] > 0).astype(int)
    return model.fit(X, y, users=np.repeat(np.arange(2000), 2))


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


class TestExport:
    def test_an_export_proves_that_no_line_was_removed_or_changed(self, ledger):
        for _ in range(3):
            ledger.charge("visits", gaussian(0.1, 1e-8), purpose="a mean")
        document = json.loads(ledger.to_json())
        digest = Ledger.verify_export(document)
        assert digest == ledger.verify()
        for place in range(4):
            shorter = document | {"entries": [*document["entries"]]}
            del shorter["entries"][place]
            with pytest.raises(LedgerFileError):
                Ledger.verify_export(shorter)
        forged = json.loads(ledger.to_json())
        forged["entries"][2]["document"]["epsilon"] = 0.01
        with pytest.raises(LedgerFileError, match="entry 3"):
            Ledger.verify_export(forged)

    def test_a_noted_digest_shows_that_the_end_was_cut_off(self, ledger):
        early = json.loads(ledger.to_json())
        charge = ledger.charge("visits", gaussian(0.1, 1e-8), purpose="a mean")
        assert charge.id == 2
        Ledger.verify_export(early)
        with pytest.raises(LedgerFileError, match="missing or were forged"):
            Ledger.verify_export(early, contains=ledger.verify())

    def test_costs_pickle_and_infinite_declarations_are_no_cost(self):
        cost = Cost(Fraction(1), Fraction(0), None, Fraction(0))
        assert pickle.loads(pickle.dumps(cost)) == cost
        assert math.isfinite(float(cost.times(3).epsilon))
