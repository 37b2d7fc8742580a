"""Tiny worlds for the learners of rules: every data set of a few users, and laws of real code."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs
from quorate.core.account.account import Account
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.people import People
from quorate.core.questions.lines import opened_line
from quorate.core.users import UserData
from quorate.learners import selection
from quorate.learners.concepts import FiniteTable, Thresholds
from quorate.learners.scores import Crossing
from quorate.learners.scores.base import Along
from sealing import numbers_of

RELATIONS = (Relation.REPLACE, Relation.ADD_REMOVE)

# What one user may hold, as (x, label): nothing, one record, several, contradictions, many.
HOLDINGS = (
    (),
    ((0, 1),),
    ((1, 0),),
    ((0, 0), (1, 1)),
    ((0, 1), (0, 1), (1, 0)),
    ((0, 0), (0, 0), (0, 0), (1, 1), (1, 1)),
)

LABELINGS = FiniteTable([[0, 0], [0, 1], [1, 0], [1, 1]])
CUT_OFFS = Thresholds(0, 1)


def people(held) -> UserData:
    """Turn a data set, one tuple of records per user, into a UserData.

    The id of a user is what the user holds and how many before hold the same, so that data sets
    which differ in one user have all other ids in common: a public cap goes by ids. A user who
    holds nothing brings a record that is missing, and is dropped.
    """
    rows, ids, seen = [], [], {}
    for records in held:
        seen[records] = seen.get(records, -1) + 1
        rows.extend(records or ((np.nan, 0),))
        ids.extend([f"{records}{seen[records]}"] * max(1, len(records)))
    x = np.array([x for x, _ in rows], dtype=float).reshape(-1, 1)
    y = np.array([label for _, label in rows], dtype=float)
    return UserData.from_arrays(x, y, users=np.array(ids, dtype=str))


def asked(data, relation=Relation.REPLACE) -> People:
    """Return users as whoever fits gets them."""
    return People(data, relation)


def table_losses(score, concepts, data, relation=Relation.REPLACE):
    """Return the losses of a finite class, in the open."""
    of = score.losses_of_rates if isinstance(score, Crossing) else score.losses_over
    return numbers_of(of(People(data, relation), concepts))


def line_losses(score, concepts, data, relation=Relation.REPLACE):
    """Return lengths and losses of the pieces of a line, in the open."""
    return opened_line(score.losses_along(People(data, relation).walk(Along(concepts))))


def all_losses(score, concepts, data):
    """Return the losses of all hypotheses of a line that is short enough to list them."""
    lengths, losses = line_losses(score, concepts, data)
    return np.repeat(losses, lengths.astype(int))


class GivenMistakes:
    """A class of rules that makes the mistakes which somebody made up."""

    n_features = 1

    def __init__(self, mistakes):
        self.given = np.asarray(mistakes)
        self.size = self.given.shape[1]

    def mistakes_in_batches(self, users):
        """Yield all of them."""
        yield slice(0, users.n_users), self.given


def losses_of(score, mistakes, held, relation=Relation.REPLACE):
    """Return the losses for users who hold so many records and make these mistakes."""
    offsets = np.cumsum([0, *np.asarray(held, dtype=int)])
    data = UserData(np.zeros((offsets[-1], 1)), np.zeros(offsets[-1]), offsets=offsets)
    return table_losses(score, GivenMistakes(mistakes), data, relation)


def audit(choose, relation, *, epsilon=1.0, n_users=2, records=HOLDINGS, thorough=True, **limits):
    """Audit ``choose(people)``, a program that draws ambient noise, on all neighbours.

    Not ``thorough``, it ends at the first pair that exceeds the claim.
    """

    @cache
    def law(held):
        data = people(held)
        return enumerate_runs(lambda noise: choose(data), **limits)

    world = SmallWorld(records=records, n_users=n_users)
    claim = Guarantee(epsilon=epsilon, relation=relation)
    # No score looks at the order of the users.
    return audit_exactly(lambda held: law(tuple(sorted(held))), world, claim, thorough=thorough)


def cut_people(cut, *, n=200, m=8, above=True, low=0, high=1000, seed=0):
    """Return users who agree on one cut-off, with records all along a line."""
    rng = np.random.default_rng(seed)
    x = rng.integers(low, high, n * m)
    y = (x >= cut) == above
    return UserData(x.astype(float).reshape(-1, 1), y.astype(float), offsets=np.arange(n + 1) * m)


def audit_score(score, relation, *, concepts=LABELINGS, epsilon=1.0, **limits):
    """Audit the choice by a score on a finite class."""

    def choose(data):
        account = Account.open(epsilon=epsilon, relation=relation)
        asked = People(data, relation)
        return selection.choose_by_score(concepts, asked, score, account=account, random_state=0)

    return audit(choose, relation, epsilon=epsilon, **limits)


def audit_on_line(score, relation, monkeypatch, *, concepts=CUT_OFFS, epsilon=1.0, **limits):
    """Audit the same on a line: the class is small, but the code walks it."""
    monkeypatch.setattr(selection, "MAX_DUELLISTS", 1)
    assert selection.is_walked(concepts)
    return audit_score(score, relation, concepts=concepts, epsilon=epsilon, **limits)


def largest_move(losses, relation, *, n_users=2, records=HOLDINGS) -> int:
    """Return how far one user really moves any loss, over all neighbours of the small world."""
    cached = cache(lambda held: losses(people(held)))
    furthest = 0
    for others in combinations_with_replacement(records, n_users - 1):
        for first in records:
            base = cached(tuple(sorted((*others, first))))
            rest = records if relation is Relation.REPLACE else (None,)
            for second in rest:
                held = others if second is None else (*others, second)
                furthest = max(furthest, int(np.abs(base - cached(tuple(sorted(held)))).max()))
    return furthest
