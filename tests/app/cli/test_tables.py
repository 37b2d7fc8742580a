"""A table by group from one line, and from a request file that repeats it."""

import json

import numpy as np
import polars as pl
import pytest

from quorate.app.cli import main
from quorate.app.cli.tables import table_options
from quorate.app.tasks.requests import read_request, request_text
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError


@pytest.fixture
def visits(tmp_path):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "patient": rng.integers(0, 800, 5000),
            "clinic": rng.choice(["north", "south"], 5000),
            "price": rng.gamma(2.0, 20.0, 5000),
        }
    )
    frame.write_csv(tmp_path / "visits.csv")
    return tmp_path


ASKED = [
    *("--task", "table", "--user", "patient", "--by", "clinic", "--keys", "north,south"),
    *("--count", "visits", "--sum", "price", "--mean", "average=price"),
    *("--bounds", "price=0,300", "--epsilon", "4", "--delta", "1e-6"),
]


def test_one_line_writes_a_table_a_model_and_a_page(visits, capsys):
    out, page = visits / "table.csv", visits / "page.html"
    given = ["fit", str(visits / "visits.csv"), *ASKED, "--out", str(out), "--report", str(page)]
    with use_noise(SeededNoise(0)):
        assert main([*given, "--model", str(visits / "model.json")]) == 0
    said = capsys.readouterr().out
    assert "north" in said
    assert "95%" in said
    table = pl.read_csv(out)
    assert table["clinic"].to_list() == ["north", "south"]
    assert table.columns[1:4] == ["visits", "visits_error", "visits_bound"]
    assert (table["visits"] - 2500).abs().max() < 300
    assert "north" in page.read_text()
    # Each cell has a bound of its own: that the table as a whole has none does not spoil it.
    assert "each number is within its bound" in page.read_text()
    assert "useless" not in page.read_text()
    assert "task = &quot;table&quot;" in page.read_text()
    assert json.loads((visits / "model.json").read_text())["estimator"] == "UserTable"


