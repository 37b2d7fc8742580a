"""Edges: public ones in order, and a grid for loosely known ranges."""

import numpy as np
import pytest

from quorate.distributions.numeric.edges import as_edges, as_range, declared_edges, loose_edges
from quorate.exceptions import ParameterError, UnboundedContributionError


@pytest.mark.parametrize(
    "edges",
    [
        [0.0],
        [1.0, 1.0],
        [2.0, 1.0],
        [0.0, np.nan],
        [0.0, np.inf],
        "ab",
        [[0.0, 1.0]],
        7,
        [0, 1e-320],
    ],
)
def test_edges_that_make_no_sense_are_refused(edges):
    with pytest.raises(ParameterError):
        as_edges(edges)


def test_a_range_must_be_told_and_not_twice():
    with pytest.raises(UnboundedContributionError):
        declared_edges(None, None, 4)
    with pytest.raises(ParameterError, match="either"):
        declared_edges([0.0, 1.0], (0.0, 1.0), 4)
    for bounds in (3.0, (1.0, 0.0), (0.0, np.inf), (0.0, 1e200), (0.0, 1.0, 2.0)):
        with pytest.raises(ParameterError):
            as_range(bounds)
    with pytest.raises(ParameterError):
        declared_edges(None, (0.0, 1.0), 10**7)


@pytest.mark.parametrize("bounds", [(0.0, 1e6), (-1e6, 1e6), (5.0, 7.0), (-3.0, 100.0)])
def test_loose_edges_are_fine_where_it_matters(bounds):
    edges = loose_edges(*bounds, 1024)
    assert (edges[0], edges[-1]) == bounds
    assert np.all(np.diff(edges) > 0)
    inner = edges[(np.abs(edges) > 1.0) & (np.abs(edges) < 1000.0)]
    assert np.all(np.diff(np.log(np.abs(inner[inner > 0]))) < 0.1)
