"""LossSelector (U7): bounded, private, and better than the plain exponential mechanism."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs
from quorate.core.bounds.grid import Ball
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners import LossSelector, box_cover
from quorate.learners.covers import cover_of, published_radius

ALGORITHMS = ("auto", "reference", "exponential", "duels")


def means_of(n, candidates, m, seed):
    rng = np.random.default_rng(seed)
    mean = rng.uniform(0.4, 0.6, candidates)
    held = rng.binomial(m, mean, (n, candidates)) / m
    return UserData(held, offsets=np.arange(n + 1)), mean


def mean_excess(algorithm, *, n=200, candidates=100, m=1000, repetitions=8):
    excess = []
    for seed in range(repetitions):
        data, mean = means_of(n, candidates, m, seed)
        with use_noise(SeededNoise(seed)):
            selector = LossSelector(1.0, algorithm=algorithm, records=m, alike=True).fit(data)
        excess.append(mean[selector.index_] - mean.min())
    return np.mean(excess)


class TestUtility:
    def test_many_records_make_the_excess_a_third_of_the_plain_mechanism(self):
        assert mean_excess("auto") <= mean_excess("exponential") / 3

    def test_few_records_take_the_plain_mechanism(self):
        data, _ = means_of(100, 5, 2, 0)
        assert LossSelector(records=2).fit(data).algorithm_.name == "exponential"

    def test_too_many_candidates_for_duels_take_a_reference(self):
        data, mean = means_of(100, 5000, 100, 0)
        with use_noise(SeededNoise(0)):
            selector = LossSelector(5.0, records=100, alike=True).fit(data)
        assert selector.algorithm_.name == "reference"
        assert mean[selector.index_] < np.quantile(mean, 0.1)

    def test_what_most_people_prefer_decides_only_where_they_are_said_to_be_alike(self):
        # Two in three lose a little less by the first candidate, the others much more.
        held = np.tile([[0.50, 0.55], [0.50, 0.55], [0.95, 0.05]], (200, 1))
        data = UserData(held, offsets=np.arange(601))
        with use_noise(SeededNoise(0)):
            differ, alike, few = (
                LossSelector(2.0, records=64).fit(data),
                LossSelector(2.0, records=64, alike=True).fit(data),
                LossSelector(2.0, records=64).fit(data.take(np.arange(60))),
            )
        assert (differ.algorithm_.name, differ.index_) == ("exponential", 1)
        assert (alike.algorithm_.name, alike.index_) == ("duels", 0)
        assert few.algorithm_.name == "duels"

    def test_people_who_come_and_go_are_not_counted_to_decide(self):
        data, _ = means_of(60, 5, 64, 0)
        gone = LossSelector(records=64, relation=Relation.ADD_REMOVE)
        assert gone.fit(data).algorithm_.name == "exponential"
        assert clone(gone).set_params(alike=True).fit(data).algorithm_.name == "duels"

    def test_records_are_bought_only_where_they_decide(self):
        data, _ = means_of(300, 4, 50, 0)
        selector = LossSelector().fit(data)
        assert selector.records_ is None
        assert selector.guarantee_.epsilon == 1.0

    def test_a_lipschitz_loss_is_minimised_over_a_box(self):
        rng = np.random.default_rng(0)
        X = rng.normal([0.3, -0.2], 0.1, (200 * 20, 2))
        data = UserData(X, offsets=np.arange(201) * 20)
        cover = box_cover([-1.0, -1.0], [1.0, 1.0], radius=0.1)
        selector = LossSelector(
            4.0,
            bounds=(0.0, 3.0),
            candidates=cover,
            loss=lambda point, X, y: np.linalg.norm(X - point, axis=1),
        )
        assert np.linalg.norm(selector.fit(data).candidate_ - [0.3, -0.2]) < 0.3

    @pytest.mark.claim("U7: Corollary 3")
    def test_the_published_algorithm_finds_an_obvious_winner(self):
        held = np.tile([0.9, 0.8, 0.1], (300, 1))
        data = UserData(held, offsets=np.arange(301))
        with use_noise(SeededNoise(0)):
            selector = LossSelector(3.0, algorithm="published", records=1000).fit(data)
        assert selector.index_ == 2
        assert selector.guarantee_.epsilon == 3.0


class TestCovers:
    """Corollary 4 and Remark 1: a Lipschitz loss over the unit ball, from a cover of it."""

    @pytest.mark.claim("U7: Corollary 4", "U7: Remark 1")
    @pytest.mark.parametrize("relation", Relation)
    def test_a_ball_of_parameters(self, relation):
        n, m, target = 200, 20, np.array([0.5, -0.4])
        X = target + np.random.default_rng(0).normal(0.0, 0.2, (n * m, 2))

        def distance(point, X, y):
            return np.minimum(np.hypot(X[:, 0] - point[0], X[:, 1] - point[1]) / 2.0, 1.0)

        told = {"bound": 1.0, "lipschitz": 0.5, "dimension": 2, "n_users": n, "records": m}
        radius = published_radius(epsilon=1.0, **told)
        # (B/G) (sqrt(d/(mn)) + d^1.5/(n eps sqrt(m)))
        expected = (np.sqrt(2 / 4000) + 2**1.5 / (200 * np.sqrt(20))) / 0.5
        assert radius == pytest.approx(expected)
        ball = Ball(1.0, dimension=2)
        with use_noise(SeededNoise(0)):
            one = LossSelector(
                1.0, candidates=ball, cover=radius, loss=distance, records=m, relation=relation
            ).fit(X, users=np.arange(n * m) // m)
        best = distance(target, X, None).mean()
        assert distance(one.candidate_, X, None).mean() - best <= 0.1
        assert np.linalg.norm(one.candidate_) <= 1.0 + 1e-12
        assert one.candidate_ == pytest.approx(cover_of(ball, radius=radius)[one.index_])

    @pytest.mark.parametrize(
        "told",
        [
            {"candidates": Ball(1.0, dimension=2)},
            {"candidates": [0.0, 1.0], "cover": 0.1},
            {"candidates": Ball(1.0, dimension=2), "cover": 0.0},
            {"candidates": Ball(1.0, dimension=20), "cover": 0.1},
        ],
        ids=str,
    )
    def test_a_cover_needs_a_set_and_a_radius(self, told):
        with pytest.raises(ParameterError):
            LossSelector(loss=lambda c, X, y: X[:, 0], **told).fit(np.zeros((4, 1)), users=range(4))


class TestPrivacy:
    @pytest.mark.parametrize("relation", list(Relation), ids=lambda r: r.name)
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_the_exact_audit_of_a_whole_fit_holds(self, algorithm, relation, record_property):
        rows = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (9.0, -9.0), (np.inf, 0.5))
        selector = LossSelector(algorithm=algorithm, relation=relation, records=64, alike=True)

        def law(held):
            table = np.array([rows[i] for i in held], dtype=float).reshape(-1, 2)
            data = UserData(table, offsets=np.arange(len(table) + 1))
            return enumerate_runs(lambda noise: clone(selector).fit(data).index_)

        world = SmallWorld(records=range(len(rows)), n_users=2)
        found = audit_exactly(law, world, Guarantee(epsilon=1.0, relation=relation))
        record_property("tightness", found.tightness)
        assert found.holds, str(found)
        assert found.tightness > 0.3

    def test_a_twin_whose_bounds_are_forgotten_is_caught(self):
        from quorate.mechanisms.choices.choose import ChooseBest

        def unclipped(held):
            sums = np.array(held, dtype=np.int64).reshape(-1, 2).sum(axis=0)
            return ChooseBest(candidates=2, epsilon=1.0).probabilities(-sums)

        world = SmallWorld(records=((0, 0), (0, 1), (9, 0)), n_users=2)
        assert not audit_exactly(unclipped, world, Guarantee(epsilon=1.0), thorough=False).holds

    def test_records_of_one_row_a_user_are_bought_when_nothing_is_stated(self):
        data, _ = means_of(200, 4, 50, 0)
        selector = LossSelector().fit(data)
        assert selector.records_.upper == 16
        assert selector.algorithm_.name == "exponential"


class TestRefusals:
    @pytest.mark.parametrize(
        "bad",
        [
            {"algorithm": "luck"},
            {"bounds": (1.0, 0.0)},
            {"bounds": -1.0},
            {"candidates": [1]},
            {"candidates": [], "loss": min},
            {"records": 0},
            {"failure": 2.0},
            {"alike": "yes"},
            {"algorithm": "published", "relation": Relation.ADD_REMOVE},
        ],
        ids=str,
    )
    def test_wrong_parameters_are_refused(self, bad):
        data, _ = means_of(3, 2, 5, 0)
        with pytest.raises(ParameterError):
            LossSelector(**bad).fit(data)

    def test_a_loss_that_fails_on_made_up_records_is_refused(self):
        def quotes_a_record(candidate, X, y):
            raise ValueError(f"patient 17 has {X[0, 0]}")

        data, _ = means_of(3, 2, 5, 0)
        with pytest.raises(ParameterError, match="made-up") as caught:
            LossSelector(candidates=[1], loss=quotes_a_record).fit(data)
        assert caught.value.__context__ is None

    @pytest.mark.parametrize("vectorized", [False, True])
    def test_a_user_for_whom_a_loss_fails_changes_nothing_for_the_others(self, vectorized):
        def hates_seven(candidate, X, y):
            if np.any(X == 7.0):
                raise SystemExit(f"patient 17 has {X[0, 0]}")
            return np.abs(X[:, 0] - candidate)

        rows = np.repeat(np.arange(6.0), 3)[:, None]
        selector = LossSelector(
            bounds=(0.0, 9.0), candidates=[1, 2], loss=hates_seven, vectorized=vectorized
        )
        before = selector._own_losses()(UserData(rows, offsets=np.arange(0, 19, 3)))
        rows[1] = 7.0
        after = selector._own_losses()(UserData(rows, offsets=np.arange(0, 19, 3)))
        assert (after[0] == 0.0).all()
        assert np.array_equal(before[1:], after[1:])

    def test_a_loss_that_sees_everybody_makes_the_guarantee_idealized(self):
        data, _ = means_of(3, 2, 5, 0)
        for vectorized, word in ((False, "exact"), (True, "idealized")):
            selector = LossSelector(
                candidates=[0, 1], loss=lambda c, X, y: X[:, c], vectorized=vectorized, records=1
            )
            guarantee = selector.fit(data).guarantee_
            assert guarantee.numerics.value == word
            assert ("vectorized=True" in str(guarantee)) == vectorized

    def test_the_warnings_of_a_loss_are_withheld(self):
        def warns(candidate, X, y):
            warnings.warn(f"patient 17 has {X[0, 0]}", stacklevel=1)
            return X[:, 0] / 0.0

        data, _ = means_of(3, 2, 5, 0)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            LossSelector(candidates=[1, 2], loss=warns, records=1).fit(data)
        assert seen == []

    def test_a_loss_of_the_wrong_length_is_refused(self):
        data, _ = means_of(3, 2, 5, 0)
        with pytest.raises(ParameterError, match="one number for each record"):
            LossSelector(candidates=[1], loss=lambda c, X, y: 0.0).fit(data)
