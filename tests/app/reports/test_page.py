"""A page: one file, every text escaped, landmarks, and a real browser that agrees."""

import re
from html.parser import HTMLParser

import pytest

from browser import CHROMIUM, open_browser
from quorate.app.reports.demo import DemoResult, Experiment, Method
from quorate.app.reports.demo_page import demo_page
from quorate.app.reports.figures import Line, draw_curves
from quorate.app.reports.fit_report import fit_page
from quorate.app.reports.page import Facts, Meter, Page, Picture, Section, Table, Text, render
from quorate.data.files.atomic import write_atomically

EVIL = "<script>alert('x')</script> \" onload=\"x & 'y'"


def evil_page():
    picture = draw_curves(
        [Line(EVIL, (1.0, 9.0), (1.0, 2.0))], title=EVIL, x_label="x", y_label="y"
    )
    blocks = (
        Text(EVIL),
        Text(EVIL, tone="quote"),
        Text(EVIL, tone="warning"),
        Facts(((EVIL, EVIL),)),
        Table(EVIL, (EVIL, EVIL), ((EVIL, EVIL),)),
        Meter(EVIL, 1.0, 2.0, EVIL),
        Picture(picture, EVIL),
    )
    return render(Page(EVIL, EVIL, ((EVIL, EVIL),), (Section(EVIL, blocks),), EVIL))


