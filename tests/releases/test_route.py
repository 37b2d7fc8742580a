"""Which algorithm, and why."""

import dataclasses

import pytest

from quorate.releases.route import Route


def test_it_says_which_way_and_why():
    assert str(Route(name="ball", reason="there was room.")) == "ball: there was room."


def test_it_is_frozen_and_takes_keywords_only():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Route(name="ball", reason="").name = "core"
    with pytest.raises(TypeError):
        Route("ball", "there was room.")
