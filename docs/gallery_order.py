"""The order of the examples: first answers, then planning and collecting, then the papers."""

from __future__ import annotations

FIRST = (
    "first_release.py",
    "tables_by_league.py",
    "medians_and_cut_offs.py",
    "distributions_of_people.py",
    "phrases_without_a_list.py",
    "private_model.py",
    "planning_a_study.py",
    "private_collection.py",
    "neural_network.py",
    "network_positions.py",
    "network_shakespeare.py",
    "adaptivity.py",
)


class ReadingOrder:
    """Sort the files of the gallery; those that are not listed come last, by name."""

    def __init__(self, src_dir: str) -> None:
        del src_dir

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the key by which a file is sorted."""
        return (FIRST.index(filename) if filename in FIRST else len(FIRST), filename)

    def __repr__(self) -> str:
        return "ReadingOrder"
