"""A table by group from one line, and from a request file that repeats it."""

import json

import numpy as np
import polars as pl
import pytest

from quorate.cli import main
from quorate.cli.tables import table_options
from quorate.exceptions import ParameterError
from quorate.noise import SeededNoise, use_noise


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
    assert "cell by cell" in page.read_text()
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
    assert "what caps cut" in said["error"]["covers"]
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
