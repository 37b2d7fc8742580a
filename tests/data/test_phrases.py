"""Texts cut into words and phrases: a text's phrases follow from the text alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.users import UserData
from quorate.data.labels import PrivateLabels
from quorate.data.phrases import PrivateTexts

TEXTS = st.lists(st.text(alphabet="ab \u3000é\n", max_size=12), min_size=1, max_size=6)
kinds = pytest.mark.parametrize("of", ["texts", "words", "characters"])


def cut(texts, of):
    return PrivateTexts.cut(PrivateLabels.of_cells(texts), of)


def phrases_of(texts, of, length, **known):
    """Return the set of phrases of each text, asked as a person's."""
    labels = PrivateLabels.of_cells(texts)
    found = PrivateTexts.cut(labels, of).phrases(length, **known)
    people = UserData.from_arrays(labels.numbers[:, None], users=range(len(texts)))
    owners, numbers = found(people)
    sets = [set() for _ in texts]
    for owner, number in zip(owners.tolist(), numbers.tolist(), strict=True):
        sets[owner].add(found.name(number))
    return sets


def plainly(text, of, length):
    """The same in plain Python."""
    pieces = {"texts": [text], "words": text.split(), "characters": list(text)}[of]
    joint = " " if of == "words" else ""
    starts = range(len(pieces) - length + 1)
    return {joint.join(pieces[i : i + length]) for i in starts}


class TestPhrases:
    @kinds
    @given(TEXTS, st.integers(1, 4))
    def test_they_are_what_plain_python_finds(self, of, texts, length):
        if of == "texts":
            length = 1
        assert phrases_of(texts, of, length) == [plainly(text, of, length) for text in texts]

    @given(TEXTS)
    def test_the_order_of_two_phrases_is_the_same_whoever_else_is_there(self, texts):
        for length in (1, 2, 3):
            found = cut(texts, "words").phrases(length)
            names = [found.name(number) for number in range(len(found.examples))]
            assert names == sorted(names, key=str.split)
            words = dict(zip(names, found.words(np.arange(len(names))).tolist(), strict=True))
            more = cut([*texts, "a new b word", "aa"], "words").phrases(length)
            all_words = {
                more.name(number): more.words(np.array([number]))[0]
                for number in range(len(more.examples))
            }
            assert {name: all_words[name] for name in names} == words

    def test_only_phrases_within_what_was_found(self):
        texts = ["to be or not to be", "be or"]
        found = phrases_of(texts, "words", 3, within=["be or", "or not", "never seen"], part=2)
        assert found == [{"be or not"}, set()]

    @given(TEXTS, st.lists(st.sampled_from(["a", "b", "ab", "é", "a b", "ba"]), max_size=4))
    def test_they_begin_and_end_with_what_was_found(self, texts, within):
        for of in ("words", "characters"):
            for found, text in zip(
                phrases_of(texts, of, 2, within=within, part=1), texts, strict=True
            ):
                parts = (lambda p: p.split(" ")) if of == "words" else list
                wanted = {p for p in plainly(text, of, 2) if set(parts(p)) <= set(within)}
                assert found == wanted

    def test_beginnings_of_texts(self):
        texts = ["http://a", "http://b", "ftp://a"]
        assert phrases_of(texts, "characters", 4, start=True) == [{"http"}, {"http"}, {"ftp:"}]
        found = phrases_of(texts, "characters", 8, start=True, within=["http"], part=4)
        assert found == [{"http://a"}, {"http://b"}, set()]

    @kinds
    def test_odd_cells_are_no_texts(self, of):
        cells = ["a", None, float("nan"), b"\xff", ["a"], "\ud800", 7, "  "]
        found = phrases_of(cells, of, 1)
        assert found[1:6] == [set()] * 5
        assert found[6] == ({7} if of == "texts" else {"7"})
        assert cut([None], of).phrases(1).examples.size == 0
