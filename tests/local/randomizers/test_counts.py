"""Votes are unbiased, their standard errors are right, and no message has a place."""

import numpy as np
import pytest

from quorate.core.noise import SeededNoise
from quorate.local.randomizers.counts import (
    EstimatedVotes,
    count_votes,
    estimate_votes,
    walsh_hadamard,
)
from quorate.local.randomizers.hashed import HashedResponse, Reports
from reports_of import seeded_reports


def by_definition(reports, response):
    """Count agreements one candidate and one report at a time."""
    found = []
    for value in range(response.candidates):
        matches = 0
        for masks, answer in zip(reports.masks.T, reports.answers, strict=True):
            hashed = sum(((int(m) & value).bit_count() & 1) << i for i, m in enumerate(masks))
            matches += hashed == answer
        expected = len(reports) / 2**response.width
        found.append((matches - expected) / float(response.gain))
    return np.array(found)


class TestCounting:
    @pytest.mark.parametrize("width", [1, 2, 3])
    @pytest.mark.parametrize("candidates", [2, 5, 16])
    def test_the_transform_gives_the_votes_by_definition(self, candidates, width):
        response = HashedResponse(candidates=candidates, epsilon=1.0, width=width)
        reports = seeded_reports(response, np.arange(40) % candidates, SeededNoise(candidates))
        votes = count_votes(reports, response)
        np.testing.assert_allclose(votes.votes, by_definition(reports, response), atol=1e-9)
        some = np.array([1, 0])
        np.testing.assert_allclose(
            estimate_votes(some, reports, response).votes, votes.votes[some], atol=1e-9
        )

    def test_the_transform_is_its_own_inverse_up_to_the_length(self):
        values = np.array([3, -1, 4, 1, -5, 9, 2, 6])
        assert (walsh_hadamard(walsh_hadamard(values)) // 8).tolist() == values.tolist()
        signs = [[(-1) ** (i & j).bit_count() for j in range(8)] for i in range(8)]
        assert walsh_hadamard(values).tolist() == (np.array(signs) @ values).tolist()

    def test_the_mean_over_the_exact_law_is_the_vote(self):
        """Unbiased for every candidate named and every candidate asked for, without sampling."""
        response = HashedResponse(candidates=4, epsilon=1.0, width=2)
        for named in range(4):
            law = response.law(named)
            masks = np.array([report[0] for report in law], dtype=np.uint64).T
            answers = np.array([report[1] for report in law], dtype=np.uint8)
            total = np.zeros(4)
            for i, chance in enumerate(law.values()):
                one = Reports(masks[:, [i]], answers[[i]], np.zeros(1, np.uint8))
                total += float(chance) * count_votes(one, response).votes
            np.testing.assert_allclose(total, np.eye(4)[named], atol=1e-12)

    def test_the_order_of_the_reports_cannot_be_seen(self):
        response = HashedResponse(candidates=50, epsilon=1.0)
        reports = seeded_reports(response, np.arange(50), SeededNoise(2))
        order = np.random.default_rng(0).permutation(50)
        mixed = Reports(reports.masks[:, order], reports.answers[order], reports.levels[order])
        assert count_votes(mixed, response).votes.tolist() == (
            count_votes(reports, response).votes.tolist()
        )


class TestStandardErrors:
    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
    def test_errors_over_standard_errors_have_variance_one(self, epsilon):
        response = HashedResponse(candidates=1024, epsilon=epsilon)
        values = np.repeat(np.arange(1024), 20)
        values[:8000] = 5
        truth = np.bincount(values, minlength=1024)
        votes = count_votes(seeded_reports(response, values, SeededNoise(3)), response)
        scores = (votes.votes - truth) / votes.standard_errors
        # The mean of 1024 squares of standard normals has deviation 0.044.
        assert abs(np.mean(scores**2) - 1) < 0.25
        assert np.abs(scores).max() < 6

    def test_half_the_standard_error_would_be_seen(self):
        response = HashedResponse(candidates=1024, epsilon=1.0)
        values = np.repeat(np.arange(1024), 20)
        votes = count_votes(seeded_reports(response, values, SeededNoise(3)), response)
        scores = (votes.votes - 20) / (votes.standard_errors / 2)
        assert np.mean(scores**2) > 3

    def test_levels_scale_to_all_users(self):
        response = HashedResponse(candidates=2**32, epsilon=2.0)
        scores = []
        for seed in range(60):
            values = np.full(2000, 9)
            values[:1000] = np.arange(1000) + 100
            reports = seeded_reports(response, values, SeededNoise(seed))
            votes = estimate_votes(np.array([9, 12345]), reports, response)
            assert votes.users == 2000
            scores.append((votes.votes - [1000, 0]) / votes.standard_errors)
        assert abs(np.mean(scores)) < 0.6
        assert 0.5 < np.mean(np.square(scores)) < 1.7


class TestVotes:
    VOTES = EstimatedVotes(np.array([4, 2, 9]), np.array([7.0, 7.0, -1.0]), np.ones(3), 20)

    def test_ties_go_to_the_smallest_candidate(self):
        assert self.VOTES.winner == 2
        assert self.VOTES.top(3).candidates.tolist() == [2, 4, 9]
        assert self.VOTES.top(1).votes.tolist() == [7.0]

    def test_shares_are_of_all_users(self):
        assert self.VOTES.shares.tolist() == [0.35, 0.35, -0.05]

    def test_nobody_votes(self):
        response = HashedResponse(candidates=4, epsilon=1.0)
        votes = count_votes(response.respond(np.zeros(0, np.int64)), response)
        assert votes.votes.tolist() == [0, 0, 0, 0]
        assert votes.winner == 0
        assert votes.shares.tolist() == [0, 0, 0, 0]
