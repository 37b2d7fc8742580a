"""Several columns at once: paid for together, bounded together, the same for neighbours."""

import numpy as np
import pytest

from quorate.accounting.compose import price
from quorate.auditing import replay
from quorate.distributions import ProductDistribution
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError
from quorate.guarantees import Relation
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData

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
        [(Relation.REPLACE, "auto"), (Relation.ADD_REMOVE, "auto"), (Relation.REPLACE, "mean")],
    )
    def test_neighbours_look_the_same(self, table, relation, way):
        def run(mine):
            X = np.concatenate([table[:90], np.reshape(mine, (-1, 3))])
            users = [*np.arange(90) // 3, *[999] * (len(X) - 90)]
            one = ProductDistribution(1.0, categories=CATEGORIES, relation=relation, algorithm=way)
            one.set_params(delta=1e-6 if way == "mean" else 0.0)
            one.fit(X, users=users)
            return one.pmfs_, one.error_, one.algorithm_, one.guarantee_

        for mine in ([[1, 3, 2]] * 300, [[9, 9, 9]], [[0, 0, 7]]):
            report = replay(run, [[0, 0, 0]], mine)
            assert report.same, str(report)


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
