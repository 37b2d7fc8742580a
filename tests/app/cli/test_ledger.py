"""The ledger on the command line."""

import io
import json
import re

import pytest

from quorate import Guarantee, Ledger
from quorate.app.cli import main


@pytest.fixture
def book(tmp_path, capsys):
    path = tmp_path / "book.db"
    given = ["--data-name", "visits", "--epsilon", "1", "--delta", "1e-6", "--unit", "patient"]
    assert main(["ledger", "create", str(path), *given]) == 0
    assert "visits" in capsys.readouterr().out
    promise = Guarantee(epsilon=0.25, unit="patient")
    Ledger(path, actor="ann").charge("visits", promise, purpose="mean age")
    return path


def test_budgets_and_history_are_shown(book, capsys):
    assert main(["ledger", "show", str(book)]) == 0
    out = capsys.readouterr().out
    for words in ("visits", "0.75", "mean age", "ann", "patient"):
        assert words in out


def test_one_data_set_can_be_asked_for(book, capsys):
    Ledger(book).set_budget("other", epsilon=3.0)
    assert main(["ledger", "show", str(book), "--data-name", "visits", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document["data"]) == ["visits"]
    assert {entry["data_name"] for entry in document["entries"]} == {"visits"}
    assert main(["ledger", "show", str(book), "--data-name", "none"]) == 2


def test_the_export_is_the_whole_ledger(book, tmp_path, capsys):
    assert main(["ledger", "export", str(book), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == Ledger(book).export()
    assert main(["ledger", "export", str(book), "--out", str(tmp_path / "e.json")]) == 0
    assert json.loads((tmp_path / "e.json").read_text()) == document


def test_creating_refuses_a_name_that_has_a_budget(book, capsys):
    before = Ledger(book).export()
    again = ["ledger", "create", str(book), "--data-name", "visits", "--unit", "patient"]
    for amounts in (["--epsilon", "10"], ["--epsilon", "1", "--delta", "1e-6"]):
        assert main([*again, *amounts]) == 2
        said = capsys.readouterr().err
        assert "epsilon 1, delta 1e-6" in said
        assert "quorate ledger change" in said
    assert Ledger(book).export() == before


class TestChange:
    def test_a_script_says_yes_and_reads_old_and_new(self, book, capsys):
        change = ["ledger", "change", str(book), "--data-name", "visits", "--epsilon", "2"]
        assert main(change) == 2
        assert "--yes" in capsys.readouterr().err
        assert Ledger(book).budget("visits").epsilon == 1.0
        assert main([*change, "--yes"]) == 0
        out = capsys.readouterr().out
        assert "Budget of 'visits': epsilon 1 -> 2, delta 1e-6 -> 1e-6." in out
        assert "budget changed" in out
        entry = Ledger(book).export()["entries"][-1]
        assert entry["purpose"] == "budget changed: epsilon 1 -> 2, delta 1e-6 -> 1e-6"
        assert Ledger(book).remaining("visits").epsilon == 1.75

    @pytest.mark.parametrize(("answer", "code", "epsilon"), [("y", 0, 0.5), ("n", 1, 1.0)])
    def test_a_terminal_is_asked(self, book, answer, code, epsilon, capsys, monkeypatch):
        monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
        asked = ["ledger", "change", str(book), "--data-name", "visits", "--epsilon", "0.5"]
        assert main(asked) == code
        assert Ledger(book).budget("visits").epsilon == epsilon
        assert ("Nothing was changed." in capsys.readouterr().out) == (code == 1)

    def test_unit_relation_and_period_stay(self, tmp_path, capsys):
        path = tmp_path / "book.db"
        kind = {"unit": "patient x month", "period": "month", "composition": "gaussian"}
        first = Ledger(path).set_budget("visits", epsilon=1.0, delta=1e-5, **kind)
        change = ["ledger", "change", str(path), "--data-name", "visits", "--yes"]
        assert main([*change, "--epsilon", "3"]) == 0
        now = Ledger(path).budget("visits")
        assert (now.epsilon, now.delta) == (3.0, 1e-5)
        assert (now.unit, now.relation, now.period, now.composition) == (
            first.unit,
            first.relation,
            first.period,
            first.composition,
        )
        assert main([*change, "--delta", "0"]) == 2
        assert main(change) == 2
        assert main(["ledger", "change", str(path), "--data-name", "none", "--epsilon", "1"]) == 2

    def test_a_budget_changed_meanwhile_is_not_replaced(self, book, capsys, monkeypatch):
        def somebody_else(*_, **__):
            Ledger(book).set_budget("visits", epsilon=0.3, delta=1e-6, unit="patient")
            return True

        monkeypatch.setattr("quorate.app.cli.ledger._confirmed", somebody_else)
        assert main(["ledger", "change", str(book), "--data-name", "visits", "--epsilon", "9"]) == 2
        assert Ledger(book).budget("visits").epsilon == 0.3


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_amounts_and_times_are_written_as_people_write_them(book, capsys):
    promise = Guarantee(epsilon=0.1, delta=1e-7, unit="patient")
    Ledger(book).charge("visits", promise, purpose="mean weight")
    for given in ([], ["--json"]):
        assert main(["ledger", "show", str(book), *given]) == 0
        out = capsys.readouterr().out
        assert "1e-7" in out
        assert not re.search(r"\d/\d|\d:\d\d\.\d", out)
        assert re.search(r"\d\d:\d\d:\d\d UTC", out)


def test_looking_creates_nothing(tmp_path, capsys):
    assert main(["ledger", "show", str(tmp_path / "none.db")]) == 2
    assert main(["ledger", "export", str(tmp_path / "none.db")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_budget_that_composes_tightly_per_month(tmp_path, capsys):
    path = str(tmp_path / "book.db")
    given = ["--data-name", "visits", "--epsilon", "1", "--delta", "1e-5"]
    kind = ["--composition", "gaussian", "--period", "month", "--json"]
    assert main(["ledger", "create", path, *given, *kind]) == 0
    budget = Ledger(path).set_budget(
        "visits", epsilon=1.0, delta=1e-5, unit="user x month", period="month"
    )
    assert (budget.composition, budget.unit) == ("gaussian", "user x month")
    assert main(["ledger", "create", path, *given, "--composition", "none"]) == 2


def test_the_ledger_and_its_export_are_verified(book, tmp_path, capsys):
    export = tmp_path / "export.json"
    assert main(["ledger", "export", str(book), "--out", str(export)]) == 0
    capsys.readouterr()
    digests = []
    for path in (book, export):
        assert main(["ledger", "verify", str(path), "--json"]) == 0
        digests.append(json.loads(capsys.readouterr().out)["digest"])
    assert digests[0] == digests[1]
    document = json.loads(export.read_text())
    document["data"]["visits"]["remaining"]["epsilon"] = 100.0
    export.write_text(json.dumps(document))
    assert main(["ledger", "verify", str(export)]) == 2
    assert "data.visits.remaining.epsilon" in capsys.readouterr().err
    del document["entries"][0]
    export.write_text(json.dumps(document))
    assert main(["ledger", "verify", str(export)]) == 2
    assert "chain breaks at entry 1" in capsys.readouterr().err
    export.write_text("[1, 2]")
    assert main(["ledger", "verify", str(export)]) == 2
    assert main(["ledger", "verify", str(book), "--digest", "0" * 64]) == 2


def test_watching_prints_each_entry_once(book, capsys, monkeypatch):
    promise = Guarantee(epsilon=0.25, unit="patient")
    later = iter([lambda: Ledger(book).charge("visits", promise, purpose="mean weight"), None])

    def wait(seconds):
        if step := next(later):
            step()

    monkeypatch.setattr("quorate.app.cli.ledger.time.sleep", wait)
    assert main(["ledger", "watch", str(book), "--checks", "3"]) == 0
    out = capsys.readouterr().out
    assert out.count("│ mean age") == out.count("│ mean weight") == 1
    assert "visits: mean weight at epsilon 0.25 still fits" in out
    assert "0.75" in out
    assert "0.5" in out


def test_a_list_of_releases_is_a_budget(tmp_path, capsys):
    book = str(tmp_path / "planned.db")
    asked = ["ledger", "create", book, "--data-name", "visits", "--unit", "patient"]
    asked += ["--epsilon", "1", "--delta", "1e-5", "--composition", "pld"]
    few = ["--release", "mean=9 x 0.3,1e-7 gaussian", "--release", "count=5 x 0.02"]
    assert main([*asked, "--release", "mean=90 x 0.3"]) == 1
    assert "more than the budget" in capsys.readouterr().err
    assert main([*asked, "--release", "nine means"]) == 2
    assert main([*asked, *few]) == 0
    out = capsys.readouterr().out
    assert "visits: mean at epsilon 0.3 still fits 9 times." in out
    assert "visits: count at epsilon 0.02 still fits 5 times." in out
    rows = "\n".join(f"p{i % 900},{i % 50}" for i in range(9000))
    (tmp_path / "visits.csv").write_text("patient,age\n" + rows)
    fit = ["fit", str(tmp_path / "visits.csv"), "--task", "count", "--user", "patient"]
    fit += ["--features", "age", "--ledger", book, "--data-name", "visits", "--epsilon"]
    assert main([*fit, "0.02"]) == 0
    assert main([*fit, "0.03"]) == 1
    assert "no release that is left" in capsys.readouterr().err
    assert Ledger(book).remaining("visits").buys[1] == "count at epsilon 0.02 still fits 4 times"
