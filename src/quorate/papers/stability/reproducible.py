r"""Reproducible algorithms, a related notion: all heavy hitters, and amplified stability.

Impagliazzo, Lei, Pitassi and Sorrell studied the same property at the same time [1]_. Two of their
reductions are included here, because the paper that this package follows finds only one heavy
hitter and starts from stronger learners:

* :class:`HeavyHitterRule`: *all* frequent values, by one threshold that users share;
* :class:`AmplifiedRule`: from a rule on which few users agree to one on which most users agree. It
  tries several shared seeds on chunks of a user's records and uses the first one for which they
  agree.

References
----------
.. [1] Impagliazzo, Lei, Pitassi, Sorrell. Reproducibility in learning. STOC 2022,
   arXiv:2201.08430, Algorithm 1 and Theorem A.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.users import UserData
from quorate.core.users.public_choices import in_own_order
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept, as_features
from quorate.papers.stability.rules import Keys, StableRule, key_array
from quorate.papers.stability.shared_seed import SharedSeed

__all__ = ["AmplifiedRule", "HeavyHitterRule", "Members"]

_LARGEST_DOMAIN = 256


@dataclass(frozen=True)
class Members(Concept):
    """Predict 1 for the values of a set.

    >>> print(Members(values=(2, 5)))
    Predict 1 if x is 2 or 5, else 0.
    """

    values: tuple[int, ...]

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``, which has one column."""
        found = np.isin(as_features(X, n_features=1)[:, 0], np.array(self.values, dtype=float))
        return found.astype(np.int64)

    def __str__(self) -> str:
        if not self.values:
            return "Always predict 0."
        return f"Predict 1 if x is {' or '.join(map(str, self.values))}, else 0."


@dataclass(frozen=True)
class HeavyHitterRule(StableRule):
    r"""Return the set of all values that are frequent among a user's records.

    A value is in the set if its share is at least a threshold, which is uniform between ``low`` and
    ``high`` and shared by all users. Shares of different users are close to each other, so they are
    mostly on the same side of the threshold. Two users disagree about a value with probability at
    most :math:`|p - p'| / (high - low)`, and at most :math:`2/low` values matter. All values with a
    share above ``high`` are in the set, and none below ``low``. Labels are not used.

    Parameters
    ----------
    points : int
        Values 0, ..., points - 1, at most 256; anything else is ignored.
    low, high : float, default=0.05, 0.15

    Examples
    --------
    >>> x = np.tile([1, 1, 1, 4, 4, 4, 0, 2, 3, 5], 20)
    >>> users = UserData.from_arrays(x[:, None], users=np.repeat([0, 1], 100))
    >>> rule = HeavyHitterRule(8, low=0.15, high=0.25)
    >>> print(rule.concept(rule.decide(users, SharedSeed(0))[0], SharedSeed(0)))
    Predict 1 if x is 1 or 4, else 0.
    """

    points: int
    low: float = 0.05
    high: float = 0.15

    def __post_init__(self) -> None:
        _validate.positive_integer(points=self.points)
        _validate.probability(low=self.low, high=self.high)
        if self.points > _LARGEST_DOMAIN or self.low >= self.high:
            raise ParameterError("Expected at most 256 points and low < high.")

    @property
    def size(self) -> int:
        """The number of all sets of values."""
        return 1 << self.points

    @property
    def n_features(self) -> int:
        """One column."""
        return 1

    def threshold(self, seed: SharedSeed) -> float:
        """Return the threshold of a seed, which is the same for all users."""
        uniform = float(seed.uniforms("threshold", np.zeros(1, dtype=np.int64))[0])
        return self.low + (self.high - self.low) * uniform

    def concept(self, key: int, seed: SharedSeed) -> Members:
        """Return the membership rule of a set."""
        del seed
        return Members(tuple(i for i in range(self.points) if int(key) >> i & 1))

    def decide(self, users: UserData, seed: SharedSeed) -> Keys:
        """Return each user's set, as the bits of an integer."""
        values = users.X[:, 0]
        known = (values >= 0) & (values < self.points) & (values == np.floor(values))
        cell = users.user_index()[known] * self.points + values[known].astype(np.int64)
        counts = np.bincount(cell, minlength=users.n_users * self.points)
        held = np.maximum(users.record_counts(), 1)[:, np.newaxis]
        frequent = counts.reshape(users.n_users, self.points) >= self.threshold(seed) * held
        rows = np.packbits(frequent, axis=1, bitorder="little")
        return key_array([int.from_bytes(row.tobytes(), "little") for row in rows], size=self.size)


