"""Duels between densities: right by the plain formula, bounded for any user, and row-stable."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.distributions.hypotheses import families
from quorate.distributions.hypotheses.clip import WEIGHT_UNIT, Clip
from quorate.distributions.hypotheses.families import (
    DiscreteFamily,
    DuelTable,
    GaussianFamily,
    capped,
    largest_remainders,
)
from quorate.exceptions import ParameterError
from sealing import duels_of, worst_duels_of

PMF = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [1 / 3, 1 / 3, 1 / 3]])
CLIPS = [Clip(0.5), Clip(2.0), Clip(1.5, own_scale=False), Clip.none(4), Clip(0.5, records=3)]
every_clip = pytest.mark.parametrize("clip", CLIPS, ids=repr)


def people(rng, n_users=9, highest=6):
    held = rng.integers(0, highest, n_users)
    users = np.repeat(np.arange(n_users), held)
    X = rng.integers(0, 4, (held.sum(), 1)).astype(float)  # 3 is no point of the family
    return UserData.from_arrays(X, users=users)


def plain_tally(family, data, clip):
    """Return the duels by the definition, user by user and pair by pair."""
    size, unit = family.size, family.unit
    masses = family.masses / unit
    table = np.zeros((size, size))
    for i in range(data.n_users):
        counts = capped(family.counts(data.take([i])), clip.records)[0]
        m = int(counts.sum())
        scale = round(WEIGHT_UNIT / math.sqrt(max(m, 1))) if clip.own_scale else 1
        for a in range(size):
            for b in range(size):
                inside = masses[a] > masses[b]
                term = scale * (m * masses[a][inside].sum() - counts[inside].sum()) * unit
                table[a, b] += np.clip(term, -clip.limit(unit), clip.limit(unit))
    return table


@every_clip
def test_the_table_is_that_of_the_definition(clip):
    family = DiscreteFamily(PMF)
    data = people(np.random.default_rng(0))
    assert duels_of(family, data, clip) == pytest.approx(plain_tally(family, data, clip), abs=1e-3)


@every_clip
def test_users_add_up_whatever_they_come_with(clip):
    """A user's terms are the same to the last bit, alone or in any company."""
    family = DiscreteFamily(np.random.default_rng(1).dirichlet(np.ones(3), 40))
    data = people(np.random.default_rng(2), n_users=30)
    alone = sum(duels_of(family, data.take([i]), clip) for i in range(data.n_users))
    assert (duels_of(family, data, clip) == alone).all()
    assert (duels_of(family, data.take(np.arange(data.n_users)[::-1]), clip) == alone).all()


def test_many_users_are_added_in_pieces(monkeypatch):
    family, data = DiscreteFamily(PMF), people(np.random.default_rng(3), n_users=50)
    expected = duels_of(family, data, Clip(0.5))
    monkeypatch.setattr(families, "_USERS_AT_ONCE", 7)
    assert (duels_of(family, data, Clip(0.5)) == expected).all()


def move(family, clip, before, after, kind=DuelTable):
    """Return how far replacing a user moves any member's worst duel."""
    rest = people(np.random.default_rng(4))

    def worst(own):
        X = np.concatenate([rest.X, np.reshape(own, (-1, 1)).astype(float)])
        users = np.repeat([*range(rest.n_users), 99], [*rest.record_counts(), len(own)])
        data = UserData.from_arrays(X, users=users)
        return worst_duels_of(family, data, clip, kind).astype(float)

    return np.abs(worst(before) - worst(after)).max()


records = st.lists(st.sampled_from([0, 1, 2, 3, 1e308, -5]), max_size=40)


@pytest.mark.claim("F7: Theorem 41")
class TestSensitivity:
    @every_clip
    @settings(max_examples=25)
    @given(before=records, after=records)
    def test_one_user_moves_the_worst_duel_by_at_most_the_sensitivity(self, clip, before, after):
        family = DiscreteFamily(PMF)
        allowed = clip.sensitivity(family.unit, Relation.REPLACE)
        assert move(family, clip, before, after) <= allowed
        alone = clip.sensitivity(family.unit, Relation.ADD_REMOVE)
        assert move(family, clip, before, []) <= alone

    def test_the_same_test_catches_a_family_that_does_not_clip(self):
        class Careless(DuelTable):
            low, high = -(2**50), 2**50

        family, clip = DiscreteFamily(PMF), Clip(1.5, own_scale=False)
        allowed = clip.sensitivity(family.unit, Relation.REPLACE)
        assert move(family, clip, [0] * 40, [2] * 40) <= allowed
        assert move(family, clip, [0] * 40, [2] * 40, Careless) > allowed

    def test_one_record_moves_a_duel_by_one(self):
        """The clip 4 tau would allow more: a term has a width of at most m."""
        family, clip = DiscreteFamily(PMF), Clip(5.0, own_scale=False, records=1)
        assert clip.sensitivity(family.unit, Relation.REPLACE) == family.unit
        assert move(family, clip, [0], [2]) <= family.unit


def test_masses_are_rounded_to_the_unit_and_add_up():
    pmf = np.random.default_rng(5).dirichlet(np.ones(7), 50)
    family = DiscreteFamily(pmf)
    assert (family.masses.sum(axis=1) == family.unit).all()
    assert np.abs(family.masses / family.unit - pmf).max() < 1 / family.unit


def test_largest_remainders_err_by_a_quarter_of_a_step_for_each_point():
    rng = np.random.default_rng(6)
    for k, steps in [(4, 20), (6, 20)]:
        shares = rng.dirichlet(np.ones(k), 4000)
        off = np.abs(largest_remainders(shares, steps) / steps - shares).sum(axis=1) / 2
        assert off.max() <= k / (4 * steps)


