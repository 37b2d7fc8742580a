"""Figures: colours by CSS, texts for those who listen, nothing from outside."""

import re
import sys
import xml.etree.ElementTree as ET

import pytest

from quorate.app.reports.figures import Line, draw_curves, draw_marks, has_matplotlib, hash_text
from quorate.exceptions import MissingExtraError

LINES = [Line("Quorate", (10.0, 100.0), (1.0, 0.1)), Line("a <b> & c", (10.0, 90.0), (2.0, 1.0))]


def drawing(title="Error & users"):
    return draw_curves(
        LINES, title=title, x_label="users", y_label="error", point=("this run", 50.0, 0.2)
    )


def test_the_svg_is_well_formed_and_says_what_it_shows():
    root = ET.fromstring(drawing().svg)
    texts = {element.tag.rpartition("}")[2]: element.text for element in root[:2]}
    assert texts["title"] == "Error & users"
    assert "this run: 0.2 at users 50." in texts["desc"]
    assert root.get("role") == "img"
    labels = root.get("aria-labelledby").split()
    ids = {element.get("id") for element in root.iter()}
    assert set(labels) <= ids


def test_no_colour_is_fixed():
    svg = drawing().svg + draw_marks(["a"], {"x": [1.0]}, title="t", y_label="y").svg
    assert not re.search(r"(fill|stroke): ?#", svg)
    assert "var(--series-1)" in svg
    assert "var(--ink)" in svg


def test_two_figures_share_no_ids():
    def ids(svg):
        return set(re.findall(r'\bid="([^"]+)"', svg))

    first, second = drawing("one").svg, drawing("two").svg
    assert ids(first)
    assert not ids(first) & ids(second)
    for svg in (first, second):
        for reference in re.findall(r'(?:href="|url\()#([^")]+)', svg):
            assert reference in ids(svg)


def test_a_figure_asks_for_nothing_and_runs_nothing():
    svg = drawing().svg
    assert "<script" not in svg
    assert "<style" not in svg
    assert not re.search(r'(?:href|src)="(?!#)', svg)


def test_the_same_figure_is_drawn_the_same_way():
    assert drawing().svg == drawing().svg


def test_marks_say_all_numbers():
    shown = draw_marks(["mean", "median"], {"a": [1.0, 2.0]}, title="t", y_label="y")
    assert shown.description == "mean: a 1. median: a 2."


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not has_matplotlib()
    with pytest.raises(MissingExtraError, match=r"quorate\[plot\]"):
        drawing()


def test_texts_have_numbers():
    assert hash_text("ab") != hash_text("ba")
