"""More than t mistakes (L2): the separation of Lemma 4.1 against exact tails, and the best t."""

import numpy as np
import pytest
from scipy.stats import binom

from quorate.exceptions import ParameterError
from quorate.learners.scores import MoreThan
from quorate.learners.scores.more_than import published_separation, separating_rate, separation
from rule_worlds import HOLDINGS, audit, losses_of, people

GRID = [
    (m, p, p + gap)
    for m in (1, 2, 3, 5, 8, 16, 50, 200, 1000)
    for p in (0.0, 0.001, 0.01, 0.05, 0.1, 0.3, 0.5)
    for gap in (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.49)
]


class TestTheBestT:
    @pytest.mark.parametrize("m", [1, 2, 7, 16, 64])
    @pytest.mark.parametrize(
        ("p", "q"), [(0.0, 0.1), (0.1, 0.12), (0.1, 0.6), (0.3, 0.4), (0.5, 1)]
    )
    def test_no_other_t_separates_better(self, m, p, q):
        t, gap = separation(m, p, q)
        every = binom.sf(np.arange(-1, m + 1), m, q) - binom.sf(np.arange(-1, m + 1), m, p)
        assert gap == pytest.approx(every.max(), abs=1e-12)
        assert 0 <= t <= m

    def test_it_is_the_total_variation_distance(self):
        k = np.arange(65)
        distance = 0.5 * np.abs(binom.pmf(k, 64, 0.1) - binom.pmf(k, 64, 0.15)).sum()
        assert separation(64, 0.1, 0.15)[1] == pytest.approx(distance, abs=1e-12)

    def test_the_rate_lies_between_the_two_errors(self):
        for _, p, q in GRID:
            assert p <= separating_rate(p, q) <= q


@pytest.mark.claim("L2: Lemma 4.1")
class TestLemma41:
    def test_the_separation_is_at_least_a_third_of_k_and_at_most_k(self):
        shares = [separation(m, p, q)[1] / published_separation(m, p, q) for m, p, q in GRID]
        assert min(shares) >= 1 / 3.04, "the lemma proves 1/700"
        assert max(shares) <= 1 + 1e-9

    def test_the_constant_is_not_much_better_than_that(self):
        assert min(separation(m, p, q)[1] / published_separation(m, p, q) for m, p, q in GRID) < 0.4

    def test_the_worked_figures_of_the_design_are_met(self):
        for m, p, q, gap in (
            (16, 0.1, 0.12, 0.103),
            (64, 0.1, 0.12, 0.2),
            (1024, 0.3, 0.32, 0.511),
        ):
            assert separation(m, p, q)[1] == pytest.approx(gap, abs=6e-4)


class TestUnequalRecords:
    def test_each_user_gets_the_t_of_their_own_records(self):
        score = MoreThan.separating(error_level=0.1, excess=0.02)
        for m in (1, 4, 16, 64, 333):
            t, _ = separation(m, 0.1, 0.12)
            votes = losses_of(score, np.array([[t, t + 1]]), np.array([m]))
            assert votes.tolist() == [0, 1]

    def test_a_user_without_records_counts_for_nothing(self):
        assert losses_of(MoreThan(rate=0.3), np.array([[0, 0]]), np.array([0])).tolist() == [0, 0]


class TestPrivacy:
    def test_a_twin_that_takes_t_from_the_data_is_caught(self):
        from quorate.core.account.account import Account
        from quorate.core.guarantees import Relation
        from quorate.learners.selection import choose_by_score
        from rule_worlds import LABELINGS, asked, table_losses

        rates = (0.0, 0.2, 0.4, 0.6)

        def tune_on_the_data(data):
            found = [table_losses(MoreThan(rate=rate), LABELINGS, data) for rate in rates]
            spread = [np.ptp(losses) for losses in found]
            score = MoreThan(rate=rates[int(np.argmax(spread))])
            return choose_by_score(LABELINGS, asked(data), score, account=Account.open(epsilon=1.0))

        assert not audit(tune_on_the_data, Relation.REPLACE, n_users=3, thorough=False).holds
        assert people(HOLDINGS).n_users == len(HOLDINGS)


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.2), (0.3, 0.1), (-0.1, 0.2), (0.1, 1.1)])
def test_errors_out_of_order_are_refused(p, q):
    with pytest.raises(ParameterError):
        separating_rate(p, q)
