"""SubsampledMechanism: priced as it is by enumeration, and unable to spend more."""

import math
import traceback
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodness import FALSE_ALARM, p_value
from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs
from quorate.core.account.account import Account, noise_for
from quorate.core.account.parts import disjoint_groups
from quorate.core.by_hand import rows_by_hand
from quorate.core.guarantees import Approximate, Gaussian, Pure, Relation
from quorate.core.noise import SecureNoise
from quorate.core.sealed import seal_rows
from quorate.exceptions import NumericalFailure, ParameterError, SchemaError, SealedError
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.mechanisms.wrappers.subsampled import (
    SubsampledMechanism,
    amplified_epsilon,
    draw_without_replacement,
)
from sealing import release_by_hand, rows_of


def answer(rows, account):
    """Randomized response: the bit, or the other one, by a choice between the two."""
    best = ChooseBest(candidates=2, epsilon=1.0, sensitivity=1)
    return best.release(rows.tally(2), account=account)


def law(mechanism):
    return lambda bits: enumerate_runs(lambda _: release_by_hand(mechanism, np.array(bits)))


@pytest.mark.parametrize(("sample", "population"), [(1, 3), (2, 3), (1, 4)])
def test_the_true_loss_is_at_most_the_price(sample, population):
    mechanism = SubsampledMechanism(
        run=answer, inner=Pure(1.0), sample=sample, population=population
    )
    world = SmallWorld(records=(0, 1), n_users=population)
    found = audit_exactly(law(mechanism), world, mechanism.guarantee)
    assert found.holds, str(found)


@pytest.mark.claim("F2: Theorem 7")
def test_one_of_three_bits_costs_exactly_the_formula():
    """Randomized response on one of three bits: the ratio of its laws is 1 + (e - 1)/3."""

    def response(rows, account):
        # The bit with weight e, the other one with weight 1.
        scores = np.array([0, 1]) if rows_of(rows)[0] else np.array([1, 0])
        return noise_for(account, Pure(1.0)).gumbel_max(scores, scale=1.0)

    mechanism = SubsampledMechanism(run=response, inner=Pure(1.0), sample=1, population=3)
    one = enumerate_runs(lambda _: release_by_hand(mechanism, np.array([1, 0, 0])))
    none = enumerate_runs(lambda _: release_by_hand(mechanism, np.array([0, 0, 0])))
    assert one[1] / none[1] == pytest.approx(1 + (math.e - 1) / 3)
    assert mechanism.event.epsilon == pytest.approx(math.log(1 + (math.e - 1) / 3))


def test_the_audit_catches_a_sample_that_is_larger_than_priced(monkeypatch):
    mechanism = SubsampledMechanism(run=answer, inner=Pure(1.0), sample=1, population=4)
    claim = mechanism.guarantee
    monkeypatch.setattr(
        "quorate.mechanisms.wrappers.subsampled.draw_without_replacement", lambda *_: np.arange(1)
    )
    world = SmallWorld(records=(0, 1), n_users=4)
    assert not audit_exactly(law(mechanism), world, claim, thorough=False).holds


def test_all_samples_are_equally_likely():
    runs = enumerate_runs(lambda noise: tuple(draw_without_replacement(noise, 5, 3).tolist()))
    assert set(runs) == set(combinations(range(5), 3))
    assert list(runs.values()) == pytest.approx([0.1] * 10)
    drawn = Counter(tuple(draw_without_replacement(SecureNoise(), 4, 2)) for _ in range(600))
    assert p_value(list(drawn.values()), [1 / 6] * 6) > FALSE_ALARM


def test_a_run_that_spends_more_than_it_said_is_stopped():
    def greedy(rows, account):
        answer(rows, account)
        return answer(rows, account)

    mechanism = SubsampledMechanism(run=greedy, inner=Pure(1.0), sample=1, population=3)
    with pytest.raises(NumericalFailure):
        release_by_hand(mechanism, np.array([0, 1, 1]))


def test_an_exception_does_not_quote_the_rows():
    def careless(rows, account):
        raise ValueError(f"cannot handle {rows}")

    mechanism = SubsampledMechanism(run=careless, inner=Pure(1.0), sample=1, population=3)
    rows = np.full(3, 31337)
    with pytest.raises(SchemaError, match="withheld") as caught:
        release_by_hand(mechanism, rows)
    assert "cannot handle" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_delta_shrinks_with_the_rate_and_the_account_pays():
    mechanism = SubsampledMechanism(
        run=answer, inner=Approximate(1.0, 1e-3), sample=1, population=10
    )
    assert mechanism.event.delta == pytest.approx(1e-4)
    account = Account.open(epsilon=1.0, delta=1e-3, reserve=1e-3)
    release_by_hand(mechanism, np.zeros(10, dtype=np.int64), account=account)
    assert account.event == mechanism.event


