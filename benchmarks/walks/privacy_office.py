"""A privacy office: budgets, who spent what, changes on record, an export that can be verified.

Run by ``benchmarks/walk.py`` in an environment that has the wheel and its dependencies.
"""

import io
import json
import random
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from quorate.app.cli import main

public = random.Random(3)


def quorate(*arguments, code=0):
    """Run the command in this process, and return what it printed on both streams."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        found = main(arguments)
    codes = code if isinstance(code, tuple) else (code,)
    assert found in codes, (arguments, found, out.getvalue(), err.getvalue())
    return out.getvalue(), err.getvalue()


lines = [f"p{i % 800},{public.randint(18, 90)}\n" for i in range(3200)]
Path("visits.csv").write_text("patient,age\n" + "".join(lines))
name = ["--data-name", "visits"]
quorate(
    "ledger", "create", "book.db", *name, "--epsilon", "2", "--delta", "1e-5", "--unit", "patient"
)

# A second budget for the same name is refused; changing one is a command that goes on record.
_, refused = quorate("ledger", "create", "book.db", *name, "--epsilon", "10", code=2)
assert "change" in refused, refused
quorate("ledger", "change", "book.db", *name, "--epsilon", "3", code=2)
said, _ = quorate("ledger", "change", "book.db", *name, "--epsilon", "3", "--yes")
assert "2" in said, said
assert "3" in said, said

fit = ["fit", "visits.csv", "--task", "mean", "--user", "patient", "--features", "age"]
fit += ["--bounds", "18,90", "--ledger", "book.db", *name]
said, _ = quorate(*fit, "--epsilon", "2", "--json")
assert json.loads(said)["budget"]["epsilon_left"] == 1.0, said
promise = json.loads(said)["guarantee"]
assert promise["epsilon"] == 2.0, promise

# What is not there cannot be spent, and no row is read for it.
_, refused = quorate(*fit, "--epsilon", "1.5", code=1)
assert "Nothing was charged" in refused, refused

shown, _ = quorate("ledger", "show", "book.db")
assert "fit mean" in shown, shown
assert "1e-05" in shown or "1e-5" in shown, shown
assert "1/100000" not in shown, shown
quorate("ledger", "export", "book.db", "--out", "book.json")
quorate("ledger", "verify", "book.db")
quorate("ledger", "verify", "book.json")
document = json.loads(Path("book.json").read_text())
text = Path("book.json").read_text().replace('"epsilon"', '"epsilon_"', 1)
Path("forged.json").write_text(text)
_, refused = quorate("ledger", "verify", "forged.json", code=2)
print(f"{len(document)} parts of an export, and a forged one refused: {refused.strip()[:80]}")
