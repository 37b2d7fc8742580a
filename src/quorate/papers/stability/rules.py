"""The interface of stable learners: users decide separately, and most decide the same.

A stable rule maps one user's records and a seed that all users share to the *key* of a hypothesis.
It draws no noise and has no guarantee: its result is a function of one user's records. Privacy
comes from the selection that follows, for every seed, because each user has one key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import is_of_caller
from quorate.core.users import UserData
from quorate.learners.concepts.base import Concept
from quorate.papers.stability.shared_seed import SharedSeed

__all__ = ["Keys", "StableRule", "key_array", "plurality"]

Keys = NDArray[Any]
"""One key per user: int64 where all keys are below 2^63, else Python integers."""


class StableRule(ABC):
    """A learner that each user runs on their own records, with a shared seed.

    Keys are the integers 0, ..., ``size`` - 1, and a key *is* a hypothesis: equal keys of different
    users mean equal hypotheses under the same seed. No record can make a rule raise an error; a
    user without a clear answer gets the key of a public default.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of possible keys; public."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns of ``X``."""

    @property
    def caveat(self) -> str | None:
        """Why a guarantee with this rule is only idealized; None if it is exact."""
        return None

    @property
    def keeps_users_apart(self) -> bool:
        """Whether ``decide`` may get many users at once.

        Rules of the caller get one user at a time.
        """
        return not is_of_caller(self)

    @abstractmethod
    def decide(self, users: UserData, seed: SharedSeed) -> Keys:
        """Return one key per user, a function of this user's records and of the seed."""

    @abstractmethod
    def concept(self, key: int, seed: SharedSeed) -> Concept:
        """Return the hypothesis of a key under a seed."""


def key_array(keys: list[int], *, size: int) -> Keys:
    """Return keys as int64 if they all fit, otherwise as Python integers.

    >>> key_array([1, 2], size=10).dtype, key_array([2**70], size=2**80).dtype
    (dtype('int64'), dtype('O'))
    """
    return np.array(keys, dtype=np.int64 if size <= 2**63 else object)


def plurality(keys: Keys) -> tuple[int, float]:
    """Return the most common key and its share of the users; not private.

    >>> plurality(np.array([4, 4, 7]))
    (4, 0.666...)
    """
    found, counts = np.unique(keys, return_counts=True)
    best = int(np.argmax(counts))
    return int(found[best]), float(counts[best] / len(keys))
