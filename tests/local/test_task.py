"""A task is one public text; another text is another task, and none promises too much."""

import hashlib
import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.guarantees import Relation, Trust
from quorate.exceptions import ParameterError, SchemaError
from quorate.local.task import Task

SEED = "0123456789abcdef" * 4
LOCAL = Task.local(name="favourite colour", candidates=2**14, epsilon=1.0, seed=SEED)
SHUFFLE = Task.shuffle(
    name="shuffled", candidates=1000, epsilon=1.0, delta=1e-6, users=60, honest=0.9, seed=SEED
)
both = pytest.mark.parametrize("task", [LOCAL, SHUFFLE], ids=["local", "shuffle"])


class TestCanonicalText:
    @both
    def test_it_is_sorted_flat_and_without_spaces_outside_of_words(self, task):
        document = json.loads(task.to_json())
        assert list(document) == sorted(document)
        assert all(isinstance(value, str) for value in document.values())
        assert json.dumps(document, separators=(",", ":")) == task.to_json()

    @both
    def test_the_identity_is_its_sha256(self, task):
        digest = hashlib.sha256(task.to_json().encode()).hexdigest()
        assert task.digest.hex() == digest
        assert task.id == digest[:16]

    @both
    def test_it_is_read_back(self, task):
        again = Task.from_json(task.to_json())
        assert again == task
        assert again.response == task.response
        # Another order of the same fields is the same task.
        shuffled = dict(reversed(json.loads(task.to_json()).items()))
        assert Task.from_json(json.dumps(shuffled)).id == task.id

    def test_every_field_changes_the_identity_and_the_shared_seed(self):
        def make(**changed):
            given = {"name": "t", "candidates": 64, "epsilon": 1.0, "seed": SEED} | changed
            return Task.local(**given)

        tasks = [
            make(),
            make(name="u"),
            make(candidates=65),
            make(epsilon=1.5),
            make(seed="0" * 64),
            make(users=2),
            make(unit="patient"),
            make(decision="stable"),
        ]
        assert len({task.id for task in tasks}) == len(tasks)
        assert len({task.shared_seed for task in tasks}) == len(tasks)

    def test_a_seed_is_drawn_when_none_is_given_and_differs(self):
        first, second = (Task.local(name="t", candidates=4, epsilon=1.0) for _ in "ab")
        assert first.seed != second.seed
        assert first.renewed(5) == second.renewed(5)


class TestPromises:
    def test_locally_everybody_learns_the_same(self):
        guarantees = LOCAL.guarantees()
        assert set(guarantees) == {"network", "shuffler", "server", "public"}
        for promise in guarantees.values():
            assert (promise.epsilon, promise.delta) == (1.0, 0.0)
            assert promise.trust is Trust.LOCAL
            assert promise.relation is Relation.REPLACE

    def test_after_the_shuffler_less_is_learnt_than_before_it(self):
        guarantees = SHUFFLE.guarantees()
        for role in ("network", "shuffler"):
            assert guarantees[role].epsilon == SHUFFLE.report_epsilon > 1.5
            assert guarantees[role].trust is Trust.LOCAL
        for role in ("server", "public"):
            assert (guarantees[role].epsilon, guarantees[role].delta) == (1.0, 1e-6)
            assert guarantees[role].trust is Trust.SHUFFLE

    def test_fewer_messages_than_promised_are_not_promised_to_hide(self):
        assert SHUFFLE.guarantees(shuffled=59)["public"].epsilon == SHUFFLE.report_epsilon
        assert SHUFFLE.guarantees(shuffled=60)["public"].epsilon == 1.0

    def test_only_honest_users_hide(self):
        assert SHUFFLE.honest_users == 54
        every = Task.shuffle(name="s", candidates=1000, epsilon=1.0, delta=1e-6, users=60)
        assert every.report_epsilon > SHUFFLE.report_epsilon

    def test_a_crowd_of_as_many_as_are_honest_is_not_promised_to_hide(self):
        """Of fewer messages than the task says, fewer are of honest users than it says."""
        public = {"name": "t", "candidates": 8, "epsilon": 1.0, "delta": 1e-3, "users": 40}
        task = Task.shuffle(honest=0.5, **public)
        assert task.report_epsilon > task.epsilon
        for shuffled in (20, 39):
            assert task.guarantees(shuffled=shuffled)["server"] == task.guarantees()["network"]
        assert task.guarantees(shuffled=40)["server"].trust is Trust.SHUFFLE
        for_all = Task.shuffle(honest=1.0, **public)
        with pytest.raises(ParameterError, match="20 honest users can hide"):
            replace(for_all, honest=0.5)

    def test_how_many_liars_are_withstood_is_stated(self):
        assert LOCAL.withstands(0.8) == pytest.approx(0.8 / (0.8 + float(LOCAL.response.influence)))