@dataclass(frozen=True)
class AmplifiedRule(StableRule):
    r"""Try several shared seeds and keep the first for which a user's own chunks agree.

    A user divides the records into ``chunks`` by their order, runs the rule on each chunk with each
    of ``seeds`` shared seeds, and keeps the first seed for which the most common key of the chunks
    has a share of at least a threshold. The threshold is uniform between ``low`` and ``high`` and
    shared by all users. For such a seed other users find the same key. A user without such a seed
    uses the first one.

    It helps only if users have many records, because chunks are smaller than the whole, and users
    must also agree on the seed. In the central model a private choice of the seed
    (:class:`~quorate.papers.stability.StableLearner`) avoids both disadvantages.

    Parameters
    ----------
    rule : StableRule
    seeds, chunks : int, default=8
    low, high : float, default=0.5, 0.9

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.papers.stability.softmax import SoftmaxRule
    >>> AmplifiedRule(SoftmaxRule(Thresholds(0, 98))).size
    800
    """

    rule: StableRule
    seeds: int = 8
    chunks: int = 8
    low: float = 0.5
    high: float = 0.9

    def __post_init__(self) -> None:
        _validate.positive_integer(seeds=self.seeds, chunks=self.chunks)
        _validate.probability(low=self.low, high=self.high)
        if not isinstance(self.rule, StableRule) or self.low >= self.high:
            raise ParameterError("Expected a StableRule and low < high.")

    @property
    def caveat(self) -> str | None:
        """The caveat of the underlying rule."""
        return self.rule.caveat

    @property
    def keeps_users_apart(self) -> bool:
        """Whether the underlying rule keeps users apart."""
        return super().keeps_users_apart and self.rule.keeps_users_apart

    @property
    def size(self) -> int:
        """The number of keys of the rule, times the number of seeds."""
        return self.seeds * self.rule.size

    @property
    def n_features(self) -> int:
        """The number of columns of ``X``."""
        return self.rule.n_features

    def concept(self, key: int, seed: SharedSeed) -> Concept:
        """Return the hypothesis of the rule's key under the chosen seed."""
        place, own = divmod(int(key), self.rule.size)
        return self.rule.concept(own, seed.child(f"try {place}"))

    def decide(self, users: UserData, seed: SharedSeed) -> Keys:
        """Return the seed and the key of each user, as one number."""
        parts = self._parts(users)
        limits = self.low + (self.high - self.low) * seed.uniforms("limits", np.arange(self.seeds))
        keys: list[int | None] = [None] * users.n_users
        first: list[int] = []
        for place in range(self.seeds):
            own = seed.child(f"try {place}")
            votes = self.rule.decide(parts, own).reshape(users.n_users, self.chunks)
            whole = self.rule.decide(users, own)
            for user in range(users.n_users):
                found, counts = np.unique(votes[user], return_counts=True)
                key = place * self.rule.size + int(whole[user])
                if place == 0:
                    first.append(key)
                agreed = counts.max() >= limits[place] * self.chunks
                if keys[user] is None and agreed and whole[user] == found[np.argmax(counts)]:
                    keys[user] = key
        filled = [first[user] if key is None else key for user, key in enumerate(keys)]
        return key_array(filled, size=self.size)

    def _parts(self, users: UserData) -> UserData:
        """Return a data set in which every chunk is one user; empty chunks stay empty."""
        users = in_own_order(users)
        counts = users.record_counts()
        cuts = np.arange(self.chunks + 1) * counts[:, np.newaxis] // self.chunks
        starts = users.offsets[:-1, np.newaxis] + cuts
        offsets = np.append(starts[:, :-1].ravel(), users.n_records)
        return UserData(users.X, users.y, offsets=offsets)
