"""Cells that nobody expects, and all that they may change: what their own person contributes.

One person's cell is replaced by anything that a door lets through. Then the fit must look the same
to everybody (exceptions, warnings, logs, shapes, types, every value that follows from what was
released), move what noise hides by no more than was promised, and leave everybody else's records
and integers as they were, bit by bit. :class:`Baseline` is one fit that others are compared with.
"""

import datetime
import decimal
import enum
import fractions
import math
import uuid
from collections import Counter
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa

from moves import First, Second, epsilon_of, losses
from quorate.auditing.observations import observe
from quorate.core import alone
from quorate.core.bounds.grid import Grid
from quorate.core.guarantees import Relation
from quorate.core.noise import use_noise
from quorate.core.questions import ballots
from quorate.core.questions.votes import count_votes
from quorate.data.by_group import frames
from quorate.data.by_group import person_cells as cells
from quorate.estimators import UserEstimator
from quorate.means import UserQueries

SECRET = "31337"
"""What stands in odd cells and must not be read anywhere."""


def _refuse(*_, **__):
    raise RuntimeError(SECRET)


class Furious:
    """An object whose every method raises."""

    __float__ = __int__ = __index__ = __complex__ = __bool__ = __len__ = __iter__ = _refuse
    __str__ = __repr__ = __format__ = __bytes__ = __hash__ = __eq__ = __ne__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __contains__ = __array__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __abs__ = __neg__ = __fspath__ = _refuse
    __getattr__ = _refuse


class Nameless:
    """An object that does not even say what it is."""

    __float__ = __str__ = __repr__ = __eq__ = _refuse
    __hash__ = None

    @property
    def __class__(self):
        raise RuntimeError(SECRET)


class FuriousText(str):
    """A text whose methods raise."""

    __slots__ = ()
    __str__ = __repr__ = __eq__ = __hash__ = __len__ = __iter__ = __format__ = _refuse
    encode = isdigit = strip = lower = startswith = _refuse


class FuriousInt(int):
    """An integer whose methods raise."""

    __float__ = __int__ = __index__ = __str__ = __repr__ = __eq__ = __hash__ = __bool__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __abs__ = bit_length = is_integer = _refuse


class FuriousFloat(float):
    """A number whose methods raise."""

    __float__ = __int__ = __str__ = __repr__ = __eq__ = __ne__ = __hash__ = __bool__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __abs__ = is_integer = _refuse


class FuriousBytes(bytes):
    """Octets whose methods raise."""

    __str__ = __repr__ = __eq__ = __hash__ = __len__ = __iter__ = __bytes__ = decode = _refuse


class FuriousDate(datetime.datetime):
    """A time whose methods raise."""

    __str__ = __repr__ = __eq__ = __hash__ = __sub__ = isoformat = astimezone = _refuse
    toordinal = strftime = utcoffset = _refuse


class Drink(enum.StrEnum):
    """Members of an Enum are texts, too."""

    TEA = "tea"


class Number(enum.IntEnum):
    """And integers."""

    ONE = 1


ZONE = datetime.timezone(datetime.timedelta(hours=14))

