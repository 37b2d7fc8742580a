"""Nobody reads a sealed number by mistake, and what is done with it moves as its seal says."""

import copy
import json
import pickle

import numpy as np
import pytest

from quorate.core.bounds.grid import SUM_LIMIT, Grid, Interval
from quorate.core.guarantees import Relation
from quorate.core.moves import Moves
from quorate.core.sealed import Sealed, SealedRows, opened, seal, seal_rows
from quorate.exceptions import ParameterError, RelationMismatchError, SchemaError, SealedError
from sealing import numbers_of, rows_of

SECRET = 31337


def counts(numbers=(SECRET, 5), relation=Relation.REPLACE):
    return seal(np.array(numbers), Moves.of_counts(len(numbers)), relation)


def rows(values=(31337.0, 5.0)):
    return seal_rows(np.array(values), Relation.REPLACE)


READS = {
    "bool": bool,
    "int": int,
    "float": float,
    "index": lambda x: [1, 2][x],
    "len": len,
    "loop": list,
    "in": lambda x: SECRET in x,
    "equal": lambda x: x == SECRET,
    "unequal": lambda x: x != x,
    "less": lambda x: x < SECRET,
    "greater": lambda x: x >= SECRET,
    "hash": hash,
    "array": np.asarray,
    "ufunc": np.add.reduce,
    "numpy": lambda x: np.int64(3) + x,
    "function": np.concatenate,
    "divide": lambda x: x / 2,
    "modulo": lambda x: x % 2,
    "round": round,
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": pickle.dumps,
    "json": json.dumps,
    "sort": lambda x: sorted([x, x]),
    "max of builtin": max,
}


@pytest.mark.parametrize("made", [counts, rows], ids=["numbers", "rows"])
@pytest.mark.parametrize("read", READS)
def test_reading_is_refused(made, read):
    with pytest.raises(TypeError) as refused:
        READS[read](made())
    assert str(SECRET) not in str(refused.value)


@pytest.mark.parametrize("made", [counts, rows], ids=["numbers", "rows"])
@pytest.mark.parametrize("show", [repr, str, "{}".format, "{:>9}".format, lambda x: f"{x!r}"])
def test_what_is_shown_is_public(made, show):
    assert str(SECRET) not in show(made())
    assert "user" in show(made())


def test_a_message_says_what_to_do():
    with pytest.raises(SealedError, match="Release it through an account"):
        int(counts())


@pytest.mark.parametrize(
    "forge",
    [
        lambda: Sealed(object(), np.array([1]), Moves(0, 0, 0, 0), Relation.REPLACE),
        lambda: SealedRows(object(), np.array([1.0]), Relation.REPLACE),
        lambda: counts()._open(object()),
        lambda: rows()._open(None),
    ],
)
def test_nobody_forges_a_seal_or_opens_one(forge):
    with pytest.raises(SealedError):
        forge()


