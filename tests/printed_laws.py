"""Two ways to choose, written out from the papers: for tests that do not ask the code."""

import itertools
import math

import numpy as np


def exponential(losses, *, rate):
    """Return the law with weights exp(-rate x loss)."""
    weights = np.exp(-rate * (np.array(losses, dtype=float) - min(losses)))
    return weights / weights.sum()


def permute_and_flip(losses, *, rate):
    """Return the law of the first accepted in a random order, by all orders."""
    count = len(losses)
    accepted = np.exp(-rate * (np.array(losses, dtype=float) - min(losses)))
    law = np.zeros(count)
    for order in itertools.permutations(range(count)):
        left = 1.0 / math.factorial(count)
        for place in order:
            law[place] += left * accepted[place]
            left *= 1.0 - accepted[place]
    return law


def separating_limit(records, low, high):
    """Return the t with the largest P[Bin(records, high) > t] - P[Bin(records, low) > t].

    Lemma 4.1 of Li, Wang and Ye, by trying all of them; of equal ones the largest.
    """
    from scipy.stats import binom

    gaps = [binom.sf(t, records, high) - binom.sf(t, records, low) for t in range(records)]
    return max(range(records), key=lambda t: (round(gaps[t], 12), t))
