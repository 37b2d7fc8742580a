"""One noisy comparison: exact audits, a broken twin, its error bound."""

from functools import cache

import numpy as np
import pytest

from drawing import Drawing
from quorate.auditing import Cells, SmallWorld, audit_exactly, enumerate_runs
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.noise import SeededNoise
from quorate.exceptions import ParameterError
from quorate.mechanisms.search.private_compare import PrivateCompare
from rule_worlds import RELATIONS
from sealing import compared


@pytest.mark.claim("L3: Lemma C.1")
class TestPrivacyOfTheComparison:
    @pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
    @pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
    def test_the_exact_audit_finds_no_more_than_the_claim(self, share, relation, record_property):
        compare = PrivateCompare(share=share, epsilon=1.0, relation=relation)
        world = SmallWorld(records=(0, 1), n_users=4)

        @cache
        def law(count, n_users):
            return enumerate_runs(
                lambda noise: compared(Drawing(compare, noise), count, n_users),
                cells=Cells(width=1 / 16, reach=8.0),
            )

        # The mechanism is given two numbers of the data set, and nothing else.
        found = audit_exactly(lambda votes: law(sum(votes), len(votes)), world, compare.guarantee)
        record_property("tightness", found.tightness)
        assert found.holds, str(found)

    def test_a_twin_that_divides_by_the_private_number_of_users_is_caught(self):
        def normalised(votes):
            n = max(1, len(votes))

            def run(noise):
                scaled = np.array([round(2**20 * sum(votes) / n)])
                return bool(noise.discrete_laplace(scaled, scale=2**20 / (8.0 * n))[0] > 2**19)

            return enumerate_runs(run, cells=Cells(width=1 / 16, reach=16.0))

        world = SmallWorld(records=(0, 1), n_users=4)
        claim = Guarantee(epsilon=1.0, relation=Relation.ADD_REMOVE)
        assert not audit_exactly(normalised, world, claim, thorough=False).holds

    def test_the_error_bound_holds(self):
        compare = Drawing(PrivateCompare(share=0.5, epsilon=0.5), SeededNoise(0))
        slack = compare.error_bound(0.01)
        wrong = sum(compared(compare, int(50 - slack - 1), 100) for _ in range(2000))
        # At most 1 % of 2000 are expected to be wrong; 60 or more have probability below 1e-9.
        assert wrong < 60


def test_a_share_outside_the_unit_interval_is_refused():
    with pytest.raises(ParameterError, match="share"):
        PrivateCompare(share=1.2, epsilon=1.0)
