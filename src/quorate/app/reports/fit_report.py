"""The report of one fit: the answer, the guarantee, its cost, the forecast and the request."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace
from typing import Any

from quorate import __version__
from quorate.app.catalogue import Answer, answer, figure
from quorate.app.reports.answer_pictures import answer_picture
from quorate.app.reports.figures import Drawing, Line, draw_curves
from quorate.app.reports.page import Block, Facts, Meter, Page, Picture, Section, Table, Text
from quorate.app.tasks.fitting import Fit, LedgerState
from quorate.app.tasks.requests import request_text
from quorate.core.guarantees import Guarantee
from quorate.mechanisms.stated_error import StatedError
from quorate.planning.plan import Plan

__all__ = ["error_sentence", "fit_page", "fit_summary", "plan_blocks", "plan_drawing"]

# What a task releases, where its name is not a noun.
_NOUNS = {
    "agreement": "rule",
    "cdf": "distribution function",
    "concept": "rule",
    "huber": "robust linear model",
    "linear": "linear model",
    "logistic": "logistic model",
    "net": "neural network",
    "net-number": "neural network",
    "normal": "normal distribution",
    "record-mean": "mean over records",
    "ridge": "linear model",
    "scale": "centre and scale",
    "select": "choice",
    "smallest-error": "smallest error",
    "svc": "linear classifier",
    "synth": "model of people",
}


def fit_page(fit: Fit, plan: Plan | None = None) -> Page:
    """Return the page about ``fit``: the answer with its errors first, then the guarantee.

    ``plan`` is the forecast of the planner, if there is one.
    """
    said = answer(fit.estimator, fit.columns.features, fit.columns.classes)
    promise: Guarantee = fit.estimator.guarantee_
    sections = (
        Section("The answer", (*_released(fit, said), *_errors(fit), *_left_out(fit))),
        Section("Guarantee", _promised(promise)),
        Section("Budget", _budget(fit.account)),
        Section("Forecast", _forecast(fit, plan)),
        Section("Request", (Facts(_asked(fit)),)),
        Section("How to repeat it", (_repeated(fit),)),
    )
    return Page(
        title=_title(fit),
        lead=said.sentence,
        highlights=_highlights(fit),
        sections=sections,
        footer=f"Made by quorate {__version__}. This page contains releases only: it may be shared "
        "as widely as the guarantee allows.",
    )


def _highlights(fit: Fit) -> tuple[tuple[str, str], ...]:
    promise: Guarantee = fit.estimator.guarantee_
    found = [(f"{promise.epsilon:g}", "epsilon"), (f"{promise.delta:g}", "delta")]
    if fit.n_users is not None:
        # The unit may be any word in any language: it is not put into the plural.
        found.append((f"{fit.n_users:,}", f"users; unit: {promise.unit}"))
    if fit.account is not None:
        found.append((f"{fit.account.left.epsilon:g}", "epsilon left"))
    return tuple(found)


def fit_summary(fit: Fit, plan: Plan | None = None) -> dict[str, Any]:
    """Return a fit as plain data."""
    said = answer(fit.estimator, fit.columns.features, fit.columns.classes)
    account = fit.account
    return {
        "task": fit.request.task,
        "estimator": type(fit.estimator).__name__,
        "features": list(fit.columns.features),
        "target": fit.columns.target,
        "users": fit.n_users,
        "released": said.values,
        "sentence": said.sentence,
        "algorithm": said.algorithm,
        "error": _stated(fit),
        "readable": None if fit.readable is None else fit.readable.to_dict(),
        "guarantee": fit.estimator.guarantee_.to_dict(),
        "budget": None
        if account is None
        else {
            "data_name": account.name,
            "epsilon": account.budget.epsilon,
            "delta": account.budget.delta,
            "epsilon_left": account.left.epsilon,
            "delta_left": account.left.delta,
        },
        "forecast": None if plan is None else plan.to_dict(),
    }


def error_sentence(fit: Fit, said: Answer) -> str:
    """Return the size of the error in words, including rows that could not be read."""
    whole = fit.error_with_rows_left_out
    if whole is None:
        readable = fit.readable
        if readable is None or readable.left_out == 0:
            return said.error
        error = getattr(fit.estimator, "error_", None)
        sure = readable.confidence if error is None else error.confidence
        words = readable.covered(sure) if readable.moves else readable.not_covered
        return said.error if words in said.error else f"{said.error} {words}"
    bound, confidence = whole
    return (
        f"{said.error} With the rows that could not be read, whatever they hold within the "
        f"bounds, the error is at most {figure(bound)} ({confidence:.0%} confidence)."
    )


def plan_blocks(plan: Plan | None, here: str) -> tuple[Block, ...]:
    """Return the forecast as blocks: the sentence, the curve, and simpler methods."""
    if plan is None:
        return (
            Text(
                "No forecast: the number of users is private, or the planner does not know this "
                "task. Ask it with the command plan."
            ),
        )
    blocks: list[Block] = [Text(f"Forecast. {plan.sentence} The error is: {plan.error_meaning}.")]
    if plan.warning is not None:
        blocks.append(Text(plan.warning, tone="warning"))
    blocks.append(Picture(plan_drawing(plan, here), "Expected error against the number of users."))
    header = ("method", "error here", "users for the same error")
    rows = [("Quorate", _number(plan.error_expected), _count(plan.users))]
    rows += [(b.name, _number(b.error), _count(b.users)) for b in plan.baselines]
    if plan.baselines:
        blocks.append(Table("The same budget with simpler methods", header, tuple(rows)))
    blocks.extend(Text(line) for line in (*_bounds(plan), *plan.advice))
    return tuple(blocks)


def plan_drawing(
    plan: Plan,
    here: str,
    *,
    happened: float | None = None,
    title: str = "Error against the number of users",
) -> Drawing:
    """Draw the error against users: Quorate, simpler methods, and one point.

    The point is the expected error at ``plan.users``, or the observed error ``happened``.
    """
    lines = []
    for curve in plan.curves:
        kept = [
            (float(n), e)
            for n, e in zip(curve.users, curve.errors, strict=True)
            if math.isfinite(e) and e > 0
        ]
        if kept:
            name = "Quorate" if curve.name == "quorate" else curve.name
            lines.append(Line(name, tuple(n for n, _ in kept), tuple(e for _, e in kept)))
    point = None
    error = plan.error_expected if happened is None else happened
    if plan.users is not None and 0 < error < math.inf:
        point = (here, float(plan.users), error)
    return draw_curves(lines, title=title, x_label="users", y_label="error", point=point)


def _title(fit: Fit) -> str:
    features = ", ".join(fit.columns.features)
    what = _NOUNS.get(fit.request.task, fit.request.task)
    if fit.columns.target is None:
        return f"Private {what} of {features}"
    return f"Private {what} of {fit.columns.target} by {features}"


def _forecast(fit: Fit, plan: Plan | None) -> tuple[Block, ...]:
    """Return the forecast, and why it differs from the error stated with the answer."""
    blocks = list(plan_blocks(plan, "this run, as forecast"))
    if plan is None:
        return tuple(blocks)
    words = (
        "Made without the data, from public numbers: bounds, users and budget. It says how many "
        "users such an answer takes."
    )
    stated = _stated(fit)
    if stated is not None and fit.columns.target is not None:
        words += (
            " The forecast is about the loss of predictions; the error stated with the answer is "
            "about the released numbers."
        )
    elif stated is not None and stated["bound"] is not None:
        words += (
            f" The error stated with the answer, {_number(stated['bound'])}, is the one to use: "
            "it is computed from what was released."
        )
    blocks.insert(0, Text(words))
    taken = getattr(fit.estimator, "algorithm_", None)
    if taken is not None and taken.name != plan.algorithm:
        blocks.append(
            Text(
                f"The forecast is for the algorithm {plan.algorithm!r}; this run used "
                f"{taken.name!r}."
            )
        )
    return tuple(blocks)


def _stated(fit: Fit) -> dict[str, Any] | None:
    """Return the stated error of the release, if it is a single number.

    It is ``None`` if the error is unbounded, or if each cell of a table has its own.
    """
    error = getattr(fit.estimator, "error_", None)
    if not isinstance(error, StatedError) or not isinstance(error.bound, int | float):
        return None
    whole = fit.error_with_rows_left_out
    return {
        "bound": _finite(error.bound),
        "worst": _finite(error.worst),
        "confidence": float(error.confidence),
        "covers": str(error.covers),
        "with_rows_left_out": None
        if whole is None
        else {"bound": whole[0], "confidence": whole[1]},
    }


def _errors(fit: Fit) -> tuple[Block, ...]:
    """Return the stated error as a table; empty if each cell has its own bound."""
    stated = _stated(fit)
    if stated is None or not fit.estimator.error_.coordinates:
        return ()
    sure, bound, worst = f"{stated['confidence']:.0%}", stated["bound"], stated["worst"]
    at_most = "no bound" if bound is None else _number(bound)
    rows = [("as stated", at_most, sure)]
    if bound is not None and worst is not None and worst > bound:
        rows.append(("without assumptions about the data", _number(worst), sure))
    if (whole := fit.error_with_rows_left_out) is not None:
        rows.append(("with rows that could not be read", _number(whole[0]), f"{whole[1]:.0%}"))
    header = ("error", "at most", "confidence")
    return (Table("Stated error of the whole answer", header, tuple(rows)),)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _left_out(fit: Fit) -> tuple[Block, ...]:
    """Return what was clipped, and the estimated share of rows that could be parsed."""
    blocks: list[Block] = []
    if fit.request.limits:
        cut = getattr(getattr(fit.estimator, "error_", None), "cut_share", 0.0)
        words = "Values outside of their public bounds were clipped."
        if isinstance(cut, float) and cut > 0:
            words += (
                f" Up to {cut:.1%} of the people may be outside of the range that was found "
                "privately, and were clipped to it."
            )
        blocks.append(Text(words))
    if fit.readable is not None:
        tone = "warning" if fit.readable.is_little else None
        said = str(fit.readable)
        blocks.append(Text(said) if tone is None else Text(said, tone=tone))
    return tuple(blocks)


def _asked(fit: Fit) -> tuple[tuple[str, str], ...]:
    request, columns = fit.request, fit.columns
    stated = {limit.column: limit for limit in request.limits}
    ranges = [
        f"{name} in [{_end(limit.lower)}, {_end(limit.upper)}]"
        for name in columns.features
        if (limit := stated.get(name, stated.get(None))) is not None
    ]
    ranges += [f"{name} in {', '.join(map(str, v))}" for name, v in columns.categories.items()]
    missing = "dropped" if columns.missing == "drop" else f"read as {columns.missing:g}"
    facts = [
        ("task", request.task),
        ("one user is one", columns.protected),
        ("features", ", ".join(columns.features)),
        ("public bounds", "; ".join(ranges) or "none"),
        ("missing values", missing),
        ("algorithm", request.algorithm),
        ("engine", request.engine),
    ]
    if columns.target is not None:
        facts.insert(3, ("target", columns.target))
    if request.records is not None:
        facts.append(("records per user", f"{request.records:,} (stated)"))
    return tuple(facts)


def _end(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime.date) else figure(value)


def _repeated(fit: Fit) -> Table:
    asked = fit.request
    if not asked.names_its_columns:
        asked = replace(asked, columns=fit.columns)
    lines = request_text(asked, "<table>").splitlines()
    caption = "Save as request.toml, name the table, and run: quorate fit request.toml"
    return Table(caption, ("request",), tuple((line,) for line in lines if line), numeric=False)


def _promised(promise: Guarantee) -> tuple[Block, ...]:
    paid = promise.data_name
    facts = (
        ("epsilon", f"{promise.epsilon:g}"),
        ("delta", f"{promise.delta:g}"),
        ("protected", f"all records of one {promise.unit}"),
        ("neighbours", promise.relation.value),
        ("trust", promise.trust.value),
        ("numerics", promise.numerics.value),
        ("charged to", "no ledger" if paid is None else paid),
    )
    tone = "quote" if promise.holds else "warning"
    return (Text(str(promise), tone=tone), Facts(facts))


def _budget(account: LedgerState | None) -> tuple[Block, ...]:
    if account is None:
        return (
            Text(
                "No ledger was charged, so other releases about these people are not counted. Use "
                "a ledger for everything that you publish."
            ),
        )
    blocks: list[Block] = [
        Text(f"The data set is called {account.name!r}; costs of several releases add up.")
    ]
    whole = {"epsilon": account.budget.epsilon, "delta": account.budget.delta}
    for name, total in whole.items():
        used, left = getattr(account.spent, name), getattr(account.left, name)
        if total > 0:
            words = f"{used:g} of {total:g} spent, {left:g} left"
            blocks.append(Meter(name, used, total, words))
    return tuple(blocks)


def _released(fit: Fit, said: Answer) -> tuple[Block, ...]:
    picture = answer_picture(fit.estimator, said, fit.columns.coding.names)
    table, algorithm = (
        Table(said.caption, said.header, said.rows),
        Text(f"Algorithm: {said.algorithm}"),
    )
    shown = (table,) if picture is None else (picture, table)
    stated = error_sentence(fit, said)
    covers = getattr(getattr(fit.estimator, "error_", None), "covers", "")
    if fit.readable is not None and fit.readable.not_covered in stated:
        covers = covers.replace(fit.readable.not_covered, "").strip()
    if covers and covers.lower() not in stated.lower():
        stated += f" What the stated error covers: {covers[0].lower()}{covers[1:]}"
    return *shown, Text(f"Error: {stated[0].lower()}{stated[1:]}"), algorithm


def _bounds(plan: Plan) -> tuple[str, ...]:
    """Return the bounds of theorems on the number of users, if their conditions are met."""
    pairs = (
        ("Proved to suffice, with the constants of the paper", plan.upper),
        ("Proved to be needed by any method", plan.lower),
    )
    return tuple(
        f"{words}: {_people(bound.users)} ({bound.theorem})."
        for words, bound in pairs
        if bound.users is not None and bound.holds
    )


def _count(users: float | None) -> str:
    if users is None or not math.isfinite(users):
        return "out of reach"
    return f"{math.ceil(users):,}"


def _people(users: float) -> str:
    count = _count(users)
    return f"{count} user" if count == "1" else f"{count} users"


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "useless"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
