"""What a release rests on: its version, its notes, its archives, the bounds on dependencies."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import quorate

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "release" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


version = load("version")
release = load("release")
uncovered = load("uncovered")


@pytest.fixture
def checkout(tmp_path):
    """A repository of one commit, as somebody clones it: without tags."""
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0 (unreleased)\n\nNew.\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def git(folder, *arguments):
    given = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
    return subprocess.run(given, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")


class TestVersions:
    def test_a_clone_without_tags_is_on_the_way_to_the_planned_release(self, checkout):
        found = version.version(checkout)
        assert re.fullmatch(r"0\.2\.0\.dev1\+g[0-9a-f]+", found)
        assert Version("0.1.0") < Version(found) < Version("0.2.0")

    def test_a_tag_is_the_version_and_later_commits_are_on_the_way_to_the_next(self, checkout):
        git(checkout, "tag", "v0.2.0")
        assert version.version(checkout) == "0.2.0"
        commit(checkout)
        found = version.version(checkout)
        assert re.fullmatch(r"0\.2\.1\.dev1\+g[0-9a-f]+", found)
        git(checkout, "tag", "some-other-tag")
        assert version.version(checkout) == found

    def test_an_sdist_knows_its_version_and_a_plain_copy_the_planned_one(self, checkout):
        shutil.rmtree(checkout / ".git")
        assert version.version(checkout) == "0.2.0.dev0"
        (checkout / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: quorate\nVersion: 0.3.1\n")
        assert version.version(checkout) == "0.3.1"

    def test_the_package_says_what_is_installed(self):
        from importlib import metadata

        assert quorate.__version__ == metadata.version("quorate")
        assert "version" not in PROJECT["project"]
        assert f"version: {version.planned_version()}" in (ROOT / "CITATION.cff").read_text()


class TestReleaseScript:
    def test_notes_are_those_of_one_version(self):
        text = "# Changes\n## 0.2.0 (today)\nNew.\n### Added\n- x\n## 0.1.0\nOld.\n"
        assert release.notes(text, "0.2.0") == "New.\n### Added\n- x"
        assert release.notes(text, "0.2") == ""
        assert release.notes((ROOT / "CHANGELOG.md").read_text(), version.planned_version())

    def test_what_is_not_ready_is_said(self, checkout):
        shutil.copy(ROOT / "pyproject.toml", checkout)
        (checkout / "CITATION.cff").write_text("version: 0.1.0\n")
        commit(checkout)
        made = version.version(checkout)
        said = " ".join(release.problems(checkout, made, rehearse=False))
        for word in ("tag v0.2.0", "(unreleased)", "CITATION.cff", "[project.urls]"):
            assert word in said
        links = '[project.urls]\nSource = "https://example.org/us/quorate"\n'
        text = (checkout / "pyproject.toml").read_text()
        (checkout / "pyproject.toml").write_text(
            text.replace("[project.scripts]", links + "[project.scripts]")
        )
        assert "origin is not set" in " ".join(release.problems(checkout, made, rehearse=False))
        (checkout / "CITATION.cff").write_text("version: 0.2.0\n")
        (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0 (2026-11-18)\n\nNew.\n")
        commit(checkout)
        git(checkout, "tag", "v0.2.0")
        git(checkout, "remote", "add", "origin", "git@example.org:us/quorate")
        assert release.problems(checkout, version.version(checkout), rehearse=False) == []
        (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0\n\nOther.\n")
        said = " ".join(release.problems(checkout, "0.2.0", rehearse=False))
        assert "not committed" in said

    def test_archives_with_something_strange_are_refused(self, tmp_path):
        import tarfile
        import zipfile

        wheel, sdist = tmp_path / "quorate-1-py3-none-any.whl", tmp_path / "quorate-1.tar.gz"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("quorate/__init__.py", "")
            archive.writestr("tests/secret.txt", "")
        with tarfile.open(sdist, "w:gz") as packed:
            packed.add(wheel, "quorate-1/README.md")
        said = " ".join(release.check_contents(sdist, wheel))
        assert "tests/secret.txt" in said
        assert "no py.typed" in said
        assert "no LICENSE" in said
        assert "no README.md" not in said


def test_no_link_names_an_address_that_nobody_of_this_project_owns():
    assert "urls" not in PROJECT["project"]


class TestDependencies:
    def test_only_what_privacy_rests_on_has_an_upper_bound(self):
        bounded = {
            Requirement(line).name
            for line in PROJECT["project"]["dependencies"]
            if any(each.operator in ("<", "<=", "==", "~=") for each in Requirement(line).specifier)
        }
        assert bounded == {"opendp", "dp-accounting"}
        assert (ROOT / "decisions" / "0042-upper-bounds.md").exists()

    def test_constraints_are_exact_and_within_what_is_declared(self):
        lines = (ROOT / "constraints.txt").read_text().splitlines()
        pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
        for line in PROJECT["project"]["dependencies"]:
            requirement = Requirement(line)
            assert requirement.specifier.contains(pins[requirement.name.lower()]), line

    def test_the_workflow_runs_what_ci_runs_on_every_python(self):
        text = (ROOT / ".github" / "workflows" / "test.yml").read_text()
        pythons = [
            each.rsplit(" ", 1)[1] for each in PROJECT["project"]["classifiers"] if ":: 3." in each
        ]
        assert str(pythons).replace("'", '"') in text
        assert ".ci/run" in text


def test_refusals_that_no_test_reaches_are_listed(tmp_path):
    (tmp_path / "a.py").write_text("def f(x):\n    if x:\n        raise ValueError\n    return x\n")
    assert uncovered.unreached({"a.py": {"missing_lines": [3]}}, tmp_path) == ["a.py:3"]
    assert uncovered.unreached({"a.py": {"missing_lines": [4]}}, tmp_path) == []


def test_the_extra_for_spark_brings_what_spark_needs_to_run_python():
    """From a wheel with ``quorate[spark]`` every fit was refused: pandas was not found."""
    [spark] = map(Requirement, PROJECT["project"]["optional-dependencies"]["spark"])
    assert spark.name == "pyspark"
    assert spark.extras == {"sql"}
