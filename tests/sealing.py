"""What tests do that only the core may: seal numbers of their own, open them, and begin a run."""

from fractions import Fraction
from functools import partial

import numpy as np

from quorate.core.by_hand import line_by_hand, rows_by_hand, sealed_by_hand, votes_by_hand
from quorate.core.guarantees import Relation
from quorate.core.moves import GridMoves, Moves
from quorate.core.people import People
from quorate.core.questions.lines import SealedLine
from quorate.core.sealed import _KEY, Closed, opened, seal
from quorate.core.users import UserData
from quorate.core.users.crowd import check_statistic, encode_users, sum_users
from quorate.distributions.hypotheses.families import DuelTable
from quorate.means.weighted_users import PeopleVectors
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.mechanisms.choices.noisy_rank import NoisyRank
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.choices.round_quantile import RoundQuantile
from quorate.mechanisms.choices.stable_choice import StableHistogram
from quorate.mechanisms.choices.universe import ChooseKey
from quorate.mechanisms.means.pair_quantile import PairQuantile
from quorate.mechanisms.means.private_range import PrivateRange
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean, WinsorizedMean
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.noisy_numbers import NoisyNumbers
from quorate.mechanisms.noisy_tally import NoisyTally
from quorate.mechanisms.search.random_restarts import RandomRestarts
from quorate.mechanisms.sums import NoisySearch, NoisySum
from quorate.mechanisms.user_releases import UserReleases
from quorate.mechanisms.wrappers.subsampled import SubsampledMechanism

__all__ = [
    "all_sealed_for",
    "compared",
    "crowd_counts",
    "crowd_total",
    "crowd_votes",
    "duels_of",
    "holding",
    "moved",
    "moved_line",
    "numbers_of",
    "paid_by_a_quarter",
    "release_by_hand",
    "released_counts",
    "rows_of",
    "sealed_for",
    "start_run",
    "total_of",
    "vectors_of",
    "worst_duels_of",
]


OF_VOTES = ChooseKey | StableHistogram
OF_TOTALS = NoisySum | NoisyCount | NoisyNumbers | NoisyTally | ChooseBest
OF_ROWS = (
    FloatQuantile
    | NoisyRank
    | NoisySearch
    | PairQuantile
    | PrivateQuantile
    | PrivateRange
    | RandomRestarts
    | RotatedWinsorizedMean
    | RoundQuantile
    | SubsampledMechanism
    | WinsorizedMean
)


def sealed_for(mechanism, numbers):
    """Seal plain numbers as a mechanism takes them: one user moves them as it says, or owns a row.

    What is sealed stays as it is.
    """
    mechanism = getattr(mechanism, "_mechanism", mechanism)
    if isinstance(numbers, Closed) or not isinstance(mechanism, OF_TOTALS | OF_ROWS | OF_VOTES):
        return numbers
    relation = mechanism.relation
    if isinstance(mechanism, OF_VOTES):
        return votes_by_hand(numbers, relation)
    if isinstance(mechanism, NoisySum):
        return sealed_by_hand(numbers, GridMoves(mechanism.grid, relation), relation)
    if isinstance(mechanism, NoisyNumbers):
        return sealed_by_hand(numbers, mechanism.moves, relation)
    if isinstance(mechanism, NoisyCount):
        return sealed_by_hand([numbers], Moves.of_counts(1), relation)
    if isinstance(mechanism, NoisyTally):
        return sealed_by_hand(numbers, Moves.of_tally(relation), relation)
    if isinstance(mechanism, ChooseBest):
        sided = getattr(mechanism, "one_sided", True)
        known = {"coordinates": len(numbers), "one_sided": sided}
        return sealed_by_hand(numbers, Moves.of_scores(mechanism.sensitivity, **known), relation)
    return rows_by_hand(numbers, relation)


def all_sealed_for(mechanism, numbers):
    """Seal all that a mechanism is given: lengths and losses of pieces are one line."""
    choice = getattr(mechanism, "_mechanism", mechanism)
    if isinstance(choice, ChooseOrdered) and not isinstance(numbers[0], Closed):
        known = {"sensitivity": choice.sensitivity, "one_sided": choice.one_sided}
        return [line_by_hand(*numbers, relation=choice.relation, **known)]
    return [sealed_for(mechanism, each) for each in numbers]


def release_by_hand(mechanism, *numbers, **known):
    """Release plain numbers, sealed as the mechanism takes them."""
    return mechanism.release(*all_sealed_for(mechanism, numbers), **known)


def released_counts(search, counts, **known):
    """Search among plain counts."""
    moves = Moves.of_counts(len(counts))
    return search.release_counts(sealed_by_hand(counts, moves, search.relation), **known)


def compared(mechanism, count, n_users, **known):
    """Compare a plain count with a share of people."""
    without, counted = mechanism.weights
    excess = int(count) * counted + (int(n_users) - int(count)) * without
    moves = Moves.of_counts(1).times(mechanism.sensitivity)
    return mechanism.release(sealed_by_hand([excess], moves, mechanism.relation), **known)


def holding(counts, relation=Relation.REPLACE):
    """Return people who hold so many records each."""
    offsets = np.cumsum([0, *counts])
    return People(UserData(np.zeros((offsets[-1], 1)), offsets=offsets), relation)


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


def crowd_total(crowd, statistic, grid):
    """Add up bounded vectors over a crowd as a question does, with nothing tried beforehand."""
    check_statistic(statistic, grid)
    work = partial(sum_users, statistic=statistic, grid=grid)
    return grid.join(crowd.add_up(work, whole=not getattr(statistic, "batched", True)))


def crowd_votes(crowd, statistic, grid):
    """Return the bounded vector of each user of a crowd, in steps."""
    parts = crowd.map(partial(encode_users, statistic=statistic, grid=grid))
    return np.concatenate([np.empty((0, grid.bound.dimension), np.int64), *parts])


def crowd_counts(crowd, values, thresholds):
    """Return how many users hold at most each threshold, in the open."""
    return numbers_of(People(crowd, Relation.REPLACE).counts(values, thresholds))


def numbers_of(sealed):
    """Return what a seal hides."""
    return opened(sealed)


def rows_of(sealed):
    """Return the rows that a seal hides."""
    return opened(sealed)


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