def changed(task, **fields):
    return json.dumps(json.loads(task.to_json()) | fields)


class TestRefusals:
    """A client believes no description that would make it say more than was promised."""

    @pytest.mark.parametrize(
        ("task", "fields"),
        [
            (LOCAL, {"report_epsilon": "2.0"}),
            (LOCAL, {"delta": "0.1"}),
            (SHUFFLE, {"report_epsilon": "5.0"}),
            (SHUFFLE, {"users": "10"}),
            (SHUFFLE, {"honest": "0.2"}),
            (SHUFFLE, {"delta": "1e-12"}),
        ],
    )
    def test_a_report_that_says_more_than_promised_is_refused(self, task, fields):
        with pytest.raises(ParameterError, match="Expected"):
            Task.from_json(changed(task, **fields))

    @both
    def test_another_keep_is_refused(self, task):
        keep = int(json.loads(task.to_json())["keep"])
        with pytest.raises(SchemaError, match="keep"):
            Task.from_json(changed(task, keep=str(keep + 1)))

    @pytest.mark.parametrize(
        "fields",
        [
            {"scheme": "quorate-hashed-2"},
            {"epsilon": "1.00"},
            {"epsilon": "one"},
            {"epsilon": 1.0},
            {"candidates": "16384.0"},
            {"candidates": " 16384"},
            {"trust": "central"},
            {"trust": "nobody"},
            {"extra": "1"},
        ],
    )
    def test_what_is_not_canonical_is_refused(self, fields):
        with pytest.raises((SchemaError, ParameterError), match="Expected"):
            Task.from_json(changed(LOCAL, **fields))

    @pytest.mark.parametrize("text", ["", "[]", "null", "{}", "[" * 100_000, b"\xff\xfe", "1"])
    def test_texts_that_are_no_task_are_refused(self, text):
        with pytest.raises(SchemaError, match="Expected a task"):
            Task.from_json(text)

    @settings(max_examples=100)
    @given(
        field=st.sampled_from(sorted(json.loads(LOCAL.to_json()))),
        value=st.one_of(
            st.text(max_size=20),
            st.sampled_from(
                ["nan", "inf", "-1", "0", "1e999", "9" * 5000, "1" + "0" * 400, "1e-320"]
            ),
            st.integers().map(str),
            st.floats().map(repr),
        ),
        task=st.sampled_from([LOCAL, SHUFFLE]),
    )
    def test_whatever_a_field_says_it_is_a_task_or_refused(self, field, value, task):
        try:
            read = Task.from_json(changed(task, **{field: value}))
        except (SchemaError, ParameterError):
            return
        assert json.loads(read.to_json())[field] == value

    @pytest.mark.parametrize("seed", ["", "0" * 63, "G" * 64, "A" * 64])
    def test_a_seed_that_is_none_is_refused(self, seed):
        with pytest.raises(ParameterError, match="seed"):
            Task.local(name="t", candidates=4, epsilon=1.0, seed=seed)

    @pytest.mark.parametrize("name", ["", " ", 'a"b', "a\\b", "é", "a\n", "x" * 201, 5])
    def test_names_that_two_languages_might_write_differently_are_refused(self, name):
        with pytest.raises(ParameterError, match="name"):
            Task.local(name=name, candidates=4, epsilon=1.0)

    @pytest.mark.parametrize(
        "wrong",
        [{"delta": 0.0}, {"users": 0}, {"honest": 1.5}, {"epsilon": math.nan}, {"candidates": 1}],
    )
    def test_parameters_out_of_range_are_refused(self, wrong):
        given = {"name": "t", "candidates": 4, "epsilon": 1.0, "delta": 1e-6, "users": 5} | wrong
        with pytest.raises(ParameterError):
            Task.shuffle(**given)


def test_a_task_has_room_for_candidates_of_63_bits():
    assert Task.local(name="t", candidates=2**63, epsilon=1.0).candidates == 2**63
    with pytest.raises(ParameterError, match="room"):
        Task.local(name="t", candidates=2**63 + 1, epsilon=1.0)
