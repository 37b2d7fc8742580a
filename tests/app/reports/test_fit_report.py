"""The page about a fit says what was asked, promised, spent and released."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from quorate import Guarantee, Ledger, Relation
from quorate.app.reports import fit_report
from quorate.app.reports.figures import Line, draw_curves
from quorate.app.reports.fit_report import fit_page, fit_summary, plan_blocks, plan_drawing
from quorate.app.reports.page import Table, render
from quorate.app.tasks.fitting import fit
from quorate.core.guarantees import Numerics
from quorate.data.files.table_files import TableFile
from quorate.ranges import Limit


@pytest.fixture
def charged(visits, tmp_path, make_request):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("visits", epsilon=4.0, unit="patient")
    return fit(make_request("median", ledger=ledger.path, data_name="visits"), TableFile(visits))


def test_all_parts_are_there(mean_fit, mean_plan):
    page = fit_page(mean_fit, mean_plan)
    titles = [section.title for section in page.sections]
    assert titles == [
        "The answer",
        "Guarantee",
        "Budget",
        "Forecast",
        "Request",
        "How to repeat it",
    ]
    text = render(page)
    for words in ("age in [0, 300]", "for each patient", "No ledger was charged", "this run"):
        assert words in text
    for baseline in mean_plan.baselines:
        assert baseline.name in text


def test_the_budget_spent_and_left_is_shown(charged):
    assert "1 of 4 spent, 3 left" in render(fit_page(charged))
    assert ("3", "epsilon left") in fit_page(charged).highlights


def test_a_private_number_of_users_appears_nowhere(visits, make_request):
    asked = make_request("median", relation=Relation.ADD_REMOVE)
    result = fit(asked, TableFile(visits))
    text = render(fit_page(result)).partition("<body>")[2]
    assert not re.search(r"(?<![\d.,])600(?![\d.,])", text)
    assert fit_summary(result)["users"] is None


def test_a_void_guarantee_is_a_warning(mean_fit):
    import copy

    twin = copy.copy(mean_fit.estimator)
    twin.guarantee_ = Guarantee(epsilon=1.0, numerics=Numerics.VOID)
    text = render(fit_page(replace(mean_fit, estimator=twin)))
    assert 'class="warning"' in text


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("numerics", [Numerics.EXACT, Numerics.IDEALIZED, Numerics.VOID])
def test_the_facts_of_a_promise_are_its_own(mean_fit, relation, numerics):
    import copy

    twin = copy.copy(mean_fit.estimator)
    twin.guarantee_ = Guarantee(
        epsilon=0.25, delta=1e-7, unit="household", relation=relation, numerics=numerics
    )
    page = fit_page(replace(mean_fit, estimator=twin))
    (said,) = (section for section in page.sections if section.title == "Guarantee")
    facts = dict(said.blocks[1].pairs)
    assert facts == {
        "epsilon": "0.25",
        "delta": "1e-07",
        "protected": "all records of one household",
        "neighbours": relation.value,
        "trust": twin.guarantee_.trust.value,
        "numerics": numerics.value,
        "charged to": "no ledger",
    }


def test_the_point_of_the_run_lies_on_the_curve(mean_fit, mean_plan):
    drawn = plan_drawing(mean_plan, "this run")
    expected = f"this run: {mean_plan.error_expected:.3g} at users {mean_fit.n_users}"
    assert expected in drawn.description


def test_without_a_plan_it_says_so():
    (said,) = plan_blocks(None, "this run")
    assert said.words.startswith("No forecast")


def test_the_summary_is_json_and_agrees_with_the_estimator(mean_fit, mean_plan):
    document = json.loads(json.dumps(fit_summary(mean_fit, mean_plan), allow_nan=False))
    np.testing.assert_array_equal(
        list(document["released"]["mean"].values()), mean_fit.estimator.mean_
    )
    assert document["forecast"]["users"] == 600
    assert document["budget"] is None


def test_the_stated_error_stands_with_the_answer_and_the_forecast_apart(mean_fit, mean_plan):
    # Issue 31: a forecast of 4.95 stood beside a bound of .44, and nobody knew which one to use.
    answered, *_, forecast, _, _ = fit_page(mean_fit, mean_plan).sections
    error = mean_fit.estimator.error_
    (stated,) = (b for b in answered.blocks if getattr(b, "caption", "").startswith("Stated"))
    assert stated.rows[0][1] == f"{error.bound:.3g}"
    assert not any(f"{mean_plan.error_expected:.3g}" in row for row in stated.rows)
    assert f"{error.bound:.3g}, is the one to use" in forecast.blocks[0].words
    assert fit_summary(mean_fit, mean_plan)["error"]["bound"] == error.bound
    text = render(fit_page(mean_fit, mean_plan))
    assert html.escape(mean_plan.error_meaning) in text
    assert "this run, as forecast" in text
    assert "Values outside of their public bounds were clipped." in text


def test_the_answer_comes_first_as_a_picture_with_its_errors(mean_fit):
    page = fit_page(mean_fit)
    first = page.sections[0].blocks[0]
    values = mean_fit.estimator.mean_
    bounds = mean_fit.estimator.error_.coordinates
    for name, value, bound in zip(("age", "cost"), values, bounds, strict=True):
        assert f"{name} {value:.4g} ± {bound:.2g}" in first.drawing.description
    assert "95%" in first.caption


def test_units_are_not_put_into_the_plural(mean_fit):
    import copy

    twin = copy.copy(mean_fit.estimator)
    twin.guarantee_ = replace(twin.guarantee_, unit="woman")
    text = render(fit_page(replace(mean_fit, estimator=twin)))
    assert "womans" not in text
    assert "users; unit: woman" in text


def test_the_target_is_in_the_title(visits, make_request, mean_fit):
    asked = {"features": ("dose",), "target": "ill", "classes": ("no", "yes")}
    result = fit(make_request("threshold", limits=(Limit(0, 999),), **asked), TableFile(visits))
    assert fit_page(result).title == "Private threshold of ill by dose"
    assert fit_page(mean_fit).title.startswith("Private mean of ")


def test_rows_that_could_not_be_read_are_told_of(mean_fit):
    assert "rows could be read" in render(fit_page(mean_fit))
    little = replace(mean_fit, readable=replace(mean_fit.readable, share=0.1))
    assert "That may be too little" in render(fit_page(little))
    assert "could be read" not in render(fit_page(replace(mean_fit, readable=None)))


def test_a_forecast_for_another_algorithm_says_so(mean_fit, mean_plan):
    other = replace(mean_plan, algorithm="magic")
    assert "The forecast is for the algorithm &#x27;magic&#x27;" in render(
        fit_page(mean_fit, other)
    )
    same = replace(mean_plan, algorithm=mean_fit.estimator.algorithm_.name)
    assert "The forecast is for the algorithm" not in render(fit_page(mean_fit, same))


def test_the_stated_error_is_a_table_of_short_words_and_is_explained_once(mean_fit, mean_plan):
    """On a phone a column of sentences was one word wide, and stood on the page four times."""
    (table,) = [b for b in fit_report._errors(mean_fit) if isinstance(b, Table)]
    assert table.header == ("error", "at most", "confidence")
    assert table.rows[0][0] == "as stated"
    assert max(len(cell) for row in table.rows for cell in row) <= 40
    assert fit_report._number(1148.3) == "1,148"
    covers = mean_fit.estimator.error_.covers[1:60]
    assert render(fit_page(mean_fit, mean_plan)).count(html.escape(covers)) == 1


def test_the_error_says_nothing_twice(visits, make_request):
    """A table said what its bounds cover, and once more what its stated error covers."""
    asked = make_request(
        task="table",
        features=(),
        delta=1e-6,
        limits=(),
        options={"statistics": "visits=count"},
    )
    page = render(fit_page(fit(asked, TableFile(visits))))
    assert page.count("privacy noise and clipping bias") == 1
    assert page.lower().count("what the bounds cover") == 1


def test_ticks_of_an_error_axis_do_not_overlap():
    """Over less than two powers of ten "4 x 10^0" was written over "3 x 10^0"."""
    line = Line("Quorate", (100.0, 40_000.0), (5.0, 0.28))
    drawn = draw_curves([line], title="t", x_label="users", y_label="error").svg
    before_times = re.findall(r">(\d)</tspan>\s*<tspan[^>]*>×<", drawn)
    assert before_times
    assert set(before_times) <= {"2", "5"}


def test_one_user_is_no_users():
    """A report said that any method needs "1 users"."""
    assert fit_report._people(1.0) == "1 user"
    assert fit_report._people(1.2) == "2 users"
