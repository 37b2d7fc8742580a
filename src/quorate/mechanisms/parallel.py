r"""Paying once for what is about different users, and in advance for what is done elsewhere.

Releases about disjoint groups of users cost together what the dearest of them costs: a user is in
one group, and all other groups know nothing about that user. Who is in which group must not depend
on records: it follows from public ids and seeds.
"""

from __future__ import annotations

from fractions import Fraction

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.accounting.account import Account, noise_for
from quorate.guarantees import Approximate

__all__ = ["disjoint_accounts", "prepay"]


def disjoint_accounts(account: Account, *, epsilon: float | Fraction, groups: int) -> list[Account]:
    """Pay ``epsilon`` once and return an account of it for each of disjoint groups of users.

    The groups' accounts draw from the noise of the one that paid, and hold for its relation.

    >>> account = Account.open(epsilon=1.0)
    >>> [each.left for each in disjoint_accounts(account, epsilon=Fraction(1, 4), groups=3)]
    [Fraction(1, 4), Fraction(1, 4), Fraction(1, 4)]
    >>> account.left
    Fraction(3, 4)
    """
    _validate.positive_integer(groups=groups)
    noise = noise_for(account, exact(epsilon))
    return [
        Account.open(epsilon=exact(epsilon), relation=account.relation, noise=noise)
        for _ in range(groups)
    ]


def prepay(
    account: Account, *, epsilon: float | Fraction, delta: float | Fraction = 0, times: int = 1
) -> None:
    """Pay for releases that open accounts of their own, such as fits of whole estimators.

    >>> account = Account.open(epsilon=1.0)
    >>> prepay(account, epsilon=Fraction(1, 4), times=3)
    >>> account.left
    Fraction(1, 4)
    """
    _validate.positive_integer(times=times)
    for _ in range(times):
        if delta:
            account.pay(Approximate(float_up(epsilon), float_up(delta)))
        else:
            account.pay(exact(epsilon))