OPERATIONS = {
    "shift": lambda x: x + np.array([3, -3]),
    "from the right": lambda x: 7 + x,
    "negate": lambda x: -x,
    "subtract": lambda x: 7 - x,
    "multiply": lambda x: -3 * x,
    "first": lambda x: x[0],
    "slice": lambda x: x[1:],
    "sum": lambda x: x.sum(),
    "largest": lambda x: x.max(),
    "smallest": lambda x: x.min(),
    "twice": lambda x: x + x,
    "difference": lambda x: x - x[::-1],
    "the larger": lambda x: x.maximum(-x),
    "side by side": lambda x: x.beside(2 * x),
    "clip": lambda x: x.clip(-1, 2),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_moves_as_its_seal_says(name):
    """Vectors that differ by what one user moves, after the operation."""
    operate, lengths = OPERATIONS[name], Moves(3, 5, 2, 3)
    changed = [np.array(each) for each in [(2, 1), (1, 2), (2, -1), (-1, 2), (0, 2), (1, 1)]]
    for start in ([0, 0], [5, -5], [-1, 1], [SUM_LIMIT, -SUM_LIMIT], [SUM_LIMIT - 1, 0]):
        for change in changed:
            pair = [np.array(start), np.clip(np.array(start) + change, -SUM_LIMIT, SUM_LIMIT)]
            one, other = (operate(seal(each, lengths, Relation.REPLACE)) for each in pair)
            gone = opened(one).astype(object) - opened(other).astype(object)
            size = abs(gone)
            assert one.moves == other.moves
            assert sum(size) <= one.moves.l1, (start, change)
            assert sum(size**2) <= one.moves.l2_squared
            assert max(size) <= one.moves.largest
            assert len(gone) == 1 or max(gone) - min(gone) <= one.moves.spread


def test_a_cut_holds_one_coordinate_while_another_moves():
    """Who is added says 2 and 1; cut, the scores say 0 and 1, or 0 and 2 the other way round."""
    moves = Moves.of_judgements(1, 2, coordinates=2, relation=Relation.ADD_REMOVE)
    one, other = (
        seal(np.array(each), moves, Relation.ADD_REMOVE).clip(0, 10) for each in ([10, 5], [11, 7])
    )
    change = opened(other) - opened(one)
    assert moves.spread < max(change) - min(change) <= one.moves.spread


def test_the_check_sees_a_square_which_is_not_stable():
    pair = [seal(np.array([n]), Moves(1, 1, 1, 1), Relation.REPLACE) for n in (5, 6)]
    squares = [opened(each) ** 2 for each in pair]
    assert abs(squares[0] - squares[1]) > pair[0].moves.largest


def test_nothing_wraps_around():
    top = seal(np.array([SUM_LIMIT]), Moves.of_counts(1), Relation.REPLACE)
    for found in (top + top, top + SUM_LIMIT, 2**40 * top, 3 * top):
        assert 0 < numbers_of(found)[0] <= SUM_LIMIT


@pytest.mark.parametrize("factor", [0.5, True, np.array([1, 2]), "2"])
def test_factors_are_public_integers(factor):
    with pytest.raises((ParameterError, SealedError)):
        _ = counts() * factor


def test_what_is_added_is_public_integers():
    with pytest.raises(ParameterError, match="integers"):
        _ = counts() + 0.5


@pytest.mark.parametrize("place", [[0, 0], np.array([0, 0]), (0, 0), 7])
def test_coordinates_are_taken_once(place):
    """A coordinate that is taken twice would move twice as far in L1."""
    with pytest.raises(ParameterError):
        _ = counts()[place]


def test_numbers_under_two_relations_are_not_added():
    with pytest.raises(RelationMismatchError):
        _ = counts() + counts(relation=Relation.ADD_REMOVE)


class TestRows:
    def test_counts_and_tallies_and_totals_are_those_of_the_rows(self):
        held = rows([0.0, 1.0, 1.0, np.nan, 7.0])
        assert numbers_of(held.counts([0.5, 1.0])).tolist() == [1, 3]
        assert numbers_of(held.present().map(np.int64).tally(2)).tolist() == [1, 2]
        grid = Grid(Interval(0.0, 4.0, centre=0.0), step=1.0)
        assert numbers_of(held.total(grid)).tolist() == [6]

    def test_a_row_of_several_numbers_counts_once_or_not_at_all(self):
        several = seal_rows(np.zeros((2, 3)), Relation.REPLACE)
        for count in (lambda: several.tally(4), lambda: several.counts([0.0])):
            with pytest.raises(ParameterError, match="one number a row"):
                count()
        assert numbers_of(several.column(0).tally(4)).tolist() == [2, 0, 0, 0]

    def test_a_function_sees_rows_and_returns_rows(self):
        assert rows_of(rows([1.0, 4.0]).map(np.sqrt)).tolist() == [1.0, 2.0]

    @pytest.mark.parametrize("wrong", [np.mean, lambda x: x[:1], lambda x: x.astype(str)])
    def test_what_is_no_row_for_each_row_is_refused(self, wrong):
        with pytest.raises(SchemaError, match="withheld"):
            rows().map(wrong)

    def test_an_error_of_the_function_is_withheld(self):
        def fails(values):
            raise ValueError(f"cannot handle {values[0]}")

        with pytest.raises(SchemaError) as refused:
            rows().map(fails)
        assert str(SECRET) not in repr(refused.value)
        assert refused.value.__context__ is None

    def test_a_column_is_one_number_a_row(self):
        held = seal_rows(np.array([[1.0, 2.0], [3.0, 4.0]]), Relation.REPLACE)
        assert rows_of(held.column(1)).tolist() == [2.0, 4.0]
        assert held.dimension == 2
        with pytest.raises(ParameterError, match="column"):
            held.column(2)

    def test_a_pair_of_rows_is_present_as_a_whole(self):
        """Halves of a pair are no rows: a user would own two of them."""
        pairs = np.array([[[1.0, 2.0], [3.0, np.nan]], [[5.0, 6.0], [7.0, 8.0]]])
        held = seal_rows(pairs, Relation.REPLACE, paired=True).present()
        assert rows_of(held).tolist() == [[[5.0, 6.0], [7.0, 8.0]]]
        assert rows_of(seal_rows(pairs[:0], Relation.REPLACE).present()).shape == (0, 2, 2)
