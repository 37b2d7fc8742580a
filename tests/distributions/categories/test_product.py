"""Several columns at once: paid for together, bounded together, the same for neighbours."""

import itertools
import math

import numpy as np
import pytest

from crowds_of_shares import crowd_of
from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs, replay
from quorate.auditing.laws import permute_and_flip_mass
from quorate.core.account.compose import price
from quorate.core.bounds.grid import Grid, Interval
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.distributions import ProductDistribution
from quorate.distributions.categories.product import _Present
from quorate.distributions.hypotheses.clip import Clip
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError
from quorate.ledger import Ledger
from sealing import paid_by_a_quarter, total_of

SIZES = (2, 4, 3)
CATEGORIES = [list(range(k)) for k in SIZES]
PEOPLE = np.repeat(np.arange(1500), 3)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    chances = [[0.7, 0.3], [0.4, 0.3, 0.2, 0.1], [0.8, 0.1, 0.1]]
    return np.stack([rng.choice(len(p), p=p, size=4500) for p in chances], axis=1)


def shares(table):
    return [np.bincount(column, minlength=k) / len(table) for column, k in zip(table.T, SIZES)]  # noqa: B905


class TestFit:
    @pytest.mark.parametrize(
        ("relation", "delta", "algorithm"),
        [
            *[(relation, 0.0, "laplace") for relation in Relation],
            *[(relation, 1e-6, "gaussian") for relation in Relation],
            (Relation.REPLACE, 1e-6, "mean"),
        ],
    )
    def test_the_bound_holds_and_all_is_paid(self, table, relation, delta, algorithm):
        truth, held = shares(table), []
        for seed in range(12):
            with use_noise(SeededNoise(seed)):
                one = ProductDistribution(
                    1.0,
                    categories=CATEGORIES,
                    delta=delta,
                    algorithm=algorithm,
                    relation=relation,
                ).fit(table, users=PEOPLE)
            error = sum(0.5 * np.abs(a - b).sum() for a, b in zip(one.pmfs_, truth, strict=True))
            held.append(error <= one.error_.bound)
            spent = price(one.guarantee_.events[0], delta=delta, relation=relation)
            assert 0.9 < spent <= 1.0
        assert np.mean(held) >= 0.9

    def test_many_columns_get_gaussian_noise(self):
        X = np.zeros((300, 12), dtype=int)
        known = {"categories": [[0, 1]] * 12, "delta": 1e-6}
        with use_noise(SeededNoise(0)):
            many = ProductDistribution(1.0, **known).fit(X, users=range(300))
            few = ProductDistribution(1.0, categories=[[0, 1]] * 2, delta=1e-6)
            few.fit(X[:, :2], users=range(300))
        assert many.algorithm_.name == "gaussian"
        assert few.algorithm_.name == "laplace"

    def test_a_private_radius_helps_people_who_are_alike(self):
        rng = np.random.default_rng(1)
        X, people = rng.integers(0, 2, (2000 * 30, 8)), np.repeat(np.arange(2000), 30)
        errors = {}
        for way in ("auto", "gaussian"):
            found = []
            for seed in range(4):
                with use_noise(SeededNoise(seed)):
                    one = ProductDistribution(
                        1.0, categories=[[0, 1]] * 8, delta=1e-6, algorithm=way
                    ).fit(X, users=people)
                found.append(sum(abs(pmf[0] - 0.5) for pmf in one.pmfs_))
            errors[way] = np.mean(found)
        assert errors["auto"] < 0.6 * errors["gaussian"]

    @pytest.mark.parametrize(
        "other", [{"delta": 0.0}, {"delta": 1e-6, "relation": Relation.ADD_REMOVE}]
    )
    def test_a_private_radius_needs_delta_and_a_public_number_of_people(self, table, other):
        one = ProductDistribution(1.0, categories=CATEGORIES, algorithm="mean", **other)
        with pytest.raises(ParameterError, match="needs delta"):
            one.fit(table, users=PEOPLE)

    def test_labels_and_crowds_mean_the_same(self, table):
        words = np.array(["a", "b", "c", "d"], dtype=object)[table]
        crowd = UserData.from_arrays(table.astype(float), users=PEOPLE)
        released = []
        for X, users, names in (
            (words, PEOPLE, [["a", "b", "c", "d"][:k] for k in SIZES]),
            (crowd, None, CATEGORIES),
        ):
            with use_noise(SeededNoise(3)):
                one = ProductDistribution(1.0, categories=names).fit(X, users=users)
            released.append(np.concatenate(one.pmfs_))
        assert np.array_equal(*released)

    @pytest.mark.parametrize(
        ("relation", "way"),
        [
            (Relation.REPLACE, "auto"),
            (Relation.ADD_REMOVE, "auto"),
            (Relation.REPLACE, "mean"),
            (Relation.REPLACE, "cover"),
            (Relation.ADD_REMOVE, "cover"),
        ],
    )
    def test_neighbours_look_the_same(self, table, relation, way):
        def run(mine):
            X = np.concatenate([table[:90], np.reshape(mine, (-1, 3))])
            users = [*np.arange(90) // 3, *[999] * (len(X) - 90)]
            one = ProductDistribution(1.0, categories=CATEGORIES, relation=relation, algorithm=way)
            one.set_params(delta=1e-6 if way == "mean" else 0.0, error=0.95)
            one.fit(X, users=users)
            return one.pmfs_, one.error_, one.algorithm_, one.guarantee_

        for mine in ([[1, 3, 2]] * 300, [[9, 9, 9]], [[0, 0, 7]]):
            report = replay(run, [[0, 0, 0]], mine)
            assert report.same, str(report)


COVER = {"categories": [range(2), range(2)], "algorithm": "cover", "error": 0.95}


def cover_law(relation=Relation.REPLACE, epsilon=1.0, **told):
    one = ProductDistribution(epsilon, relation=relation, **(COVER | told))

    def law(users):
        X = np.array([record for held in users for record in held], dtype=float).reshape(-1, 2)
        ids = np.array([i for i, held in enumerate(users) for _ in held], dtype=int)
        # One user without a record that counts keeps a place.
        X = np.concatenate([X, [[7.0, 7.0]]])
        ids = np.append(ids, len(users))
        return enumerate_runs(lambda _: tuple(float(p[1]) for p in one.fit(X, users=ids).pmfs_))

    return law


@pytest.mark.claim("F8: Theorem 44")
class TestCover:
    WORLD = SmallWorld(records=(((0, 0),), ((1, 1),), ((0, 1),) * 3), n_users=2)

    def test_all_fits_of_a_small_world_keep_the_claim(self):
        found = audit_exactly(cover_law(), self.WORLD, Guarantee(epsilon=1.0), thorough=False)
        assert found.holds, str(found)
        assert found.tightness > 0.5

    def test_one_user_more_or_less(self):
        world = SmallWorld(records=(((0, 0),), ((1, 1),) * 3), n_users=2, ordered=False)
        claim = Guarantee(epsilon=1.0, relation=Relation.ADD_REMOVE)
        found = audit_exactly(cover_law(Relation.ADD_REMOVE), world, claim, thorough=False)
        assert found.holds, str(found)

    def test_the_audit_catches_a_clip_that_is_not_paid_for(self, monkeypatch):
        paid_by_a_quarter(monkeypatch)
        monkeypatch.setattr(Clip, "sensitivity", lambda self, unit, relation: self.limit(unit) // 2)
        found = audit_exactly(cover_law(), self.WORLD, Guarantee(epsilon=1.0), thorough=False)
        assert not found.holds

    def test_the_law_is_that_of_a_choice_for_each_coordinate(self):
        """Written from the theorem: masses in steps, Scheffe scores, epsilon / d a coordinate."""
        people = (((0, 1), (0, 1), (0, 0)), ((1, 1),), ((0, 0),) * 4)
        # Within 0.1 alpha / d of every coin: 2.5 k d / alpha steps, rounded up.
        steps = math.ceil(2.5 * 2 * 2 / 0.95)
        laws = []
        for column in range(2):
            worst = []
            for mass in range(steps + 1):
                duels = []
                # W is where P is larger: all ones, if P has more of them than P', or all zeros.
                for side, share in ((1, mass / steps), (0, 1 - mass / steps)):
                    if share == 0:
                        continue
                    terms = []
                    for held in people:
                        inside = sum(record[column] == side for record in held)
                        term = (len(held) * share - inside) / math.sqrt(len(held))
                        terms.append(min(0.5, max(-0.5, term)))
                    duels.append(sum(terms))
                worst.append(max(duels))
            # Replacing a user moves a duel by 1: the rate is (epsilon / 2) / 2.
            scores = -np.rint(np.array(worst) * 2**30).astype(np.int64)
            laws.append(permute_and_flip_mass(scores, scale=4.0 * 2**30))
        found = cover_law()(people)
        for i, j in itertools.product(range(steps + 1), repeat=2):
            expected = laws[0][i] * laws[1][j]
            assert found[i / steps, j / steps] == pytest.approx(expected, rel=2e-3)

    @pytest.mark.parametrize("relation", Relation)
    def test_few_people_with_many_records_err_less_than_with_noise(self, relation):
        rng, people = np.random.default_rng(0), np.repeat(np.arange(150), 40)
        X = np.stack([rng.choice(2, 6000, p=[0.7, 0.3]), rng.choice(3, 6000, p=[0.6, 0.3, 0.1])], 1)
        errors = {"cover": [], "laplace": []}
        for way, seed in itertools.product(errors, range(6)):
            known = {"categories": [range(2), range(3)], "error": 0.5, "relation": relation}
            with use_noise(SeededNoise(seed)):
                one = ProductDistribution(1.0, algorithm=way, **known).fit(X, users=people)
            gaps = [one.pmfs_[0] - [0.7, 0.3], one.pmfs_[1] - [0.6, 0.3, 0.1]]
            errors[way].append(sum(0.5 * np.abs(gap).sum() for gap in gaps))
        assert np.mean(errors["cover"]) < np.mean(errors["laplace"])
        assert np.mean(errors["cover"]) < 0.15

    def test_too_many_members_are_refused_before_the_charge(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.sqlite")
        ledger.set_budget("people", epsilon=1.0)
        paid = {"ledger": ledger, "data_name": "people", "algorithm": "cover"}
        for told in ({"categories": [range(10)] * 2}, {"categories": [range(2)] * 2, "error": 1.0}):
            with pytest.raises(ParameterError, match="error"):
                ProductDistribution(1.0, **paid, **told).fit(np.zeros((4, 2)), users=range(4))
        assert ledger.remaining("people").epsilon == 1.0


class TestReleased:
    def test_scores_samples_and_figure(self, table, tmp_path):
        with use_noise(SeededNoise(5)):
            one = ProductDistribution(1.0, categories=CATEGORIES).fit(table, users=PEOPLE)
        expected = sum(np.log(one.pmfs_[j][v]) for j, v in enumerate((1, 2, 0)))
        assert one.score_samples([[1, 2, 0], [1, 2, 9]]) == pytest.approx([expected, -np.inf])
        drawn = one.sample(3000, random_state=0)
        assert np.mean(drawn[:, 0] == 0) == pytest.approx(one.pmfs_[0][0], abs=0.04)
        one.plot(tmp_path / "columns.png")
        assert (tmp_path / "columns.png").stat().st_size > 1000


def test_wrong_use_is_refused():
    X = np.zeros((4, 2))
    with pytest.raises(UnboundedContributionError):
        ProductDistribution(1.0).fit(X, users=range(4))
    for wrong in ([], 3, [[0, 1], [0]], "ab"):
        with pytest.raises(ParameterError):
            ProductDistribution(1.0, categories=wrong).fit(X, users=range(4))
    with pytest.raises(SchemaError):
        ProductDistribution(1.0, categories=[[0, 1]]).fit(X, users=range(4))
    with pytest.raises(ParameterError):
        ProductDistribution(1.0, categories=[[0, 1]] * 2, algorithm="gaussian").fit(
            X, users=range(4)
        )


def test_whoever_holds_a_record_is_counted_once():
    line = Interval(0.0, 1.0, centre=0.0)
    crowd = crowd_of([[0.0], [], [1.0, 1.0, 0.0]])
    assert total_of(crowd, _Present(line), Grid(line, 0.25)).tolist() == [8]
