"""What an estimator says is what it released."""

import pytest

from quorate.app.catalogue import answer, figure
from quorate.app.tasks.fitting import fit
from quorate.data.files.table_files import TableFile
from quorate.exceptions import ParameterError
from quorate.means import UserQueries
from quorate.ranges import Limit


def said_about(result):
    return answer(result.estimator, result.columns.features, result.columns.classes)


def test_a_mean_tells_its_noise(mean_fit):
    said = said_about(mean_fit)
    assert [row[0] for row in said.rows] == ["age", "cost"]
    assert said.values["mean"]["age"] == mean_fit.estimator.mean_[0]
    assert "95%" in said.error


def test_a_cut_off_names_the_feature_and_the_labels(visits, make_request):
    asked = make_request(
        "threshold", ("dose",), (Limit(0, 999),), target="ill", classes=("no", "yes"), epsilon=9.0
    )
    said = said_about(fit(asked, TableFile(visits)))
    assert said.sentence.startswith("Predict 1 if dose >= ")
    assert "1 means 'yes'" in said.sentence


def test_a_median_tells_its_rank(visits, make_request):
    said = said_about(fit(make_request("median"), TableFile(visits)))
    assert said.values["rank_error"] > 0
    assert "either side" in said.error


@pytest.mark.parametrize("classes", [("no", "yes"), ("no", "yes", "maybe")])
def test_a_classifier_has_a_column_for_each_label_it_speaks_for(visits, make_request, classes):
    asked = make_request(
        "logistic", ("dose",), (Limit(0, 999),), target="ill", classes=classes, delta=1e-6
    )
    said = said_about(fit(asked, TableFile(visits)))
    told = ("", "standard error", "lower", "upper") if said.values["standard_errors"] else ("",)
    spoken_for = classes if len(classes) > 2 else classes[1:]
    expected = [[label, *(f"{label}: {each}" for each in told[1:])] for label in spoken_for]
    if len(spoken_for) == 1:
        expected = [[*spoken_for, *told[1:]]]
    assert said.header == ("feature", *(name for names in expected for name in names))
    assert {len(row) for row in said.rows} == {len(said.header)}
    assert said.rows[-1][0] == "constant"


def test_a_regression_tells_its_coefficients(visits, make_request):
    asked = make_request("linear", limits=(Limit(0, 300),), target="cost", delta=1e-6)
    said = said_about(fit(asked, TableFile(visits)))
    assert set(said.values["coefficients"]) == {"age"}


def test_other_estimators_are_refused():
    with pytest.raises(ParameterError, match="UserQueries"):
        answer(UserQueries(epsilon=1.0), (), None)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-3.0, "-3"), (12345.678, "12,345.7"), (1.23456789, "1.2346"), (1e-7, "1e-07")],
)
def test_numbers_are_written_for_people(value, text):
    assert figure(value) == text


def test_numbers_that_are_none_are_written_too():
    assert figure(float("nan")) == "nan"
    assert figure(float("inf")) == "inf"
