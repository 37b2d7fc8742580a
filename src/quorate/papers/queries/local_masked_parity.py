r"""Masked parity in the local model, for users with any number of records (K9 by K7).

In round one every user counts their records that reveal bits, takes the majority for each bit, and
reports one randomized bit: the sign of the combination of these votes with a public sign vector
that is *different for every user*. (A row of a Hadamard matrix would fail if the secret is close to
such a row, because all votes of a user then cancel or add up together.) In round two the likeliest
secrets are tested on blocks of users. Each user reports whether the labels of most of the other
records agree with the parity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users import UserData
from quorate.core.users.crowd import Crowd
from quorate.learners.concepts.masked_parities import MaskedParity, split_masked
from quorate.local.oracle import LocalOracle, Report
from quorate.local.randomizers.known_laws import BinaryResponse
from quorate.papers.queries.masked_parity import likely_secrets
from quorate.papers.queries.oracles.local import random_signs

__all__ = ["LocalMaskedParity"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SignOfVotes:
    """1 or 0 for the sign of a user's combined votes on the bits, 1/2 for none."""

    features: int
    seed: np.uint64
    row_wise: ClassVar[bool] = True

    def __call__(self, users: UserData) -> Floats:
        _, index, mask = split_masked(users.X, features=self.features)
        labels = _labels(users)
        known = mask & ((labels == 0) | (labels == 1))
        sides = np.where(labels == 1, 1.0, -1.0) * known
        cells = users.user_index().astype(np.int64) * self.features + index
        size = users.n_users * self.features
        counts = np.bincount(cells, weights=sides, minlength=size)
        votes = np.sign(counts).reshape(users.n_users, self.features)
        signs = random_signs(users.keys(), self.features, self.seed)
        combined = np.einsum("ij,ij->i", votes, signs)
        return np.asarray(0.5 + np.sign(combined) / 2)


@dataclass(frozen=True)
class AgreesWithParity:
    """Whether most of a user's records with b = 0 have the parity as their label: 1 or 0.

    A tie is 1/2.
    """

    features: int
    secret: int
    row_wise: ClassVar[bool] = True

    def __call__(self, users: UserData) -> Floats:
        x, _, mask = split_masked(users.X, features=self.features)
        labels = _labels(users)
        chosen = [j for j in range(self.features) if self.secret >> j & 1]
        odd = x[:, chosen].sum(axis=1, dtype=np.int64) % 2 == 1
        known = ~mask & ((labels == 0) | (labels == 1))
        signs = np.where(odd == (labels == 1), 1.0, -1.0) * known
        counts = np.bincount(users.user_index(), weights=signs, minlength=users.n_users)
        return 0.5 + np.sign(counts) / 2


@dataclass(frozen=True)
class LocalMaskedParity:
    r"""Learn a masked parity from users who answer one randomized bit each, in two rounds.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : replace all records of one user
    trust : local
    public : sign vectors, blocks, all parameters, the number of users
    numerics : exact
    proof : Each user answers one query of a :class:`~quorate.local.oracle.LocalOracle`; counts of
        one user are whole numbers, so a value is a function of this user's records alone.

    Parameters
    ----------
    features : int
        Number d of bits.
    epsilon : float, default=1.0
    first_round : float, default=0.9
        Share of the users in round one.
    candidates : int, default=8
        How many of the most likely secrets round two tries, if there are enough users.

    Examples
    --------
    >>> from quorate.learners.concepts.masked_parities import masked_inputs
    >>> from quorate.papers.queries.populations import Population
    >>> rule = MaskedParity(4, secret=0b0110, flip=1)
    >>> people = Population.uniform(masked_inputs(4), rule, records=16).draw(3000, random_state=1)
    >>> LocalMaskedParity(4, epsilon=2.0).learn(people, random_state=1) == rule
    True
    """

    features: int
    epsilon: float = 1.0
    first_round: float = 0.9
    candidates: int = 8

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features, candidates=self.candidates)
        _validate.positive(epsilon=self.epsilon)
        _validate.probability(first_round=self.first_round)

    @property
    def _block(self) -> int:
        """Number of users for whom a parity and a fair coin differ by 2.2 standard deviations."""
        return math.ceil((2.2 / math.tanh(self.epsilon / 2)) ** 2 * 4)

    def learn(
        self,
        users: Crowd,
        *,
        account: Account | None = None,
        random_state: RandomState = None,
    ) -> MaskedParity:
        """Run two rounds and return the rule."""
        generator = public_generator(random_state)
        order = np.argsort(users.public_draws(generator), kind="stable")
        seed = generator.integers(0, 2**64, dtype=np.uint64)
        first, second = np.split(order, [round(self.first_round * len(order))])
        oracle = LocalOracle(users, self.epsilon, account=account)
        response = BinaryResponse(self.epsilon)
        votes = oracle.ask(
            first, Report(SignOfVotes(self.features, seed), response, name="combined votes")
        )
        signs = random_signs(users.keys()[first], self.features, seed)
        margins = np.einsum("ij,i->j", signs, 2.0 * votes - 1.0)
        affordable = max(1, len(second) // self._block)
        secrets = likely_secrets(margins, min(self.candidates, affordable))
        found = []
        for secret, block in zip(secrets, np.array_split(second, len(secrets)), strict=True):
            report = Report(
                AgreesWithParity(self.features, secret), response, name=f"parity of {secret:b}"
            )
            found.append(float(np.mean(oracle.ask(block, report))) - 0.5 if len(block) else 0.0)
        best = int(np.argmax(np.abs(found)))
        return MaskedParity(self.features, secrets[best], int(found[best] < 0))


def _labels(users: UserData) -> Floats:
    return np.full(users.n_records, np.nan) if users.y is None else users.y
