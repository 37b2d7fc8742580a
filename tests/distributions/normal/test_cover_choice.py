"""Mean and covariance chosen together: Theorem 46 as one choice, audited through the estimator."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs, replay
from quorate.auditing.laws import permute_and_flip_mass
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.distributions import GaussianDistribution
from quorate.distributions.hypotheses.clip import Clip
from quorate.distributions.normal.cover_choice import NormalCover, StandardRecords
from quorate.exceptions import ParameterError
from quorate.ledger import Ledger
from quorate.ranges import as_bound
from sealing import paid_by_a_quarter

# Nine or ten members each, so that every outcome can be enumerated.
LINE = {"bounds": 0.3, "deviations": (1.0, 1.1), "error": 0.95}
PLANE = {"bounds": 0.05, "deviations": (1.0, 1.05), "error": 0.95}
WORLD = SmallWorld(records=((-1.5,), (1.5,), (0.1,) * 9), n_users=2)


def law_of(parameters, relation=Relation.REPLACE, features=1):
    one = GaussianDistribution(1.0, relation=relation, **parameters)

    def released(users):
        X = np.array([value for held in users for value in held], dtype=float).reshape(-1, 1)
        ids = np.array([i for i, held in enumerate(users) for _ in held], dtype=int)
        fitted = one.fit(np.tile(X, features), users=ids)
        return (*fitted.mean_.tolist(), *fitted.covariance_.ravel().tolist())

    return lambda users: enumerate_runs(lambda _: released(users))


@pytest.mark.claim("F8: Theorem 46")
class TestPrivacy:
    @pytest.mark.parametrize(("told", "features"), [(LINE, 1), (PLANE, 2)], ids=["line", "plane"])
    def test_all_fits_of_a_small_world_keep_the_claim(self, told, features):
        found = audit_exactly(law_of(told, features=features), WORLD, Guarantee(epsilon=1.0))
        assert found.holds, str(found)
        assert found.tightness > 0.3

    def test_one_user_more_or_less(self):
        world = SmallWorld(records=((-1.5,), (1.5,) * 3), n_users=3, ordered=False)
        claim = Guarantee(epsilon=1.0, relation=Relation.ADD_REMOVE)
        found = audit_exactly(law_of(LINE, Relation.ADD_REMOVE), world, claim)
        assert found.holds, str(found)

    def test_the_audit_catches_a_clip_that_is_not_paid_for(self, monkeypatch):
        paid_by_a_quarter(monkeypatch)
        monkeypatch.setattr(Clip, "sensitivity", lambda self, unit, relation: self.limit(unit) // 2)
        found = audit_exactly(law_of(LINE), WORLD, Guarantee(epsilon=1.0), thorough=False)
        assert not found.holds

    @pytest.mark.parametrize("sent", [[1e308], [np.nan, 0.0], [-1e300] * 40, [0.0] * 9])
    @pytest.mark.parametrize("relation", Relation)
    def test_whatever_one_user_sends_looks_the_same(self, relation, sent):
        def run(mine):
            X = np.array([0.2, 0.1, -0.3, *mine])[:, None]
            one = GaussianDistribution(1.0, relation=relation, **LINE)
            one.fit(X, users=[0, 1, 1, *[2] * len(mine)])
            return one.mean_, one.covariance_, one.error_, one.algorithm_, one.guarantee_

        report = replay(run, [0.1], sent)
        assert report.same, str(report)


@pytest.mark.claim("F8: Theorem 46")
def test_the_law_is_that_of_one_choice_among_pairs_of_mean_and_scale():
    """Written from Theorems 41 and 46: all pairs (mu, sigma), Scheffe scores, one choice."""
    fitted = GaussianDistribution(1.0, **LINE).fit([[0.0]], users=[0])
    assert fitted.algorithm_.name == "cover"
    people = ((-0.4, 0.9, 0.1, 0.2), (1.5,))
    found = law_of(LINE)(people)
    members = sorted({(mean, variance) for mean, variance in found})
    means, scales = (np.array(part) for part in zip(*members, strict=True))
    scales = np.sqrt(scales)
    line = np.linspace(-9.0, 9.0, 180_001)
    densities = norm.pdf(line[:, None], means, scales)
    worst = np.full(len(members), -np.inf)
    for i in range(len(members)):
        for j in set(range(len(members))) - {i}:
            better = densities[:, i] > densities[:, j]
            promised = densities[better, i].sum() * (line[1] - line[0])
            duel = 0.0
            for held in people:
                at = np.array(held)
                ahead = norm.pdf(at, means[i], scales[i]) > norm.pdf(at, means[j], scales[j])
                term = (len(held) * promised - ahead.sum()) / np.sqrt(len(held))
                duel += np.clip(term, -0.5, 0.5)
            worst[i] = max(worst[i], duel)
    # A user who is replaced moves a duel by 1, and the choice has the rate epsilon / 2.
    expected = permute_and_flip_mass(-np.rint(worst * 2**30).astype(np.int64), scale=2.0 * 2**30)
    for place, member in enumerate(members):
        assert found[member] == pytest.approx(expected[place], abs=1e-4)


class TestUtility:
    @pytest.mark.parametrize("relation", Relation)
    def test_mean_and_scale_are_found_together_without_delta(self, relation):
        X = np.random.default_rng(0).normal(172.0, 8.0, (1200, 1))
        with use_noise(SeededNoise(0)):
            one = GaussianDistribution(
                1.0, bounds=(150.0, 190.0), deviations=(5.0, 10.0), error=0.6, relation=relation
            ).fit(X, users=np.arange(1200) // 20)
        line = np.linspace(100.0, 250.0, 3001)
        gap = norm.pdf(line, one.mean_[0], one.covariance_[0, 0] ** 0.5) - norm.pdf(line, 172, 8)
        assert 0.5 * np.abs(gap).sum() * 0.05 < 0.3
        assert one.guarantee_.delta == 0
        assert one.algorithm_.name == "cover"

    def test_a_plane(self):
        truth = multivariate_normal([103.0, 198.0], [[120.0, 15.0], [15.0, 105.0]])
        X = truth.rvs(60 * 12, random_state=0)
        told = {"bounds": ([97.0, 197.0], [103.0, 203.0]), "deviations": (10.0, 11.0)}
        with use_noise(SeededNoise(0)):
            one = GaussianDistribution(4.0, error=0.95, **told).fit(X, users=np.arange(720) // 12)
        line = np.linspace(-50.0, 50.0, 201)
        grid = np.stack(np.meshgrid(100.0 + line, 200.0 + line), axis=-1)
        gap = truth.pdf(grid) - multivariate_normal(one.mean_, one.covariance_).pdf(grid)
        assert 0.5 * np.abs(gap).sum() * 0.25 < 0.25

    @pytest.mark.claim("F8: Theorem 45")
    def test_a_known_covariance_leaves_the_mean(self):
        known = np.array([[2.0, 0.5], [0.5, 1.0]])
        X = np.random.default_rng(0).multivariate_normal([5.5, -3.2], known, 1200)
        with use_noise(SeededNoise(0)):
            one = GaussianDistribution(
                1.0, bounds=([4.0, -4.0], [6.0, -2.0]), covariance=known, algorithm="cover"
            )
            one.set_params(error=0.9).fit(X, users=np.arange(1200) // 20)
        off = one.mean_ - [5.5, -3.2]
        assert off @ np.linalg.solve(known, off) < 0.5**2
        assert one.covariance_ == pytest.approx(known)


class TestRefusals:
    @pytest.mark.parametrize(
        ("told", "match"),
        [
            ({"bounds": 100.0, "deviations": (1.0, 2.0)}, r"Take error=0\.86 or more"),
            ({"bounds": 1e9, "deviations": (1.0, 2.0)}, "No error < 1"),
            ({"bounds": [(-1.0,) * 3, (1.0,) * 3], "deviations": (1.0, 2.0)}, "one or two feat"),
            ({"bounds": 1e6, "covariance": [[1.0]], "algorithm": "cover"}, "'medians'"),
            ({"bounds": 1.0, "deviations": (1.0, 2.0), "error": 1.0}, "error"),
            ({"bounds": 1.0, "algorithm": "cover"}, "deviations="),
        ],
    )
    def test_too_many_members_are_refused_before_the_charge(self, told, match, tmp_path):
        ledger = Ledger(tmp_path / "ledger.sqlite")
        ledger.set_budget("people", epsilon=1.0)
        features = 3 if isinstance(told["bounds"], list) else 1
        one = GaussianDistribution(1.0, ledger=ledger, data_name="people", **told)
        with pytest.raises(ParameterError, match=match):
            one.fit(np.zeros((4, features)), users=range(4))
        assert ledger.remaining("people").epsilon == 1.0

    def test_the_error_that_is_named_is_enough(self):
        family = NormalCover.of(as_bound(100.0, 1), error=0.86, deviations=(1.0, 2.0)).family
        assert 3500 < family.size <= 4096


def test_a_record_in_public_units_is_the_same_in_every_company():
    rng = np.random.default_rng(0)
    X, users = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-9, 9, (40, 1)), np.arange(40) // 4
    change = StandardRecords(tuple(map(tuple, rng.normal(size=(3, 3)).tolist())), (0.1, 7.0, 1e9))
    whole = change(UserData.from_arrays(X, users=users))
    for user in range(10):
        alone = change(UserData.from_arrays(X[users == user], users=users[users == user]))
        assert np.array_equal(alone.X, whole.X[users == user])
