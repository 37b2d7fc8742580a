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
    "line_of_pieces",
    "opened",
    "opened_line",
    "seal",
    "seal_rows",
    "seal_total",
    "_KEY",
}
SOURCES = {"noise_for", "sample_for"}
TRUSTED = {
    "core/account/account.py",
    "core/account/parts.py",
    # Random pairs of users, whose order only the account knows.
    "core/account/secret_pairs.py",
    # Numbers that are sealed by hand, for audits and tests.
    "core/by_hand.py",
    "core/people.py",
    # The cover of all pairs that are far apart, and exact shares, whose rows are too long to hold.
    "core/questions/shares.py",
    "core/sealed.py",
    # A score of the caller's that is taken on trust: the guarantee says so.
    "core/questions/scores.py",
    # Questions whose answers have a shape of their own.
    "core/questions/ballots.py",
    "core/questions/held_keys.py",
    "core/questions/lines.py",
    "core/questions/ranks.py",
    "core/questions/windows.py",
    # Choices of a point along a line, and of keys that nobody can list.
    "core/account/along_a_line.py",
    "core/account/among_keys.py",
    # Closed operations on keys and on equations.
    "mechanisms/choices/set_union.py",
    "mechanisms/parity.py",
    # Devices, each of which looks at the key of its own user.
    "local/simulate.py",
    # Rows of a secret sample.
    "mechanisms/wrappers/subsampled.py",
    # A stream of periods, whose bound is that of all periods together.
    "series/period.py",
}
CLOSED_OPERATIONS = {
    "core/account/account.py",
    "core/account/along_a_line.py",
    "core/account/among_keys.py",
    "mechanisms/choices/set_union.py",
    "local/oracle.py",
    "mechanisms/parity.py",
    "mechanisms/wrappers/mixture_release.py",
    "mechanisms/wrappers/stable_release.py",
    "mechanisms/wrappers/subsampled.py",
    "local/randomizers/bucket_counts.py",
    "local/randomizers/hashed.py",
    "local/simulate.py",
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
    "learners/concepts",
    "distributions",
    "learners",
    "means",
    "models",
    "papers",
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
    "papers/queries/query_learner.py",
    # Everybody but one fold goes to a fit of its own.
    "papers/queries/private_score.py",
    # Questions to devices, each of which looks at its own user.
    "papers/queries/local_masked_parity.py",
    "papers/queries/oracles/local.py",
    # Public functions that take a crowd and wrap it.
    "models/optimization/minimization.py",
    "models/optimization/phased.py",
    "papers/queries/oracles/central.py",
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


def unbound(source):
    """Return the lines where People are made whose answers any account may open."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", None) == "People"
        and "among" not in {word.arg for word in node.keywords}
    ]


# Types that keep private numbers, or pay for them; their private names belong to the core.
KEEPERS = {
    "Account",
    "Ballots",
    "GroupAccount",
    "People",
    "SampleAccount",
    "Sealed",
    "SealedLine",
    "SealedRows",
    "SealedVotes",
    "SharedAccount",
    "Walk",
}


def private_names() -> set[str]:
    """Return the private methods and attributes of the types that keep private numbers."""
    found: set[str] = set()
    for name, path in MODULES.items():
        if name.startswith("core/"):
            for kept in ast.walk(ast.parse(path.read_text())):
                if isinstance(kept, ast.ClassDef) and kept.name in KEEPERS:
                    found |= {n.attr for n in ast.walk(kept) if _is_own(n)}
                    found |= {n.name for n in ast.walk(kept) if isinstance(n, ast.FunctionDef)}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def _is_own(node: ast.AST) -> bool:
    of_self = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return of_self and node.value.id == "self"


def reached_into(source: str, private: set[str]) -> set[str]:
    """Return where code goes behind the names of the core: imports, attributes and subclasses."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quorate.core"):
            found |= {alias.name for alias in node.names if alias.name.startswith("_")}
        elif isinstance(node, ast.Attribute) and node.attr in private:
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                found.add(ast.unparse(node))
        elif isinstance(node, ast.ClassDef):
            found |= {base.id for base in node.bases if isinstance(base, ast.Name)} & KEEPERS
    return found


BY_HAND = {"line_by_hand", "rows_by_hand", "sealed_by_hand", "votes_by_hand"}
# Who seals by hand: audits, and mechanisms that are given one row a user.
HANDS = {
    "mechanisms/noisy_count.py",
    "mechanisms/noisy_tally.py",
    "mechanisms/sums.py",
    "app/reports/audits.py",
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
