"""Masked parities: the facts of Section 5.3 by enumeration."""

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts.masked_parities import (
    MaskedParity,
    all_masked_parities,
    masked_inputs,
    split_masked,
)


def test_inputs_are_all_different_and_complete():
    inputs = masked_inputs(4)
    assert len({tuple(row) for row in inputs}) == 2**4 * 4 * 2
    x, i, b = split_masked(inputs, features=4)
    assert set(i) == set(range(4))
    assert b.mean() == 0.5
    assert x.mean() == 0.5


def test_predictions_are_the_definition():
    for rule in all_masked_parities(2):
        for x0, x1, i, b in masked_inputs(2):
            bits = [rule.secret & 1, rule.secret >> 1]
            parity = (bits[0] * x0 + bits[1] * x1 + rule.flip) % 2
            expected = bits[int(i)] if b else parity
            assert rule.predict([[x0, x1, i, b]])[0] == expected


def test_rules_are_uncorrelated_where_they_do_not_give_themselves_away():
    """<c_r, c_r'> over b = 0 is 1/2 if r = r' and 0 otherwise; a flip changes the sign."""
    inputs = masked_inputs(3)
    open_inputs = inputs[:, -1] == 0
    signs = {
        (rule.secret, rule.flip): (1 - 2 * rule.predict(inputs)) * open_inputs
        for rule in all_masked_parities(3)
    }
    for (secret, flip), left in signs.items():
        for (other, other_flip), right in signs.items():
            expected = 0.5 * (1 if flip == other_flip else -1) if secret == other else 0.0
            assert np.mean(left * right) == pytest.approx(expected)


def test_without_a_flip_a_quarter_of_all_inputs_is_wrong():
    inputs = masked_inputs(4)
    for rule in all_masked_parities(4):
        weak = MaskedParity(4, rule.secret, None)
        errors = weak.predict(inputs) != rule.predict(inputs)
        # The parity of the empty secret is constant: the weak rule is then right or wrong on all.
        expected = 0.25 if rule.secret else 0.5 * rule.flip
        assert errors.mean() == expected


def test_odd_values_are_cut_and_not_refused():
    odd = [[np.nan, np.inf, -5.0, 7.0], [0.0, 0.0, np.inf, np.nan]]
    assert MaskedParity(2, 3, 1).predict(odd).shape == (2,)


def test_sentences():
    assert "flipped parity of x0, x2" in str(MaskedParity(3, 5, 1))
    assert "(x0, x2)" in str(MaskedParity(3, 5, None))


@pytest.mark.parametrize(("secret", "flip"), [(8, 0), (1, 2), (-1, 0)])
def test_refusals(secret, flip):
    with pytest.raises(ParameterError):
        MaskedParity(3, secret, flip)
