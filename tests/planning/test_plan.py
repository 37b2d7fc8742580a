"""What a plan prints and carries."""

import builtins
import json
import math

import pytest

from quorate.core.guarantees import Relation
from quorate.exceptions import MissingExtraError
from quorate.planning.plan import Baseline, Curve, Plan, PublishedBound


def make(**changes):
    known = {
        "task": "mean",
        "solved_for": "nothing",
        "users": 1000,
        "records": 10,
        "epsilon": 1.0,
        "delta": 1e-6,
        "error": 0.1,
        "confidence": 0.9,
        "relation": Relation.REPLACE,
        "size": (("dimension", 3), ("bounds", 10.0)),
        "error_meaning": "distance",
        "users_needed": 412,
        "error_expected": 0.05,
        "upper": PublishedBound(users=1e14, theorem="Theorem 2", holds=False, note="constants 1"),
        "lower": PublishedBound(users=None, theorem="Theorem 9", holds=True, note="nothing here"),
        "baselines": (Baseline(name="group privacy", users=None, error=math.inf),),
        "algorithm": "core",
        "reason": "users are near.",
        "warning": None,
        "advice": ("Collect more.",),
        "changes": (("users", 0.5),),
        "curves": (
            Curve(name="quorate", users=(500, 1000), errors=(0.1, 0.05)),
            Curve(name="group privacy", users=(500, 1000), errors=(math.inf, 2.0)),
        ),
    }
    return Plan(**{**known, **changes})


class TestSentence:
    def test_it_says_how_many_are_needed_and_planned(self):
        assert make().sentence == "412 users needed, 1,000 planned: quorate."
        assert make(users=400).sentence == "412 users needed, 400 planned: not quorate."

    def test_it_answers_the_open_question(self):
        assert make(solved_for="users", users=412).sentence == "412 users needed."
        assert make(solved_for="epsilon").sentence == "Epsilon 1 needed for 1,000 users."
        assert make(solved_for="error").sentence == (
            "1,000 users reach an error of 0.1 with 90% confidence."
        )

    def test_out_of_reach_is_said_plainly(self):
        nothing = make(solved_for="users", users=None, users_needed=None)
        assert nothing.sentence == "No number of users reaches an error of 0.1: not quorate."
        assert not nothing.quorate
        no_epsilon = make(solved_for="epsilon", epsilon=None, users_needed=None)
        assert no_epsilon.sentence.startswith("No epsilon lets 1,000 users")


class TestTable:
    def test_it_ends_with_the_sentence_and_names_everything(self):
        text = str(make(warning="Hopeless."))
        assert text == make(warning="Hopeless.").table
        assert text.endswith("412 users needed, 1,000 planned: quorate.")
        for part in (
            "mean (dimension 3, bounds 10)",
            "epsilon 1, delta 1e-06; neighbours replace all records of one user",
            "1,000 with 10 records each",
            "412 for error 0.1",
            "0.05 with 90% confidence",
            "core: users are near.",
            "1e+14 users (Theorem 2; not proved here; constants 1)",
            "nothing (Theorem 9: nothing here)",
            "a number of users out of reach; error out of reach as planned",
            "Collect more.",
            "Hopeless.",
        ):
            assert part in text

    def test_lines_are_aligned(self):
        lines = make().table.splitlines()[:-2]
        width = max(len(label) for label, _ in make().rows) + 2
        assert all(line[width - 2 : width] == "  " for line in lines)

    def test_a_task_without_description_and_delta_stays_short(self):
        text = make(size=(), delta=0.0).table
        assert text.startswith("task")
        assert "mean\n" in text
        assert "delta" not in text


class TestDictionary:
    def test_infinities_become_none(self):
        values = json.loads(json.dumps(make(error_expected=math.inf).to_dict(), allow_nan=False))
        assert values["error_expected"] is None
        assert values["baselines"][0] == {"name": "group privacy", "users": None, "error": None}
        assert values["curves"][1]["errors"] == [None, 2.0]
        assert values["quorate"] is True
        assert values["relation"] == "replace"
        assert values["size"] == {"dimension": 3, "bounds": 10.0}
        assert values["changes"] == {"users": 0.5}

    def test_it_carries_every_field(self):
        names = set(Plan.__dataclass_fields__)
        assert names <= set(make().to_dict())

    def test_a_plan_is_frozen(self):
        with pytest.raises(AttributeError):
            make().users = 5


class TestPlot:
    def test_it_draws_a_line_a_way_and_the_planned_point(self, tmp_path):
        pytest.importorskip("matplotlib")
        path = tmp_path / "plan.png"
        figure = make().plot(path)
        assert path.stat().st_size > 1000
        axes = figure.axes[0]
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert labels == ["quorate", "group privacy", "this plan"]
        assert list(axes.lines[1].get_xdata()) == [1000]

    def test_it_names_the_missing_extra(self, monkeypatch):
        real = builtins.__import__

        def without(name, *args, **kwargs):
            if name.startswith("matplotlib"):
                raise ImportError(name)
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(MissingExtraError, match=r"quorate\[plot\]"):
            make().plot()
