"""Finite tables: matching records to points, sentences, equality, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.exceptions import ParameterError
from quorate.learners.concepts import FiniteTable, littlestone_dimension, tables, vc_dimension
from quorate.learners.concepts.tables import votes_for


class TestPoints:
    @given(
        domain=st.lists(
            st.tuples(*[st.sampled_from([0.0, 1.0, -2.5])] * 3), min_size=1, unique=True
        ),
        rows=st.lists(st.tuples(*[st.sampled_from([0.0, -0.0, 1.0, -2.5, 7.0, math.inf])] * 3)),
    )
    def test_each_row_is_found_at_its_point_or_nowhere(self, domain, rows):
        table = FiniteTable(np.zeros((1, len(domain))), domain=domain)
        expected = [domain.index(row) if row in domain else -1 for row in rows]
        found = table.locate(np.array(rows).reshape(-1, 3))
        assert found.tolist() == expected

    def test_a_record_outside_the_domain_is_ignored(self, make_users):
        table = FiniteTable([[0, 1], [1, 1]])
        people = make_users([[(0, 1), (5, 1), (0.5, 1), (-1, 1)]], 1)
        assert table.mistakes(people).tolist() == [[1, 0]]

    def test_outside_the_domain_a_row_predicts_zero(self):
        assert FiniteTable([[1, 1]]).predict(0, [0, 1, 2, math.nan]).tolist() == [1, 1, 0, 0]


class TestProducts:
    @given(data=st.data())
    def test_the_product_is_exact_up_to_two_to_the_fifty(self, data):
        points = data.draw(st.integers(1, 5))
        votes = data.draw(
            st.lists(st.lists(st.integers(-(2**50), 2**50), min_size=points, max_size=points))
        )
        table = data.draw(
            st.lists(st.lists(st.integers(0, 1), min_size=points, max_size=points), min_size=1)
        )
        votes = np.array(votes, dtype=np.int64).reshape(-1, points)
        table = np.array(table, dtype=np.int8)
        np.testing.assert_array_equal(votes_for(votes, table), votes @ table.astype(np.int64).T)

    def test_chunks_equal_the_whole(self, monkeypatch):
        rng = np.random.default_rng(0)
        votes, table = rng.integers(-5, 5, (3, 4)), rng.integers(0, 2, (11, 4)).astype(np.int8)
        whole = votes_for(votes, table)
        monkeypatch.setattr(tables, "_CHUNK_CELLS", 8)
        np.testing.assert_array_equal(votes_for(votes, table), whole)


class TestConcepts:
    def test_sentences_list_points_or_names(self):
        table = FiniteTable([[0, 1, 0], [1, 1, 1], [0, 0, 0]], domain=[[0, 0], [0, 1.5], [1, 0]])
        assert [str(table.concept(index)) for index in range(3)] == [
            "Predict 1 if x is (0, 1.5), else 0.",
            "Always predict 1.",
            "Always predict 0.",
        ]
        assert str(FiniteTable([[0]], names=["old rule"]).concept(0)) == "Predict as old rule does."

    def test_a_long_list_is_cut_short(self):
        sentence = str(FiniteTable([[1] * 9 + [0]]).concept(0))
        assert sentence.endswith("4 or 5 or one of 3 more points, else 0.")

    def test_equal_tables_have_equal_concepts(self):
        table, again = FiniteTable([[0, 1]]), FiniteTable(np.array([[0.0, 1.0]]), domain=[0, 1])
        assert table == again
        assert hash(table) == hash(again)
        assert table.concept(0) == again.concept(0)
        assert table != FiniteTable([[1, 1]])
        assert table != FiniteTable([[0, 1]], domain=[3, 4])
        assert table != 5

    def test_the_caller_s_array_stays_the_caller_s(self):
        rows = np.array([[0, 1]])
        table = FiniteTable(rows)
        rows[0, 0] = 1
        assert table.predict(0, [0]).tolist() == [0]
        with pytest.raises(ValueError, match="read-only"):
            table.table[0, 0] = 1


def test_the_dimensions_are_computed():
    rows = np.random.default_rng(3).integers(0, 2, (20, 6))
    table = FiniteTable(rows)
    assert table.vc_dimension == vc_dimension(rows)
    assert table.littlestone_dimension == littlestone_dimension(rows)
    assert table.vc_is_exact
    assert table.littlestone_is_exact


@pytest.mark.parametrize(
    ("table", "keywords"),
    [
        ([0, 1], {}),
        (np.zeros((0, 3)), {}),
        (np.zeros((3, 0)), {}),
        ([[0, 2]], {}),
        ([[0, math.nan]], {}),
        ([[0, 1]], {"domain": [[1]]}),
        ([[0, 1]], {"domain": [[1], [1]]}),
        ([[0, 1]], {"domain": [[0.0], [-0.0]]}),
        ([[0, 1]], {"domain": [[1], [math.inf]]}),
        ([[0, 1]], {"names": ["a", "b"]}),
        ([[0, 1]], {"names": "a"}),
    ],
)
def test_a_table_that_is_none_is_refused(table, keywords):
    with pytest.raises(ParameterError, match="Expected"):
        FiniteTable(table, **keywords)
