"""The page and the tables about the demonstration."""

from __future__ import annotations

from quorate import __version__
from quorate.app.reports.demo import NO_PRIVACY, DemoResult, Experiment
from quorate.app.reports.figures import draw_intervals, draw_marks, draw_segments
from quorate.app.reports.fit_report import plan_drawing
from quorate.app.reports.page import Block, Page, Picture, Section, Table, Text

__all__ = ["demo_page", "demo_tables"]


def demo_tables(result: DemoResult) -> tuple[Table, ...]:
    """Return the results of the demonstration as tables for a terminal."""
    tables = []
    for experiment in result.experiments:
        tables.append(
            Table(f"{experiment.question} {experiment.answer}", experiment.header, experiment.rows)
        )
        tables.append(_methods(experiment))
    return tuple(tables)


def demo_page(result: DemoResult) -> Page:
    """Return the page about the demonstration."""
    first = result.experiments[0]
    return Page(
        title="Twenty thousand players, nobody exposed",
        lead="Four questions to 150 years of baseball, each answered with one player's whole "
        "career protected, beside simpler methods and beside no privacy at all.",
        highlights=(
            (f"{first.guarantee.epsilon:g}", "epsilon for each question"),
            ("player", "protected, with all seasons"),
            (str(len(first.methods[0].errors)), "random crowds or more for each error"),
        ),
        sections=(
            Section("Side by side", _side_by_side(result)),
            *(_section(experiment) for experiment in result.experiments),
            Section("Guarantee", _promise(result)),
            Section("How to read this", _how()),
        ),
        footer=f"Made by quorate {__version__} from Lahman's baseball archive. In a real study "
        f"only one answer is released, not one for every sample, and the true errors are "
        f"unknown: this page is a demonstration on public data.",
    )


def _promise(result: DemoResult) -> tuple[Block, ...]:
    said = dict.fromkeys(str(experiment.guarantee) for experiment in result.experiments)
    return (
        *(Text(sentence, tone="quote") for sentence in said),
        Text(
            "Each question is answered once with this budget; several answers about the same "
            "people cost the sum."
        ),
    )


def _section(experiment: Experiment) -> Section:
    forecast = experiment.forecast.error_expected
    methods = experiment.methods
    blocks: list[Block] = [
        Text(f"{experiment.question} {experiment.answer}"),
        *_charts(experiment),
        Table(
            f"One answer, from {experiment.users:,} players",
            experiment.header,
            experiment.rows,
        ),
        _methods(experiment),
        Text(
            f"The error is: {experiment.error_means}. Before any data were read the planner "
            f"expected at most {forecast:.3g} in nine of ten crowds; {experiment.kept} of "
            f"{len(methods[0].errors)} kept it."
        ),
        Picture(
            plan_drawing(
                experiment.forecast,
                "what happened",
                happened=methods[0].typical,
                title=f"Forecast and outcome: {experiment.name}",
            ),
            "The planner's curves, and the typical error of Quorate.",
        ),
    ]
    return Section(experiment.name.capitalize(), tuple(blocks))


def _charts(experiment: Experiment) -> tuple[Block, ...]:
    """Return the private answer as a picture, if there is one."""
    if experiment.rule and experiment.rule[0][1] > 0:
        drawing = draw_segments(
            experiment.rule, title=experiment.question, x_label="salary in dollars"
        )
        words = "The private rule: 1 means that the player has been around for six years or more."
        return (Picture(drawing, words),)
    if experiment.chart is None:
        return ()
    numbers = experiment.chart
    title = f"{experiment.name.capitalize()}: {numbers.name}"
    drawing = draw_intervals([numbers], title=title)
    bars = "" if numbers.errors is None else " Error bars at 95% confidence."
    return (Picture(drawing, f"The private answer.{bars}"),)


def _methods(experiment: Experiment) -> Table:
    rows = [
        (method.name, f"{method.typical:.3g}", f"{method.worst:.3g}")
        for method in experiment.methods
    ]
    crowds = len(experiment.methods[0].errors)
    return Table(
        f"Errors of {crowds} random crowds of {experiment.users:,} players "
        f"(forecast: {experiment.forecast.error_expected:.3g})",
        ("method", "typical error", "worst error"),
        tuple(rows),
    )


def _side_by_side(result: DemoResult) -> tuple[Block, ...]:
    names = [method.name for method in result.experiments[0].methods if method.name != NO_PRIVACY]
    series = {}
    for name in names:
        values = []
        for experiment in result.experiments:
            found = {method.name: method.typical for method in experiment.methods}
            values.append(max(found[name], 1e-12) / max(found[names[0]], 1e-12))
        series[name] = values
    drawing = draw_marks(
        [experiment.name for experiment in result.experiments],
        series,
        title="Typical errors, relative to Quorate",
        y_label="times the error of Quorate",
    )
    return (
        Picture(drawing, "Typical error of each method with the same budget; lower is better."),
    )


def _how() -> tuple[Block, ...]:
    return (
        Text(
            "All players of the archive are the population. A random sample of them takes part. "
            "Even without privacy an answer from a sample has an error, which the last row of "
            "each table shows."
        ),
        Text(
            "Group privacy protects single seasons thirty times more strongly, so that a career "
            "of thirty seasons is hidden. One record per player throws all other seasons away. "
            "Both protect a player as well as Quorate does, with the same epsilon."
        ),
        Text(
            "The planner runs before any data are read, with guesses that anyone could make: "
            "how long a career is, how much seasons and players differ. Without such a guess it "
            "assumes that half of the variance lies between players."
        ),
    )
