"""The matrices of a series: what they cost, what they make of noise, which one pays."""

import itertools

import numpy as np
import pytest

from quorate.series.factors import NAMES, Factor, best_factor

both = pytest.mark.parametrize("name", NAMES)


@both
@pytest.mark.parametrize("horizon", [1, 2, 17, 78])
def test_views_undo_the_matrix(name, horizon):
    factor = Factor(name, horizon)
    truth = np.random.default_rng(0).integers(-50, 50, (horizon, 3))
    released = (factor.matrix @ truth).astype(float)
    np.testing.assert_allclose(factor.view(released, "periods"), truth, atol=1e-8)
    np.testing.assert_allclose(
        factor.view(released, "running"), np.cumsum(truth, axis=0), atol=1e-8
    )


@both
@pytest.mark.parametrize("view", ["periods", "running"])
def test_the_noise_of_a_view_is_that_of_the_inverse(name, view):
    """Computed by another way: rows of the dense inverse, which noise is multiplied with."""
    factor = Factor(name, 40)
    dense = np.linalg.inv(factor.matrix.astype(float))
    if view == "running":
        dense = np.tril(np.ones((40, 40))) @ dense
    np.testing.assert_allclose(factor.spread(view), np.linalg.norm(dense, axis=1), rtol=1e-9)


@both
def test_early_views_need_no_later_release(name):
    factor = Factor(name, 30)
    released = np.random.default_rng(1).normal(size=(30, 2))
    whole = factor.view(released, "running")
    np.testing.assert_allclose(factor.view(released[:11], "running"), whole[:11], rtol=1e-12)


def test_the_figures_of_the_field():
    """52 weeks, running totals, people in k weeks in a row: figures that were known before."""
    known = {"independent": (5.15, 10.3, 18.6, 37.1), "square-root": (2.16, 7.5, 21.2, 59.0)}
    for name, figures in known.items():
        found = [Factor(name, 52).error("running", k) for k in (1, 4, 13, 52)]
        assert found == pytest.approx(figures, rel=0.01)


def test_correlated_noise_is_taken_where_people_are_in_few_periods():
    assert [best_factor("running", horizon=52, touched=k).name for k in (1, 4, 8, 13, 52)] == [
        "square-root",
        "square-root",
        "square-root",
        "independent",
        "independent",
    ]
    assert {best_factor("periods", horizon=52, touched=k).name for k in (1, 52)} == {"independent"}


@both
def test_no_pattern_of_periods_is_longer_than_one_in_a_row(name):
    """The radius is that of the worst pattern of so many periods, found by trying them all."""
    factor = Factor(name, 8)
    for touched in (1, 2, 3):
        longest = max(
            int((factor.matrix[:, chosen].sum(axis=1) ** 2).sum())
            for chosen in itertools.combinations(range(8), touched)
        )
        assert factor.person(touched) == longest


def test_what_is_paid_for_a_pair_of_periods_is_that_of_the_matrix():
    factor = Factor("square-root", 23)
    dense = factor.matrix.T @ factor.matrix
    for place in range(23):
        assert factor.gram(place).tolist() == dense[place, : place + 1].tolist()
    assert (dense >= 0).all()


def test_years_of_days_are_no_matter_of_size():
    for name in NAMES:
        factor = Factor(name, 3650)
        assert factor.person(5) > 0
        assert factor.gram(3000)[-1] > 0