def test_its_budget_opens_the_sample_only():
    """What the sample may spend is more than is charged: it must not buy what all users say."""
    bits = rows_by_hand([0, 1, 1])

    def cheat(rows, account):
        return answer(bits, account)

    mechanism = SubsampledMechanism(run=cheat, inner=Pure(1.0), sample=1, population=3)
    with pytest.raises(SealedError, match="about others"):
        mechanism.release(bits)


def test_a_group_pays_for_its_own_rows_only():
    first, second = disjoint_groups(Account.open(epsilon=1.0), 2)
    bits = seal_rows(np.array([0, 1, 1]), Relation.REPLACE, among=first)
    mechanism = SubsampledMechanism(run=answer, inner=Pure(1.0), sample=1, population=3)
    with pytest.raises(SealedError, match="about others"):
        mechanism.release(bits, account=second)
    assert mechanism.release(bits, account=first) in (0, 1)


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]])
def test_nobody_learns_from_a_refusal_whether_somebody_is_absent(values):
    """How many rows are left of a public number of users follows from what they hold."""
    mechanism = SubsampledMechanism(run=answer, inner=Pure(1.0), sample=1, population=3)
    present = rows_by_hand(values).present()
    pairs = seal_rows(np.array(values), Relation.REPLACE, paired=True)
    for rows in (present, present.map(np.abs), pairs):
        with pytest.raises(SealedError, match="for every user"):
            mechanism.release(rows)


def test_refusals():
    with pytest.raises(ParameterError, match="Pure or Approximate"):
        SubsampledMechanism(run=answer, inner=Gaussian(1.0), sample=1, population=3)
    with pytest.raises(ParameterError, match="at most 3"):
        SubsampledMechanism(run=answer, inner=Pure(1.0), sample=4, population=3)
    with pytest.raises(ParameterError, match="function"):
        SubsampledMechanism(run=None, inner=Pure(1.0), sample=1, population=3)
    with pytest.raises(SchemaError, match="each of 3 users"):
        release_by_hand(
            SubsampledMechanism(run=answer, inner=Pure(1.0), sample=1, population=3), [1, 2]
        )


epsilons = st.floats(-12, 2.5).map(lambda exponent: 10.0**exponent)
rates = st.one_of(
    st.floats(-12, -0.001).map(lambda exponent: 10.0**exponent),
    st.floats(-12, -0.4).map(lambda exponent: 1 - 10.0**exponent),
)


class TestAmplification:
    @given(epsilons, rates)
    def test_it_is_above_the_formula_by_almost_nothing(self, epsilon, rate):
        with mpmath.workdps(400):
            rate_of = mpmath.mpf(rate)
            truth = mpmath.log(1 - rate_of + rate_of * mpmath.exp(mpmath.mpf(epsilon)))
        assert truth <= amplified_epsilon(epsilon, rate=rate) <= truth * (1 + 1e-13)

    @pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
    def test_enumeration_of_three_outputs_never_exceeds_it(self, rate):
        """All mechanisms whose three-output distributions lie on a grid and are e-DP."""
        ratio, q = Fraction(2), Fraction(rate)
        bound = math.exp(amplified_epsilon(math.log(2), rate=rate)) * (1 + 1e-12)
        grid = [Fraction(k, 12) for k in range(1, 11)]
        triples = [(a, b, 1 - a - b) for a, b in product(grid, grid) if a + b < 1]
        absent = (Fraction(4, 12),) * 3
        worst = Fraction(0)
        for present in triples:
            if all(1 / ratio <= x / y <= ratio for x, y in zip(present, absent, strict=True)):
                mixed = [(1 - q) * z + q * x for x, z in zip(present, absent, strict=True)]
                pairs = list(zip(mixed, absent, strict=True))
                worst = max(worst, *(x / y for x, y in pairs), *(y / x for x, y in pairs))
        assert 0.95 * bound <= worst <= bound

    def test_a_giant_epsilon_is_not_amplified_and_not_lost(self):
        assert amplified_epsilon(800.0, rate=0.1) == 800.0
