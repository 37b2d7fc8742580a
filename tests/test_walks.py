"""Five roles, each from the wheel alone: no test tools, no checkout (benchmarks/walks)."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROLES = sorted(path.stem for path in (ROOT / "benchmarks" / "walks").glob("*.py"))


@pytest.fixture(scope="module")
def walk():
    spec = importlib.util.spec_from_file_location("walk", ROOT / "benchmarks" / "walk.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["walk"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def programs(walk, tmp_path_factory):
    folder = tmp_path_factory.mktemp("walks")
    return walk.quick_environment(folder, walk.build(folder))


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_every_role_can_walk_from_the_wheel_alone(role, walk, programs, tmp_path):
    assert walk.failures([walk.play_role(role, programs, tmp_path)]) == []


def test_a_walk_that_fails_is_seen(walk, tmp_path):
    command = [sys.executable, "-c", "assert False, 'wrong answer'"]
    step = walk.run_step("broken", command, tmp_path, tmp_path)
    assert "wrong answer" in walk.failures([step])[0]


def test_there_is_a_walk_for_each_role():
    assert ROLES == [
        "data_science",
        "from_a_terminal",
        "phone_engineering",
        "privacy_office",
        "statistician",
    ]
