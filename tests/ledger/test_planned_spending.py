"""Budgets that are a list of releases: priced as a whole, taken in any order, never above."""

import json

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
    price,
)
from quorate.core.guarantees import Event, Guarantee, Relation
from quorate.exceptions import BudgetExceededError, LedgerError, ParameterError
from quorate.ledger.entries import PlannedRelease
from quorate.ledger.ledger import Ledger
from quorate.ledger.planned_spending import covers_release
from quorate.mechanisms.calibrate import gaussian_multiplier

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "composition": "pld"}
STEPS = Repeated(Subsampled(Gaussian(2.0), rate=0.01), 20)


def gaussian(epsilon, delta):
    noise = Gaussian(gaussian_multiplier(epsilon=epsilon, delta=delta))
    return Guarantee(epsilon=epsilon, delta=delta, events=(noise,))


def sampled():
    return Guarantee(epsilon=price(STEPS, delta=1e-7), delta=1e-7, events=(STEPS,))


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db", actor="officer")
    plan = {
        "count": (Guarantee(epsilon=0.01), 100),
        "mean": (gaussian(0.1, 1e-8), 30),
        "model": (sampled(), 2),
    }
    ledger.set_budget("visits", **BUDGET, plan=plan)
    return ledger


def test_more_fits_than_by_either_filter(ledger, tmp_path):
    """Adding takes 1 for the counts and 3 for the means alone; squares do not hold all of it."""
    filtered = Ledger(tmp_path / "filter.db")
    filtered.set_budget("visits", epsilon=1.0, delta=1e-5, composition="gaussian")
    taken = {"count": (Guarantee(epsilon=0.01), 100), "mean": (gaussian(0.1, 1e-8), 30)}
    refused = 0
    for promise, count in (*taken.values(), (sampled(), 2)):
        for _ in range(count):
            ledger.charge("visits", promise, purpose="planned")
            try:
                filtered.charge("visits", promise, purpose="planned")
            except BudgetExceededError:
                refused += 1
    assert refused > 0
    spent = ledger.spent("visits")
    assert spent.epsilon <= 1.0
    everything = Composed(
        (Repeated(Pure(0.01), 100), Repeated(gaussian(0.1, 1e-8).events[0], 30), Repeated(STEPS, 2))
    )
    assert spent.epsilon == pytest.approx(price(everything, delta=1e-5), rel=1e-6)
    for promise in (Guarantee(epsilon=0.01), gaussian(0.1, 1e-8), sampled()):
        with pytest.raises(BudgetExceededError, match="no release that is left"):
            ledger.charge("visits", promise, purpose="one more")
    assert ledger.remaining("visits").buys == ()


def test_what_is_left_is_said_in_words(ledger):
    ledger.charge("visits", gaussian(0.1, 1e-8), purpose="mean age")
    assert ledger.remaining("visits").buys == (
        "count at epsilon 0.01 still fits 100 times",
        "mean at epsilon 0.1 still fits 29 times",
        f"model at epsilon {sampled().epsilon:g} still fits 2 times",
    )
    assert ledger.fits("visits", gaussian(0.1, 1e-8)) == 29
    assert ledger.fits("visits", Guarantee(epsilon=0.02)) == 0


