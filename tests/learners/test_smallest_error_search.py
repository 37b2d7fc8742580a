"""The search for the smallest error (L3): Lemma 4.5, the corrected branches, exact audits."""

import numpy as np
import pytest

from quorate.auditing import Cells
from quorate.core.account.account import Account
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.learners.concepts import FiniteTable, Thresholds
from quorate.learners.scores import MoreThan
from quorate.learners.smallest_error_search import MinErrorSearch, choose_by_estimated_level
from rule_worlds import CUT_OFFS, RELATIONS, asked, audit, table_losses

RULES = FiniteTable(np.array([[0, 0, 1, 1], [0, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]]))


def noisy_people(n, m, error, seed):
    """Draw labels that the first rule gets wrong with probability ``error``."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, n * m)
    y = (x >= 2) ^ (rng.random(n * m) < error)
    return UserData(x.reshape(-1, 1).astype(float), y.astype(float), offsets=np.arange(n + 1) * m)


@pytest.mark.claim("L3: Lemma 4.5", "L3: Algorithm 2")
class TestLemma45:
    @pytest.mark.theory
    @pytest.mark.parametrize("error", [0.0, 0.07, 0.2, 0.33])
    @pytest.mark.parametrize("m", [4, 32])
    def test_the_search_lands_within_alpha_when_users_suffice(self, error, m):
        # Promised: at most beta = 0.1 of the searches miss. Of 40, more than 16 would have a
        # probability below 1e-6 if that were true.
        alpha, beta = 0.1, 0.1
        search = MinErrorSearch(alpha=alpha, records=m)
        n = search.users_needed(epsilon=1.0, beta=beta, size=RULES.size)
        misses = 0
        for seed in range(40):
            data = noisy_people(n, m, error, seed)
            with use_noise(SeededNoise(seed)):
                found = search.run(RULES, asked(data), account=Account.open(epsilon=1.0))
            misses += abs(found - error) > alpha
        assert misses <= 16

    @pytest.mark.theory
    def test_swapped_branches_as_printed_do_not_land(self):
        class AsPrinted(MinErrorSearch):
            """Algorithm 2 moves the upper end down when the best error is above the guess."""

        search = AsPrinted(alpha=0.1, records=32)
        data = noisy_people(400, 32, 0.07, 0)
        lower, upper = search.start
        for _ in range(search.rounds):
            guess = (lower + upper) / 2
            rate, share = search.step(guess)
            fewest = table_losses(MoreThan(rate=rate), RULES, data).min()
            if fewest > share * 400:
                upper = guess
            else:
                lower = guess
        assert abs((lower + upper) / 2 - 0.07) > 0.1

    def test_published_and_calibrated_rounds(self):
        for alpha in (0.3, 0.1, 0.01):
            published = MinErrorSearch(alpha=alpha, records=5, published=True)
            calibrated = MinErrorSearch(alpha=alpha, records=5)
            assert published.rounds == int(np.ceil(np.log2(2 / alpha)))
            assert calibrated.rounds < published.rounds
            assert 0.5 * 2.0**-calibrated.rounds <= alpha

    def test_published_constants_drop_records_beyond_the_square(self):
        assert MinErrorSearch(alpha=0.1, records=10**6, published=True).kept_records == 100
        assert MinErrorSearch(alpha=0.1, records=10**6).kept_records == 10**6

    def test_more_records_need_fewer_users(self):
        needed = [
            MinErrorSearch(alpha=0.05, records=m).users_needed(epsilon=1.0, beta=0.1, size=100)
            for m in (1, 4, 16, 64)
        ]
        assert needed == sorted(needed, reverse=True)


class TestWholeSearches:
    @pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
    def test_the_exact_audit_of_a_search_and_a_choice_holds(self, relation, record_property):
        def choose(data):
            return choose_by_estimated_level(
                CUT_OFFS,
                asked(data, relation),
                records=2,
                excess=0.3,
                published=False,
                account=Account.open(epsilon=1.0, relation=relation),
                random_state=0,
            )

        few = ((), ((0, 1),), ((0, 0), (1, 1)), ((0, 1), (0, 1), (1, 0)))
        cells = Cells(width=2.0, reach=2.0)
        found = audit(choose, relation, records=few, cells=cells, max_runs=100_000)
        record_property("tightness", found.tightness)
        assert found.epsilon <= 1.0 + 1e-9, str(found)


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 0.7, 1.1, 2.3, 7.7])
@pytest.mark.parametrize("alpha", [0.01, 0.02, 0.05, 0.1])
def test_rounds_together_never_cost_a_hair_more_than_was_paid(epsilon, alpha):
    users = UserData(np.zeros((4, 1)), np.zeros(4), offsets=np.arange(5))
    search = MinErrorSearch(alpha=alpha, records=1)
    account = Account.open(epsilon=epsilon, noise=SeededNoise(0))
    search.run(Thresholds(0, 3), asked(users), account=account)
    assert 0 <= account.left < 1e-12 * epsilon
