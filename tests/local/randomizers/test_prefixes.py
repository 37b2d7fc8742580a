"""Among very many candidates the crowd's choice is found in one round."""

import numpy as np
import pytest

from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.local.randomizers.counts import count_votes, estimate_votes
from quorate.local.randomizers.hashed import HashedResponse
from quorate.local.randomizers.prefixes import find_popular
from quorate.local.reliability import choice_failure
from reports_of import seeded_reports


def crowd(candidates, users, share, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, candidates, users)
    values[: int(share * users)] = values[0]
    return values


@pytest.mark.parametrize("candidates", [2**32, 3 * 10**9])
def test_800_users_find_the_choice_of_four_fifths_among_two_to_the_32(candidates):
    response = HashedResponse(candidates=candidates, epsilon=1.0)
    found = 0
    for seed in range(3):
        values = crowd(candidates, 800, 0.8, seed)
        reports = seeded_reports(response, values, SeededNoise(seed))
        found += find_popular(reports, response).winner == values[0]
    assert found == 3


def test_50_users_do_not():
    """Without enough users the search must fail; a search that peeks would not."""
    response = HashedResponse(candidates=2**32, epsilon=1.0)
    values = crowd(2**32, 50, 0.8, 0)
    found = [
        find_popular(seeded_reports(response, values, SeededNoise(s)), response).winner == values[0]
        for s in range(3)
    ]
    assert not all(found)


def test_four_levels_reach_two_to_the_63():
    response = HashedResponse(candidates=2**63, epsilon=4.0)
    assert response.prefix_bits == (16, 32, 48, 63)
    values = crowd(2**63, 1000, 0.8, 1)
    votes = find_popular(seeded_reports(response, values, SeededNoise(0)), response)
    assert votes.winner == values[0]
    assert abs(votes.votes[0] - 800) < 6 * votes.standard_errors[0]


def test_levels_find_what_counting_everybody_would_find(monkeypatch):
    """With few bits a level and a wide beam nothing is cut, and all estimates can be compared."""
    monkeypatch.setattr("quorate.local.randomizers.hashed._PREFIX_BITS", 3)
    response = HashedResponse(candidates=60, epsilon=3.0)
    assert response.levels == 2
    values = np.arange(3000) % 60
    values[:900] = 41
    reports = seeded_reports(response, values, SeededNoise(1))
    found = find_popular(reports, response, count=60, beam=64)
    assert sorted(found.candidates.tolist()) == list(range(60))
    direct = estimate_votes(found.candidates, reports, response)
    np.testing.assert_allclose(found.votes, direct.votes, atol=1e-9)
    np.testing.assert_allclose(found.standard_errors, direct.standard_errors, atol=1e-9)
    assert found.winner == 41


def test_one_level_compares_all_candidates():
    response = HashedResponse(candidates=100, epsilon=1.0)
    reports = seeded_reports(response, np.arange(100), SeededNoise(1))
    whole = count_votes(reports, response)
    assert find_popular(reports, response, count=100).winner == whole.winner


def test_nobody_answers_and_something_is_still_returned():
    response = HashedResponse(candidates=2**32, epsilon=1.0)
    votes = find_popular(response.respond(np.zeros(0, np.int64)), response, count=2)
    assert votes.users == 0
    assert len(votes.candidates) == 2


@pytest.mark.parametrize("wrong", [{"count": 0}, {"beam": 0}, {"beam": 1.5}])
def test_counts_that_are_no_counts_are_refused(wrong):
    response = HashedResponse(candidates=2**32, epsilon=1.0)
    with pytest.raises(ParameterError):
        find_popular(response.respond(np.zeros(1, np.int64)), response, **wrong)


@pytest.mark.claim("G7: Lemma 13")
@pytest.mark.parametrize(("bits", "users"), [(64, 2000), (256, 8000)])
def test_candidates_of_many_words_are_found_by_order_of_bits_users(bits, users):
    """Four of five name one of 2^bits; the others share its first half, or name their own."""
    rng = np.random.default_rng(bits)
    random = [int.from_bytes(rng.bytes(32), "little") % 2**bits for _ in range(users // 5)]
    popular = random[0]
    half = (1 << bits // 2) - 1
    others = [key if i % 2 else (popular & ~half) | (key & half) for i, key in enumerate(random)]
    keys = np.array([popular] * (users - len(others)) + others, dtype=object)
    response = HashedResponse(candidates=2**bits, epsilon=1.0)
    assert choice_failure(response, users=users, plurality=0.8) < 0.01
    with use_noise(SeededNoise(1)):
        reports = response.respond(keys)
    votes = find_popular(reports, response)
    assert votes.winner == popular
    assert abs(votes.votes[0] - 0.8 * users) < 5 * votes.standard_errors[0]
    again = estimate_votes(np.array([popular], dtype=object), reports, response)
    assert again.votes[0] == pytest.approx(votes.votes[0])