@settings(max_examples=12, deadline=None)
@given(
    parts=st.lists(
        st.tuples(
            st.one_of(
                st.floats(2, 100).map(Gaussian),
                st.floats(1e-3, 0.3).map(Pure),
                st.builds(Approximate, st.floats(1e-3, 0.3), st.sampled_from([1e-9, 1e-8])),
                st.floats(1.0, 4.0).map(lambda z: Subsampled(Gaussian(z), rate=0.02)),
            ),
            st.integers(1, 40),
        ),
        min_size=1,
        max_size=3,
    ),
    relation=st.sampled_from(list(Relation)),
    order=st.randoms(use_true_random=False),
)
def test_never_above_what_an_exact_composition_allows(tmp_path_factory, parts, relation, order):
    ledger = Ledger(tmp_path_factory.mktemp("book") / "ledger.db")
    plan = {}
    for place, (event, count) in enumerate(parts):
        cost = price(event, delta=1e-7, relation=relation)
        events = () if isinstance(event, Pure | Approximate) else (event,)
        promise = Guarantee(epsilon=cost, delta=1e-7, relation=relation, events=events)
        plan[f"release {place}"] = promise, count
    try:
        ledger.set_budget("visits", **BUDGET, relation=relation, plan=plan)
    except BudgetExceededError:
        assert ledger.names() == ()
        return
    asked = [promise for promise, count in plan.values() for _ in range(min(count, 3))]
    order.shuffle(asked)
    for promise in asked:
        ledger.charge("visits", promise, purpose="a release")
    # What an analyst would price: the events that were let through, each as what it is.
    drawn = [
        event
        for promise in asked
        for event in (promise.events or (Approximate(promise.epsilon, promise.delta),))
    ]
    assert price(Composed(tuple(drawn)), delta=1e-5, relation=relation) <= 1.0
    assert ledger.spent("visits").epsilon <= 1.0


def test_a_twin_that_forgets_what_was_taken_lets_one_too_many_through(ledger, monkeypatch):
    from quorate.ledger.planned_spending import PlannedSpending

    for _ in range(30):
        ledger.charge("visits", gaussian(0.1, 1e-8), purpose="a mean")
    monkeypatch.setattr(PlannedSpending, "of", classmethod(lambda c, a, b, _: c(a, b, _Nothing())))
    ledger.charge("visits", gaussian(0.1, 1e-8), purpose="one too many")
    monkeypatch.undo()
    assert len(ledger.history("visits")) == 32  # a budget, thirty that were planned, one that not


class _Nothing(dict):
    def __missing__(self, key):
        return 0


