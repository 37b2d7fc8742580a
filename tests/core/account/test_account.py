"""The account writes down what is drawn, refuses what does not fit, and has no other statement."""

import copy
import math
import os
import pickle
import threading
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate._validate import root_up
from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.account.costs import gdp_mu
from quorate.core.guarantees import Approximate, Gaussian, Nothing, Numerics, Pure, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import (
    NumericalFailure,
    OtherProcessError,
    ParameterError,
    RelationMismatchError,
)
from quorate.mechanisms.noisy_count import NoisyCount
from sealing import moved, release_by_hand

ZERO = np.zeros(1, np.int64)


class CountingNoise(SeededNoise):
    """A double that knows how often it was asked."""

    def __init__(self):
        super().__init__(0)
        self.calls = 0

    def _add(self, law, values, scale):
        self.calls += 1
        return super()._add(law, values, scale)


class TestPure:
    def test_a_third_is_kept_to_the_last_digit(self):
        account = Account.open(epsilon=Fraction(1, 3))
        for _ in range(3):
            account.laplace(moved(ZERO, 1), scale=9.0)
        assert account.left == 0
        with pytest.raises(NumericalFailure, match="does not fit"):
            account.laplace(moved(ZERO, 1), scale=2.0**50)

    def test_ten_tenths_in_floating_point_are_too_much(self):
        account = Account.open(epsilon=1.0)
        for _ in range(9):
            account.pay(Pure(0.1))
        with pytest.raises(NumericalFailure):
            account.pay(Pure(0.1))

    def test_a_refused_draw_draws_nothing_and_leaves_no_trace(self):
        noise = CountingNoise()
        account = Account.open(epsilon=1.0, noise=noise)
        with pytest.raises(NumericalFailure):
            account.laplace(moved(ZERO, 2), scale=1.0)
        assert noise.calls == 0
        assert account.event == Nothing()
        assert account.left == 1

    def test_gaussian_noise_does_not_fit_without_delta(self):
        with pytest.raises(NumericalFailure):
            Account.open(epsilon=100.0).gaussian(moved(ZERO, squared=1), sigma=1e6)

    @given(st.lists(st.fractions(Fraction(1, 1000), 1, max_denominator=1000), max_size=20))
    def test_whatever_is_let_through_adds_up_to_at_most_the_budget(self, losses):
        account = Account.open(epsilon=1.0)
        paid = Fraction(0)
        for loss in losses:
            try:
                account.pay(loss)
            except NumericalFailure:
                assert paid + loss > 1
            else:
                paid += loss
        assert account.left == 1 - paid


