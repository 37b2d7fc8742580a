"""A rough count of records: private by exact audit, right when users agree, and readable."""

import numpy as np
import pytest

from quorate.auditing import SmallWorld, audit_exactly
from quorate.core.guarantees import Numerics, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.mechanisms.search.rough_records import RecordRange, RoughRecords, rough_records_budget
from sealing import holding

both_relations = pytest.mark.parametrize("relation", list(Relation), ids=lambda r: r.name)


class TestPrivacy:
    @both_relations
    def test_the_exact_audit_finds_no_more_than_the_claim(self, relation, record_property):
        rough = RoughRecords(cuts=(2, 4), epsilon=1.0, relation=relation)
        world = SmallWorld(records=(0, 1, 3, 9, 10**9), n_users=3)

        def law(counts):
            losses = rough.losses(np.array(counts, dtype=np.int64))
            return rough.chooser.probabilities(-losses)

        found = audit_exactly(law, world, rough.guarantee)
        record_property("tightness", found.tightness)
        assert found.holds, str(found)
        assert found.tightness > 0.8

    def test_a_twin_with_one_sided_noise_under_replacement_is_caught(self):
        rough = RoughRecords(cuts=(2, 4), epsilon=1.0)
        world = SmallWorld(records=(0, 3, 9), n_users=3)

        def half_the_noise(counts):
            losses = rough.losses(np.array(counts, dtype=np.int64))
            return rough.chooser.probabilities(-2 * losses)

        assert not audit_exactly(half_the_noise, world, rough.guarantee, thorough=False).holds

    def test_a_test_double_voids_the_guarantee(self):
        with use_noise(SeededNoise(0)):
            assert RoughRecords(cuts=(4,), epsilon=1.0).guarantee.numerics is Numerics.VOID


class TestUtility:
    def test_users_who_agree_are_found(self):
        # A wrong range has probability exp(-50).
        rough = RoughRecords(cuts=(4, 8), epsilon=1.0)
        for records, expected in (
            (1, RecordRange(0, 4)),
            (5, RecordRange(4, 8)),
            (99, RecordRange(8)),
        ):
            assert rough.release(holding([records] * 100)) == expected

    def test_the_median_user_decides(self):
        rough = RoughRecords(cuts=(4,), epsilon=50.0)
        assert rough.release(holding([1] * 40 + [100] * 60)) == RecordRange(4)

    def test_many_users_pay_less(self):
        known = {"relation": Relation.REPLACE}
        assert rough_records_budget(1.0, n_users=50, **known) == pytest.approx(0.1)
        assert rough_records_budget(1.0, n_users=10_000, **known) == pytest.approx(0.002)

    def test_the_budget_ignores_a_private_number_of_users(self):
        costs = {
            rough_records_budget(1.0, n_users=n, relation=Relation.ADD_REMOVE)
            for n in (0, 1, 10**6)
        }
        assert len(costs) == 1


class TestRanges:
    @pytest.mark.parametrize(
        ("known", "words"),
        [
            (RecordRange(0, 4), "0 to 3 records"),
            (RecordRange(8), "8 records or more"),
            (RecordRange.exactly(1), "1 record"),
            (RecordRange.exactly(7), "7 records"),
        ],
    )
    def test_a_range_reads_as_words(self, known, words):
        assert str(known) == words

    def test_an_empty_range_is_refused(self):
        with pytest.raises(ParameterError, match="upper"):
            RecordRange(4, 4)

    @pytest.mark.parametrize("cuts", [(), (0, 1), (4, 4), (8, 4), (1.5,)])
    def test_cuts_that_do_not_increase_are_refused(self, cuts):
        with pytest.raises(ParameterError):
            RoughRecords(cuts=cuts, epsilon=1.0)
