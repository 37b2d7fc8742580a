"""Who may seal, open and draw; ``make core`` prints it with the sizes.

Trusted modules make sealed numbers, open them or hold a source of noise; each has its proof beside
it. Rooms in debt still compute private numbers and seal them by hand. The lists only shrink;
``tests/core/test_border.py`` holds the imports to them.
"""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "quorate"
MODULES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}

# What only trusted modules import.
KEYS = {
    "seal",
    "seal_rows",
    "seal_total",
    "opened",
    "opened_ballots",
    "opened_line",
    "opened_rows",
    "opened_votes",
    "paid_pieces",
    "_KEY",
}
SOURCES = {"noise_for", "sample_for"}
TRUSTED = {
    "accounting/account.py",
    "accounting/account_parts.py",
    # Random pairs of users, whose order only the account knows.
    "accounting/secret_pairs.py",
    # Numbers that are sealed by hand, for audits and tests.
    "core/by_hand.py",
    "core/people.py",
    # The cover of all pairs that are far apart, and exact shares, whose rows are too long to hold.
    "core/questions/covers.py",
    "core/questions/shares.py",
    "core/sealed.py",
    # A score of the caller's that is taken on trust: the guarantee says so.
    "core/questions/scores.py",
    # Questions whose answers have a shape of their own.
    "core/questions/ballots.py",
    "core/questions/lines.py",
    # Closed operations: choices along a line, whose losses are computed from rows.
    "mechanisms/choices/full_windows.py",
    "mechanisms/choices/noisy_rank.py",
    "mechanisms/choices/ordered.py",
    "mechanisms/choices/quantiles.py",
    "mechanisms/choices/round_quantile.py",
    # Closed operations on keys and on equations, of which each user has one.
    "mechanisms/choices/stable_choice.py",
    "mechanisms/choices/universe.py",
    "mechanisms/parity.py",
    # Devices, each of which looks at the key of its own user.
    "protocols/simulate.py",
    # Rows of a secret sample.
    "mechanisms/wrappers/subsampled.py",
    # A stream of periods, whose bound is that of all periods together.
    "series/period.py",
}
CLOSED_OPERATIONS = {
    "accounting/account.py",
    "mechanisms/choices/ordered.py",
    "mechanisms/choices/round_quantile.py",
    "mechanisms/choices/stable_choice.py",
    "mechanisms/choices/universe.py",
    "mechanisms/local/local_oracle.py",
    "mechanisms/parity.py",
    "mechanisms/search/random_restarts.py",
    "mechanisms/wrappers/mixture_release.py",
    "mechanisms/wrappers/stable_release.py",
    "mechanisms/wrappers/subsampled.py",
    "protocols/randomizers/bucket_counts.py",
    "protocols/randomizers/hashed.py",
    "protocols/simulate.py",
}
# Private doors of people and seals; only the core goes through them.
DOORS = {
    "_gathered",
    "_held_crowd",
    "_some_of",
    "_open",
    "_Sealed__numbers",
    "_SealedRows__rows",
    "_People__crowd",
}
# Rooms whose estimators ask People only: no crowd, no rows, no claim.
SEALED_ROOMS = {
    "concepts",
    "distributions",
    "learners",
    "means",
    "models",
    "queries",
    "releases",
    "stability",
    "tabulate",
}
# In a sealed room, who still holds a crowd, and why.
DEBT = {
    # The door of a fit: whether X is a crowd, and how many users it tells of.
    "distributions/base.py",
    "distributions/categories/discrete.py",
    "distributions/categories/product.py",
    "distributions/hypotheses/selection.py",
    "models/public_inputs.py",
    "queries/query_learner.py",
    # Everybody but one fold goes to a fit of its own.
    "queries/private_score.py",
    # Questions to devices, each of which looks at its own user.
    "queries/local_masked_parity.py",
    "queries/oracles/local.py",
    # Public functions that take a crowd and wrap it.
    "models/optimization/minimization.py",
    "models/optimization/phased.py",
    "queries/oracles/central.py",
}

# Modules that hold private numbers while they run, as ``tests/tracing.py`` sees them: a debt.
HOLDERS: set[str] = set()


def imported(source):
    """Return the names that a piece of code imports, wherever it does so."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
    return names


def entered(source):
    """Return the private doors that a piece of code goes through."""
    tree = ast.parse(source)
    found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return found & DOORS


BY_HAND = {"rows_by_hand", "sealed_by_hand"}
# Who seals by hand: audits, and mechanisms that are given one row a user.
HANDS = {
    "mechanisms/noisy_count.py",
    "mechanisms/noisy_tally.py",
    "mechanisms/sums.py",
    "reports/audits.py",
}


def code_lines(path: Path) -> int:
    """Return how many lines hold code: no docstring, comment or empty line."""
    source = path.read_text()
    tree, kept = ast.parse(source), set()
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    prose = set()
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            prose |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    for number, line in enumerate(source.splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith("#") and number not in prose:
            kept.add(number)
    return len(kept)


def main() -> None:
    """Print the two lists and the debts."""
    for title, names in (("seal and open", TRUSTED), ("hold a source", CLOSED_OPERATIONS)):
        sizes = {name: code_lines(MODULES[name]) for name in sorted(names)}
        print(f"\nModules that may {title}: {sum(sizes.values())} lines of code")
        for name, size in sizes.items():
            print(f"  {size:5d}  {name}")
    print(f"\nModules whose numbers are sealed by hand: {len(HANDS)}")
    for name in sorted(HANDS):
        print(f"         {name}")
    print(f"\nModules that hold private numbers while they run: {len(HOLDERS)}")
    for name in sorted(HOLDERS):
        print(f"         {name}")


if __name__ == "__main__":
    main()
