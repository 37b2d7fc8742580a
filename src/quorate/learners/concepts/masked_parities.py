r"""Masked parities: the rules that need two rounds of queries (Section 5.3 of the paper, K9).

An input is (x, i, b) with d bits x, an index i < d and a bit b. The rule of r and a predicts the
parity of r and x, flipped by a, if b = 0, and reveals the bit :math:`r_i` if b = 1. In a table
these are d + 2 columns: x, then i, then b; label 1 stands for the paper's -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept, as_features
from quorate.learners.concepts.boolean.booleans import all_patterns

__all__ = ["MaskedParity", "all_masked_parities", "masked_inputs", "split_masked"]


def split_masked(
    X: ArrayLike, *, features: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.bool_]]:
    """Return x, i and b of every row; an index is rounded down and clipped to its range.

    >>> x, i, b = split_masked([[1, 0, 1, 1]], features=2)
    >>> x.tolist(), i.tolist(), b.tolist()
    ([[True, False]], [1], [True])
    """
    table = as_features(X, n_features=features + 2)
    index = np.clip(table[:, features], 0, features - 1).astype(np.int64)
    return table[:, :features] > 0.5, index, table[:, features + 1] > 0.5


def masked_inputs(features: int) -> NDArray[np.float64]:
    """List all 2**d * d * 2 inputs.

    >>> masked_inputs(4).shape
    (128, 6)
    """
    cube = all_patterns(features)
    rows = len(cube)
    return np.column_stack(
        [
            np.tile(cube, (2 * features, 1)),
            np.repeat(np.tile(np.arange(features), 2), rows),
            np.repeat([0, 1], rows * features),
        ]
    ).astype(np.float64)


@dataclass(frozen=True)
class MaskedParity(Concept):
    """The masked parity of ``secret`` (an integer of bits) and ``flip``.

    With ``flip=None`` the rule does not use the flip: it predicts 0 wherever b = 0, and errs on a
    quarter of uniform inputs.

    >>> rule = MaskedParity(features=2, secret=0b10, flip=1)
    >>> print(rule)
    Predict the flipped parity of x1 where b = 0, and whether x_i is in it where b = 1.
    >>> rule.predict([[0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
    array([0, 1, 1])
    """

    features: int
    secret: int
    flip: int | None

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features)
        _validate.non_negative_integer(secret=self.secret)
        if self.secret >> self.features or self.flip not in (None, 0, 1):
            raise ParameterError("Expected a secret of `features` bits and flip 0, 1 or None.")

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``."""
        x, index, mask = split_masked(X, features=self.features)
        bits = np.array([self.secret >> j & 1 for j in range(self.features)], dtype=np.int64)
        if self.flip is None:
            parity = np.zeros(len(x), dtype=np.int64)
        else:
            parity = (x[:, bits == 1].sum(axis=1, dtype=np.int64) + self.flip) % 2
        return np.where(mask, bits[index], parity)

    def __str__(self) -> str:
        names = [f"x{j}" for j in range(self.features) if self.secret >> j & 1]
        other = "whether x_i is in it where b = 1"
        if self.flip is None:
            return f"Predict 0 where b = 0, and whether i is in ({', '.join(names)}) where b = 1."
        flipped = "flipped parity" if self.flip else "parity"
        return f"Predict the {flipped} of {', '.join(names) or 'nothing'} where b = 0, and {other}."


def all_masked_parities(features: int) -> Iterator[MaskedParity]:
    """Yield all 2**(d + 1) rules.

    >>> len(list(all_masked_parities(4)))
    32
    """
    for secret in range(2**features):
        for flip in (0, 1):
            yield MaskedParity(features, secret, flip)
