r"""Decision lists on which most users agree: a shared seed chooses each rule (G10).

It is Rivest's greedy algorithm, in which the choice at each step is correlated over the users
instead of deterministic. Every rule that decides enough of the open records, and decides them
correctly, is as good as any other, because a list that begins with it can still be completed. So a
rule loses points only for wrong records and for missing coverage, and the shared Gumbel numbers
choose among the rest. The coverage of a rule would be a bad score, because it differs from user to
user. For longer terms the score contains the coverage, rounded to powers of 16 in the same way for
all users. Ending the list with a default is one of the choices. All users are processed at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept, Constant, feature_names, labelled_records
from quorate.papers.stability.codes import conjunctions_up_to
from quorate.papers.stability.rules import Keys, StableRule, key_array
from quorate.papers.stability.shared_seed import SharedSeed

__all__ = ["DecisionListRule", "TermList"]

# Records x terms that one block of users may work on.
_BLOCK_CELLS = 2**24
_MOST_TERMS = 2**14

# A wrong record costs as much as so many records that are not covered.
_WRONG = 4.0
# A default that decides all that is left rightly comes before further rules.
_READY = 12.0

Term = tuple[tuple[int, bool], ...]
"""Literals (feature, wanted value) that must all hold."""


@dataclass(frozen=True)
class TermList(Concept):
    """Rules (term, label), tried in order; the first rule whose term is true decides.

    >>> rule = TermList(rules=((((0, True), (1, False)), 1),), default=0, names=("a", "b"))
    >>> print(rule)
    If a and not b then predict 1, else predict 0.
    >>> rule.predict([[1, 0], [1, 1]])
    array([1, 0])
    """

    rules: tuple[tuple[Term, int], ...]
    default: int
    names: tuple[str, ...]

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:  # type: ignore[override]
        """Predict 0 or 1 for every row of ``X``."""
        from quorate.learners.concepts.boolean.booleans import read_booleans

        truth = read_booleans(X, n_features=len(self.names))
        label = np.full(len(truth), self.default, dtype=np.int64)
        for term, answer in reversed(self.rules):
            label[_holds(truth, term)] = answer
        return label

    def __str__(self) -> str:
        parts = [
            "if "
            + " and ".join(f"{'' if wanted else 'not '}{self.names[j]}" for j, wanted in term)
            + f" then predict {label}"
            for term, label in self.rules
        ]
        text = ", else ".join([*parts, f"predict {self.default}"])
        return f"{text[0].upper()}{text[1:]}."


@dataclass(frozen=True)
class DecisionListRule(StableRule):
    r"""Find a k-decision list of Boolean features, with shared randomness.

    Parameters
    ----------
    features : int
        Number of Boolean features d. A value is true if it is greater than 0.5.
    length : int, default=5
        The largest number of rules before the default.
    width : int, default=1
        The largest number of literals of a rule (k of k-decision lists).
    sharpness : float, default=16.0
        :math:`\gamma = c\sqrt{m}` for a user of m records.
    cover : float, default=0.02
        Share of a user's records that a rule should decide; rules with fewer are penalised.
    noise : float, default=0.0
        Allowed share of wrong labels among the records that a rule decides; three standard
        deviations are added.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, size=(2000, 4))
    >>> y = np.where(X[:, 1] == 1, 1, X[:, 3])
    >>> users = UserData.from_arrays(X, y, users=np.repeat(np.arange(4), 500))
    >>> rule = DecisionListRule(4, length=3)
    >>> keys = rule.decide(users, SharedSeed(0))
    >>> len(set(keys.tolist()))
    1
    >>> print(rule.concept(keys[0], SharedSeed(0)))
    If x3 then predict 1, else if not x1 then predict 0, else predict 1.
    """

    features: int
    length: int = 5
    width: int = 1
    sharpness: float = 16.0
    cover: float = 0.02
    noise: float = 0.0

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features, length=self.length, width=self.width)
        _validate.positive(sharpness=self.sharpness)
        _validate.fraction(noise=self.noise, cover=self.cover)
        terms = sum(math.comb(self.features, k) << k for k in range(1, self.width + 1))
        if terms > _MOST_TERMS:
            raise ParameterError(
                f"Expected at most {_MOST_TERMS} terms, got {terms} for "
                f"features={self.features} and width={self.width}."
            )

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The terms that a rule can have."""
        return conjunctions_up_to(self.features, self.width)

    @property
    def size(self) -> int:
        """Lists of at most ``length`` rules, and a default."""
        return int(2 * (2 * len(self.terms) + 1) ** self.length)

    @property
    def n_features(self) -> int:
        """The number of Boolean features d."""
        return self.features

    def concept(self, key: int, seed: SharedSeed) -> Concept:
        """Return the decision list of a key; a digit 0 means no rule."""
        del seed
        left, default = divmod(int(key), 2)
        rules = []
        while left:
            left, digit = divmod(left, 2 * len(self.terms) + 1)
            if digit:
                rules.append((self.terms[(digit - 1) // 2], (digit - 1) % 2))
        if not rules:
            return Constant(default)
        names = feature_names(None, n_features=self.features)
        return TermList(rules=tuple(rules), default=default, names=names)

    def decide(self, users: UserData, seed: SharedSeed) -> Keys:
        """Return the list of each user."""
        gumbels = [
            seed.gumbels(f"rule {step}", np.arange(2 * len(self.terms) + 2))
            for step in range(self.length + 1)
        ]
        offsets = seed.uniforms("levels", np.arange(self.length + 1))
        keys: list[int] = []
        counts = users.record_counts()
        start = 0
        while start < users.n_users:
            room = np.cumsum(counts[start:]) * len(self.terms) <= _BLOCK_CELLS
            stop = start + max(1, int(np.count_nonzero(room)))
            keys += self._block(users, start, stop, gumbels, offsets)
            start = stop
        return key_array(keys, size=self.size)

    def _block(
        self,
        users: UserData,
        start: int,
        stop: int,
        gumbels: list[NDArray[np.float64]],
        offsets: NDArray[np.float64],
    ) -> list[int]:
        records = labelled_records(users, n_features=self.features, start=start, stop=stop)
        truth = np.asarray(records.X) > 0.5
        holds = np.stack([_holds(truth, term) for term in self.terms], axis=1)
        counts = np.maximum(records.counts(), 1)
        rate = self.sharpness / np.sqrt(counts.astype(np.float64))
        open_records = np.ones(len(records.user), dtype=np.bool_)
        going = np.ones(records.n_users, dtype=np.bool_)
        keys, places = [0] * records.n_users, [1] * records.n_users
        base = 2 * len(self.terms) + 1
        for step in range(self.length + 1):
            right = self._covered(records.user, records.n_users, open_records & records.y, holds)
            wrong = self._covered(records.user, records.n_users, open_records & ~records.y, holds)
            # Columns: (term, label 0), (term, label 1), ..., then the two defaults.
            hits = np.stack([wrong, right], axis=2).reshape(records.n_users, -1)
            misses = np.stack([right, wrong], axis=2).reshape(records.n_users, -1)
            expected = self.noise * (hits + misses)
            lost = np.maximum(misses - expected - 3.0 * np.sqrt(expected), 0.0) * _WRONG
            lost[:, :-2] += np.maximum(self.cover * counts[:, np.newaxis] - hits[:, :-2], 0.0)
            scores = gumbels[step] - lost * rate[:, np.newaxis]
            if self.width > 1:
                scores[:, :-2] -= _levels(hits[:, :-2], counts, float(offsets[step]))
            scores[:, -2:] += _READY
            if step == self.length:
                scores[:, :-2] = -np.inf
            chosen = np.argmax(scores, axis=1)
            ends = chosen >= base - 1
            for user in np.flatnonzero(going).tolist():
                choice = int(chosen[user])
                if ends[user]:
                    keys[user] = 2 * keys[user] + choice - (base - 1)
                else:
                    keys[user] += places[user] * (choice + 1)
                    places[user] *= base
            going &= ~ends
            taken = np.where(ends, 0, chosen // 2)[records.user]
            open_records &= ~holds[np.arange(len(taken)), taken] & going[records.user]
        return keys

    @staticmethod
    def _covered(
        user: NDArray[np.int64],
        n_users: int,
        which: NDArray[np.bool_],
        holds: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Count, for each user, the marked records that satisfy each term, and all of them."""
        counted = np.zeros((n_users, holds.shape[1] + 1), dtype=np.int64)
        marked, owner = holds[which], user[which]
        if owner.size:
            starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
            counted[owner[starts], :-1] = np.add.reduceat(marked, starts, axis=0, dtype=np.int64)
        counted[:, -1] = np.bincount(owner, minlength=n_users)
        return counted


def _levels(
    hits: NDArray[np.int64], counts: NDArray[np.int64], offset: float
) -> NDArray[np.float64]:
    """Return the levels of terms; a term that decides 16 times as many records is one level better.

    All users share the random offset of the levels.

    Without levels, longer terms could select very small sets of records without mistakes, and the
    list would become very long.
    """
    share = np.maximum(hits, 1) / counts[:, np.newaxis]
    return np.asarray(_READY * np.floor(-0.25 * np.log2(share) + offset))


def _holds(truth: NDArray[np.bool_], term: Term) -> NDArray[np.bool_]:
    held = np.ones(len(truth), dtype=np.bool_)
    for feature, wanted in term:
        held &= truth[:, feature] == wanted
    return held