def test_a_request_file_says_the_same(visits, capsys):
    (visits / "request.toml").write_text(
        'table = "visits.csv"\ntask = "table"\nuser = "patient"\nepsilon = 4.0\ndelta = 1e-6\n'
        'out = "table.parquet"\n[set]\nby = "clinic"\nkeys = ["north", "south"]\n'
        'statistics = { visits = "count", price = "sum" }\n[bounds]\nprice = [0, 300]\n'
    )
    assert main(["fit", str(visits / "request.toml"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["clinic"] for row in said["released"]["rows"]] == ["north", "south"]
    assert said["error"]["bound"] is None
    assert "clipping bias" in said["error"]["covers"]
    assert pl.read_parquet(visits / "table.parquet").height == 2


def test_check_writes_a_request_for_a_table(visits, capsys):
    path = str(visits / "visits.csv")
    assert main(["check", path, "--user", "patient", "--task", "table"]) == 0
    text = capsys.readouterr().out
    assert "[set]" in text
    assert "statistics" in text
    assert "features" not in text


def test_wrong_use_is_one_line(visits, capsys):
    path = str(visits / "visits.csv")
    for given in (
        [*ASKED, "--out", "table.xlsx"],
        [*ASKED, "--sum", "visits"],
        [*ASKED, "--keys", "south"],
        [*ASKED, "--features", "price"],
    ):
        assert main(["fit", path, *given]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_keys_of_several_columns():
    asked = table_options(
        by=["city,year"], keys=["city=a,b", "year=2020"], statistics={"count": ["visits"]}
    )
    assert json.loads(asked["keys"]) == {"city": ["a", "b"], "year": ["2020"]}
    assert table_options(statistics={}) == {}
    with pytest.raises(ParameterError, match="--keys"):
        table_options(keys=["a", "b"], statistics={})


class TestFilesPeopleHave:
    """Semicolons, decimal commas, other encodings, keys in another case."""

    GERMAN = ("--separator", ";", "--decimal", ",", "--thousands", ".", "--encoding", "latin-1")

    @pytest.fixture
    def german(self, tmp_path):
        lines = ["Patient;Stadt;Preis"]
        cities = ("Ulm", "Köln")
        lines += [f"p{i % 800};{cities[i // 7 % 2]};1.0{i % 90 + 10},5" for i in range(8000)]
        path = tmp_path / "besuche.csv"
        path.write_bytes("\n".join(lines).encode("latin-1"))
        return path

    def asked(self, path, keys, *more):
        given = ["--task", "table", "--user", "Patient", "--by", "Stadt", "--keys", keys]
        given += ["--count", "visits", "--mean", "Preis", "--bounds", "Preis=0,3000"]
        return ["fit", str(path), *given, "--epsilon", "4", "--delta", "1e-6", *more]

    def test_a_german_file_is_read_as_it_is_written(self, german, capsys):
        assert main(self.asked(german, "Köln,Ulm", *self.GERMAN, "--json")) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["readable"]["share"] > 0.9
        for row in said["released"]["rows"]:
            assert 1030 < row["Preis"] < 1080
            assert 3600 < row["visits"] < 4400

    @pytest.mark.parametrize("keys", ["KÖLN,ULM", "Bonn"])
    def test_keys_that_match_nothing_get_the_count_that_was_paid_for(self, german, keys, capsys):
        assert main(self.asked(german, keys, *self.GERMAN)) == 1
        said = capsys.readouterr()
        assert "Almost no row matched a listed key" in said.out
        assert "visits" not in said.out
        assert "no answer" in said.err

    def test_a_wrong_encoding_is_named_where_nothing_matches(self, german, capsys):
        wrong = [*self.GERMAN[:-1], "utf-8"]
        assert main(self.asked(german, "Köln,Köln-Süd", *wrong)) == 1
        assert "encoding" in capsys.readouterr().out

    def test_counts_alone_are_counted_too(self, german, capsys):
        given = ["--task", "table", "--user", "Patient", "--by", "Stadt", "--count", "visits"]
        given += ["--epsilon", "4", *self.GERMAN]
        assert main(["fit", str(german), *given, "--keys", "ulm"]) == 1
        capsys.readouterr()
        assert main(["fit", str(german), *given, "--keys", "Ulm", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert 0.4 < said["readable"]["share"] < 0.6

    def test_check_proposes_from_the_header_and_asks_for_the_rest(self, german, tmp_path, capsys):
        assert main(["check", str(german), "--user", "Patient", "--task", "table"]) == 0
        text = capsys.readouterr().out
        assert 'separator = ";"' in text
        assert 'decimal = "<. or ,>"' in text
        (tmp_path / "other.csv").write_text("Patient;Stadt;Preis\n1;2;3\n")
        assert main(["check", str(tmp_path / "other.csv"), "--user", "Patient"]) == 0
        other = capsys.readouterr().out
        assert 'separator = ";"' in other
        assert 'decimal = "<. or ,>"' in other

    def test_a_request_says_how_its_file_is_written(self, german, tmp_path, capsys):
        request = tmp_path / "request.toml"
        request.write_text(
            'table = "besuche.csv"\nseparator = ";"\ndecimal = ","\nthousands = "."\n'
            'encoding = "latin-1"\ntask = "mean"\nuser = "Patient"\nfeatures = ["Preis"]\n'
            "epsilon = 4\ndelta = 1e-6\n[bounds]\nPreis = [0, 3000]\n",
            encoding="utf-8",
        )
        assert main(["fit", str(request), "--json"]) == 0
        mean = json.loads(capsys.readouterr().out)
        assert 1000 < mean["released"]["mean"]["Preis"] < 1100
        held = read_request(request)
        again = tmp_path / "again.toml"
        again.write_text(request_text(held.request, german), encoding="utf-8")
        assert read_request(again).request == held.request


LINE = ["--task", "table", "--user", "patient", "--count", "n", "--epsilon", "4", "--delta", "1e-6"]


def test_all_other_keys_have_a_row_and_are_not_called_dropped(visits, capsys):
    asked = [*LINE, "--by", "clinic", "--keys", "north", "--set", "others=yes", "--json"]
    with use_noise(SeededNoise(0)):
        assert main(["fit", str(visits / "visits.csv"), *asked]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = said["released"]["rows"]
    assert [row["clinic"] for row in rows] == ["north", None]
    assert abs(sum(row["n"] for row in rows) - 5000) < 400


def test_levels_that_add_up_from_one_line(tmp_path, capsys):
    rng = np.random.default_rng(2)
    places = [("NW", "Bonn"), ("NW", "Essen"), ("BY", "Ulm")]
    chosen = [places[i] for i in rng.integers(0, 3, 5000)]
    frame = {"patient": rng.integers(0, 800, 5000), "region": [r for r, _ in chosen]}
    pl.DataFrame({**frame, "city": [c for _, c in chosen]}).write_csv(tmp_path / "visits.csv")
    keys = json.dumps(places)
    asked = [*LINE, "--by", "region,city", "--set", f"keys={keys}", "--set", "levels=yes"]
    model = tmp_path / "table.json"
    with use_noise(SeededNoise(0)):
        code = main(["fit", str(tmp_path / "visits.csv"), *asked, "--json", "--model", str(model)])
    assert code == 0
    said = json.loads(capsys.readouterr().out)
    found = {(row["region"], row["city"]): row["n"] for row in said["released"]["rows"]}
    assert len(found) == 5
    assert found["NW", None] == pytest.approx(found["NW", "Bonn"] + found["NW", "Essen"])
    assert json.loads(model.read_text())["estimator"] == "UserTable"


def test_popular_phrases_from_one_line(tmp_path, capsys):
    rng = np.random.default_rng(3)
    texts = rng.choice(["very good", "not so good"], 4000)
    pl.DataFrame({"patient": np.arange(4000) // 2, "said": texts}).write_csv(tmp_path / "said.csv")
    asked = ["--task", "phrases", "--user", "patient", "--epsilon", "4", "--delta", "1e-6"]
    more = ["--set", "column=said", "--set", "of=words", "--set", "lengths=2", "--json"]
    with use_noise(SeededNoise(0)):
        assert main(["fit", str(tmp_path / "said.csv"), *asked, *more]) == 0
    said = json.loads(capsys.readouterr().out)
    words = ["good", "not", "so", "very"]
    assert said["released"]["phrases"] == [*words, "not so", "so good", "very good"]
