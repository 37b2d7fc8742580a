"""HypothesisSelector: exact audits of whole fits, what it finds, and what it refuses."""

import numpy as np
import pytest
from sklearn.base import clone

from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs, replay
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.questions.scores import AddedUp
from quorate.core.users import UserData
from quorate.data.engines import MemoryCrowd
from quorate.distributions.hypotheses.clip import Clip, Votes
from quorate.distributions.hypotheses.covers import SimplexGrid, simplex_cover
from quorate.distributions.hypotheses.families import DiscreteFamily, GaussianFamily
from quorate.distributions.hypotheses.selection import HypothesisSelector
from quorate.exceptions import NumericalFailure, ParameterError, SchemaError
from quorate.ledger import Ledger
from sealing import duels_of, paid_by_a_quarter

NORMAL = GaussianFamily([[0.0], [1.0], [-2.0]], [1.0, 2.0, 1.0])
THREE = DiscreteFamily([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]])
VOTERS = SmallWorld(records=((), (0,), (1,), (0, 0, 0), (1, 1, 1)), n_users=2)


def fit_law(selector):
    """Return the law of a whole fit, by running it on all its noise."""

    def law(users):
        X = np.array([[record] for held in users for record in held], dtype=float).reshape(-1, 1)
        ids = [i for i, held in enumerate(users) for _ in held]
        empty = [i for i, held in enumerate(users) if not held]
        # A user without a countable record keeps a place.
        X = np.concatenate([X, np.full((len(empty), 1), 7.0)])
        return enumerate_runs(lambda _: selector.fit(X, users=[*ids, *empty]).index_)

    return law


