"""The promise, exactly: two people, all that one of them may hold, through the public door.

:func:`moves.loss_of` hands both neighbours the same released values and adds up how far the exact
numbers behind them lie apart. Twins of the real code are caught by the same audit.
"""

import itertools
import math

import pyarrow as pa
import pytest

from moves import loss_of
from quorate import UserSynthesizer
from quorate.core.account.costs import gdp_mu
from quorate.core.bounds.grid import Ball
from quorate.core.guarantees import Relation
from quorate.core.questions import cells
from quorate.exceptions import NumericalFailure
from quorate.mechanisms.noisy_numbers import NoisyNumbers
from quorate.synth.rounds import Rounds
from sealing import numbers_of

LABELS = {"a": ["x", "y"], "b": ["u", "v"]}
RECORDS = [("x", "u"), ("x", "v"), ("y", "u"), ("y", "v")]
# Up to two records of every kind, and one who holds a thousand.
HELD = [
    (),
    *((each,) for each in RECORDS),
    *itertools.combinations_with_replacement(RECORDS, 2),
    (("x", "u"),) * 1000,
    (("?", "u"), ("y", "v")),
]


def table(one, other):
    rows = [(0, *record) for record in one] + [(1, *record) for record in other]
    who, a, b = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"who": pa.array(who, pa.int64()), "a": pa.array(a, pa.string())}
    return pa.table({**columns, "b": pa.array(b, pa.string())})


def synthesizer(relation=Relation.ADD_REMOVE):
    return UserSynthesizer(2.0, categories=LABELS, delta=1e-5, relation=relation)


def loss(one, another, relation=Relation.ADD_REMOVE, seed=0):
    """Return how far a second person with these records, or those, moves releases; and the limit.

    Both in the terms of Gaussian differential privacy: the second is worth what was promised.
    """
    beside = (("x", "u"), ("y", "v"))

    def run(data):
        fitted = synthesizer(relation).fit(data, users="who")
        return fitted.guarantee_, repr(fitted.sample(3, random_state=0).to_pylist())

    (guarantee, _), pure, square = loss_of(
        run, table(one, beside), table(another, beside), seed=seed
    )
    assert pure == 0.0
    return math.sqrt(square), gdp_mu(guarantee.epsilon, guarantee.delta)


@pytest.mark.parametrize("held", HELD, ids=range(len(HELD)))
def test_who_joins_moves_no_more_than_was_promised(held):
    found, promised = loss(held, ())
    assert found <= promised


@pytest.mark.parametrize("pair", [(1, 15), (15, 2), (4, 9), (6, 14), (16, 15)], ids=str)
def test_who_is_replaced_moves_no_more_than_was_promised(pair):
    one, another = HELD[pair[0]], HELD[pair[1]]
    found, promised = loss(one, another, Relation.REPLACE)
    assert 0 < found <= promised


def test_a_person_with_very_many_records_moves_most():
    few, promised = loss(HELD[1], ())
    many, _ = loss(HELD[15], ())
    assert few < many
    assert many > 0.5 * promised


class TestTwins:
    """What the audit is for."""

    MANY = HELD[15]

    def caught(self, seed=0):
        found, promised = loss(self.MANY, (), seed=seed)
        return found > promised

    def test_lengths_that_are_not_cut(self, monkeypatch):
        honest = cells.capped_steps

        def generous(values, owners, n_users, *, bound, step):
            honest(values, owners, n_users, bound=bound, step=step)
            return values / step

        assert not self.caught()
        monkeypatch.setattr(cells, "capped_steps", generous)
        assert self.caught()

    def test_a_distance_that_counts_the_records_twice(self, monkeypatch):
        honest = Rounds._above

        def doubled(rounds, tables, shares, held):
            sealed, step = honest(rounds, tables, shares, held)
            return sealed._with(2 * numbers_of(sealed), sealed.moves), step

        # With this noise little is expected in the cell of the person's records.
        assert not self.caught(seed=5)
        monkeypatch.setattr(Rounds, "_above", doubled)
        assert self.caught(seed=5)

    def test_contrasts_that_are_not_cut(self, monkeypatch):
        honest = Ball.offsets_in_steps

        def generous(ball, values, step, *, out):
            honest(ball, values, step, out=out)
            if ball.signed:
                out[:] = values / step

        monkeypatch.setattr(Ball, "offsets_in_steps", generous)
        assert self.caught()

    def test_a_cap_that_is_read_off_the_records(self, monkeypatch):
        honest = Rounds._held

        def peeking(rounds):
            tail, held = honest(rounds)
            most = max(rounds.people._held_crowd().record_counts().max(), 1)
            object.__setattr__(held, "cap", float(most))
            return tail, held

        monkeypatch.setattr(Rounds, "_held", peeking)
        # What is asked differs: neighbours are told apart by the scale of the noise alone.
        with pytest.raises(AssertionError):
            self.caught()

    def test_noise_that_is_halved_is_refused(self, monkeypatch):
        honest = NoisyNumbers.sigma.fget
        monkeypatch.setattr(NoisyNumbers, "sigma", property(lambda self: honest(self) / 2))
        with pytest.raises(NumericalFailure):
            self.caught()
