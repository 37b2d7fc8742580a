"""Groups are public or popular; nothing else about keys ever comes out."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from quorate.accounting.account import Account
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError
from quorate.noise import SeededNoise
from quorate.tabulate.keys import (
    LabelNumbers,
    NumberKeys,
    PrivateLabels,
    as_keys,
    column_places,
    key_rows,
    popular_keys,
)
from quorate.users import UserData


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["b", "a", "z"], ("a", "b")),
        ([2, 1, 9], (1, 2)),
        ([2.0, 1.0, 9.5], (1, 2)),
        (
            [datetime.date(2020, 1, 2), datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)],
            (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
        ),
    ],
)
def test_places_of_labels_of_any_kind(values, labels):
    plain = pa.chunked_array([values, [None]])
    for column in (plain, plain.dictionary_encode()):
        assert column_places(column, labels, name="key").tolist() == [1, 0, -1, -1]


def test_views_of_text_as_other_libraries_make_them():
    column = pa.array(["b", "q"]).cast(pa.string_view())
    assert column_places(column, ("a", "b"), name="key").tolist() == [1, -1]


def test_labels_that_do_not_fit_the_type_are_refused_without_a_record():
    with pytest.raises(SchemaError, match="of its type"):
        column_places(pa.array([], pa.int64()), ("a",), name="key")


@pytest.mark.parametrize("keys", ["a", 3, [], ["a", "a"], ["a", None], [float("nan")]])
def test_strange_keys_are_refused(keys):
    with pytest.raises(ParameterError):
        as_keys(keys, ("city",))


def test_keys_must_be_stated():
    with pytest.raises(UnboundedContributionError):
        as_keys(None, ("city",))
    with pytest.raises(ParameterError):
        as_keys(["a"], ("city", "year"))
    with pytest.raises(ParameterError):
        as_keys({"city": ["a"]}, ("city", "year"))


def test_products_of_keys():
    assert key_rows(as_keys({"a": [1, 2], "b": ["x"]}, ("a", "b"))) == ((1, "x"), (2, "x"))


def test_private_labels_of_dates_and_fractions():
    codes = PrivateLabels(pa.chunked_array([[2.0, 2.5, None]]))
    assert codes.numbers[0] == 0.0
    assert np.isnan(codes.numbers[1:]).all()
    dated = PrivateLabels(pa.array([datetime.date(2020, 1, 2)]))
    assert dated.label(0.0) == "2020-01-02"


def account():
    return Account.open(epsilon=2.0, delta=1e-5, reserve=1e-5, noise=SeededNoise(0))


def test_only_keys_that_many_people_hold_are_found():
    rng = np.random.default_rng(0)
    rows = rng.choice([1.0, 2.0], size=(3000, 2))
    rows[0] = [77.0, 1.0]
    found = popular_keys(
        UserData(rows, offsets=range(3001)),
        (0, 1),
        [LabelNumbers(), LabelNumbers()],
        epsilon=1.0,
        delta=1e-6,
        account=account(),
        random_state=0,
    )
    assert found[0] == ((1, 1), (1, 2), (2, 1), (2, 2))


def test_one_person_with_a_million_records_votes_once():
    rows = np.concatenate([np.full(5000, 9.0), np.ones(500)])[:, None]
    offsets = np.concatenate([[0], np.arange(5000, 5501)])
    found = popular_keys(
        UserData(rows, offsets=offsets),
        (0,),
        [LabelNumbers()],
        epsilon=1.0,
        delta=1e-6,
        account=account(),
        random_state=0,
    )
    assert found[0] == ((1,),)


def test_no_keys_find_no_group():
    assert NumberKeys((0,), ((),), ())(np.ones((2, 1))).tolist() == [-1, -1]
