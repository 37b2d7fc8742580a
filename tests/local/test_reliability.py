"""The stated chances of failure hold in simulation and are not far above what happens."""

import numpy as np
import pytest

from quorate.core.noise import SeededNoise
from quorate.local.randomizers.counts import count_votes
from quorate.local.randomizers.hashed import HashedResponse, Reports
from quorate.local.reliability import (
    choice_failure,
    liars_withstood,
    shuffled_response,
    users_needed,
)
from reports_of import seeded_reports


def miss_rate(response, users, plurality, runs):
    missed = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        values = rng.permutation(response.candidates)[:users]
        values[: int(plurality * users)] = values[0]
        votes = count_votes(seeded_reports(response, values, SeededNoise(seed)), response)
        missed += votes.winner != values[0]
    return missed / runs


@pytest.mark.parametrize("users", [60, 100, 150])
def test_the_bound_holds_and_is_close(users):
    response = HashedResponse(candidates=1024, epsilon=1.0)
    rate = miss_rate(response, users, 0.8, 200)
    bound = choice_failure(response, users=users, plurality=0.8)
    # Three standard deviations of 200 throws.
    assert rate <= bound + 3 * np.sqrt(bound * (1 - bound) / 200) + 1e-9
    assert bound <= 1.6 * rate + 0.12


def test_more_users_and_a_larger_share_fail_less():
    response = HashedResponse(candidates=2**14, epsilon=1.0)

    def failure(users, plurality):
        return choice_failure(response, users=users, plurality=plurality)

    assert failure(400, 0.8) < failure(200, 0.8) < failure(100, 0.8)
    assert failure(200, 0.9) < failure(200, 0.8) < failure(200, 0.5)
    assert failure(1, 0.0) == 1.0


def test_users_needed_is_where_the_failure_falls_below_beta():
    needed = users_needed(candidates=2**14, epsilon=1.0, plurality=0.8, beta=0.1)
    response = HashedResponse(candidates=2**14, epsilon=1.0)
    assert choice_failure(response, users=needed, plurality=0.8) <= 0.1
    assert choice_failure(response, users=int(needed * 0.97), plurality=0.8) > 0.1
    assert needed <= 400
    assert users_needed(candidates=2**32, epsilon=1.0, plurality=0.8, beta=0.1) <= 800


def test_a_shuffler_saves_users():
    assert users_needed(candidates=2**14, epsilon=1.0, delta=1e-6, plurality=0.8) <= 100


def test_the_width_in_the_shuffle_is_chosen_by_tails():
    widths = [shuffled_response(2**14, 1.0, 1e-6, users).width for users in (50, 200)]
    assert widths[0] < widths[1]


@pytest.fixture(scope="module", params=["local", "shuffle"])
def response(request):
    if request.param == "local":
        return HashedResponse(candidates=1024, epsilon=1.0)
    return shuffled_response(1024, 1.0, 1e-6, 200)


class TestLiars:
    """8000 users, four fifths of the honest ones agree, all liars push one other candidate."""

    def survives(self, response, share, seed):
        rng, users = np.random.default_rng(seed), 8000
        liars = int(share * users)
        values = rng.integers(0, 1024, users - liars)
        values[: int(0.8 * len(values))] = 5
        honest = seeded_reports(response, values, SeededNoise(seed))
        # The strongest lie: agree with 6 and not with 5; the masks select their last two bits.
        masks = rng.integers(0, 1024, (response.width, liars)).astype(np.uint64)
        masks[0] = masks[0] & ~np.uint64(3) | np.uint64(1)
        from quorate.local.randomizers.hashed import hashes

        answers = hashes(masks, np.full(liars, 6, dtype=np.uint64))
        assert not np.any(answers == hashes(masks, np.full(liars, 5, dtype=np.uint64)))
        reports = Reports(
            np.concatenate([honest.masks, masks], axis=1),
            np.concatenate([honest.answers, answers]),
            np.zeros(users, np.uint8),
        )
        votes = count_votes(reports, response)
        return votes.votes[5] > votes.votes[6]

    def test_the_choice_survives_below_the_stated_share_and_falls_above_it(self, response):
        limit = liars_withstood(response, plurality=0.8)
        assert limit == pytest.approx(0.8 / (0.8 + float(response.influence)))
        assert all(self.survives(response, 0.8 * limit, seed) for seed in range(5))
        assert not any(self.survives(response, 1.2 * limit, seed) for seed in range(5))
