"""From a request to a fit: public refusals first, then the charge, then the rows."""

import html
import json
import os
import re

import numpy as np
import pytest

from asked_tasks import ASKED
from quorate import Ledger, Relation
from quorate.app.catalogue import TASKS
from quorate.app.cli import main
from quorate.app.model_files import StoredModel
from quorate.app.reports.outputs import Outputs
from quorate.app.tasks import fitting
from quorate.app.tasks.fitting import fit
from quorate.app.tasks.requests import read_request, request_text
from quorate.data.files import table_files
from quorate.data.files.table_files import TableFile
from quorate.exceptions import (
    BudgetExceededError,
    LedgerError,
    ParameterError,
    RelationMismatchError,
    SchemaError,
    UnboundedContributionError,
    UnknownDatasetError,
)
from quorate.ranges import Limit

every_task = pytest.mark.parametrize("task", TASKS)


def ledger_with(folder, epsilon=2.0, **others):
    ledger = Ledger(folder / "ledger.db")
    ledger.set_budget("visits", **{"epsilon": epsilon, "delta": 1e-5, "unit": "patient"} | others)
    return ledger


class TestTheWay:
    @every_task
    def test_every_task_fits_and_is_charged_once(self, task, visits, tmp_path, make_request):
        ledger = ledger_with(tmp_path)
        asked = make_request(task, ledger=ledger.path, data_name="visits", **ASKED[task])
        result = fit(asked, TableFile(visits))
        promise = result.estimator.guarantee_
        assert (promise.epsilon, promise.unit, promise.data_name) == (1.0, "patient", "visits")
        charges = [entry for entry in ledger.history("visits") if hasattr(entry, "purpose")]
        assert [charge.purpose for charge in charges] == [f"fit {task}"]
        assert charges[0].guarantee.epsilon == promise.epsilon
        assert charges[0].guarantee.delta == promise.delta
        assert result.account.left.epsilon == 1.0
        assert result.n_users == 600

    def test_what_was_drawn_is_what_a_ledger_of_gaussian_sums_writes_down(
        self, visits, tmp_path, make_request
    ):
        ledger = ledger_with(tmp_path, composition="gaussian")
        asked = make_request("mean", ledger=ledger.path, data_name="visits", **ASKED["mean"])
        promise = fit(asked, TableFile(visits)).estimator.guarantee_
        (settled,) = (each for each in ledger.history("visits") if hasattr(each, "events"))
        written = [event.to_dict() for event in settled.events]
        assert written == [event.to_dict() for event in promise.events] != []
        assert 0.5 < ledger.spent("visits").epsilon <= 1.0

    @every_task
    def test_every_task_can_be_stored_and_explained(self, task, visits, tmp_path, make_request):
        result = fit(make_request(task, **ASKED[task]), TableFile(visits))
        files = {"out": tmp_path / "a.csv", "report": tmp_path / "r.html"}
        assert Outputs(model=tmp_path / "m.json", **files).write(result).failed == {}
        page = (tmp_path / "r.html").read_text().partition("How to repeat it</h2>")[2]
        lines = map(html.unescape, re.findall(r'<th scope="row">(.*?)</th>', page))
        (tmp_path / "again.toml").write_text("\n".join(lines).replace("<table>", str(visits)))
        asked = read_request(tmp_path / "again.toml")
        assert fitting._resolved(asked.request, TableFile(visits)) == result.columns
        again = StoredModel.read(tmp_path / "m.json")
        assert again.to_dict() == json.loads((tmp_path / "m.json").read_text())
        if again.predicts:
            rows = TableFile(visits).features(again.feature_names)
            np.testing.assert_array_equal(
                again.estimator.predict(rows), result.estimator.predict(rows)
            )

    @every_task
    def test_every_task_runs_from_a_request_file(
        self, task, visits, tmp_path, make_request, capsys
    ):
        asked = make_request(task, **ASKED[task])
        (tmp_path / "request.toml").write_text(request_text(asked, visits))
        assert main(["fit", str(tmp_path / "request.toml"), "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["task"] == task
        assert said["released"]
        assert said["guarantee"]["epsilon"] == 1.0

    def test_the_answers_are_about_right(self, visits, make_request):
        def run(task):
            return fit(make_request(task, **(ASKED[task] | {"epsilon": 8.0})), TableFile(visits))

        assert abs(run("mean").estimator.mean_[0] - 45) < 5
        assert 350 <= run("threshold").estimator.threshold_ <= 450
        assert run("logistic").estimator.classes_.tolist() == ["no", "yes"]

    def test_the_number_of_users_is_not_told_where_it_is_private(self, visits, make_request):
        asked = make_request("median", relation=Relation.ADD_REMOVE)
        assert fit(asked, TableFile(visits)).n_users is None

    def test_float_bounds_give_a_fine_grid_of_cut_offs(self, visits, make_request):
        asked = make_request("threshold", **(ASKED["threshold"] | {"limits": (Limit(0.0, 999.0),)}))
        cut = fit(asked, TableFile(visits)).estimator
        assert cut.step == 999.0 * 2.0**-32


class TestTheOrder:
    @every_task
    def test_the_charge_comes_before_the_first_row(
        self, task, visits, tmp_path, monkeypatch, make_request
    ):
        ledger = ledger_with(tmp_path)
        seen = []
        name = "read" if TASKS[task].frame is None else "read_labels"
        original = getattr(TableFile, name)

        def read(self, *columns, **labels):
            seen.append(ledger.spent("visits").epsilon)
            return original(self, *columns, **labels)

        monkeypatch.setattr(TableFile, name, read)
        fit(
            make_request(task, ledger=ledger.path, data_name="visits", **ASKED[task]),
            TableFile(visits),
        )
        assert seen == [1.0]

    @every_task
    def test_an_over_budget_fit_opens_nothing(self, task, visits, tmp_path, make_request):
        ledger = ledger_with(tmp_path, epsilon=0.5)
        asked = make_request(task, ledger=ledger.path, data_name="visits", **ASKED[task])
        os.mkfifo(tmp_path / "table.csv")  # opening it would wait for ever
        with pytest.raises(BudgetExceededError, match="no table was read"):
            fit(asked, TableFile(tmp_path / "table.csv"))
        assert ledger.spent("visits").epsilon == 0.0

    def test_the_broken_twin_that_opens_first_is_caught(self, tmp_path, monkeypatch, make_request):
        """Without the check, and with a charge after reading, the file would be opened."""
        ledger = ledger_with(tmp_path, epsilon=0.5)
        opened = []
        monkeypatch.setattr(fitting, "_check_affordable", lambda *_: None)
        original = table_files.read_header

        def read_header(path, separator, *dialect):
            opened.append(path)
            return original(path, separator, *dialect)

        monkeypatch.setattr(table_files, "read_header", read_header)
        (tmp_path / "table.csv").write_text("patient,age\nann,30\n")
        asked = make_request(ledger=ledger.path, data_name="visits")
        with pytest.raises(BudgetExceededError):
            fit(asked, TableFile(tmp_path / "table.csv"))
        assert opened

    def test_what_is_wrong_publicly_costs_nothing(self, visits, tmp_path, make_request):
        ledger = ledger_with(tmp_path)

        def refused(error, match, task="mean", table=visits, **others):
            asked = make_request(task, ledger=ledger.path, data_name="visits", **others)
            with pytest.raises(error, match=match):
                fit(asked, TableFile(table))

        refused(SchemaError, "found nothing", table=tmp_path / "none.csv")
        refused(SchemaError, "Expected a column 'height'", features=("height",))
        refused(UnboundedContributionError, "public bounds", limits=())
        refused(ParameterError, "bounds for columns", limits=(Limit(0, 1, "shoe"),))
        refused(ParameterError, "algorithm", algorithm="magic")
        refused(ParameterError, "Leave delta out", task="median", delta=1e-6)
        refused(
            ParameterError, "one feature", task="threshold", target="ill", features=("age",) * 2
        )
        refused(ParameterError, "delta", task="linear", target="cost")
        refused(ParameterError, "epsilon", epsilon=-1.0)
        with pytest.raises(ParameterError, match="no feature and no target"):
            make_request(features=("age", "patient"))
        with pytest.raises(ParameterError, match="no feature and no target"):
            make_request("linear", target="patient")
        with pytest.raises(ParameterError, match="no feature at the same time"):
            make_request("linear", target="age")
        with pytest.raises(ParameterError, match="printable"):
            make_request(unit="patient\x1b[31m")
        assert ledger.spent("visits").epsilon == 0.0

    def test_a_budget_of_another_kind_is_refused_before_reading(
        self, visits, tmp_path, make_request
    ):
        ledger = ledger_with(tmp_path, unit="person")
        asked = make_request(ledger=ledger.path, data_name="visits")
        with pytest.raises(RelationMismatchError):
            fit(asked, TableFile(visits))
        with pytest.raises(UnknownDatasetError):
            fit(make_request(ledger=ledger.path, data_name="other"), TableFile(visits))

    def test_a_table_that_breaks_while_it_is_read_costs_the_budget(
        self, visits, tmp_path, monkeypatch, make_request
    ):
        ledger = ledger_with(tmp_path)

        def broken(*_):
            raise OSError("disk")

        monkeypatch.setattr(TableFile, "read", broken)
        with pytest.raises(SchemaError, match="withheld"):
            fit(make_request(ledger=ledger.path, data_name="visits"), TableFile(visits))
        assert ledger.spent("visits").epsilon == 1.0

    def test_a_table_without_rows_is_a_crowd_of_nobody(self, tmp_path, make_request):
        path = tmp_path / "empty.csv"
        path.write_text("patient,age\n")
        private = make_request("median", relation=Relation.ADD_REMOVE)
        assert fit(private, TableFile(path)).n_users is None
        with pytest.raises(SchemaError, match="at least one user"):
            fit(make_request("median"), TableFile(path))

    def test_a_busy_ledger_does_not_take_a_paid_release_away(
        self, visits, tmp_path, monkeypatch, make_request
    ):
        ledger = ledger_with(tmp_path)

        def busy(*_):
            raise LedgerError("busy")

        monkeypatch.setattr(fitting.LedgerState, "of", busy)
        result = fit(make_request(ledger=ledger.path, data_name="visits"), TableFile(visits))
        assert result.account is None
        assert result.estimator.guarantee_.data_name == "visits"


class TestRequests:
    def test_unknown_tasks_and_engines_are_refused(self, make_request):
        with pytest.raises(ParameterError, match="task among"):
            make_request("poetry")
        with pytest.raises(ParameterError, match="engine"):
            make_request(engine="steam")
        with pytest.raises(ParameterError, match="ledger and a data name"):
            make_request(data_name="visits")
        with pytest.raises(ParameterError, match="target"):
            make_request("linear")

    @pytest.mark.parametrize(
        "text", ["", "a", "1,2,3", "2,1", "nan", "1,nan", "age=", "age", "0,1e400", "0,inf"]
    )
    def test_bounds_that_are_none_are_refused(self, text):
        with pytest.raises(ParameterError, match="Expected bounds as"):
            Limit.parse(text)

    def test_classes_are_for_tasks_that_tell_them_apart(self, make_request):
        with pytest.raises(ParameterError, match="has no classes"):
            make_request("linear", target="cost", classes=("no", "yes"))
        for classes in (("no",), ("no", "no"), ("no", "yes", "perhaps")):
            with pytest.raises(ParameterError, match="two different classes, and no more"):
                make_request("threshold", target="ill", classes=classes)
        with pytest.raises(ParameterError, match="two different classes, and no more"):
            make_request("svc", target="ill", classes=("no", "yes", "perhaps"))
        with pytest.raises(ParameterError, match="two different classes for"):
            make_request("logistic", target="ill", classes=("yes",))

    @pytest.mark.parametrize(
        ("lower", "upper"), [(0, 10**400), (0.0, np.inf), (-1.5e308, 1.5e308), (1, 1), (2, np.nan)]
    )
    def test_limits_are_finite_and_in_order(self, lower, upper):
        with pytest.raises(ParameterError, match="finite"):
            Limit(lower, upper)

    def test_bounds_of_integers_stay_exact(self):
        assert Limit.parse(f"0,{2**62 + 1}").upper == 2**62 + 1
        assert Limit.parse("a=b=1,2").column == "a=b"

    def test_no_value_of_the_table_decides_whether_it_is_read(self, tmp_path, make_request):
        path = tmp_path / "t.csv"
        path.write_text("patient,age\nann,secret-7391\n")
        result = fit(make_request("median"), TableFile(path))
        assert np.isfinite(result.estimator.median_).all()