class TestGaussian:
    def test_the_whole_square_can_be_spent_and_not_a_bit_more(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        multiplier = account.multiplier(account.square / 4)
        for _ in range(4):
            account.pay(Gaussian(multiplier))
        assert 0 <= account.square_left < account.square / 10**12
        with pytest.raises(NumericalFailure):
            account.pay(Gaussian(1e6))

    def test_a_draw_is_priced_by_its_own_numbers(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.gaussian(moved(ZERO, squared=9), sigma=100.0)
        expected = math.sqrt(100.0**2 - 4) / 3
        assert account.event.noise_multiplier == pytest.approx(expected, rel=1e-15)
        assert account.event.noise_multiplier <= expected

    def test_pure_draws_and_gaussian_ones_share_the_square(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.pay(Pure(0.05))
        account.pay(Gaussian(account.multiplier(account.square_left)))
        assert price(account.event, delta=1e-6) <= 1.0
        assert account.left == 0

    def test_a_pure_chain_may_spend_all_of_epsilon_beside_a_delta(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.pay(Pure(0.5))
        account.pay(Pure(0.5))
        with pytest.raises(NumericalFailure):
            account.pay(Gaussian(1000.0))

    @given(
        st.lists(
            st.one_of(st.floats(0.001, 0.3).map(Pure), st.floats(4.0, 60.0).map(Gaussian)),
            max_size=12,
        )
    )
    def test_nothing_is_let_through_that_the_accountant_prices_above_the_budget(self, events):
        account = Account.open(epsilon=1.0, delta=1e-6)
        for event in events:
            try:
                account.pay(event)
            except NumericalFailure:
                break
        assert price(account.event, delta=1e-6) <= 1.0 + 1e-6  # its grid of losses, upwards

    def test_discrete_noise_below_two_steps_has_no_price(self):
        with pytest.raises(ParameterError, match="sigma > 2"):
            Account.open(epsilon=1.0, delta=1e-6).gaussian(moved(ZERO, squared=1), sigma=2.0)

    def test_a_share_that_was_rounded_up_is_cut_to_what_is_left(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.pay(Gaussian(account.multiplier(0.9 * float(account.square))))
        with pytest.raises(NumericalFailure, match="asked for"):
            account.multiplier(0.2 * float(account.square))
        last = account.multiplier(0.1 * float(account.square), count=2)
        account.pay(Gaussian(last))
        account.pay(Gaussian(last))
        with pytest.raises(NumericalFailure, match="fit"):
            account.pay(Gaussian(1e6))


class TestFailures:
    def test_they_come_out_of_the_reserve_only(self):
        account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-7)
        account.pay(Approximate(0.0, 6e-8))
        with pytest.raises(NumericalFailure):
            account.pay(Approximate(0.0, 6e-8))

    def test_they_add_up_over_all_draws(self):
        account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-7)
        for _ in range(2):
            account.pay(Approximate(0.01, 4e-8))
            account.pay(Fraction(1, 100))
        with pytest.raises(NumericalFailure):
            account.pay(Approximate(0.01, 4e-8))

    def test_the_reserve_makes_the_square_smaller(self):
        less = Account.open(epsilon=1.0, delta=1e-6, reserve=9e-7).mu
        assert less < Account.open(epsilon=1.0, delta=1e-6).mu
        assert less == pytest.approx(gdp_mu(1.0, 1e-7), rel=1e-6)

    def test_a_reserve_of_all_delta_leaves_no_room_for_gaussian_noise(self):
        account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-6)
        account.pay(Approximate(0.5, 1e-6))
        account.pay(Pure(0.5))
        with pytest.raises(NumericalFailure):
            account.pay(Gaussian(1e6))


class TestForeseen:
    """Noise that was drawn ahead is paid for when it is added, and added once."""

    ZEROS, SIGMAS = np.zeros(4, np.int64), [1e9, 2e9]
    KNOWN: ClassVar = {"squared": 10**16}

    def opened(self, **others):
        return Account.open(epsilon=1.0, delta=1e-6, **others)

    def drawn(self, account):
        return {sigma: row.tolist() for sigma, row in account._ahead._vectors.items()}

    def test_it_is_what_a_release_adds(self):
        account = self.opened()
        account.draw_ahead(self.SIGMAS, size=4)
        drawn = self.drawn(account)
        for sigma in self.SIGMAS:
            noisy = account.gaussian(moved(self.ZEROS + 7, **self.KNOWN), sigma=sigma)
            assert (noisy - 7).tolist() == drawn[sigma]

    def test_it_is_added_once(self):
        account = self.opened()
        account.draw_ahead(self.SIGMAS, size=4)
        drawn = self.drawn(account)
        first, second = (
            account.gaussian(moved(self.ZEROS, **self.KNOWN), sigma=1e9) for _ in range(2)
        )
        assert first.tolist() == drawn[1e9]
        assert second.tolist() not in drawn.values()
        assert second.any()

    def test_it_costs_what_a_draw_of_the_moment_costs(self):
        ahead, later = self.opened(), self.opened()
        ahead.draw_ahead(self.SIGMAS, size=4)
        assert ahead.event == Nothing()
        assert ahead.square_left == ahead.square
        for sigma in (1e9, 2e9, 2e9, 3e9):
            for account in (ahead, later):
                account.gaussian(moved(self.ZEROS, **self.KNOWN), sigma=sigma)
            assert ahead.event == later.event
            assert ahead.square_left == later.square_left < ahead.square
        assert ahead.left == later.left == 0

    def test_a_refused_release_adds_nothing(self):
        account = self.opened()
        account.draw_ahead(self.SIGMAS, size=4)
        drawn = self.drawn(account)
        with pytest.raises(NumericalFailure, match="does not fit"):
            account.gaussian(moved(self.ZEROS, squared=10**19), sigma=1e9)
        assert self.drawn(account) == drawn
        assert account.event == Nothing()

    def test_another_scale_and_another_length_are_drawn_afresh(self):
        account = self.opened()
        account.draw_ahead(self.SIGMAS, size=4)
        assert account.gaussian(moved(self.ZEROS, **self.KNOWN), sigma=1.5e9).any()
        assert account.gaussian(moved(np.zeros(5, np.int64), **self.KNOWN), sigma=1e9).shape == (5,)

    def test_what_nobody_took_is_dropped(self):
        account = self.opened()
        account.draw_ahead(self.SIGMAS, size=4)
        drawn = self.drawn(account)
        account.draw_ahead(self.SIGMAS, size=4)
        assert not set(map(tuple, drawn.values())) & set(map(tuple, self.drawn(account).values()))
        account.draw_ahead([], size=4)
        assert account._ahead is None

    def test_another_process_draws_nothing(self, monkeypatch):
        account = self.opened()
        account.draw_ahead(self.SIGMAS, size=4)
        drawn = self.drawn(account)
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            with pytest.raises(OtherProcessError):
                account.gaussian(moved(self.ZEROS, **self.KNOWN), sigma=1e9)
        assert account.event == Nothing()
        assert account.gaussian(moved(self.ZEROS, **self.KNOWN), sigma=1e9).tolist() == drawn[1e9]

    def test_doubles_draw_at_the_release(self):
        noise = CountingNoise()
        account = self.opened(noise=noise)
        account.draw_ahead(self.SIGMAS, size=4)
        assert noise.calls == 0
        account.gaussian(moved(self.ZEROS, **self.KNOWN), sigma=1e9)
        assert noise.calls == 1

    def test_an_account_with_a_plan_draws_at_the_release(self):
        account = self.opened()
        account.reserve_chain(Gaussian(9.0))
        account.draw_ahead(self.SIGMAS, size=4)
        assert account._ahead is None

    def test_threads_never_share_a_vector(self):
        account, found = self.opened(), []
        sigmas = [1e9 + 1e6 * k for k in range(50)]
        account.draw_ahead(sigmas, size=4)

        def release():
            for sigma in sigmas:
                zeros = moved(self.ZEROS, squared=10**14)
                found.append(tuple(account.gaussian(zeros, sigma=sigma)))

        threads = [threading.Thread(target=release) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == len(found) == 200


class TestParts:
    def test_parts_may_not_spend_together_what_the_whole_does_not_hold(self):
        account = Account.open(epsilon=1.0)
        first, second = account.part(Fraction(2, 3)), account.part(Fraction(2, 3))
        first.pay(Fraction(2, 3))
        with pytest.raises(NumericalFailure):
            second.pay(Fraction(2, 3))
        second.pay(Fraction(1, 3))
        assert account.left == 0

    def test_a_part_has_a_limit_of_its_own(self):
        part = Account.open(epsilon=1.0).part_of(epsilon=Fraction(1, 4))
        with pytest.raises(NumericalFailure):
            part.pay(Fraction(1, 3))

    def test_a_share_is_a_limit_of_either_kind(self):
        part = Account.open(epsilon=1.0).part(Fraction(1, 3))
        with pytest.raises(NumericalFailure):
            part.pay(Fraction(1, 2))
        account = Account.open(epsilon=1.0, delta=1e-6)
        part, unit = account.part(Fraction(1, 3)), 1 / account.square
        with pytest.raises(NumericalFailure):
            part.gaussian(moved(ZERO, squared=1), sigma=root_up(4 + Fraction(29, 10) * unit))
        part.gaussian(moved(ZERO, squared=1), sigma=root_up(4 + Fraction(31, 10) * unit))

    def test_the_whole_remembers_what_its_parts_drew(self):
        account = Account.open(epsilon=1.0)
        release_by_hand(NoisyCount(epsilon=0.5), 3, account=account.part(Fraction(1, 2)))
        assert account.event == Pure(0.5)

    def test_the_rest_is_what_is_left(self):
        account = Account.open(epsilon=1.0)
        account.pay(Fraction(1, 3))
        assert account.rest().left == Fraction(2, 3)


class TestAside:
    def test_pure_draws_beside_gaussian_noise_cost_what_was_set_aside(self):
        account = Account.open(epsilon=1.0, delta=1e-6, aside=0.1)
        account.pay(Gaussian(account.multiplier(account.square)))
        account.pay(Fraction(0.1))
        with pytest.raises(NumericalFailure):
            account.pay(Fraction(1, 1000))

    def test_it_is_set_aside_before_anything_is_drawn(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.set_aside(0.1)
        assert account.mu == Account.open(epsilon=1.0, delta=1e-6, aside=0.1).mu
        account.pay(Gaussian(100.0))
        with pytest.raises(ParameterError, match="before"):
            account.set_aside(0.5)

    def test_what_is_set_aside_is_not_there_for_gaussian_noise(self):
        account = Account.open(epsilon=1.0, delta=1e-6, aside=0.1)
        assert account.mu == pytest.approx(gdp_mu(0.9, 1e-6), rel=1e-8)

    @given(st.lists(st.one_of(st.floats(0.01, 0.2).map(Pure), st.floats(5.0, 60.0).map(Gaussian))))
    def test_nothing_above_the_budget_is_let_through(self, events):
        account = Account.open(epsilon=1.0, delta=1e-6, aside=0.2)
        for event in events:
            try:
                account.pay(event)
            except NumericalFailure:
                break
        assert price(account.event, delta=1e-6) <= 1.0 + 1e-6  # its grid of losses, upwards


class TestNoise:
    def test_it_is_captured_when_the_account_opens(self):
        account = Account.open(epsilon=1.0)
        with use_noise(SeededNoise(0)):
            release_by_hand(NoisyCount(epsilon=0.5), 3, account=account)
        assert account.guarantee().numerics is Numerics.EXACT

    def test_a_double_is_written_into_the_promise(self):
        with use_noise(SeededNoise(0)):
            account = Account.open(epsilon=1.0)
        release_by_hand(NoisyCount(epsilon=0.5), 3, account=account)
        assert account.guarantee().numerics is Numerics.VOID


class TestForm:
    def test_neighbours_must_be_those_of_the_account(self):
        account = Account.open(epsilon=1.0, relation=Relation.ADD_REMOVE)
        with pytest.raises(RelationMismatchError, match="NoisyCount"):
            release_by_hand(NoisyCount(epsilon=0.5), 3, account=account)

    def test_a_copy_would_hold_the_budget_twice(self):
        account = Account.open(epsilon=1.0)
        for twice in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="twice"):
                twice(account)

    def test_threads_cannot_overspend(self):
        account = Account.open(epsilon=1.0)
        refused = []

        def ask():
            for _ in range(50):
                try:
                    account.pay(Fraction(1, 100))
                except NumericalFailure:
                    refused.append(1)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert account.left == 0
        assert len(refused) == 100

    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, None, True])
    def test_a_budget_that_is_no_positive_number_is_refused(self, epsilon):
        with pytest.raises(ParameterError, match="epsilon"):
            Account.open(epsilon=epsilon)

    def test_a_reserve_above_delta_is_refused(self):
        with pytest.raises(ParameterError, match="reserve"):
            Account.open(epsilon=1.0, delta=1e-6, reserve=1e-5)
