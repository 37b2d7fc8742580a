"""All *public* randomness: caps, splits, rotations.

It protects nobody; privacy noise comes from :mod:`quorate.core.noise`. A seed given by
the caller therefore never weakens a guarantee, as long as it is chosen without looking at the data.
"""

from __future__ import annotations

import numbers

import numpy as np

from quorate.exceptions import ParameterError

__all__ = ["Generator", "RandomState", "keyed_generator", "public_generator"]

_EXPECTED = "Expected random_state to be None, an integer >= 0 or a numpy Generator, got {!r}."

Generator = np.random.Generator
RandomState = int | np.integer | Generator | np.random.RandomState | None


def public_generator(random_state: RandomState = None) -> Generator:
    """Return a generator for choices that may be public.

    >>> public_generator(7).integers(100) == public_generator(7).integers(100)
    np.True_
    """
    if isinstance(random_state, Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    if random_state is None:
        return np.random.default_rng()
    is_seed = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if is_seed and random_state >= 0:
        return np.random.default_rng(int(random_state))
    raise ParameterError(_EXPECTED.format(random_state))


def keyed_generator(key: int) -> Generator:
    """Return the generator of a public key of 128 bits.

    >>> keyed_generator(7).integers(100) == keyed_generator(7).integers(100)
    np.True_
    """
    return Generator(np.random.Philox(key=key))