class TestPlans:
    def test_a_plan_that_costs_too_much_is_refused_and_nothing_is_written(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        with pytest.raises(BudgetExceededError, match="All planned releases"):
            ledger.set_budget("visits", **BUDGET, plan={"mean": (Guarantee(epsilon=0.3), 9)})
        assert ledger.names() == ()

    def test_a_plan_is_fixed_for_ever(self, ledger):
        with pytest.raises(LedgerError, match="fixed before"):
            ledger.set_budget("visits", **BUDGET, plan={"mean": (Guarantee(epsilon=0.3), 1)})
        assert ledger.set_budget("visits", **BUDGET).id == 1
        ledger.set_budget("visits", epsilon=9.0, delta=1e-5)
        assert ledger.fits("visits", Guarantee(epsilon=0.01)) == 100

    def test_a_budget_lowered_below_its_plan_is_closed(self, ledger):
        ledger.set_budget("visits", epsilon=0.1, delta=1e-5)
        assert ledger.remaining("visits").buys == ()
        with pytest.raises(BudgetExceededError, match="nothing"):
            ledger.charge("visits", Guarantee(epsilon=0.01), purpose="a count")

    @pytest.mark.parametrize(
        "plan",
        [
            None,
            {},
            {"mean": Guarantee(epsilon=0.1)},
            {"mean": (Guarantee(epsilon=0.1), 0)},
            {"mean": (Guarantee(epsilon=0.1, unit="day"), 1)},
            {"two\nlines": (Guarantee(epsilon=0.1), 1)},
            {"a lie": (Guarantee(epsilon=0.01, delta=1e-9, events=(Gaussian(1.0),)), 1)},
        ],
    )
    def test_what_is_no_plan_is_refused(self, plan, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        with pytest.raises(ParameterError):
            ledger.set_budget("visits", **BUDGET, plan=plan)
        with pytest.raises(ParameterError):
            ledger.set_budget(
                "visits", epsilon=1.0, composition="basic", plan={"a": (Guarantee(epsilon=1), 1)}
            )
        assert ledger.names() == ()

    def test_periods_have_a_plan_each(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        unit = "patient x month"
        promise = Guarantee(epsilon=0.5, unit=unit)
        plan = {"mean": (promise, 1)}
        ledger.set_budget("visits", **BUDGET, unit=unit, period="month", plan=plan)
        ledger.charge("visits@2026-11", promise, purpose="a mean")
        with pytest.raises(BudgetExceededError):
            ledger.charge("visits@2026-11", promise, purpose="a mean")
        ledger.charge("visits@2026-12", promise, purpose="a mean")
        Ledger.verify_export(json.loads(ledger.to_json()))


class TestDelta:
    """A plan has a delta: of each release, of all of them, and of the budget."""

    def planned(self, tmp_path, promise, count, **budget):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("visits", **(BUDGET | budget), plan={"a release": (promise, count)})
        return ledger

    @pytest.mark.parametrize("planned", [0.0, 1e-8])
    def test_a_release_that_declares_more_delta_takes_no_planned_one(self, tmp_path, planned):
        ledger = self.planned(tmp_path, Guarantee(epsilon=0.1, delta=planned), 3)
        with pytest.raises(BudgetExceededError, match="no release that is left"):
            ledger.charge("visits", Guarantee(epsilon=0.1, delta=1e-7), purpose="a mean")
        assert ledger.fits("visits", Guarantee(epsilon=0.1, delta=1e-7)) == 0
        ledger.charge("visits", Guarantee(epsilon=0.1, delta=planned), purpose="a mean")
        assert ledger.fits("visits", Guarantee(epsilon=0.1)) == 2

    def test_declared_deltas_add_up_to_at_most_that_of_the_budget(self, tmp_path):
        promise = Guarantee(epsilon=0.01, delta=1e-6)
        with pytest.raises(BudgetExceededError, match="All planned releases"):
            self.planned(tmp_path, promise, 11)
        spent = self.planned(tmp_path, promise, 9)
        for _ in range(9):
            spent.charge("visits", promise, purpose="a mean")
        assert spent.spent("visits").delta == 1e-5
        assert spent.spent("visits").epsilon >= price(
            Repeated(Approximate(0.01, 1e-6), 9), delta=1e-5
        )

    def test_all_releases_are_priced_at_the_delta_of_the_budget(self, tmp_path):
        noise = Gaussian(gaussian_multiplier(epsilon=0.999, delta=1e-5, count=4))
        promise = Guarantee(epsilon=price(noise, delta=1e-8), delta=1e-8, events=(noise,))
        for delta in (0.9e-5, 1e-9):
            with pytest.raises(BudgetExceededError, match="All planned releases"):
                self.planned(tmp_path, promise, 4, delta=delta)
        assert self.planned(tmp_path, promise, 4).fits("visits", promise) == 4

    def test_a_lowered_delta_closes_the_plan(self, tmp_path):
        noise = Gaussian(gaussian_multiplier(epsilon=0.999, delta=1e-5, count=4))
        promise = Guarantee(epsilon=price(noise, delta=1e-8), delta=1e-8, events=(noise,))
        ledger = self.planned(tmp_path, promise, 4)
        ledger.set_budget("visits", epsilon=1.0, delta=1e-6)
        assert ledger.fits("visits", promise) == 0
        with pytest.raises(BudgetExceededError, match="nothing"):
            ledger.charge("visits", promise, purpose="a mean")

    @pytest.mark.parametrize("delta", [0.0, 1e-7])
    def test_a_delta_at_which_nothing_holds_closes_the_plan_and_the_rest_is_told(
        self, tmp_path, delta
    ):
        promise = Guarantee(epsilon=0.01, delta=1e-6)
        ledger = self.planned(tmp_path, promise, 5)
        for _ in range(2):
            ledger.charge("visits", promise, purpose="a mean")
        ledger.set_budget("visits", epsilon=1.0, delta=delta)
        with pytest.raises(BudgetExceededError, match="nothing"):
            ledger.charge("visits", promise, purpose="a mean")
        spent = ledger.spent("visits")
        assert (spent.epsilon, spent.delta) == (0.02, 2e-6)
        assert Ledger.verify_export(json.loads(ledger.to_json()))

    def test_events_are_priced_at_the_delta_that_is_declared_beside_them(self, tmp_path):
        noise = gaussian(0.1, 1e-6).events
        with pytest.raises(ParameterError, match="cost at most"):
            self.planned(tmp_path, Guarantee(epsilon=0.1, delta=1e-8, events=noise), 1)

    def test_what_was_spent_has_the_delta_at_which_it_was_priced(self, ledger):
        assert ledger.spent("visits").delta == 0.0
        ledger.charge("visits", gaussian(0.1, 1e-8), purpose="a mean")
        assert ledger.spent("visits").delta == 1e-5

    def test_secret_samples_are_priced_for_the_relation_of_the_budget(self, tmp_path):
        costs = {each: price(STEPS, delta=1e-5, relation=each) for each in Relation}
        assert costs[Relation.ADD_REMOVE] < costs[Relation.REPLACE]
        epsilon = sum(costs.values()) / 2
        for relation in Relation:
            alone = price(STEPS, delta=1e-7, relation=relation)
            promise = Guarantee(epsilon=alone, delta=1e-7, relation=relation, events=(STEPS,))
            ledger = Ledger(tmp_path / f"{relation.name}.db")
            kind = {"epsilon": epsilon, "relation": relation, "plan": {"model": (promise, 1)}}
            if relation is Relation.ADD_REMOVE:
                ledger.set_budget("visits", **(BUDGET | kind))
            else:
                with pytest.raises(BudgetExceededError):
                    ledger.set_budget("visits", **(BUDGET | kind))

    def test_an_event_that_nobody_knows_is_covered_by_no_plan(self, ledger):
        class Odd(Event):
            def to_dict(self):
                return {"event": "odd"}

        unknown = Guarantee(epsilon=0.01, delta=1e-9, events=(Odd(),))
        held = PlannedRelease(
            name="x", count=1, epsilon=3.0, delta=1e-6, events=json.dumps([Pure(0.1).to_dict()])
        )
        assert not covers_release(held, unknown)


@pytest.mark.parametrize(
    ("events", "drawn", "covered"),
    [
        ((Gaussian(2.0),), (Gaussian(2.0),), True),
        ((Gaussian(2.0),), (Gaussian(2.9), Gaussian(2.9)), True),
        ((Gaussian(2.0),), (Gaussian(2.8), Gaussian(2.8)), False),
        ((STEPS,), (Subsampled(Gaussian(2.5), rate=0.005),), True),
        ((STEPS,), (Subsampled(Gaussian(1.9), rate=0.005),), False),
        ((STEPS,), (Gaussian(50.0),), False),
        ((STEPS,), (Repeated(Subsampled(Gaussian(2.0), rate=0.01), 21),), False),
        ((Pure(0.1), Pure(0.2)), (Pure(0.2), Pure(0.05)), True),
        ((Pure(0.1), Pure(0.2)), (Pure(0.2), Pure(0.15)), False),
        ((Pure(0.1),), (), False),
        ((), (Pure(0.1),), True),
    ],
)
def test_events_are_covered_by_their_form(events, drawn, covered):
    planned = PlannedRelease(
        name="x",
        count=1,
        epsilon=3.0,
        delta=1e-6,
        events=json.dumps([event.to_dict() for event in events]),
    )
    promise = Guarantee(epsilon=3.0, delta=1e-6, events=drawn)
    assert covers_release(planned, promise) is covered


def test_an_estimator_is_charged_as_planned(tmp_path):
    import numpy as np

    from quorate import UserMean

    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("visits", **BUDGET, plan={"mean": (Guarantee(epsilon=0.4), 2)})
    mean = UserMean(0.4, bounds=9.0, ledger=ledger, data_name="visits")
    for left in (1, 0):
        mean.fit(np.ones((50, 1)), users=range(50))
        assert ledger.fits("visits", Guarantee(epsilon=0.4)) == left
    with pytest.raises(BudgetExceededError):
        mean.fit(np.ones((50, 1)), users=range(50))
    assert ledger.spent("visits").epsilon == pytest.approx(0.8)
