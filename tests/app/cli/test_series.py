"""``quorate series``: a week from a file, again, killed budgets and lost stores."""

import json

import numpy as np
import pytest

from quorate import Ledger, Relation
from quorate.app.cli import main
from quorate.core.noise import use_noise
from series_worlds import Repeatable

TOML = """
user = "customer"
store = "sales.sqlite"
ledger = "budget.sqlite"
data-name = "sales"
epsilon = 1.0
delta = 1e-6
horizon = 52
start = "2026-W01"
by = ["shop"]
touched = 4

[keys]
shop = ["north", "south"]

[statistics]
buyers = "users"
spent = "sum"
basket = ["spent", "mean"]
way = "distribution"

[labels]
way = ["web", "till"]

[bounds]
spent = [0, 100]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "series.toml").write_text(TOML)
    ledger = Ledger(tmp_path / "budget.sqlite")
    ledger.set_budget("sales", epsilon=1.0, delta=1e-6, relation=Relation.ADD_REMOVE)
    rng = np.random.default_rng(0)
    for week in (1, 2):
        lines = ["customer,shop,spent,way"]
        for _ in range(3000):
            who, shop = rng.integers(0, 2000), rng.choice(["north", "south", "?"])
            lines.append(
                f"C{who:05d},{shop},{rng.uniform(0, 100):.2f},{rng.choice(['web', 'till'])}"
            )
        lines.append("C00001,north,not a number,web")
        (tmp_path / f"week{week}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(folder, *arguments):
    with use_noise(Repeatable(7)):
        return main(["series", *(str(folder / a) if "." in a else a for a in arguments)])


def test_a_week_is_released_printed_and_repeated(folder, capsys):
    asked = ("update", "series.toml", "week1.csv", "--period", "2026-W01", "--json")
    assert run(folder, *asked) == 0
    first = json.loads(capsys.readouterr().out)
    assert [row["shop"] for row in first["rows"]] == ["north", "south"]
    north = first["rows"][0]
    assert abs(north["buyers"] - 790) < 6 * north["buyers_error"]
    assert abs(north["basket"] - 50) < 6 * north["basket_error"] + 5
    assert first["guarantee"]["data_name"] == "sales"
    # A cron job may run twice; what comes with it then is not read.
    again = ("update", "series.toml", "week2.csv", "--period", "2026-W01", "--json")
    assert run(folder, *again) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert Ledger(folder / "budget.sqlite").spent("sales").epsilon == 1.0


def test_without_a_label_the_next_week_comes(folder, capsys):
    for week in (1, 2):
        assert run(folder, "update", "series.toml", f"week{week}.csv") == 0
    assert "Series: 2026-W02" in capsys.readouterr().out
    assert run(folder, "show", "series.toml", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["period"] == "2026-W02"
    assert shown["running"][0]["buyers"] != shown["rows"][0]["buyers"]


def test_a_page_has_the_curves_and_asks_nobody(folder, capsys):
    for week in (1, 2):
        run(folder, "update", "series.toml", f"week{week}.csv", "--page", "curves.html")
    page = (folder / "curves.html").read_text()
    assert page.count("<figure>") == 10  # five curves, in two views
    assert "2026-W01" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "This holds for all 52 periods together" in page


def test_a_lost_store_is_refused(folder, capsys):
    run(folder, "update", "series.toml", "week1.csv")
    (folder / "sales.sqlite").unlink()
    assert run(folder, "update", "series.toml", "week2.csv") == 1
    assert "lost, or replaced" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("touched = 4", ""), "touched"),
        (("horizon", "horizons"), "horizons"),
        (('user = "customer"', "user = 7"), "user to be text"),
        (('user = "customer"', 'user = "nobody"'), "'nobody'"),
        (("spent = [0, 100]", ""), "bounds"),
        (('way = ["web", "till"]', ""), "labels"),
        (("epsilon = 1.0", "epsilon ="), "TOML"),
        (("epsilon = 1.0", 'epsilon = 1.0\nrelation = "both"'), "relation"),
    ],
)
def test_mistakes_are_free(folder, capsys, change, said):
    path = folder / "series.toml"
    path.write_text(path.read_text().replace(*change))
    assert run(folder, "update", "series.toml", "week1.csv") == 2
    assert said in capsys.readouterr().err
    assert Ledger(folder / "budget.sqlite").spent("sales").epsilon == 0.0
    assert not (folder / "sales.sqlite").exists()
