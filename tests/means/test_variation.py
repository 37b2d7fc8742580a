"""Promises of the diagnostic: what one user moves, the law it inverts, and its stated ranges."""

from __future__ import annotations

import numpy as np
import pytest

from quorate import Relation, UserData, UserVariation
from quorate.core.account import price
from quorate.core.bounds.grid import Box
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.means import variation as module
from quorate.means.variation import expected_score, share_from_score

BOX = Box([-6.0, -6.0], [6.0, 6.0])


def crowd(n, between, *, d=2, seed=0, records=(2, 9)):
    rng = np.random.default_rng(seed)
    held = rng.integers(*records, n)
    users = np.repeat(np.arange(n), held)
    level = np.sqrt(between) * rng.normal(size=(n, d))[users]
    return level + np.sqrt(1 - between) * rng.normal(size=(len(users), d)), users


class TestWhatOneUserMoves:
    HOSTILE = (
        [[np.nan, 1.0]],
        [[1e308, -1e308], [-1e308, 1e308]],
        [[np.inf, 0.0], [0.0, 0.0], [0.0, 0.0]],
        [[0.0, 0.0], [0.0, 0.0]],
        [[5.0, 5.0]] * 50,
        [],
    )

    @pytest.mark.parametrize("records", HOSTILE, ids=range(len(HOSTILE)))
    def test_a_replaced_user_moves_one_pair_and_each_sum_by_one_at_most(self, records):
        X, users = crowd(20, 0.4)
        before = UserData.from_arrays(X, users=users)
        kept = users != 7
        X = np.concatenate([X[kept], np.reshape(records, (-1, 2))])
        users = np.concatenate([users[kept], np.full(len(records), 7)])
        if not records:  # present in the table, without a usable record
            X, users = np.concatenate([X, [[np.nan, np.nan]]]), np.append(users, 7)
        after = UserData.from_arrays(X, users=users)
        rows = [module._Halves(BOX)(data).reshape(10, 2, -1) for data in (before, after)]
        for one, other in zip(*(module._pair_scores(each).T for each in rows), strict=True):
            moved = np.abs(one - other)
            assert np.count_nonzero(moved) <= 1
            assert moved.sum() <= 1
            assert np.all((one >= 0) & (one <= 1))
        for statistic in (module._Inverse(), module._Present()):
            moved = np.abs(statistic(before) - statistic(after))
            assert np.count_nonzero(moved) <= 1
            assert moved.sum() <= 1

    def test_a_twin_that_lets_a_user_into_every_pair_is_caught(self):
        X, users = crowd(20, 0.4)
        changed = np.where((users == 0)[:, None], 5.0, X)
        chained = np.column_stack([np.zeros(10, int), np.arange(1, 11)])
        rows = [
            module._Halves(BOX)(UserData.from_arrays(x, users=users))[chained] for x in (X, changed)
        ]
        scores = [module._pair_scores(held)[:, 0] for held in rows]
        assert np.count_nonzero(scores[0] - scores[1]) > 1

    def test_the_sums_are_paid_for_by_the_whole_budget(self):
        X, users = crowd(60, 0.4)
        fitted = UserVariation(0.7, bounds=6.0).fit(X, users=users)
        (event,) = fitted.guarantee_.events
        assert price(event) == pytest.approx(0.7, rel=1e-9)
        assert fitted.guarantee_.epsilon == 0.7


class TestTheLaw:
    @pytest.mark.parametrize("dimension", [1, 2, 20])
    def test_a_score_is_inverted(self, dimension):
        for share in (0.05, 0.5, 0.95):
            score = expected_score(share, dimension)
            assert share_from_score(score, dimension) == pytest.approx(share, abs=1e-6)
        assert share_from_score(0.0, dimension) == 0.0
        assert share_from_score(1.0, dimension) == 1.0

    @pytest.mark.parametrize("dimension", [1, 8])
    def test_pairs_of_normal_users_follow_it(self, dimension):
        X, users = crowd(4000, 0.5, d=dimension, records=(6, 7))
        box = Box([-9.0] * dimension, [9.0] * dimension)
        rows = module._Halves(box)(UserData.from_arrays(X, users=users)).reshape(2000, 2, -1)
        score = module._pair_scores(rows)[:, 0].mean()
        share = 0.5 / (0.5 + 0.5 / 6)
        assert score == pytest.approx(expected_score(share, dimension), abs=0.02)


class TestAnswers:
    @pytest.mark.parametrize("between", [0.0, 0.3, 0.8])
    def test_the_ranges_hold_and_are_of_use(self, between):
        held, widths = 0, []
        for seed in range(10):
            X, users = crowd(1500, between, seed=seed)
            with use_noise(SeededNoise(seed)):
                fitted = UserVariation(1.0, bounds=6.0).fit(X, users=users)
            low, high = fitted.error_.between
            held += low - 1e-9 <= between <= high + 1e-9
            widths.append(high - low)
            assert low <= fitted.between_ <= high
        assert held >= 9
        assert np.median(widths) < 0.35

    def test_records_are_counted_harmonically(self):
        X, users = crowd(3000, 0.3, records=(1, 20))
        truth = 1 / np.mean(1 / np.bincount(users))
        held = 0
        for seed in range(10):
            with use_noise(SeededNoise(seed)):
                fitted = UserVariation(2.0, bounds=6.0).fit(X, users=users)
            assert fitted.records_ == pytest.approx(truth, rel=0.05)
            held += fitted.error_.records[0] < truth < fitted.error_.records[1]
        assert held >= 8

    def test_one_record_each_says_nothing_about_likeness_and_says_so(self):
        X, users = np.zeros((300, 1)), np.arange(300)
        with use_noise(SeededNoise(0)):
            fitted = UserVariation(1.0, bounds=6.0).fit(X, users=users)
        low, high = fitted.error_.share
        assert high - low > 0.5


class TestRefusals:
    def test_pairs_need_a_public_number_of_users(self):
        variation = UserVariation(1.0, bounds=6.0, relation=Relation.ADD_REMOVE)
        with pytest.raises(ParameterError, match="another partner"):
            variation.fit(np.zeros((4, 1)), users=range(4))

    def test_few_users_still_get_an_answer(self):
        for n in (1, 2, 3):
            fitted = UserVariation(1.0, bounds=6.0).fit(np.zeros((n, 1)), users=range(n))
            assert 0.0 <= fitted.share_ <= 1.0
            assert np.isfinite(fitted.records_)
