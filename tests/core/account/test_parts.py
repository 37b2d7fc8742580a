"""Accounts of part of the users: a secret sample, and groups that have nobody in common."""

from fractions import Fraction

import pytest

from quorate.core.account.account import Account, smallest_of_visits
from quorate.core.account.compose import price
from quorate.core.account.parts import SampleAccount, SharedAccount, disjoint_groups, prepay
from quorate.core.guarantees import (
    Approximate,
    Composed,
    Gaussian,
    Nothing,
    Numerics,
    Pure,
    Relation,
    Repeated,
    Subsampled,
)
from quorate.core.moves import Moves
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.sealed import seal
from quorate.exceptions import NumericalFailure, ParameterError, RelationMismatchError, SealedError


class TestPlans:
    STEP = Subsampled(Gaussian(3.0), rate=0.02)

    def planned(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.reserve_chain(Composed((Gaussian(9.0), Repeated(self.STEP, 2))))
        return account

    def test_each_planned_step_may_be_drawn_once(self):
        account = self.planned()
        SampleAccount(account, rate=0.02).pay(Gaussian(3.0))
        SampleAccount(account, rate=0.01).pay(Gaussian(4.0))
        with pytest.raises(NumericalFailure):
            SampleAccount(account, rate=0.02).pay(Gaussian(3.0))

    def test_the_event_names_the_rate_that_was_drawn(self):
        account = self.planned()
        SampleAccount(account, rate=0.02).pay(Gaussian(3.0))
        assert account.event == self.STEP
        assert account.guarantee().events == (self.STEP,)

    def test_a_plan_takes_the_place_of_the_budget(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.reserve_chain(self.STEP)
        with pytest.raises(NumericalFailure):
            account.pay(Fraction(1, 2))
        with pytest.raises(NumericalFailure):
            account.pay(Gaussian(9.0))

    @pytest.mark.parametrize(("rate", "multiplier"), [(0.03, 3.0), (0.02, 2.9)])
    def test_a_dearer_step_is_refused(self, rate, multiplier):
        with pytest.raises(NumericalFailure):
            SampleAccount(self.planned(), rate=rate).pay(Gaussian(multiplier))

    def test_noise_on_all_users_keeps_to_the_square_of_the_plan(self):
        account = self.planned()
        account.pay(Gaussian(13.0))
        account.pay(Gaussian(13.0))
        with pytest.raises(NumericalFailure):
            account.pay(Gaussian(13.0))

    def test_a_sample_is_used_once(self):
        sample = SampleAccount(self.planned(), rate=0.02)
        sample.pay(Gaussian(3.0))
        with pytest.raises(NumericalFailure, match="second release"):
            sample.pay(Gaussian(3.0))

    def test_who_is_in_a_sample_is_drawn_once(self):
        """Whoever saw two samples could keep the one that suits."""
        sample = SampleAccount(self.planned(), rate=0.02)
        sample.members(100)
        with pytest.raises(NumericalFailure, match="drawn once"):
            sample.members(100)

    def test_a_sample_holds_its_share_of_the_users(self):
        sizes = [SampleAccount(self.planned(), rate=0.02).members(10_000).size for _ in range(20)]
        assert 3_000 < sum(sizes) < 5_000  # 20 x 200 on average, sd 63: p < 1e-50

    def test_a_planned_pure_step_may_be_drawn_in_two(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.reserve_chain(Repeated(Pure(0.03), 64))
        for _ in range(64):
            account.pay(Pure(0.01))
            account.pay(Pure(0.02 - 2.0**-50))
        with pytest.raises(NumericalFailure):
            account.pay(Pure(0.01))

    def test_a_dearer_pure_step_is_refused(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.reserve_chain(Repeated(Pure(0.03), 4))
        with pytest.raises(NumericalFailure):
            account.pay(Pure(0.031))
        account.pay(Pure(0.03))

    def test_a_plan_above_the_budget_is_refused(self):
        with pytest.raises(NumericalFailure, match="plan costs"):
            Account.open(epsilon=1.0, delta=1e-6).reserve_chain(Repeated(self.STEP, 10**5))

    def test_a_plan_leaves_what_was_set_aside(self):
        """A chain that costs the whole epsilon leaves nothing for a pure draw beside it."""
        chain = Repeated(Subsampled(Gaussian(1.0), rate=0.02), 40)
        cost = price(chain, delta=1e-6)
        for aside, fits in ((0.0, True), (cost / 10, False)):
            whole = Account.open(epsilon=1.01 * cost, delta=1e-6, aside=aside)
            groups = Account.open(epsilon=1.01 * cost, delta=1e-6, aside=aside)
            for account in (whole, disjoint_groups(groups, 2)[0]):
                if fits:
                    account.reserve_chain(chain)
                else:
                    with pytest.raises(NumericalFailure, match="plan costs"):
                        account.reserve_chain(chain)

    def test_a_plan_comes_before_the_first_draw(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.pay(Pure(0.01))
        with pytest.raises(ParameterError, match="before"):
            account.reserve_chain(Gaussian(9.0))

    def test_sampled_noise_without_a_plan_is_refused(self):
        with pytest.raises(NumericalFailure):
            SampleAccount(Account.open(epsilon=10.0, delta=1e-3), rate=0.01).pay(Gaussian(100.0))


class TestGroups:
    def test_groups_together_cost_what_the_costliest_costs(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        halves = disjoint_groups(account, 2)
        for half in halves:
            half.pay(Gaussian(account.multiplier(account.square / 2)))
        assert account.square_left == pytest.approx(float(account.square) / 2, rel=1e-9)
        account.pay(Gaussian(account.multiplier(account.square_left)))
        assert price(account.event, delta=1e-6) <= 1.0
        assert price(account.event, delta=1e-6) > 0.99

    def test_failures_of_a_group_come_out_of_the_reserve_of_all(self):
        account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-7)
        first, second = disjoint_groups(account, 2)
        first.pay(Approximate(0.1, 1e-7))
        second.pay(Approximate(0.1, 1e-7))
        with pytest.raises(NumericalFailure):
            account.pay(Approximate(0.1, 1e-7))

    def test_a_group_that_costs_more_is_paid_for(self):
        account = Account.open(epsilon=1.0)
        first, second = disjoint_groups(account, 2)
        first.pay(Fraction(1, 2))
        second.pay(Fraction(1, 4))
        second.pay(Fraction(1, 2))
        assert account.left == Fraction(1, 4)
        with pytest.raises(NumericalFailure):
            second.pay(Fraction(1, 2))
        with pytest.raises(NumericalFailure):
            account.pay(Fraction(1, 2))

    def test_the_costliest_group_is_in_the_promise(self):
        account = Account.open(epsilon=1.0)
        first, second = disjoint_groups(account, 2)
        first.pay(Pure(0.125))
        second.pay(Pure(0.5))
        account.pay(Pure(0.25))
        assert account.event == Composed((Pure(0.25), Pure(0.5)))

    def test_each_group_may_spend_the_whole_account(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        for group in disjoint_groups(account, 3):
            assert group.square_left == account.square
            group.pay(Gaussian(group.multiplier(group.square_left)))
            assert group.square_left < account.square / 10**9
        assert account.square_left < account.square / 10**9

    def test_each_group_may_follow_a_plan_of_its_own(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        for group in disjoint_groups(account, 2):
            group.reserve_chain(Repeated(Pure(0.03), 64))
            for _ in range(64):
                group.pay(Pure(0.03))
            with pytest.raises(NumericalFailure):
                group.pay(Pure(0.03))
        with pytest.raises(NumericalFailure):
            account.pay(Pure(0.001))

    def test_gaussian_noise_in_a_group_closes_the_pure_filter_of_the_whole(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        half, _ = disjoint_groups(account, 2)
        half.pay(Gaussian(100.0))
        assert account.left == 0

    def test_what_a_group_has_paid_for_is_about_its_own_people(self):
        whole = Account.open(epsilon=1.0)
        own, other = (
            seal([3], Moves.of_counts(1), Relation.REPLACE, among)
            for among in disjoint_groups(whole, 2)
        )

        def visit(sealed):
            once = {"loss": Fraction(1, 12), "candidates": 1, "visits": 1}
            look = lambda _, ahead: float(ahead.laplace(sealed, scale=12.0)[0])  # noqa: E731
            return smallest_of_visits(own.among, look, **once)

        for stranger in (other, seal([3], Moves.of_counts(1), Relation.REPLACE, whole)):
            with pytest.raises(SealedError):
                visit(stranger)
        assert visit(own)[0] == 0
        assert whole.left == Fraction(1, 4)

    def test_a_visit_that_keeps_what_it_finds_or_spends_more_is_refused(self):
        found = []
        once = {"loss": Fraction(1, 4), "candidates": 1, "visits": 1}
        with pytest.raises(SealedError, match="stored something"):
            smallest_of_visits(
                Account.open(epsilon=1.0), lambda *_: found.append(1.0) or 1.0, **once
            )
        with pytest.raises(NumericalFailure):
            smallest_of_visits(
                Account.open(epsilon=1.0), lambda _, own: own.pay(Fraction(1, 2)), **once
            )
        with pytest.raises(NumericalFailure):
            smallest_of_visits(Account.open(epsilon=0.5), lambda *_: 1.0, **once)


class TestShared:
    def test_parts_add_up_to_at_most_the_whole(self):
        account = SharedAccount.open(epsilon=Fraction(1, 3), delta=1e-6)
        account.lend(epsilon=Fraction(1, 4), delta=1e-6)
        for epsilon, delta in ((Fraction(1, 12) + Fraction(1, 10**20), 0.0), (0.01, 1e-9)):
            with pytest.raises(NumericalFailure, match="does not fit"):
                account.lend(epsilon=epsilon, delta=delta)
        account.lend(epsilon=Fraction(1, 12))
        assert account.left == 0

    def test_a_part_is_held_to_its_own_budget(self):
        account = SharedAccount.open(epsilon=1.0, delta=1e-6)
        part = account.lend(epsilon=0.25)
        part.pay(Fraction(1, 4))
        for event in (Fraction(1, 100), Gaussian(50.0)):
            with pytest.raises(NumericalFailure):
                part.pay(event)

    def test_it_shows_all_that_was_drawn(self):
        account = SharedAccount.open(epsilon=1.0, delta=1e-6)
        assert account.event == Nothing()
        one, other = account.lend(epsilon=0.5, delta=1e-6), account.lend(epsilon=0.5)
        for group in disjoint_groups(one, 2):
            group.pay(Gaussian(20.0))
        other.pay(Fraction(1, 8))
        assert account.event == Composed((Gaussian(20.0), Pure(0.125)))
        assert account.guarantee().events == (account.event,)
        assert price(account.event, delta=1e-6) <= 1.0

    def test_it_draws_nothing_itself(self):
        account = SharedAccount.open(epsilon=1.0, delta=1e-6)
        for event in (Fraction(1, 2), Gaussian(20.0)):
            with pytest.raises(NumericalFailure, match="only lends"):
                account.pay(event)
        with pytest.raises(NumericalFailure, match="only lends"):
            account.part(0.5).pay(Fraction(1, 4))

    def test_all_parts_are_about_the_same_neighbours(self):
        account = SharedAccount.open(epsilon=1.0, relation=Relation.ADD_REMOVE)
        with pytest.raises(RelationMismatchError):
            account.lend(epsilon=0.5)

    def test_noise_is_that_of_the_moment_in_which_it_was_opened(self):
        with use_noise(SeededNoise(0)):
            account = SharedAccount.open(epsilon=1.0)
        assert account.lend(epsilon=0.5).declared.numerics is Numerics.VOID


class TestPrepaid:
    def test_releases_add_up_with_their_failures(self):
        account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-6)
        prepay(account, epsilon=0.25, delta=2.5e-7, times=4)
        assert account.left == 0
        with pytest.raises(NumericalFailure):
            prepay(account, epsilon=0.25, delta=2.5e-7)

    def test_failures_are_written_down(self):
        account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-6)
        prepay(account, epsilon=0.25, delta=2.5e-7)
        assert account.event == Approximate(0.25, 2.5e-7)

    @pytest.mark.parametrize("count", [0, -1, 1.5])
    def test_numbers_that_are_none_are_refused(self, count):
        with pytest.raises(ParameterError):
            prepay(Account.open(epsilon=1.0), epsilon=0.5, times=count)
