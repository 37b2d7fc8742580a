"""A noisy count: its true epsilon, its smallest bound, and what it counts."""

import math

import numpy as np
import pytest

from drawing import Drawing
from quorate.auditing.enumeration import Cells, enumerate_runs
from quorate.auditing.exact import SmallWorld, audit_exactly
from quorate.core.account.account import Account, noise_for
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.noisy_count import NoisyCount
from sealing import numbers_of, release_by_hand

every_relation = pytest.mark.parametrize("relation", list(Relation))


class HalfTheNoiseCount(NoisyCount):
    """Pays for one release and draws another."""

    def release(self, count, *, account=None):
        noise = noise_for(Account.of_release(account, self), self.event)
        return int(noise.discrete_laplace(numbers_of(count), scale=self.scale / 2)[0])


class CountsRecords(NoisyCount):
    """A twin that adds up what users hold instead of counting users."""

    def release_values(self, indicators):
        return release_by_hand(self, int(np.nan_to_num(indicators, posinf=0, neginf=0).sum()))


class TestCount:
    def audit(self, kind, relation, records, *, thorough=True):
        claim = NoisyCount(epsilon=1.5, relation=relation).guarantee
        world = SmallWorld(records=records, n_users=3)

        def law(values):
            indicators = np.array(values, dtype=float)
            return enumerate_runs(
                lambda noise: Drawing(kind(epsilon=1.5, relation=relation), noise).release_values(
                    indicators
                ),
                cells=Cells(reach=12.0),
            )

        return audit_exactly(law, world, claim, thorough=thorough)

    @every_relation
    def test_the_true_epsilon_is_the_claim(self, relation):
        audit = self.audit(NoisyCount, relation, (0.0, 1.0, 5.0, -3.0, math.nan))
        assert audit.holds
        assert audit.tightness > 0.999

    @every_relation
    @pytest.mark.parametrize("kind", [HalfTheNoiseCount, CountsRecords])
    def test_broken_twins_are_caught(self, kind, relation):
        assert not self.audit(kind, relation, (0.0, 1.0, 5.0), thorough=False).holds

    def test_it_counts_what_is_one_and_nothing_else(self):
        values = np.array([1.0, 0.0, 2.0, np.nan, np.inf, 1.0])
        noise = SeededNoise(0)
        assert abs(Drawing(NoisyCount(epsilon=50.0), noise).release_values(values) - 2) <= 1
        assert abs(Drawing(NoisyCount(epsilon=50.0), noise).release_values([True, False]) - 1) <= 1

    @pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
    def test_its_bound_is_the_smallest(self, beta):
        count = NoisyCount(epsilon=0.3)
        t = count.error_bound(beta)

        def tail(t):
            return 2 * math.exp(-(t + 1) / count.scale) / (1 + math.exp(-1 / count.scale))

        assert tail(t) <= beta < tail(t - 1)

    def test_it_refuses_by_type_and_quotes_no_count(self):
        with pytest.raises(SchemaError) as caught:
            release_by_hand(NoisyCount(epsilon=1.0), 31337.5)
        assert "31337" not in str(caught.value)
        for wrong in (np.ones((2, 2)), np.array(["a"]), np.array([None])):
            with pytest.raises(SchemaError, match="indicator"):
                NoisyCount(epsilon=1.0).release_values(wrong)
        with pytest.raises(ParameterError, match="relation"):
            NoisyCount(epsilon=1.0, relation="replace")

    @pytest.mark.parametrize("count", [2**62, 2**63 - 1, -(2**63)])
    def test_no_count_is_too_large_to_be_released(self, count):
        noisy = release_by_hand(NoisyCount(epsilon=1.0), count)
        assert abs(abs(noisy) - 2**62) < 10**4