class TestGaussian:
    def test_scheffe_probabilities_by_quadrature(self):
        family = GaussianFamily([[0.0], [0.5], [0.0], [-2.0]], [1.0, 1.0, 1.5, 0.7])
        x = np.linspace(-15, 15, 400_001)
        heights = np.array([family.log_density(x, i) for i in range(4)])
        masses = np.exp(heights) * (x[1] - x[0])
        for a in range(4):
            for b in range(4):
                inside = masses[a][heights[a] > heights[b]].sum()
                assert family.scheffe[a, b] == pytest.approx(inside, abs=1e-4)

    def test_common_scales_have_half_spaces(self):
        means = np.random.default_rng(0).normal(size=(6, 3))
        family = GaussianFamily(means, 2.0)
        from scipy.stats import norm

        gap = np.linalg.norm(means[1] - means[4]) / 2.0
        assert family.scheffe[1, 4] == pytest.approx(norm.cdf(gap / 2))
        assert (np.diag(family.scheffe) == 0).all()

    def test_the_table_is_that_of_the_definition(self):
        rng = np.random.default_rng(1)
        family = GaussianFamily(rng.normal(size=(5, 2)))
        held = np.array([3, 0, 5, 1])
        X = rng.normal(size=(9, 2))
        data = UserData.from_arrays(X, users=np.repeat(np.arange(4), held))
        clip = Clip(0.5)
        table = np.zeros((5, 5))
        for i in range(data.n_users):
            own = data.take([i]).X
            m = len(own)
            for a in range(5):
                for b in range(5):
                    inside = (family.log_density(own, a) > family.log_density(own, b)).sum()
                    scale = round(WEIGHT_UNIT / math.sqrt(max(m, 1)))
                    promised = round(family.scheffe[a, b] * family.unit)
                    term = scale * (m * promised - inside * family.unit)
                    table[a, b] += np.clip(term, -clip.limit(family.unit), clip.limit(family.unit))
        assert (duels_of(family, data, clip) == table).all()

    def test_half_lines_count_what_comparing_densities_counts(self):
        rng = np.random.default_rng(3)
        family = GaussianFamily(np.r_[rng.normal(size=9), 0.25, 0.25][:, None], 0.7)
        X = rng.normal(size=(200, 1))
        assert (family._inside(X) == family._compared(X)).all()
        assert (family._inside(X[:0]) == 0).all()

    def test_a_giant_user_is_compared_a_few_records_at_a_time(self, monkeypatch):
        rng = np.random.default_rng(2)
        family = GaussianFamily(rng.normal(size=(7, 1)), rng.uniform(1, 2, 7))
        data = UserData.from_arrays(rng.normal(size=(500, 1)), users=np.arange(500) // 490)
        expected = duels_of(family, data, Clip(0.5))
        monkeypatch.setattr(families, "_CELLS_AT_ONCE", 1)
        assert (duels_of(family, data, Clip(0.5)) == expected).all()

    def test_records_at_the_end_of_the_floats_stay_bounded(self):
        family, clip = GaussianFamily([[0.0], [3.0]]), Clip(0.5)
        data = UserData.from_arrays([[1e308], [-1e308], [1.0]], users=[0, 0, 1])
        assert np.abs(duels_of(family, data, clip)).max() <= 2 * clip.limit(family.unit)

    def test_samples_come_from_the_member(self):
        family = GaussianFamily([[0.0, 1.0], [5.0, 5.0]], 0.1)
        assert family.sample(1, 200, 0).mean(axis=0) == pytest.approx([5, 5], abs=0.05)


def test_the_truth_loses_no_duel_in_the_long_run():
    """The expected term of the true member is zero, whoever it is compared with."""
    family = DiscreteFamily(PMF)
    rng = np.random.default_rng(9)
    X = rng.choice(3, size=(3000 * 30, 1), p=PMF[1]).astype(float)
    data = UserData.from_arrays(X, users=np.arange(len(X)) // 30)
    clip = Clip(5.0)
    duels = duels_of(family, data, clip) / clip.limit(family.unit) * clip.tau / 3000
    assert np.abs(duels[1]).max() < 0.05
    assert worst_duels_of(family, data, clip).argmin() == 1
    assert duels[0].max() > 1.0


def test_densities_and_samples_of_a_discrete_member():
    family = DiscreteFamily([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]], points=[10.0, -1.0, 4.0])
    logs = family.log_density([[4.0], [-1.0], [10.0], [3.0]], 1)
    assert np.exp(logs) == pytest.approx([0.75, 0.25, 0.0, 0.0], abs=1e-6)
    drawn = family.sample(1, 1000, 0)[:, 0]
    assert set(drawn) == {4.0, -1.0}
    assert (drawn == 4.0).mean() == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DiscreteFamily([0.5, 0.5]), "shape"),
        (lambda: DiscreteFamily([[0.5, -0.5]]), ">= 0"),
        (lambda: DiscreteFamily([[0.0, 0.0]]), "some mass"),
        (lambda: DiscreteFamily([[0.5, 0.5]], points=[1.0, 1.0]), "all different"),
        (lambda: GaussianFamily([0.0, 1.0]), "shape"),
        (lambda: GaussianFamily([[0.0]], -1.0), "finite and > 0"),
        (lambda: GaussianFamily([[0.0], [1.0]], [1.0, 1.0, 2.0]), "one for each member"),
        (lambda: GaussianFamily([[0.0, 0.0], [1.0, 0.0]], [1.0, 2.0]), "common scale"),
    ],
)
def test_wrong_parameters_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_table_that_is_too_large_is_refused():
    with pytest.raises(ParameterError, match="at most 4096 members"):
        DuelTable(GaussianFamily(np.zeros((5000, 1))), Clip(0.5))
