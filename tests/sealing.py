"""What tests do that only the core may: seal numbers of their own, open them, and begin a run."""

from fractions import Fraction

import numpy as np

from quorate.core.moves import Moves
from quorate.core.people import People
from quorate.core.questions.lines import SealedLine
from quorate.core.sealed import _KEY, opened, opened_rows, seal
from quorate.distributions.hypotheses.families import DuelTable
from quorate.guarantees import Relation
from quorate.means.weighted_users import PeopleVectors
from quorate.releases.user_releases import UserReleases
from quorate.users import UserData

__all__ = [
    "duels_of",
    "moved",
    "moved_line",
    "numbers_of",
    "paid_by_a_quarter",
    "rows_of",
    "start_run",
    "total_of",
    "vectors_of",
    "worst_duels_of",
]


def moved(numbers, by=1, *, squared=None, relation=Relation.REPLACE):
    """Seal integers that one user moves by so much, in L1 or in squared L2."""
    l1 = Fraction(by if squared is None else 0)
    square = Fraction(by) ** 2 if squared is None else squared
    return seal(np.asarray(numbers), Moves(l1, square, l1, l1), relation)


def moved_line(starts, losses, size, by=1, *, relation=Relation.REPLACE):
    """Seal losses along a line of which one user moves each by so much."""
    moves = Moves.of_scores(by, coordinates=size, one_sided=False)
    return SealedLine(_KEY, np.asarray(starts), np.asarray(losses), size, moves, relation, None)


def total_of(people, statistic, grid, relation=Relation.REPLACE):
    """Return the exact sum of a statistic over users, in the open."""
    return numbers_of(People(people, relation).total(statistic, grid))


def numbers_of(sealed):
    """Return what a seal hides."""
    return opened(sealed)


def rows_of(sealed):
    """Return the rows that a seal hides."""
    return opened_rows(sealed)


def duels_of(family, data, clip, kind=DuelTable, relation=Relation.REPLACE):
    """Return the table of duels of a family, in the open."""
    return numbers_of(People(data, relation).scores(kind(family, clip)))


def worst_duels_of(family, data, clip, kind=DuelTable, relation=Relation.REPLACE):
    """Return the worst duel of each member, in the open."""
    table = kind(family, clip)
    return numbers_of(table.worst(People(data, relation).scores(table)))


def paid_by_a_quarter(monkeypatch):
    """Let seals of scores say a quarter of how far one user moves them."""
    honest = Moves.of_judgements

    def too_little(low, high, **known):
        moves = honest(low, high, **known)
        lengths = (moves.l1, moves.l2_squared, moves.largest, moves.spread)
        return Moves(*(Fraction(length) / 4 for length in lengths))

    monkeypatch.setattr(Moves, "of_judgements", too_little)


def start_run(data, account, **options):
    """Begin the releases of a fit about users."""
    people = data if isinstance(data, People) else People(data, account.relation)
    return UserReleases.start(people, account, **options)


def vectors_of(vectors, weights=None, *, counts=None, relation=Relation.REPLACE):
    """Return users with one vector each, NaN if absent, perhaps with weights or record counts."""
    rows = np.asarray(vectors, dtype=float)
    present = ~np.isnan(rows[:, 0])
    held = counts if weights is None else np.square(weights)
    held = None if held is None else np.asarray(held, dtype=float)[present]
    data = UserData(rows[present], held, offsets=np.r_[0, np.cumsum(present)])
    users = PeopleVectors(People(data, relation))
    return users if weights is None else users.weighed(1.0)