OBJECTS = {
    "nothing": None,
    "not a number": math.nan,
    "infinite": -math.inf,
    "1e308": 1e308,
    "smallest": 5e-324,
    "another number": 2,
    "true": True,
    "a huge integer": 10**400,
    "more digits than Python prints": 10**5000,
    "2^64": 2**64,
    "-2^63": -(2**63),
    "text": SECRET,
    "a label as text": "tea",
    "no text": "",
    "a number as text": "2",
    "a large number as text": "1e999",
    "digits of another script": "２",
    "half of a character": "\ud800",
    "a text that ends early": "tea\0",
    "a date as text": "2020-01-05",
    "octets": b"tea",
    "octets that are no text": b"\xff\xfe" + SECRET.encode(),
    "changing octets": bytearray(b"tea"),
    "a view": memoryview(b"tea"),
    "decimal": decimal.Decimal("2.50"),
    "a huge decimal": decimal.Decimal("1e999999"),
    "a loud decimal": decimal.Decimal("sNaN"),
    "a fraction": fractions.Fraction(1, 3),
    "a huge fraction": fractions.Fraction(10**400, 3),
    "complex": 1 + 2j,
    "a day": datetime.date(2020, 1, 5),
    "the last day": datetime.date.max,
    "the first time, far east": datetime.datetime(1, 1, 1, tzinfo=ZONE),
    "a span": datetime.timedelta.max,
    "an hour": datetime.time(3, 5, tzinfo=ZONE),
    "a date of numpy": np.datetime64("2020-01-05"),
    "a far date of numpy": np.datetime64(2**62, "s"),
    "no date of numpy": np.datetime64("NaT"),
    "a span of numpy": np.timedelta64(5, "D"),
    "a timestamp of pandas": pd.Timestamp("2020-01-05", tz="UTC"),
    "no time of pandas": pd.NaT,
    "nothing of pandas": pd.NA,
    "an interval": pd.Interval(0, 1),
    "a short float": np.float16(np.inf),
    "a small integer": np.int8(2),
    "an unsigned integer": np.uint64(2**64 - 1),
    "a truth of numpy": np.bool_(True),
    "a text of numpy": np.str_("tea"),
    "octets of numpy": np.bytes_(b"tea"),
    "a complex of numpy": np.complex128(1j),
    "void": np.void(b"\x01\x02"),
    "an array without axes": np.array(2.0),
    "an array": np.array([1.0, 2.0]),
    "an array of one": np.array([2.0]),
    "a scalar of Arrow": pa.scalar(2.0),
    "an empty list": [],
    "a list of one": [2.0],
    "a list": [1.0, [2.0, SECRET]],
    "a tuple": (1.0,),
    "a dictionary": {"a": SECRET},
    "a set": {1},
    "an id": uuid.UUID(int=31337),
    "a member": Drink.TEA,
    "a numbered member": Number.ONE,
    "an exception": ValueError(SECRET),
    "a class": int,
    "a function": len,
    "any object": object(),
    "a furious object": Furious(),
    "an object without a class": Nameless(),
    "a furious text": FuriousText("tea"),
    "a furious integer": FuriousInt(1),
    "a furious number": FuriousFloat(2.0),
    "furious octets": FuriousBytes(b"tea"),
    "a furious date": FuriousDate(2020, 1, 5),
}
OBJECTS["a list of itself"] = [OBJECTS["any object"]]
OBJECTS["a list of itself"].append(OBJECTS["a list of itself"])


def held(part):
    """Return who holds what, to the last bit; run where the records lie."""
    rows, offsets = part.X, part.offsets
    targets = part.y
    found = {}
    for user, key in enumerate(part.keys().tolist()):
        own = slice(offsets[user], offsets[user + 1])
        told = None if targets is None else targets[own].tobytes()
        found[key] = (np.ascontiguousarray(rows[own]).tobytes(), told)
    return found


class Seen:
    """What everybody contributes to a fit: records, cells, integers on grids, votes."""

    def __init__(self):
        self.records, self.rows, self.votes, self.users = Counter(), Counter(), [], 1

    def crowd(self, crowd):
        for part in crowd.map(held):
            self.users = max(self.users, len(part))
            self.records.update(part.items())
        return crowd

    def grid(self, block):
        self.rows.update(map(bytes, np.ascontiguousarray(block)))

    def vote(self, votes):
        self.votes.append(Counter(votes := list(votes)))
        return votes


