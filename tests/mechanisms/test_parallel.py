"""Disjoint groups are paid for once; what is done elsewhere is paid for in full."""

from fractions import Fraction

import pytest

from quorate.accounting.account import Account
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.guarantees import Approximate, Numerics, Relation
from quorate.mechanisms.parallel import disjoint_accounts, prepay
from quorate.noise import SeededNoise
from sealing import moved


def test_groups_hold_what_was_paid_once_and_not_more():
    account = Account.open(epsilon=1.0, relation=Relation.ADD_REMOVE, noise=SeededNoise(0))
    groups = disjoint_accounts(account, epsilon=0.5, groups=4)
    assert account.left == Fraction(1, 2)
    for group in groups:
        assert group.relation is Relation.ADD_REMOVE
        assert group.declared.numerics is Numerics.VOID
        group.laplace(moved([0], 1, relation=Relation.ADD_REMOVE), scale=2.0)
        with pytest.raises(NumericalFailure):
            group.laplace(moved([0], 1, relation=Relation.ADD_REMOVE), scale=2.0)


def test_what_does_not_fit_is_refused_and_opens_nothing():
    account = Account.open(epsilon=1.0)
    with pytest.raises(NumericalFailure):
        disjoint_accounts(account, epsilon=1.5, groups=2)
    assert account.left == 1


def test_prepaid_releases_add_up_with_their_failures():
    account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-6)
    prepay(account, epsilon=0.25, delta=2.5e-7, times=4)
    assert account.left == 0
    with pytest.raises(NumericalFailure):
        prepay(account, epsilon=0.25, delta=2.5e-7)


def test_what_is_prepaid_is_written_down_with_its_failures():
    account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-6)
    prepay(account, epsilon=0.25, delta=2.5e-7)
    assert account.event == Approximate(0.25, 2.5e-7)


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_numbers_that_are_none_are_refused(count):
    account = Account.open(epsilon=1.0)
    with pytest.raises(ParameterError):
        disjoint_accounts(account, epsilon=0.5, groups=count)
    with pytest.raises(ParameterError):
        prepay(account, epsilon=0.5, times=count)
