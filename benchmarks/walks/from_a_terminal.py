"""Analysis from a terminal: a file as a clinic exports it, and nothing but the command.

Run by ``benchmarks/walk.py``; the first argument is the folder of the program.
"""

import csv
import io
import json
import random
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from quorate.app.cli import main

PROGRAM = str(Path(sys.argv[1]) / "quorate")
public = random.Random(2)


def quorate(*arguments, code=0):
    """Run the command in this process, and return what it printed on both streams."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        found = main(arguments)
    codes = code if isinstance(code, tuple) else (code,)
    assert found in codes, (arguments, found, out.getvalue(), err.getvalue())
    return out.getvalue(), err.getvalue()


def german(number):
    return f"{number:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")


spent, rows = {}, []
for patient in range(1500):
    city, level = public.choice(["Köln", "Ulm"]), public.uniform(500, 4000)
    bills = [min(level * public.uniform(0.8, 1.2), 5000.0) for _ in range(4)]
    spent[patient] = sum(bills) / 4
    rows += [f"p{patient};{city};{german(bill)};{public.randint(18, 90)}\n" for bill in bills]
Path("bills.csv").write_text("Patient;Stadt;Betrag;Alter\n" + "".join(rows), encoding="cp1252")

# The header says what separates its names; the rest is written down, and no row is read.
request, _ = quorate("check", "bills.csv", "--user", "Patient", "--task", "mean")
assert ";" in request, request
given = ["--separator", ";", "--decimal", ",", "--thousands", ".", "--encoding", "cp1252"]
asked = ["--task", "mean", "--user", "Patient", "--features", "Betrag", "--bounds", "0,5000"]
said, _ = quorate("fit", "bills.csv", *asked, *given, "--epsilon", "2", "--json")
answer, truth = json.loads(said), sum(spent.values()) / len(spent)
assert abs(answer["released"]["mean"]["Betrag"] - truth) < 200, (answer["released"], truth)
assert answer["readable"]["share"] > 0.9, answer["readable"]

# Read as a file of another country, hardly a cell is a number: the count says so, and nothing else.
said, complaint = quorate(
    "fit", "bills.csv", *asked, "--separator", ";", "--encoding", "cp1252", "--epsilon", "2", code=1
)
assert said.startswith("Almost no row could be read."), said
assert "no answer" in complaint, complaint

# A table by city; keys in another case match nothing, and that is the answer. (Once in forty runs
# the count is not sure enough of it: then the same is said as a warning in front of the table.)
table = ["--task", "table", "--user", "Patient", "--by", "Stadt", "--count", "bills", *given]
quorate("fit", "bills.csv", *table, "--keys", "Köln,Ulm", "--epsilon", "2", "--out", "cities.csv")
with Path("cities.csv").open(encoding="utf-8", newline="") as file:
    cities = {row["Stadt"]: float(row["bills"]) for row in csv.DictReader(file)}
assert abs(sum(cities.values()) - 6000) < 1500, cities
keys = ["--keys", "KÖLN,ULM", "--epsilon", "2"]
said, _ = quorate("fit", "bills.csv", *table, *keys, code=(1, 0))
opening = ("Almost no row matched a listed key.", "Warning:")
assert said.startswith(opening), said

# A model, and predictions beside their ids.
quorate(
    "fit", "bills.csv", "--task", "linear", "--user", "Patient", "--features", "Alter",
    "--target", "Betrag", "--bounds", "Alter=18,90", "--bounds", "Betrag=0,5000", *given,
    "--epsilon", "4", "--delta", "1e-6", "--model", "model.json",
)  # fmt: skip
quorate("predict", "model.json", "bills.csv", *given, "--user", "Patient", "--out", "found.csv")
with Path("found.csv").open(encoding="utf-8", newline="") as file:
    found = list(csv.DictReader(file))
assert len(found) == 6000, len(found)
assert found[0]["Patient"] == "p0", found[0]

# A folder that is not there is refused for free; an output that is full costs no paid answer.
said, _ = quorate("fit", "bills.csv", *asked, *given, "--epsilon", "1", "--out", "no/a.csv", code=2)
assert not said, said
with open("/dev/full", "w") as full:
    run = subprocess.run(
        [PROGRAM, "fit", "bills.csv", *asked, *given, "--epsilon", "1"],
        stdout=full, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
assert run.returncode == 1, run
assert "Mean over users" in run.stderr, run.stderr
print("answers from a file of another country, and none about nothing")
