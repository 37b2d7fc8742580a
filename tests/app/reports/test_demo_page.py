"""The page about the demonstration shows every way and the forecast."""

from dataclasses import replace

from quorate.app.reports.demo import DemoResult, Experiment, Method
from quorate.app.reports.demo_page import demo_page, demo_tables
from quorate.app.reports.figures import ErrorBars
from quorate.app.reports.page import Picture, render

WAYS = (
    Method("Quorate", (0.3, 0.2)),
    Method("one record per player", (0.5, 0.4)),
    Method("group privacy", (4.0, 5.0)),
    Method("no privacy", (0.0, 0.1)),
)


def example(mean_fit, mean_plan):
    return DemoResult(
        (
            Experiment(
                name="mean",
                question="What?",
                answer="That.",
                error_means="a distance",
                users=600,
                guarantee=mean_fit.estimator.guarantee_,
                header=("", "all players", "Quorate"),
                rows=(("G", "1.0", "2.0"),),
                methods=WAYS,
                forecast=mean_plan,
            ),
        )
    )


def test_every_way_and_the_forecast_are_shown(mean_fit, mean_plan):
    text = render(demo_page(example(mean_fit, mean_plan)))
    for way in WAYS:
        assert way.name in text
    assert f"{mean_plan.error_expected:.3g}" in text
    assert text.count("<figure>") == 2


def test_the_comparison_comes_first_and_a_chart_before_its_table(mean_fit, mean_plan):
    result = example(mean_fit, mean_plan)
    chart = ErrorBars("seasons", ("1990s",), (70.0,), (4.0,))
    result = DemoResult((replace(result.experiments[0], chart=chart),))
    first, second, *_ = demo_page(result).sections
    assert first.title == "Side by side"
    assert isinstance(first.blocks[0], Picture)
    assert second.blocks[1].drawing.description == "seasons: 1990s 70 ± 4."


def test_a_rule_is_drawn_where_an_experiment_learned_one(mean_fit, mean_plan):
    experiment = example(mean_fit, mean_plan).experiments[0]
    result = DemoResult((replace(experiment, rule=((0.0, 6.0, 0), (6.0, 18.0, 1))),))
    picture = demo_page(result).sections[1].blocks[1]
    assert picture.drawing.description.endswith("0 to 6: predict 0, 6 to 18: predict 1.")


def test_tables_for_a_terminal_hold_the_answer_and_the_errors(mean_fit, mean_plan):
    answer, errors = demo_tables(example(mean_fit, mean_plan))
    assert answer.rows == (("G", "1.0", "2.0"),)
    assert errors.rows[2] == ("group privacy", "4.5", "5")


def test_kept_forecasts_are_counted(mean_fit, mean_plan):
    experiment = example(mean_fit, mean_plan).experiments[0]
    limit = mean_plan.error_expected
    assert experiment.kept == sum(error <= limit for error in WAYS[0].errors)
