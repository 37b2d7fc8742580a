"""Sums over nested intervals: consistent, best, and with a known largest error."""

import numpy as np
import pytest

from quorate.distributions.numeric.hierarchy import Hierarchy, choose_hierarchy, rising


def least_squares(hierarchy, sums, absent, total):
    """Solve for leaves and absence by a dense least squares with a heavy total."""
    leaves = hierarchy.leaves
    rows, values = [], []
    for size, level in zip(hierarchy.sizes, sums, strict=True):
        for place in range(size):
            row = np.zeros(leaves + 1)
            row[place * (leaves // size) : (place + 1) * (leaves // size)] = 1.0
            rows.append(row)
            values.append(level[place])
    rows.append(np.eye(leaves + 1)[-1])
    values.append(absent)
    rows.append(1e6 * np.ones(leaves + 1))
    values.append(1e6 * total)
    found = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    return found[:-1], found[-1]


@pytest.mark.parametrize(("branching", "levels"), [(4, 1), (2, 3), (3, 2), (5, 2)])
def test_consistency_is_least_squares(branching, levels):
    rng = np.random.default_rng(0)
    hierarchy = Hierarchy(branching, levels)
    sums = [rng.normal(10, 3, size) for size in hierarchy.sizes]
    leaves, gone = hierarchy.consistent(sums, 2.0, np.float64(70.0))
    expected, absent = least_squares(hierarchy, sums, 2.0, 70.0)
    assert leaves == pytest.approx(expected, abs=1e-4)
    assert gone == pytest.approx(absent, abs=1e-4)
    assert leaves.sum() + gone == pytest.approx(70.0)


def test_the_largest_error_is_kept_and_not_loose():
    hierarchy = Hierarchy(8, 2)
    bound = hierarchy.largest_error(scale=2.0, beta=0.05)
    rng = np.random.default_rng(5)
    noise = [rng.laplace(0, 2.0, size=(2000, size)) for size in hierarchy.sizes]
    leaves, gone = hierarchy.consistent(noise, rng.laplace(0, 2.0, 2000), np.zeros(2000))
    errors = np.abs(np.cumsum(leaves, axis=1)).max(axis=1) + np.abs(gone)
    assert np.mean(errors <= bound) >= 0.94
    assert np.mean(errors <= 0.7 * bound) < 0.95


@pytest.mark.parametrize("cells", [30, 400, 1000, 5000])
def test_the_choice_is_about_as_good_as_any(cells):
    def error(levels):
        branching = int(np.ceil(cells ** (1 / levels) - 1e-9))
        return Hierarchy(branching, levels).largest_error(scale=float(levels), beta=0.05)

    chosen = choose_hierarchy(cells)
    assert chosen.leaves >= cells
    own = chosen.largest_error(scale=float(chosen.levels), beta=0.05)
    assert own <= 1.1 * min(error(levels) for levels in (1, 2, 3))


def test_rising_brings_nothing_farther_from_a_rising_truth():
    rng = np.random.default_rng(2)
    for _ in range(50):
        truth = np.sort(rng.random(20))
        noisy = truth + rng.normal(0, 0.2, 20)
        found = rising(noisy)
        assert np.all(np.diff(found) >= 0)
        assert np.abs(found - truth).max() <= np.abs(noisy - truth).max() + 1e-12
