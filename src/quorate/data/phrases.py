"""Texts divided into phrases: whole texts, or several consecutive words or characters.

The phrases of a text depend on the text alone. The set of words and phrases is private, and so is
their number. Their indices are in the order of the words, so which of two phrases comes first does
not depend on other texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.data import UserData
from quorate.core.users.grouping import mix, ranges
from quorate.data.columns.keys import label_words
from quorate.data.labels import Label, PrivateLabels

__all__ = ["PIECES", "Phrases", "PrivateTexts"]

Places = NDArray[np.int64]
Words = NDArray[np.uint64]

PIECES = ("texts", "words", "characters")
"""The pieces into which texts can be cut."""


@dataclass(frozen=True, eq=False)
class PrivateTexts:
    """Distinct texts, divided into pieces.

    Attributes
    ----------
    pieces : tuple of labels
        All distinct pieces, in order.
    starts : array of integers
        Where the pieces of each text begin in ``held``, and the end.
    held : array of integers
        The indices of the pieces of all texts.
    of : {"texts", "words", "characters"}
    """

    pieces: tuple[Label, ...]
    starts: Places
    held: Places
    of: str

    @classmethod
    def cut(cls, labels: PrivateLabels, of: str) -> PrivateTexts:
        """Divide labels into whole texts, words or characters.

        >>> found = PrivateTexts.cut(PrivateLabels.of_cells(["to be", " or  not to"]), "words")
        >>> found.pieces, found.starts.tolist(), found.held.tolist()
        (('be', 'not', 'or', 'to'), [0, 3, 5], [2, 1, 3, 3, 0])
        """
        if of == "texts":
            places = np.arange(len(labels.labels) + 1)
            return cls(labels.labels, places, places[:-1], of)
        texts = [str(label) for label in labels.labels]
        words, held, counts = _words(texts) if of == "words" else _characters(texts)
        order = sorted(range(len(words)), key=words.__getitem__)
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return cls(tuple(words[place] for place in order), starts, places[held], of)

    def phrases(
        self,
        length: int,
        *,
        within: Iterable[Label] = (),
        part: int = 0,
        start: bool = False,
    ) -> Phrases:
        """Return all phrases of this many pieces.

        Parameters
        ----------
        length : int
        within, part
            Only phrases that begin and end with one of these, of ``part`` pieces each; 0 for all.
        start : bool, default=False
            Only phrases at the beginning of a text (which also begin with one of ``within``).

        Examples
        --------
        >>> texts = PrivateTexts.cut(PrivateLabels.of_cells(["to be or not to be"]), "words")
        >>> [texts.phrases(2).name(place) for place in range(4)]
        ['be or', 'not to', 'or not', 'to be']
        >>> few = texts.phrases(2, within=["to", "be"], part=1)
        >>> [few.name(place) for place in range(len(few.examples))]
        ['to be']
        """
        owners = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        rank, _ = self._ranked(length, owners)
        inside = rank >= 0
        if part:
            known = self._known(within, part, owners)
            inside &= known
            if not start:
                places = np.flatnonzero(inside)
                inside[places] = known[places + length - part]
        if start:
            inside &= np.arange(len(self.held)) == self.starts[owners]
        places = np.flatnonzero(inside)
        found, first, again = np.unique(rank[places], return_index=True, return_inverse=True)
        counts = np.bincount(owners[places], minlength=len(self.starts) - 1)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        examples = places[first].reshape(len(found))
        return Phrases(self, length, starts, again.astype(np.int64), examples)

    def _ranked(self, length: int, owners: Places) -> tuple[Places, list[Places]]:
        """Return the rank of the phrase at each position, and the steps.

        The rank is -1 if the text ends before.

        Ranks follow the order of the pieces; the steps map pairs of a rank and one more piece to
        ranks.
        """
        size, ends = max(1, len(self.pieces)), self.starts[1:]
        rank, steps, here = self.held.copy(), [], np.arange(len(self.held))
        for more in range(1, length):
            inside = (here + more < ends[owners]) & (rank >= 0)
            places = here[inside]
            pairs, again = np.unique(
                rank[places] * size + self.held[places + more], return_inverse=True
            )
            steps.append(pairs)
            rank = np.full(len(here), -1, dtype=np.int64)
            rank[places] = again
        return rank, steps

    def _known(self, names: Iterable[Label], length: int, owners: Places) -> NDArray[np.bool_]:
        """Return where one of these phrases of this many pieces begins."""
        rank, steps = self._ranked(length, owners)
        wanted = [found for name in names if (found := self._rank_of(name, steps)) is not None]
        return np.isin(rank, np.array(wanted, dtype=np.int64))

    def _rank_of(self, name: Label, steps: list[Places]) -> int | None:
        """Return the rank of a phrase; None if nobody has it."""
        places = [self._places.get(piece) for piece in self._cut_again(name)]
        if None in places or len(places) != len(steps) + 1:
            return None
        rank = int(places[0] or 0)
        for step, place in zip(steps, places[1:], strict=True):
            pair = rank * len(self.pieces) + int(place or 0)
            at = int(np.searchsorted(step, pair))
            if at == len(step) or step[at] != pair:
                return None
            rank = at
        return rank

    def _cut_again(self, name: Label) -> list[Label]:
        if self.of == "texts":
            return [name]
        return [*(str(name).split(" ") if self.of == "words" else str(name))]

    @cached_property
    def _places(self) -> dict[Label, int]:
        return {piece: place for place, piece in enumerate(self.pieces)}

    @cached_property
    def piece_words(self) -> Words:
        """Return a word for each piece, a function of the piece alone."""
        return label_words(self.pieces)


@dataclass(frozen=True, eq=False)
class Phrases:
    """The phrases of each text.

    >>> import quorate as qr
    >>> texts = PrivateTexts.cut(PrivateLabels.of_cells(["to be", "be"]), "words")
    >>> people = qr.UserData.from_arrays([[1.0], [0.0]], users=["ann", "bob"])
    >>> owners, places = texts.phrases(1)(people)
    >>> owners.tolist(), places.tolist()
    ([0, 0, 1], [1, 0, 0])
    """

    texts: PrivateTexts
    length: int
    starts: Places
    held: Places
    examples: Places

    def name(self, place: int) -> Label:
        """Return the phrase with this number."""
        first = int(self.examples[place])
        pieces = [self.texts.pieces[p] for p in self.texts.held[first : first + self.length]]
        return (
            pieces[0]
            if self.length == 1
            else (" " if self.texts.of == "words" else "").join(map(str, pieces))
        )

    def words(self, numbers: Places) -> Words:
        """Return a word for each phrase, a function of its pieces."""
        each, held, first = self.texts.piece_words, self.texts.held, self.examples[numbers]
        found = each[held[first]]
        for more in range(1, self.length):
            found = mix(found + each[held[first + more]])
        return found

    def __call__(self, part: UserData) -> tuple[Places, Places]:
        """Return, for each phrase of a user's texts, the user and the phrase's index."""
        there = ~np.isnan(part.X[:, 0])  # which text is the first number of a record
        texts = part.X[there, 0].astype(np.int64)
        counts = np.diff(self.starts)[texts]
        owners = np.repeat(part.user_index()[there].astype(np.int64), counts)
        return owners, self.held[ranges(self.starts[texts], counts)]


def _words(texts: list[str]) -> tuple[list[Label], Places, Places]:
    """Return the words between white space.

    These are the distinct words, all words, and how many each text has.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cut = pc.utf8_split_whitespace(pa.array(texts, pa.large_string()))
    # White space at an end of a text leaves an empty word there.
    words = pc.list_flatten(cut)
    filled = np.asarray(pc.not_equal(words, ""))
    coded = words.filter(pa.array(filled)).dictionary_encode()
    owners = np.repeat(np.arange(len(texts)), np.asarray(pc.list_value_length(cut)))
    counts = np.bincount(owners[filled], minlength=len(texts))
    return coded.dictionary.to_pylist(), np.asarray(coded.indices, dtype=np.int64), counts


def _characters(texts: list[str]) -> tuple[list[Label], Places, Places]:
    points = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
    found, held = np.unique(points, return_inverse=True)
    counts = np.array([len(text) for text in texts], dtype=np.int64)
    return list(map(chr, found.tolist())), held.astype(np.int64), counts
