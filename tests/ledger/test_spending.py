"""Promises of budgets that compose tightly."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.account import (
    Approximate,
    Composed,
    Gaussian,
    Pure,
    Repeated,
    Subsampled,
    gdp_mu,
    price,
)
from quorate.core.guarantees import Guarantee, Relation
from quorate.exceptions import BudgetExceededError, LedgerError, ParameterError
from quorate.ledger import spending as spending_module
from quorate.ledger.entries import read_event
from quorate.ledger.ledger import Ledger
from quorate.ledger.spending import Spending, cost_of
from quorate.mechanisms.calibrate import gaussian_multiplier


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

    @settings(max_examples=40)
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

    @pytest.mark.parametrize(
        "events", [(), (Approximate(0.01, 2.6e-6),)], ids=["declared", "drawn"]
    )
    def test_neither_reading_may_take_more_than_a_quarter_of_delta(self, ledger, events):
        """Both may fail, beside the half that buys the squares."""
        promise = Guarantee(epsilon=0.01, delta=2.6e-6, events=events)
        with pytest.raises(BudgetExceededError):
            ledger.charge("visits", promise, purpose="a mean")
        assert ledger.fits("visits", promise) == 0
        small = Guarantee(epsilon=0.01, delta=2.5e-6)
        ledger.charge("visits", small, purpose="a mean")
        with pytest.raises(BudgetExceededError):
            ledger.charge("visits", Guarantee(epsilon=0.01, delta=1e-9), purpose="a mean")

    def test_failures_of_draws_add_up(self, ledger):
        """The second is beyond what may be declared, and its squares would fit a hundred times."""
        noise = (*gaussian(0.1, 1e-8).events, Approximate(0.0, 1e-6))
        promise = Guarantee(epsilon=0.6, delta=1.1e-6, events=noise)
        for left in (1, 0):
            ledger.charge("visits", promise, purpose="a mean")
            assert ledger.fits("visits", promise) == left
        with pytest.raises(BudgetExceededError):
            ledger.charge("visits", promise, purpose="a mean")

    def test_every_event_reads_back_as_it_was_written(self):
        for event in (
            Composed((Pure(0.1), Repeated(Subsampled(Gaussian(2.0), rate=0.1), 3))),
            Approximate(0.1, 1e-6),
        ):
            assert read_event(json.loads(json.dumps(event.to_dict()))) == event


def _change():
    from quorate.ledger.ledger import BudgetChange

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
