"""The style sheet: light and dark are both complete, and contrasts are readable."""

import re

import pytest

from quorate.app.reports.style import STYLE

SCHEMES = re.findall(r":root \{(.*?)\}", STYLE, re.S)


def variables(block):
    return dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", block))


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_both_schemes_define_the_same_variables():
    light, dark = map(variables, SCHEMES)
    assert set(light) == set(dark)
    assert set(re.findall(r"var\((--[\w-]+)\)", STYLE)) <= set(light)


@pytest.mark.parametrize("block", SCHEMES, ids=["light", "dark"])
def test_texts_have_a_contrast_of_at_least_four_and_a_half(block):
    colours = variables(block)
    for paper in ("--paper", "--card"):
        for ink in ("--ink", "--muted", "--accent"):
            assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
        for number in range(1, 6):
            assert contrast(colours[f"--series-{number}"], colours[paper]) >= 3.0
    assert contrast(colours["--alert"], colours["--alert-soft"]) >= 4.5
    assert contrast(colours["--ink"], colours["--soft"]) >= 4.5


def test_nothing_is_loaded_from_elsewhere():
    assert "url(" not in STYLE
    assert "@import" not in STYLE
