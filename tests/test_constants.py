"""Every number that somebody chose says where it comes from, or is counted as debt.

``constants_debt.toml`` holds, for each room, how many do not say it. The numbers only go down: take
a constant away, or derive it, and lower the number of its room.
"""

from __future__ import annotations

import textwrap
import tomllib
from pathlib import Path

import pytest
from tests.constants import MARKS, constants, of_tree

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src" / "quorate"
DEBT = tomllib.loads((HERE / "constants_debt.toml").read_text())["debt"]
ROOMS = of_tree(SOURCE)


def _names(source):
    return [each.name for each in constants(textwrap.dedent(source), "module.py")]


def _derived(source):
    return {
        each.name for each in constants(textwrap.dedent(source), "module.py") if each.is_derived
    }


class TestRooms:
    @pytest.mark.parametrize("room", sorted(ROOMS))
    def test_no_number_is_chosen_without_a_derivation_beyond_the_debt(self, room):
        bare = [each for each in ROOMS[room] if not each.is_derived]
        assert len(bare) <= DEBT.get(room, 0), (
            f"{room} has {len(bare)} chosen numbers without a derivation, {DEBT.get(room, 0)} are "
            f"known. Derive the new one in a comment beside it that begins with one of {MARKS} "
            "(CONTRIBUTING.md), or do without it:\n" + "\n".join(map(str, bare))
        )

    def test_debts_are_those_of_rooms(self):
        assert set(DEBT) <= set(ROOMS)

    def test_the_library_is_really_read(self):
        assert sum(map(len, ROOMS.values())) > 100
        names = {each.name for each in ROOMS["mechanisms"]}
        assert "CONFIDENCE" in names


class TestCounter:
    def test_powers_of_two_zero_and_one_are_not_chosen(self):
        source = """
            A, B = 0, 1
            C = 0.25
            D = 2.0**-20
            E = Fraction(1, 64)
            F = -8
            G = math.inf
        """
        assert _names(source) == []

    def test_numbers_are_chosen_however_they_are_written(self):
        source = """
            A = 0.3
            B, C = 5, 16
            D: float = 1.0 - 2.0**-40
            E = (0.1, 0.5, 0.7)
            F = Fraction(3, 10)
            G = math.sqrt(3.0)
            H = NormalDist().inv_cdf(0.95)
        """
        assert _names(source) == ["A", "B", "D", "E", "E", "F", "G", "H"]

    def test_what_is_no_number_is_not_counted(self):
        source = """
            A = "0.3"
            B = True
            C = ("auto", 3)
            D = compute(0.3)
            E = OTHER * 0.3
            def inner():
                F = 0.3
        """
        assert _names(source) == []

    def test_a_mark_stands_on_the_line_or_right_above_it(self):
        source = """
            A = 0.3  # derived: it is the root of something.
            # public: the usual level,
            # in two lines.
            B = 0.7
            # A remark. machine: not at the beginning.
            C = 0.9
            # derived: of another number.

            D = 1.1
            # derived: of the first only.
            E = 1.3
            F = 1.5
            G = (  # machine: on one of its lines.
                1.7
            )
            # derived:
            H = 1.9
            I = 2.1  # chosen: no such mark.
        """
        assert _derived(source) == {"A", "B", "E", "G"}

    def test_a_mark_in_a_text_is_none(self):
        assert _derived('A = 0.3\n"""# derived: not a comment"""\n') == set()
