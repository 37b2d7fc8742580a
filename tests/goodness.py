"""How well counts fit a law: one check for every test of noise."""

import numpy as np

FALSE_ALARM = 1e-7
"""Each check that uses it fails with at most this probability when the noise is right."""


def p_value(observed, probabilities):
    """Return the chi-squared p-value of counts; cells expecting fewer than 10 are pooled."""
    from scipy.stats import chi2

    observed = np.asarray(observed, dtype=float)
    expected = np.asarray(probabilities, dtype=float) * observed.sum()
    small = expected < 10
    if small.any():
        observed = np.append(observed[~small], observed[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
    keep = expected > 0
    if observed[~keep].sum() > 0:
        return 0.0
    observed, expected = observed[keep], expected[keep]
    if len(expected) < 2:
        return 1.0
    return float(chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1))


def counts_in(values, window):
    """Count each integer of a window, and everything outside of it in the last cell."""
    low, high = window
    inside = [np.count_nonzero(np.asarray(values) == v) for v in range(low, high + 1)]
    return np.array([*inside, len(values) - sum(inside)])


def law_in(mass, window):
    """Return a mass function on a window, with what is missing to one in the last cell."""
    low, high = window
    inside = [mass(v) for v in range(low, high + 1)]
    return np.array([*inside, max(0.0, 1 - sum(inside))])