class TestPrivacy:
    @pytest.mark.parametrize("clip", [Clip(0.5), Clip(1.0, own_scale=False), Clip.none(3)])
    @pytest.mark.parametrize("family", [THREE, SimplexGrid(2, 2)], ids=["three", "grid"])
    def test_all_fits_of_a_small_world_keep_the_claim(self, family, clip):
        selector = HypothesisSelector(family, epsilon=1.0, clip=clip)
        world = SmallWorld(records=((), (0,), (1,), (0, 0, 0), (1, 1, 1)), n_users=2)
        found = audit_exactly(fit_law(selector), world, Guarantee(epsilon=1.0))
        assert found.holds, str(found)
        assert found.tightness > 0.2

    def test_a_sensitivity_that_is_claimed_too_small_draws_nothing(self, monkeypatch):
        monkeypatch.setattr(Clip, "sensitivity", lambda self, unit, relation: self.limit(unit) // 2)
        with pytest.raises(NumericalFailure, match="nothing was drawn"):
            HypothesisSelector(THREE).fit([[0.0]], users=[0])

    def test_the_audit_catches_a_clip_that_is_not_paid_for(self, monkeypatch):
        paid_by_a_quarter(monkeypatch)
        monkeypatch.setattr(Clip, "sensitivity", lambda self, unit, relation: self.limit(unit) // 2)
        selector = HypothesisSelector(THREE, epsilon=1.0, clip=Clip(1.0, own_scale=False))
        world = SmallWorld(records=((), (0,), (1,), (0, 0, 0), (1, 1, 1)), n_users=2)
        assert not audit_exactly(
            fit_law(selector), world, Guarantee(epsilon=1.0), thorough=False
        ).holds

    @pytest.mark.parametrize("family", [THREE, NORMAL], ids=["three", "normal"])
    def test_votes_keep_the_claim_and_use_it(self, family):
        selector = HypothesisSelector(family, epsilon=1.0, clip=Votes())
        found = audit_exactly(fit_law(selector), VOTERS, Guarantee(epsilon=1.0))
        assert found.holds, str(found)
        assert found.tightness > 0.5

    def test_the_audit_catches_votes_that_are_not_paid_for(self, monkeypatch):
        paid_by_a_quarter(monkeypatch)
        monkeypatch.setattr(Votes, "sensitivity", lambda self, unit, relation: 1)
        selector = HypothesisSelector(THREE, epsilon=1.0, clip=Votes())
        assert not audit_exactly(
            fit_law(selector), VOTERS, Guarantee(epsilon=1.0), thorough=False
        ).holds

    def test_the_audit_catches_votes_that_count_three_times(self, monkeypatch):
        honest = AddedUp._added

        def weighed(self, said, low, high):
            return honest(self, 3 * np.asarray(said), 3 * low, 3 * high)

        monkeypatch.setattr(AddedUp, "_added", weighed)
        selector = HypothesisSelector(THREE, epsilon=1.0, clip=Votes())
        assert not audit_exactly(
            fit_law(selector), VOTERS, Guarantee(epsilon=1.0), thorough=False
        ).holds

    @pytest.mark.parametrize("clip", [None, Votes()])
    def test_one_user_more_or_less(self, clip):
        selector = HypothesisSelector(THREE, epsilon=1.0, clip=clip, relation=Relation.ADD_REMOVE)
        world = SmallWorld(records=((0,), (1, 1, 1)), n_users=3, ordered=False)
        claim = Guarantee(epsilon=1.0, relation=Relation.ADD_REMOVE)
        assert audit_exactly(fit_law(selector), world, claim).holds


def with_last(sent):
    X = np.array([[0.0], [1.0], [1.0], [0.0], *([value] for value in sent)])
    return X, np.array([0, 0, 1, 2, *[3] * len(sent)])


class TestReplay:
    """Given the same released values, neighbours cannot be told apart."""

    @pytest.mark.parametrize("family", [THREE, SimplexGrid(2, 2), NORMAL], ids=["3", "grid", "N"])
    @pytest.mark.parametrize(
        "sent", [[1.0], [0.0] * 50, [7.0, -1e308, 1e308, 1e-320], [np.nan, np.inf, 1.0]]
    )
    def test_whatever_one_user_sends_looks_the_same(self, family, sent):
        def run(people):
            fitted = HypothesisSelector(family).fit(people[0], users=people[1])
            return fitted.index_, fitted.guarantee_

        assert replay(run, with_last([0.0]), with_last(sent)).same

    def test_a_fit_that_tells_how_many_records_count_is_seen(self):
        def run(people):
            fitted = HypothesisSelector(THREE).fit(people[0], users=people[1])
            return fitted.index_, len(people[0])

        assert not replay(run, with_last([0.0]), with_last([1.0, 1.0])).same


def world(rng, size=200, k=20):
    """Return a truth, and members at all distances from it."""
    truth = rng.dirichlet(np.ones(k))
    share = np.linspace(0.02, 1.0, size)[:, None]
    return truth, (1 - share) * truth + share * rng.dirichlet(np.ones(k), size)


def mean_variation(clip, runs=6, n=50, m=64):
    found = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        truth, pmf = world(rng)
        X = rng.choice(20, size=(n * m, 1), p=truth)
        with use_noise(SeededNoise(run)):
            fitted = HypothesisSelector(DiscreteFamily(pmf), clip=clip).fit(
                X, users=np.arange(n * m) // m
            )
        found.append(0.5 * np.abs(pmf[fitted.index_] - truth).sum())
    return float(np.mean(found))


@pytest.mark.claim("F7: Theorem 41", "F8: Theorem 42")
class TestUtility:
    def test_fifty_users_choose_among_two_hundred_densities(self):
        ours = mean_variation(None)
        assert ours <= 0.02
        assert mean_variation(Clip.none(64)) > 2 * ours

    def test_votes_of_users_with_many_records_choose_better_still(self):
        votes = mean_variation(Votes())
        assert votes < mean_variation(None)
        assert mean_variation(Clip.none(64)) > 3 * votes

    def test_one_record_does_not_decide_against_a_member(self):
        # The first member is right but for one record in 200; the second is wrong everywhere.
        family = DiscreteFamily([[0.5, 0.5, 0.0], [0.9, 0.05, 0.05]])
        X = np.tile(np.repeat([0.0, 1.0, 2.0], [20, 19, 1]), 30)[:, None]
        table = duels_of(family, UserData.from_arrays(X, users=np.arange(1200) // 40), Votes())
        assert table[0, 1] == -30
        assert table[1, 0] == 30

    def test_a_cover_learns_a_distribution(self):
        truth = np.array([0.45, 0.3, 0.15, 0.1])
        rng = np.random.default_rng(0)
        X = rng.choice(4, size=(50 * 64, 1), p=truth)
        with use_noise(SeededNoise(0)):
            fitted = HypothesisSelector(simplex_cover(4, 0.5)).fit(X, users=np.arange(3200) // 64)
        assert 0.5 * np.abs(fitted.family.probabilities(fitted.index_) - truth).sum() < 0.06

    def test_a_normal_mean_is_found(self):
        rng = np.random.default_rng(0)
        family = GaussianFamily(np.linspace(-3, 3, 61)[:, None])
        with use_noise(SeededNoise(0)):
            fitted = HypothesisSelector(family).fit(
                rng.normal(1.0, 1.0, (50 * 16, 1)), users=np.arange(800) // 16
            )
        assert abs(np.asarray(family.means)[fitted.index_, 0] - 1.0) <= 0.3


class TestUse:
    def test_samples_and_densities_are_those_of_the_member(self):
        with use_noise(SeededNoise(0)):
            fitted = HypothesisSelector(THREE, epsilon=50.0).fit(
                [[0.0]] * 90 + [[1.0]] * 10, users=np.arange(100) // 5
            )
        assert fitted.index_ == 1
        assert np.exp(fitted.score_samples([[0.0], [1.0]])) == pytest.approx([0.9, 0.1], abs=1e-5)
        assert fitted.sample(500, random_state=0).mean() == pytest.approx(0.1, abs=0.05)
        assert fitted.guarantee_.epsilon == 50.0

    def test_wrong_use_is_refused_before_the_charge(self):
        for family, clip, message in [
            ("family", None, "family to be a Family"),
            (THREE, 0.5, "clip to be a Clip"),
            (SimplexGrid(2, 2), Votes(), "table of all duels"),
        ]:
            with pytest.raises(ParameterError, match=message):
                HypothesisSelector(family, clip=clip).fit([[0]], users=[0])
        with pytest.raises(ParameterError, match="needs users="):
            HypothesisSelector(THREE).fit([[0]])


@pytest.mark.parametrize("table", [[[0, 1]], np.zeros((1, 2))], ids=["list", "array"])
def test_another_number_of_columns_is_refused_before_the_charge(table, tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.set_budget("people", epsilon=1.0)
    with pytest.raises(SchemaError, match=r"1 feature\(s\)"):
        HypothesisSelector(THREE, ledger=ledger, data_name="people").fit(table, users=[0])
    HypothesisSelector(THREE, ledger=ledger, data_name="people").fit([[0]], users=[0])


@pytest.mark.parametrize("family", [THREE, SimplexGrid(2, 4), NORMAL], ids=["3", "grid", "N"])
def test_where_users_lie_does_not_matter(family):
    rng = np.random.default_rng(0)
    users = rng.integers(0, 40, 300)
    people = UserData.from_arrays(rng.integers(0, 2, (300, 1)).astype(float), users=users)

    def fitted(data):
        with use_noise(SeededNoise(1)):
            return HypothesisSelector(family, epsilon=0.2).fit(data).index_

    for n_parts in (1, 3, 7):
        assert fitted(MemoryCrowd(people, n_parts=n_parts)) == fitted(people)


def test_it_can_be_cloned_with_all_its_parameters():
    selector = HypothesisSelector(THREE, 0.5, clip=Clip(0.7), relation=Relation.ADD_REMOVE)
    copied = clone(selector)
    assert copied.clip == selector.clip
    assert copied.relation is Relation.ADD_REMOVE
    assert copied.family.size == 3
