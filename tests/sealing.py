"""What tests do that only the core may: seal numbers of their own, open them, and begin a run."""

from fractions import Fraction

import numpy as np

from quorate.core.moves import Moves
from quorate.core.people import People
from quorate.core.sealed import opened, opened_rows, seal
from quorate.guarantees import Relation
from quorate.releases.user_releases import UserReleases

__all__ = ["moved", "numbers_of", "rows_of", "start_run", "total_of"]


def moved(numbers, by=1, *, squared=None, relation=Relation.REPLACE):
    """Seal integers that one user moves by so much, in L1 or in squared L2."""
    l1 = Fraction(by if squared is None else 0)
    square = Fraction(by) ** 2 if squared is None else squared
    return seal(np.asarray(numbers), Moves(l1, square, l1, l1), relation)


def total_of(people, statistic, grid, relation=Relation.REPLACE):
    """Return the exact sum of a statistic over users, in the open."""
    return numbers_of(People(people, relation).total(statistic, grid))


def numbers_of(sealed):
    """Return what a seal hides."""
    return opened(sealed)


def rows_of(sealed):
    """Return the rows that a seal hides."""
    return opened_rows(sealed)


def start_run(data, account, **options):
    """Begin the releases of a fit about users."""
    people = data if isinstance(data, People) else People(data, account.relation)
    return UserReleases.start(people, account, **options)
