"""Promises of settlements and of exports for auditors."""

from __future__ import annotations

import json
import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest

from quorate import LogisticRegression, UserMean
from quorate.core.account import Approximate, Composed, Gaussian, price
from quorate.core.guarantees import Guarantee
from quorate.exceptions import LedgerError, LedgerFileError, NumericalFailure, WithheldError
from quorate.ledger.ledger import Ledger, Settlement
from quorate.ledger.spending import Cost
from quorate.mechanisms.calibrate import gaussian_multiplier
from sealing import moved


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db", actor="officer")
    ledger.set_budget("visits", epsilon=1.0, delta=1e-5, composition="gaussian")
    return ledger


def gaussian(epsilon, delta):
    noise = Gaussian(gaussian_multiplier(epsilon=epsilon, delta=delta))
    return Guarantee(epsilon=epsilon, delta=delta, events=(noise,))


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
            account[0].laplace(moved(np.zeros(1, np.int64), 1), scale=1e9)
        with pytest.raises(NumericalFailure):
            account[0].gaussian(moved(np.zeros(1, np.int64), squared=1), sigma=1e9)

    def test_nothing_is_drawn_after_the_settlement_though_something_is_left(self, ledger):
        mean = UserMean(bounds=5.0, epsilon=0.2, delta=1e-7, ledger=ledger, data_name="visits")
        account = mean._charge(np.zeros((9, 1)), None, np.arange(9))
        account.gaussian(moved(np.zeros(1, np.int64), squared=1), sigma=1e9)
        mean._settle(account)
        with pytest.raises(NumericalFailure):
            account.gaussian(moved(np.zeros(1, np.int64), squared=1), sigma=1e9)

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

    def test_a_settlement_that_trades_failures_for_squares_raises_no_total(self, ledger):
        chain = Composed((Gaussian(40.0), Approximate(0.0, 1e-7)))
        promise = Guarantee(epsilon=price(chain, delta=2e-7), delta=2e-7, events=(chain,))
        charge = ledger.charge("visits", promise, purpose="a mean")
        before = ledger.fits("visits", gaussian(0.1, 1e-8))
        ledger.settle(charge, (Gaussian(20.0),))  # no failure, four times the square
        assert ledger.fits("visits", gaussian(0.1, 1e-8)) == before

    def test_a_fit_that_fails_stays_charged_in_full(self, ledger):
        class Broken(UserMean):
            def _crowd(self, *args, **kwargs):
                raise RuntimeError

        broken = Broken(bounds=(0, 1), epsilon=0.2, ledger=ledger, data_name="visits")
        with pytest.raises(WithheldError):
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


def _fields(document, *path):
    """Give the path of every number and word of a document."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _fields(value, *path, name)
        else:
            yield (*path, name)
            if isinstance(value, list):
                yield from ((*path, name, place) for place in range(len(value)))


def _raised(document, path):
    for name in path[:-1]:
        document = document[name]
    value = document[path[-1]]
    match value:
        case str():
            document[path[-1]] = value + "s"
        case list():
            document[path[-1]] = [*value, "a count still fits 9 times"]
        case None:
            document[path[-1]] = "month"
        case _:
            document[path[-1]] = math.nextafter(value, 9.0)


def _removed(document, path):
    for name in path[:-1]:
        document = document[name]
    del document[path[-1]]


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

    def test_an_export_without_its_end_is_refused(self, ledger):
        early = json.loads(ledger.to_json())
        ledger.charge("visits", gaussian(0.1, 1e-8), purpose="a mean")
        cut = json.loads(ledger.to_json()) | {each: early[each] for each in ("entries", "data")}
        with pytest.raises(LedgerFileError, match="digest does not follow"):
            Ledger.verify_export(cut)

    def test_a_noted_digest_shows_that_the_end_was_cut_off(self, ledger):
        early = json.loads(ledger.to_json())
        charge = ledger.charge("visits", gaussian(0.1, 1e-8), purpose="a mean")
        assert charge.id == 2
        Ledger.verify_export(early)
        with pytest.raises(LedgerFileError, match="missing or were forged"):
            Ledger.verify_export(early, contains=ledger.verify())

    def several(self, tmp_path):
        """Return a ledger with a budget of each kind."""
        ledger = Ledger(tmp_path / "several.db", actor="officer")
        ledger.set_budget("basic", epsilon=1.0, delta=1e-6, unit="patient")
        ledger.charge("basic", Guarantee(epsilon=0.3, unit="patient"), purpose="a count")
        ledger.set_budget("gaussian", epsilon=1.0, delta=1e-5, composition="gaussian")
        ledger.charge("gaussian", gaussian(0.1, 1e-8), purpose="a mean")
        plan = {"mean": (gaussian(0.1, 1e-8), 3)}
        ledger.set_budget("planned", epsilon=1.0, delta=1e-5, composition="pld", plan=plan)
        ledger.charge("planned", gaussian(0.1, 1e-8), purpose="a mean")
        unit = "patient x month"
        ledger.set_budget("monthly", epsilon=1.0, unit=unit, period="month")
        ledger.charge("monthly@2026-11", Guarantee(epsilon=0.3, unit=unit), purpose="a count")
        return ledger

    def test_every_field_of_the_summary_follows_from_the_entries(self, tmp_path):
        """An export whose summary was edited was called whole."""
        text = self.several(tmp_path).to_json()
        assert Ledger.verify_export(json.loads(text))
        fields = list(_fields(json.loads(text)["data"]))
        assert len(fields) == 4 * 12
        for path in [("format",), ("version",), *(("data", *path) for path in fields)]:
            for edit in (_raised, _removed):
                edited = json.loads(text)
                edit(edited, path)
                with pytest.raises(LedgerFileError, match=re.escape(".".join(map(str, path[:3])))):
                    Ledger.verify_export(edited)

    def test_a_summary_names_every_data_set_and_no_other(self, tmp_path):
        text = self.several(tmp_path).to_json()
        for edit in (
            lambda data: data.pop("basic"),
            lambda data: data.update(another=data["basic"]),
            lambda data: data["basic"].update(note="paid back"),
            lambda data: data["basic"]["spent"].update(users=12),
        ):
            edited = json.loads(text)
            edit(edited["data"])
            with pytest.raises(LedgerFileError, match=r"data\.\S+ is (missing|too many)"):
                Ledger.verify_export(edited)

    def test_true_is_not_one(self, ledger):
        edited = json.loads(ledger.to_json())
        edited["data"]["visits"]["epsilon"] = True
        with pytest.raises(LedgerFileError, match=r"data\.visits\.epsilon"):
            Ledger.verify_export(edited)

    def test_the_order_of_fields_says_nothing(self, tmp_path):
        ledger = self.several(tmp_path)
        assert Ledger.verify_export(json.loads(json.dumps(ledger.export(), sort_keys=True)))

    def test_costs_pickle_and_infinite_declarations_are_no_cost(self):
        cost = Cost(Fraction(1), Fraction(0), None, Fraction(0))
        assert pickle.loads(pickle.dumps(cost)) == cost
        assert math.isfinite(float(cost.times(3).epsilon))
