"""Answers as pictures: what is drawn is what was released, with the errors that were stated."""

import warnings
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from quorate.app.catalogue import CATALOGUE, TASKS, answer
from quorate.app.reports import answer_pictures
from quorate.app.reports.answer_pictures import answer_picture
from quorate.app.reports.figures import ErrorBars
from quorate.models.coefficients import Coefficients


def said(**values):
    return SimpleNamespace(values=values, error="Off by 30 ranks.")


def fitted(name):
    example = CATALOGUE[name].example()
    parameters = {"epsilon": 3.0, **example.parameters}
    if CATALOGUE[name].kind._uses_delta and name != "ParityLearner":  # by default it is pure
        parameters.setdefault("delta", 1e-5)
    estimator = CATALOGUE[name].kind(**parameters)
    given = {} if example.y is None else {"y": example.y}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(example.X, users=example.users, **given)


def test_a_histogram_is_drawn_with_an_error_on_every_bin():
    # Issue 31: a histogram report without a histogram.
    histogram = fitted("Histogram")
    picture = answer_picture(histogram, said(), ["age"])
    text = picture.drawing.description
    assert text.count(" to ") == len(histogram.pmf_)
    assert f"each ± {histogram.error_.bound:.2g}" in text
    assert "95%" in picture.caption


def test_a_bin_of_a_distribution_function_errs_twice():
    error = SimpleNamespace(
        bound=0.1, confidence=0.9, covers="Noise.", metric="largest distance of the functions"
    )
    curve = {"edges_": np.array([0.0, 1.0, 3.0]), "error_": error}
    bins = SimpleNamespace(**curve, pmf_=np.array([0.25, 0.75]))
    assert "each ± 0.2" in answer_picture(bins, said(), ["age"]).drawing.description
    points = SimpleNamespace(**curve, cdf_=np.array([0.0, 0.25, 1.0]))
    assert "each ± 0.1" in answer_picture(points, said(), ["age"]).drawing.description


def test_a_table_is_drawn_with_the_bound_of_every_cell():
    # Issue 31: no chart of a table with its error bars.
    columns = {
        "city": ["Ulm", None],
        "visits": [70.0, 9.0],
        "visits_error": [2.0, 3.0],
        "visits_bound": [4.0, 6.0],
        "price": [1.5, 2.5],
        "price_error": [0.1, 0.1],
        "price_bound": [0.3, np.inf],
    }
    error = SimpleNamespace(confidence=0.95, covers="Noise.")
    table = SimpleNamespace(table_=pa.table(columns), error_=error)
    picture = answer_picture(table, said(), [])
    assert picture.drawing.description == (
        "visits: Ulm 70 ± 4, all others 9 ± 6. price: Ulm 1.5 ± 0.3, all others (no bound) 2.5 ± 0."
    )


def test_numbers_of_other_sizes_get_an_axis_each():
    error = SimpleNamespace(bound=1.0, coordinates=(0.1, 10.0), confidence=0.95, covers="Noise.")
    mean = SimpleNamespace(mean_=[1.0, 5000.0], error_=error)
    text = answer_picture(mean, said(), ["share", "cost"]).drawing.description
    assert text == "mean: share 1 ± 0.1. mean: cost 5000 ± 10."


def test_coefficients_have_intervals_and_the_constant_does_not_hide_them():
    table = Coefficients(
        ("age", "bmi"), ("ill",), np.array([[0.2], [0.1], [-90.0]]), np.array([[0.5], [1.0], [9.0]])
    )
    error = SimpleNamespace(confidence=0.95, covers="Noise.")
    model = SimpleNamespace(coefficients_=table, error_=error)
    text = answer_picture(model, said(), ["age", "bmi"]).drawing.description
    assert text == "coefficient for ill: age 0.2 ± 0.98, bmi 0.1 ± 2."


def test_a_rank_is_no_error_bar():
    error = SimpleNamespace(bound=30, coordinates=(30,), confidence=0.95, covers="Ranks.")
    median = SimpleNamespace(median_=[41.0], error_=error)
    picture = answer_picture(median, said(), ["age"])
    assert picture.drawing.description == "median: age 41."
    assert picture.caption == "What was released, without error bars."


@pytest.mark.parametrize("task", TASKS)
def test_every_answer_has_a_picture_and_says_how_far_off_it_may_be(task):
    # Issue 31: every report shows its answer first, as a picture with its errors.
    estimator = fitted(TASKS[task].name)
    features = tuple("abcdefgh"[: getattr(estimator, "n_features_in_", 1)])
    words = answer(estimator, features, None)
    picture = answer_picture(estimator, words, features)
    assert picture.drawing.description
    assert words.error
    assert picture.caption.endswith(("without error bars.", "the stated error (95%)."))


def test_the_variance_of_one_column_is_drawn_and_not_its_correlation_with_itself():
    """A square with "1.00" was the picture of a variance of 225."""
    one = SimpleNamespace(covariance_=np.array([[225.0]]), variance_=np.ones(1), mean_=[7.0])
    picture = answer_picture(one, said(), ["spent"])
    assert "225" in picture.drawing.description
    assert "1.00" not in picture.drawing.svg


def test_a_covariance_is_drawn_as_correlations_and_not_as_its_means():
    found = SimpleNamespace(
        covariance_=np.array([[4.0, -3.0], [-3.0, 9.0]]), variance_=np.ones(2), mean_=[7.0, 8.0]
    )
    text = answer_picture(found, said(), ["age", "bmi"]).drawing.description
    assert text == "age with bmi -0.5."


def test_a_number_between_two_ends_is_drawn_with_both():
    error = SimpleNamespace(
        share=(0.0, 0.5), between=(0.1, 0.3), records=(2.0, 9.0), confidence=0.95, covers="Noise."
    )
    found = SimpleNamespace(share_=0.25, between_=0.2, records_=4.0, error_=error)
    text = answer_picture(found, said(), []).drawing.description
    assert "of user means 0.25 (0 to 0.5), of records 0.2 (0.1 to 0.3)" in text
    assert "harmonic mean 4 (2 to 9)" in text


def test_errors_that_one_axis_would_hide_get_an_axis_each():
    """Ages of 54 within .1 and bills of 799 within 2 were two dots without error bars."""
    alike = ErrorBars("mean", ("age", "bmi"), (54.0, 25.0), (1.0, 2.0))
    apart = ErrorBars("mean", ("age", "bill"), (54.0, 799.0), (0.1, 2.0))
    assert answer_pictures._panels(alike) == [alike]
    assert [panel.labels for panel in answer_pictures._panels(apart)] == [("age",), ("bill",)]
    without = ErrorBars("median", ("age", "bill"), (54.0, 799.0))
    assert answer_pictures._panels(without) == [without]
