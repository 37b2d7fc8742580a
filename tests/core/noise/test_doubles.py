"""Doubles give the same noise again, and say that it promises nothing."""

import numpy as np
import pytest

from quorate.auditing import RecordedNoise
from quorate.core.account.account import Account
from quorate.core.guarantees import Numerics
from quorate.core.noise import SecureNoise, SeededNoise, use_noise


class TestDoubles:
    def test_only_secure_noise_is_exact(self):
        assert SecureNoise().numerics is Numerics.EXACT
        assert SeededNoise(0).numerics is Numerics.VOID
        assert RecordedNoise(0).numerics is Numerics.VOID
        assert RecordedNoise(0).replay().numerics is Numerics.VOID

    def test_the_same_seed_gives_the_same_noise(self):
        first, second = (
            SeededNoise(3).discrete_gaussian(np.zeros(9, int), sigma=9.0) for _ in "ab"
        )
        assert first.tolist() == second.tolist()


class TestLabels:
    @pytest.mark.parametrize(
        ("source", "numerics"),
        [(SecureNoise(), Numerics.EXACT), (SeededNoise(0), Numerics.VOID)],
        ids=["secure", "seeded"],
    )
    def test_only_secure_noise_is_called_exact(self, source, numerics):
        with use_noise(source):
            assert Account.open(epsilon=1.0).declared.numerics is numerics
        assert source.numerics is numerics