@contextmanager
def watched():
    """Watch what people contribute, wherever it is made from cells."""
    seen = Seen()
    truncated, crowd, holders = Grid._truncated, UserEstimator._crowd, cells.holders_of
    tried_once = alone._try_once

    def spy(self, values):
        for part, block in truncated(self, values):
            seen.grid(block)
            yield part, block

    def unseen(*given):
        # Made-up users of the core, of whom only the first of two fits asks.
        with mock.patch.object(seen, "grid"):
            tried_once(*given)

    with ExitStack() as stack:
        put = lambda *given: stack.enter_context(mock.patch.object(*given))  # noqa: E731
        put(Grid, "_truncated", spy)
        put(alone, "_try_once", unseen)
        put(UserEstimator, "_crowd", lambda *a, **k: seen.crowd(crowd(*a, **k)))
        for module in (cells, frames):
            put(module, "holders_of", lambda *a: seen.crowd(holders(*a)))
        put(ballots, "count_votes", lambda votes, **size: count_votes(seen.vote(votes), **size))
        yield seen


class Baseline:
    """A fit on usual cells, with which fits on odd ones are compared.

    ``run`` fits and returns what it made. ``private_labels``: labels get private numbers, and how
    many there are is private; everything but these is compared. ``keys``: under how many a person
    stands; a task that counts rows beside its answer may read ids in two ways.
    """

    def __init__(self, run, *, private_labels=False, keys=1):
        self.private_labels, self.keys = private_labels, keys
        self.first = First(0)
        with watched() as self.seen, use_noise(self.first):
            self.seen_of_run = observe(lambda: _shown(run()))

    @property
    def refused(self):
        """What the fit raised, if it did."""
        return self.seen_of_run.error

    def apart(self, run):
        """Return by what a fit on odd cells can be told apart, or moves others."""
        second = Second(0, self.first)
        with watched() as seen, use_noise(second):
            other = observe(lambda: _shown(run()))
        found = self.seen_of_run.differences(other, values=not self.private_labels)
        if self.private_labels:
            found = [each for each in found if each.startswith("The run ")]
        else:
            found += second.mismatches()
        said = f"{other.error} {other.warned} {other.logged} {other.printed}"
        if SECRET in said:
            found.append(f"The cell is quoted: {said}")
        return found or [*self._lost(second), *self._moved(seen)]

    def _lost(self, second):
        if self.private_labels or self.refused is not None:
            return
        if len(self.first.looks) != len(second.looks):
            yield "Other draws were made."
            return
        promise = self.seen_of_run.result.guarantee_
        pure, square = losses(self.first.looks, second.looks)
        # Who holds another cell has left, and somebody else has joined: two moves.
        moves = 2 if promise.relation is Relation.ADD_REMOVE else 1
        spent = epsilon_of(pure / moves, square / moves**2, promise.delta)
        if not spent <= promise.epsilon * (1 + 1e-9):
            yield f"One cell moved what is hidden by epsilon={spent:.3g}, {promise.epsilon} claimed"

    def _moved(self, seen):
        mine = self.seen
        if len(mine.votes) != len(seen.votes):
            yield "Other votes were held."
        for one, other in zip(mine.votes, seen.votes, strict=False):
            if (one - other).total() > 1 or (other - one).total() > 1:
                yield f"Others voted otherwise: {one - other}, {other - one}"
        if self.private_labels:
            return
        # Parts of a crowd are asked in any order, so what people hold is compared as a whole.
        moved = {key for key, _ in (mine.records - seen.records) + (seen.records - mine.records)}
        if len(moved) > self.keys:
            yield f"{len(moved)} people hold something else"
        passes = math.ceil(mine.rows.total() / mine.users)
        if mine.rows.total() != seen.rows.total() or (mine.rows - seen.rows).total() > passes:
            yield f"{(mine.rows - seen.rows).total()} integers of {mine.rows.total()} moved"


def _shown(fitted):
    """A desk holds the data: what it may show is an answer."""
    if isinstance(fitted, UserQueries):
        fitted.ask(lambda records: float(np.tanh(np.sum(records))))
        return _Asked(fitted.guarantee_)
    return fitted


class _Asked:
    def __init__(self, guarantee):
        self.guarantee_ = guarantee
