"""One descriptor says everything about an estimator, and says it before anything is imported."""

import subprocess
import sys

import pytest

from quorate.app.catalogue import CATALOGUE, TASKS, describe
from quorate.app.catalogue.descriptor import Descriptor, Target, Wish, open_path
from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.ranges import Limit


def wish(*features, **others):
    return Wish(features=features, limits=(Limit(0, 9),), **others)


class TestWish:
    def test_ranges_are_those_of_the_features_or_of_named_columns(self):
        asked = Wish(
            features=("age", "bmi"), target="cost", limits=(Limit(0, 120, "age"), Limit(0, 99))
        )
        assert asked.ranges() == ([0, 0], [120, 99])
        assert asked.ranges(("cost",)) == ([0], [99])
        assert asked.half_width == 60

    def test_a_range_for_an_unknown_column_is_refused(self):
        with pytest.raises(ParameterError, match="height"):
            Wish(features=("age",), limits=(Limit(0, 3, "height"),)).ranges()

    def test_a_missing_range_is_refused(self):
        with pytest.raises(UnboundedContributionError, match="age"):
            Wish(features=("age",)).ranges()


class TestBuild:
    def test_options_are_read_from_text(self):
        median = TASKS["median"].build(wish("age", options={"each_user": "mean"}), epsilon=1.0)
        assert median.each_user == "mean"

    def test_an_unknown_option_is_refused_with_those_that_there_are(self):
        with pytest.raises(ParameterError, match="it has resolution, each_user"):
            TASKS["median"].build(wish("age", options={"colour": "red"}), epsilon=1.0)

    def test_a_parameter_that_the_estimator_has_not_is_refused(self):
        with pytest.raises(ParameterError, match="no algorithm"):
            TASKS["median"].build(wish("age"), epsilon=1.0, algorithm="clip")

    def test_an_option_that_has_to_be_set_is_asked_for(self):
        with pytest.raises(ParameterError, match="needs the option 'categories', such as"):
            TASKS["shares"].build(wish("ward"), epsilon=1.0)

    def test_one_feature_means_one(self):
        with pytest.raises(ParameterError, match="takes one feature, got 2"):
            TASKS["threshold"].build(wish("a", "b", target="y"), epsilon=1.0)

    def test_records_become_a_parameter_of_learners_only(self):
        asked = wish("a", target="y", records=7)
        assert TASKS["threshold"].build(asked, epsilon=1.0).records == 7
        assert TASKS["mean"].build(asked, epsilon=1.0).records is None

    def test_an_estimator_without_a_task_is_not_built(self):
        with pytest.raises(ParameterError, match="with a task"):
            describe("UserQueries").build(wish("a"), epsilon=1.0)


class TestTheCatalogue:
    def test_a_task_or_a_reason_why_there_is_none(self):
        known = {"path": "m:C", "sentence": "", "releases": {}, "example": lambda: None}
        with pytest.raises(ParameterError, match="task for C"):
            Descriptor(**known)
        with pytest.raises(ParameterError, match="answer"):
            Descriptor(**known, task="c")

    def test_names_and_tasks_are_unique(self):
        assert len({each.path for each in CATALOGUE.values()}) == len(CATALOGUE)
        assert all(each.kind.__name__ == name for name, each in CATALOGUE.items())
        with_task = [each for each in CATALOGUE.values() if each.task is not None]
        assert len(TASKS) == len(with_task)

    @pytest.mark.parametrize("name", CATALOGUE)
    def test_planned_tasks_carry_the_name_of_the_task(self, name):
        descriptor = CATALOGUE[name]
        planned = [open_path(path).name for path in descriptor.plans]
        assert all(f"{each}-".startswith(f"{descriptor.task}-") for each in planned)
        assert not planned or planned[0] == descriptor.task
        assert not planned or descriptor.sizes is not None

    @pytest.mark.parametrize("name", CATALOGUE)
    def test_classes_belong_to_labels(self, name):
        descriptor = CATALOGUE[name]
        assert (descriptor.most_classes > 0) is (descriptor.target is Target.LABEL)

    def test_unknown_names_are_refused(self):
        with pytest.raises(ParameterError, match="UserMean"):
            describe("Magic")

    def test_looking_things_up_imports_no_estimator(self):
        code = (
            "import sys, quorate.app.catalogue; "
            "heavy = ('quorate.means', 'sklearn', 'scipy'); "
            "sys.exit(any(name.startswith(heavy) for name in sys.modules))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
