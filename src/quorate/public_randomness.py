"""The one door to *public* randomness: caps, splits, rotations, shared seeds.

Nothing drawn here hides anybody; privacy noise comes from :mod:`quorate.noise`. A seed given by
the caller therefore never weakens a guarantee, as long as it is chosen without looking at the data.
"""

from __future__ import annotations

import numbers

import numpy as np

from quorate.exceptions import ParameterError

__all__ = ["RandomState", "public_generator"]

_EXPECTED = "Expected random_state to be None, an integer >= 0 or a numpy Generator, got {!r}."

RandomState = int | np.integer | np.random.Generator | np.random.RandomState | None


def public_generator(random_state: RandomState = None) -> np.random.Generator:
    """Return a generator for choices that anyone may know.

    >>> public_generator(7).integers(100) == public_generator(7).integers(100)
    np.True_
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    if random_state is None:
        return np.random.default_rng()
    is_seed = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if is_seed and random_state >= 0:
        return np.random.default_rng(int(random_state))
    raise ParameterError(_EXPECTED.format(random_state))
