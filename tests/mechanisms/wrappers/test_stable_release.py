"""StableRelease: what it draws, what it prices, and what it withholds."""

import math
from fractions import Fraction

import numpy as np
import pytest

from quorate.auditing import Cells, RecordedNoise, enumerate_runs
from quorate.core.account.account import Account
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import NumericalFailure, ParameterError, SchemaError
from quorate.mechanisms.wrappers.stable_release import Base, BaseKind, StableRelease

CHOICE = Base(BaseKind.EXPONENTIAL, scale=10.0)


def stick(first, second, epsilon):
    factor = math.exp(epsilon)
    outputs = {*first, *second}
    return sum(max(first.get(o, 0) - factor * second.get(o, 0), 0) for o in outputs)


def law(release, distance, totals):
    chance = release.pass_probability(distance)
    choice = release.base.probabilities(np.asarray(totals))
    return {None: 1 - chance} | {i: chance * p for i, p in enumerate(choice)}


def test_the_code_draws_what_the_formula_says():
    release = StableRelease(base=CHOICE, epsilon=1.0, delta=0.3, reach=2)
    for distance in range(6):
        runs = enumerate_runs(lambda _, d=distance: release.release(d, np.array([0, 7, -3])))
        expected = law(release, distance, [0, 7, -3])
        for output, mass in expected.items():
            assert float(runs.get(output, 0)) == pytest.approx(mass, abs=1e-12)


@pytest.mark.parametrize("kind", [BaseKind.EXPONENTIAL, BaseKind.LAPLACE])
def test_twice_the_closeness_costs_half_of_epsilon(kind):
    release = StableRelease(base=Base(kind, scale=8.0), epsilon=2.0, delta=1e-3)
    assert release.closeness_squared == Fraction(4) ** 2  # epsilon / 4 x scale
    assert 2 * 4 / release.base.scale == release.epsilon / 2


def test_totals_within_twice_the_closeness_keep_the_promise_and_three_times_do_not():
    release = StableRelease(base=CHOICE, epsilon=2.0, delta=0.05)
    reach, delta = release.reach, release.event.delta

    def worst(shift):
        found = 0.0
        for v in range(2 * reach + 1):
            for w in {v, v + 1}:
                one, two = law(release, v, [0, 0, 0]), law(release, w, [shift, 0, 0])
                found = max(found, stick(one, two, 2.0), stick(two, one, 2.0))
        return found

    allowed = 2 * math.isqrt(math.floor(release.closeness_squared))
    assert worst(allowed) <= delta * (1 + 1e-9)
    assert worst(3 * allowed) > 2 * delta


def test_gaussian_noise_pays_with_half_of_delta():
    release = StableRelease(base=Base(BaseKind.GAUSSIAN, scale=50.0), epsilon=1.0, delta=1e-4)
    assert float(release.limit.tail) <= 0.5e-4 < release.event.delta <= 1e-4
    # The whole shift, in units of the noise, is the mu of (epsilon/2, delta/2).
    from scipy.stats import norm

    mu = 2 * math.sqrt(release.closeness_squared) / math.sqrt(50.0**2 - 4)
    profile = norm.cdf(mu / 2 - 0.5 / mu) - math.exp(0.5) * norm.cdf(-mu / 2 - 0.5 / mu)
    assert 0.99 * 0.5e-4 <= profile <= 0.5e-4


@pytest.mark.parametrize("kind", [BaseKind.LAPLACE, BaseKind.GAUSSIAN])
def test_sums_come_with_their_noise(kind):
    release = StableRelease(base=Base(kind, scale=5.0), epsilon=1.0, delta=1e-3)
    with use_noise(SeededNoise(1)):
        draws = np.array([release.release(0, np.array([100, -100])) for _ in range(500)])
    assert draws.mean(axis=0) == pytest.approx([100, -100], abs=2)
    spread = 5.0 if kind is BaseKind.GAUSSIAN else 5.0 * math.sqrt(2)
    assert draws.std() == pytest.approx(math.hypot(100, spread), rel=0.02)


def test_a_distance_beyond_the_reach_is_never_released():
    release = StableRelease(base=CHOICE, epsilon=1.0, delta=1e-3)
    beyond = 2 * release.reach + 1
    assert {release.release(beyond, np.array([0, 1])) for _ in range(50)} == {None}


def test_the_account_pays_and_refuses():
    release = StableRelease(base=CHOICE, epsilon=1.0, delta=1e-3)
    account = Account.open(epsilon=1.5, delta=1e-3, reserve=1e-3)
    release.release(0, np.array([0, 1]), account=account)
    assert account.event == release.event
    with pytest.raises(NumericalFailure):
        release.release(0, np.array([0, 1]), account=account)


def test_laplace_noise_on_close_totals_keeps_the_promise_of_the_real_code():
    release = StableRelease(base=Base(BaseKind.LAPLACE, 4.0), epsilon=2.0, delta=0.4, reach=1)
    delta = release.event.delta

    def runs(distance, total):
        def once(_):
            drawn = release.release(distance, np.array([total]))
            return None if drawn is None else int(drawn[0])

        return dict(enumerate_runs(once, cells=Cells(reach=8.0)))

    for near, far in [(0, 0), (0, 1), (1, 1), (1, 2)]:
        one, two = runs(near, 0), runs(far, 4)  # closeness 2, twice
        assert max(stick(one, two, 2.0), stick(two, one, 2.0)) <= delta * (1 + 1e-9)
    assert stick(runs(0, 0), runs(0, 24), 2.0) > delta


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"base": "exponential"}, "Expected base to be a Base"),
        ({"epsilon": 0.0}, "Expected a finite epsilon > 0"),
        ({"delta": 0.0}, "Expected 0 < delta < 1"),
        ({"reach": 0}, "Expected an integer reach > 0"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ParameterError, match=message):
        StableRelease(**{"base": CHOICE, "epsilon": 1.0, "delta": 1e-3} | parameters)


def test_totals_that_are_no_integers_are_refused():
    release = StableRelease(base=CHOICE, epsilon=1.0, delta=1e-3)
    with pytest.raises(SchemaError, match="int64 totals"):
        release.release(0, np.array([0.5, 1.0]))
    with pytest.raises(ParameterError, match="scale > 2"):
        Base(BaseKind.GAUSSIAN, scale=2.0)


@pytest.mark.parametrize("kind", BaseKind)
def test_how_often_noise_is_drawn_does_not_tell_whether_something_is_released(kind):
    release = StableRelease(base=Base(kind, scale=10.0), epsilon=1.0, delta=0.3, reach=2)
    calls = []
    for distance in (0, 9):
        noise = RecordedNoise(0)
        with use_noise(noise):
            released = release.release(distance, np.array([0, 7, -3]))
        calls.append([str(draw) for draw in noise.log])
        assert (released is None) is (distance == 9)
    assert calls[0] == calls[1]