class Outline(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


class TestText:
    def test_every_text_is_escaped(self):
        page = evil_page()
        outline = Outline(page)
        assert not outline.named("script")
        assert not [a for _, attributes in outline.tags for a in attributes if a.startswith("on")]
        assert page.count("alert(") == page.count("&lt;script&gt;alert(")

    def test_the_broken_twin_without_escapes_is_caught(self, monkeypatch):
        from quorate.app.reports import page as module

        monkeypatch.setattr(module, "_escape", str)
        assert Outline(evil_page()).named("script")

    def test_another_block_is_refused(self):
        with pytest.raises(TypeError, match="block of a page"):
            render(Page("t", "l", (), (Section("s", ("text",)),)))


class TestDocument:
    def test_it_stands_alone(self, mean_fit, mean_plan):
        page = render(fit_page(mean_fit, mean_plan))
        outline = Outline(page)
        for tag in ("script", "iframe", "object", "embed", "form", "img"):
            assert not outline.named(tag)
        links = [a["href"] for a in outline.named("link") + outline.named("a")]
        assert all(link.startswith(("#", "data:")) for link in links)
        policy = next(a["content"] for a in outline.named("meta") if "http-equiv" in a)
        assert policy.startswith("default-src 'none'")

    def test_it_has_a_language_landmarks_and_one_heading_above_all(self, mean_fit, mean_plan):
        outline = Outline(render(fit_page(mean_fit, mean_plan)))
        assert outline.named("html") == [{"lang": "en"}]
        for tag in ("header", "nav", "main", "footer", "h1"):
            assert len(outline.named(tag)) == 1
        sections = outline.named("section")
        heads = {head["id"] for head in outline.named("h2")}
        assert {section["aria-labelledby"] for section in sections} == heads
        targets = {section["id"] for section in sections} | {"main"}
        assert {a["href"][1:] for a in outline.named("a")} == targets

    def test_ids_are_unique_and_figures_have_texts(self, mean_fit, mean_plan):
        page = render(fit_page(mean_fit, mean_plan))
        ids = [a["id"] for _, a in Outline(page).tags if "id" in a]
        assert len(ids) == len(set(ids))
        for svg in re.findall(r"<svg.*?</svg>", page, re.S):
            assert 'role="img"' in svg
            assert "aria-label" in svg

    def test_a_whole_of_nothing_is_a_full_meter(self):
        page = render(Page("t", "l", (), (Section("s", (Meter("m", 0.0, 0.0, "none"),)),)))
        assert 'width="100.00"' in page


def demo_example(plan, guarantee):
    errors = {"Quorate": 0.3, "one record per player": 0.5, "group privacy": 4.0, "no privacy": 0.1}
    experiment = Experiment(
        name="mean",
        question="What?",
        answer="That.",
        error_means="a distance",
        users=plan.users,
        guarantee=guarantee,
        header=("", "all", "Quorate"),
        rows=(("G", "1", "2"),),
        methods=tuple(Method(name, (error,)) for name, error in errors.items()),
        forecast=plan,
    )
    return DemoResult((experiment,))


@pytest.fixture(scope="module")
def pages(mean_fit, mean_plan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    demo = demo_page(demo_example(mean_plan, mean_fit.estimator.guarantee_))
    wide = Table("wide", tuple("abcdefghijkl"), (("a word",) + ("1234567.8901",) * 11,))
    long = Page("x" * 200, "y" * 200, (("9" * 40, "z" * 60),), (Section("w" * 80, (wide,)),))
    return {
        "fit": write_atomically(folder / "fit.html", render(fit_page(mean_fit, mean_plan))),
        "demo": write_atomically(folder / "demo.html", render(demo)),
        "evil": write_atomically(folder / "evil.html", evil_page()),
        "wide": write_atomically(folder / "wide.html", render(long)),
    }


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium")
@pytest.mark.slow
class TestBrowser:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("width", [360, 1440])
    @pytest.mark.parametrize("name", ["fit", "demo", "evil", "wide"])
    def test_a_page_opens_silently_and_fits(self, browser, pages, name, width, scheme, tmp_path):
        browser.open(pages[name], width=width, scheme=scheme)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        browser.screenshot(tmp_path / f"{name}-{width}-{scheme}.png")
        assert (tmp_path / f"{name}-{width}-{scheme}.png").stat().st_size > 5000
        assert browser.problems == []
        assert browser.requests == []

    def test_a_wide_table_takes_the_width_of_the_page_before_it_scrolls(self, browser, pages):
        # Issue 31: tables were cut off beside an empty margin.
        for width in (1280, 1440):
            browser.open(pages["wide"], width=width)
            frame, main, right = browser.evaluate(
                "['.frame', 'main'].map(name => document.querySelector(name).clientWidth)"
                ".concat(document.querySelector('.frame').getBoundingClientRect().right)"
            )
            assert frame > main
            assert width - 60 <= right <= width - 16

    def test_a_line_to_copy_breaks_where_the_window_of_a_phone_ends(self, browser, tmp_path):
        table = Table(
            "Save this", ("request",), (("statistics=" + "a=mean:b," * 12,),), numeric=False
        )
        page = Page("A", "B", (), (Section("C", (table,)),), "D")
        browser.open(write_atomically(tmp_path / "copy.html", render(page)), width=390)
        whole, seen = browser.evaluate(
            "['scrollWidth', 'clientWidth'].map(name => document.querySelector('.frame')[name])"
        )
        assert whole <= seen

    def test_the_answer_is_above_the_fold(self, browser, pages):
        for width, height in ((1440, 900), (390, 844)):
            browser.open(pages["fit"], width=width, height=height)
            bottom = browser.evaluate(
                "document.querySelector('figure svg').getBoundingClientRect().bottom"
            )
            assert bottom <= height, width

    def test_dark_is_dark(self, browser, pages):
        seen = {}
        for scheme in ("light", "dark"):
            browser.open(pages["fit"], width=1440, scheme=scheme)
            seen[scheme] = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert seen["light"] != seen["dark"]

    def test_the_keyboard_reaches_the_content_and_every_table(self, browser, pages):
        browser.open(pages["fit"], width=360)
        reached = []
        for _ in range(20):
            browser.press_tab()
            reached.append(browser.evaluate("document.activeElement.className"))
        assert reached[0] == "skip"
        assert "frame" in reached

    def test_figures_have_names_for_assistive_technology(self, browser, pages):
        browser.open(pages["fit"], width=1440)
        assert browser.evaluate(
            "[...document.querySelectorAll('figure svg')].every(svg => svg.getAttribute("
            "'aria-labelledby').split(' ').every(id => document.getElementById(id).textContent))"
        )

    def test_the_broken_twins_are_caught(self, browser, tmp_path):
        """A page that asks, complains and overflows: the checks above would see all of it."""
        path = tmp_path / "broken.html"
        path.write_text(
            "<!doctype html><title>x</title><div style='width:900px'>wide</div>"
            "<img src='missing.png'><script>console.error('no')</script>"
        )
        browser.open(path, width=360)
        assert browser.evaluate("document.documentElement.scrollWidth") > 360
        assert browser.problems
        assert browser.requests
