"""The types of guarantees and of events, from which a guarantee is computed.

A :class:`Guarantee` says how much anybody can learn about one user, which data sets are neighbours,
whom the users must trust, and whether it holds for the numbers that the computer really produced.
It prints itself as one sentence that a privacy officer can quote.

Its epsilon and delta follow from *events*. An event describes a mechanism that was applied to
users' data, and :mod:`quorate.core.account.compose` prices it. Sensitivities are already divided
out, so an event means the same under every neighbouring relation. Every event is immutable, is
compared by value, and can be converted to plain data. Numbers may be given as rationals; they are
stored as floats, rounded towards the higher cost. The exact cost of a draw depends on the
sensitivity of what is released and on the scale of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any

from quorate import _validate
from quorate._validate import float_down, float_up, ratio_root_down
from quorate.exceptions import ParameterError

__all__ = [
    "DISCRETENESS",
    "TRUST",
    "UNITS",
    "Approximate",
    "Composed",
    "DrawCosts",
    "Event",
    "Gaussian",
    "Guarantee",
    "Nothing",
    "Numerics",
    "Pure",
    "Relation",
    "Repeated",
    "Subsampled",
    "Trust",
    "compose_events",
    "gaussian_costs",
]


DISCRETENESS = 4
"""A discrete Gaussian of variance t^2 + 4 costs what the continuous one of variance t^2 costs."""

UNITS = 2**160
"""Squares of draws are added up as integers, in units of one over this number."""

DrawCosts = tuple[Fraction | None, int | None, Fraction]
"""Pure loss, square of the GDP parameter in units, rounded up, failure probability of a draw."""


class Relation(Enum):
    """Which data sets are neighbours, and hence which facts about the users are public.

    ``REPLACE``: the ids of the users and their number n are public; the records are protected.
    Public choices about users, such as a split, may therefore depend on all ids, n and a public
    seed. ``ADD_REMOVE`` also hides *that* someone is in the data. Then neither ids nor n are
    public, grids and refusals do not depend on n, and a public choice about one user depends on
    that user's id alone.

    >>> Relation.ADD_REMOVE.value
    'add or remove all records of one user'
    """

    REPLACE = "replace all records of one user"
    ADD_REMOVE = "add or remove all records of one user"


class Trust(Enum):
    """Whom the users have to trust with raw records.

    >>> Trust.LOCAL.value
    'nobody: each user adds the noise before anything leaves the device'
    """

    CENTRAL = "the curator sees the records and releases only noisy answers"
    SHUFFLE = "nobody sees a user's records; a shuffler hides who sent which message"
    LOCAL = "nobody: each user adds the noise before anything leaves the device"


TRUST = {trust.name.lower(): trust for trust in Trust}
"""The word for each model of trust, as parameters of estimators spell it."""


class Numerics(Enum):
    """Whether the guarantee holds for floating-point numbers or only for real numbers."""

    EXACT = "exact"
    IDEALIZED = "idealized"
    VOID = "void"

    def weakest(self, other: Numerics) -> Numerics:
        """Return the weaker of two labels.

        >>> Numerics.EXACT.weakest(Numerics.IDEALIZED).value
        'idealized'
        """
        order = [Numerics.EXACT, Numerics.IDEALIZED, Numerics.VOID]
        return max(self, other, key=order.index)


@dataclass(frozen=True)
class Event:
    """Base of all events: a frozen dataclass whose fields are numbers and other events."""

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data: its kind, its numbers, and the events it contains.

        >>> Repeated(Pure(0.5), 2).to_dict()
        {'event': 'repeated', 'count': 2, 'of': {'event': 'pure', 'epsilon': 0.5}}
        """
        own = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        parts = [own.pop(name) for name in ("event", "events") if name in own]
        kind = {"event": type(self).__name__.lower()}
        return kind | own | ({"of": parts[0]} if parts else {})


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.to_dict() if isinstance(value, Event) else value


@dataclass(frozen=True)
class Nothing(Event):
    """A release that does not depend on the data.

    >>> Nothing().to_dict()
    {'event': 'nothing'}
    """


@dataclass(frozen=True)
class Pure(Event):
    """Any mechanism that is ``epsilon``-differentially private.

    >>> Pure(0.5).to_dict()
    {'event': 'pure', 'epsilon': 0.5}
    """

    epsilon: float

    def __post_init__(self) -> None:
        _validate.non_negative(epsilon=self.epsilon)
        object.__setattr__(self, "epsilon", float_up(self.epsilon))


@dataclass(frozen=True)
class Approximate(Event):
    """Any mechanism that is (``epsilon``, ``delta``)-differentially private.

    >>> Approximate(0.0, 1e-7).to_dict()
    {'event': 'approximate', 'epsilon': 0.0, 'delta': 1e-07}
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _validate.non_negative(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        object.__setattr__(self, "epsilon", float_up(self.epsilon))
        object.__setattr__(self, "delta", float_up(self.delta))


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise of standard deviation ``noise_multiplier`` x L2 sensitivity.

    For a discrete Gaussian it is the slightly smaller multiplier of a continuous Gaussian of which
    the discrete one is a post-processing; see ``docs/proofs/discrete_gaussian.md``.

    >>> Gaussian(4.0).mu
    0.25
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)
        object.__setattr__(self, "noise_multiplier", float_down(self.noise_multiplier))
        _validate.positive(noise_multiplier=self.noise_multiplier)

    @property
    def mu(self) -> float:
        """Parameter of Gaussian differential privacy, rounded up."""
        return float_up(1 / Fraction(self.noise_multiplier))


@dataclass(frozen=True)
class Subsampled(Event):
    """Gaussian noise on a secret Poisson sample, in which each user is with probability ``rate``.

    ``event`` describes the mechanism on the sample *for a user who takes part or stays away*: its
    sensitivity is how far one user's presence can move the result, under either relation. For a sum
    of vectors of norm at most C that is C, not the diameter 2C. Under replacement the accountant
    itself accounts for the fact that a replaced user moves the result by twice the sensitivity; see
    ``docs/proofs/composition.md``. Hence ``Subsampled(Gaussian(2.0), rate=1.0)`` costs
    ``Gaussian(1.0)`` under replacement.

    A chain inside shares one sample: ``Subsampled(Repeated(e, 3), rate)`` samples once,
    ``Repeated(Subsampled(e, rate), 3)`` three times.

    >>> Subsampled(Gaussian(1.0), rate=0.1).to_dict()["rate"]
    0.1
    """

    event: Event
    rate: float

    def __post_init__(self) -> None:
        _validate.fraction(rate=self.rate)
        object.__setattr__(self, "rate", float_up(self.rate))
        if not isinstance(self.event, Event):
            raise ParameterError(f"Expected event to be an Event, got event={self.event!r}.")


@dataclass(frozen=True)
class Repeated(Event):
    """``event``, ``count`` times, each on the same users and possibly chosen adaptively.

    >>> Repeated(Pure(0.1), 3).to_dict()["count"]
    3
    """

    event: Event
    count: int

    def __post_init__(self) -> None:
        _validate.non_negative_integer(count=self.count)
        object.__setattr__(self, "count", int(self.count))
        if not isinstance(self.event, Event):
            raise ParameterError(f"Expected event to be an Event, got event={self.event!r}.")


@dataclass(frozen=True)
class Composed(Event):
    """Several events on the same users, in any order, each possibly chosen after the others.

    >>> len(Composed((Pure(0.1), Gaussian(5.0))).events)
    2
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.events, tuple) or not all(isinstance(e, Event) for e in self.events):
            raise ParameterError(f"Expected a tuple of events, got events={self.events!r}.")


def compose_events(events: Iterable[Event]) -> Event:
    """Return one event for all of ``events``; a single event is returned unchanged.

    >>> compose_events([Pure(0.5)])
    Pure(epsilon=0.5)
    """
    collected = tuple(events)
    return collected[0] if len(collected) == 1 else Composed(collected)


@lru_cache(maxsize=1024)
def gaussian_costs(sigma: float, sensitivity_squared: int | Fraction) -> tuple[Event, DrawCosts]:
    """Return the event of discrete Gaussian noise and its cost for each filter.

    The event's multiplier is rounded down; filters add up the exact square.

    >>> event, (pure, square, failures) = gaussian_costs(6.0, Fraction(8))
    >>> event.noise_multiplier, pure, Fraction(square, UNITS), failures
    (2.0, None, Fraction(1, 4), Fraction(0, 1))
    """
    # In integers: every step of a descent comes here, and fractions reduce after each operation.
    top, bottom = sigma.as_integer_ratio()
    variance, unit = top * top - DISCRETENESS * bottom * bottom, bottom * bottom
    if not variance > 0:
        raise ParameterError(f"Expected discrete noise of sigma > 2, got sigma={sigma!r}.")
    variance *= sensitivity_squared.denominator
    unit *= sensitivity_squared.numerator
    return Gaussian(ratio_root_down(variance, unit)), (
        None,
        -(-unit * UNITS // variance),
        Fraction(0),
    )


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A user-level differential-privacy guarantee.

    Parameters
    ----------
    epsilon : float
        Bound on the privacy loss of one user's whole record; infinite means "no guarantee".
    delta : float, default=0.0
        Probability with which the bound on the loss may fail.
    unit : str, default="user"
        The word for what is protected: "patient", "person x day".
    relation : Relation, default=Relation.REPLACE
    trust : Trust, default=Trust.CENTRAL
    numerics : Numerics, default=Numerics.EXACT
        ``VOID`` marks a release whose noise came from a test double: it promises nothing.
    events : tuple of events, default=()
        The events from which epsilon and delta were computed.
    data_name : str or None, default=None
        Name of the data set whose ledger was charged; ``None`` if there was no ledger.
    caveat : str or None, default=None
        Why the guarantee is only ``IDEALIZED``, in one sentence.

    Examples
    --------
    >>> print(Guarantee(epsilon=1.0, unit="patient"))
    epsilon = 1 for each patient: whatever one patient's whole record says, no conclusion drawn
    from this release is more than e^1 = 2.72 times as likely as if that record were replaced by
    any other.
    >>> Guarantee(epsilon=1.0, delta=1e-6).to_dict()["delta"]
    1e-06
    """

    epsilon: float
    delta: float = 0.0
    unit: str = "user"
    relation: Relation = Relation.REPLACE
    trust: Trust = Trust.CENTRAL
    numerics: Numerics = Numerics.EXACT
    events: tuple[Event, ...] = ()
    data_name: str | None = None
    caveat: str | None = None

    def __post_init__(self) -> None:
        if self.epsilon != math.inf:
            _validate.non_negative(epsilon=self.epsilon)
        _validate.fraction(delta=self.delta)
        for name in ("epsilon", "delta"):
            given = getattr(self, name)
            object.__setattr__(self, name, given if given == math.inf else float_up(given))
        if not (isinstance(self.unit, str) and self.unit.strip()):
            raise ParameterError(f"Expected unit to be a word, got unit={self.unit!r}.")
        for name, kind in (("relation", Relation), ("trust", Trust), ("numerics", Numerics)):
            if not isinstance(getattr(self, name), kind):
                raise ParameterError(
                    f"Expected {name} to be a {kind.__name__}, got {name}={getattr(self, name)!r}."
                )

    @property
    def holds(self) -> bool:
        """Whether anything is guaranteed at all.

        >>> Guarantee(epsilon=1.0, numerics=Numerics.VOID).holds
        False
        """
        return self.numerics is not Numerics.VOID and self.epsilon < math.inf and self.delta < 1

    def charged_to(self, data_name: str) -> Guarantee:
        """Return the same guarantee with the name of the data set whose ledger was charged."""
        return replace(self, data_name=data_name)

    def idealized(self, caveat: str) -> Guarantee:
        """Return the same guarantee, marked as idealized, with the reason.

        >>> Guarantee(epsilon=1.0).idealized("A model sees all users at once.").numerics.value
        'idealized'
        """
        return replace(self, numerics=self.numerics.weakest(Numerics.IDEALIZED), caveat=caveat)

    def __str__(self) -> str:
        if self.numerics is Numerics.VOID:
            return f"No guarantee for any {self.unit}: the noise came from a test double."
        if not self.holds:
            why = self.caveat or "the privacy loss could not be bounded"
            return f"No guarantee for any {self.unit}: {why}."
        change = {
            Relation.REPLACE: "if that record were replaced by any other",
            Relation.ADD_REMOVE: f"if that {self.unit} had never been in the data",
        }[self.relation]
        figures = f"epsilon = {self.epsilon:.6g}"
        exception = ""
        if self.delta > 0:
            figures += f", delta = {self.delta:.6g}"
            exception = f", up to an added probability of {self.delta:.6g}"
        sentence = (
            f"{figures} for each {self.unit}: whatever one {self.unit}'s whole record says, no "
            f"conclusion drawn from this release is more than e^{self.epsilon:.6g} = "
            f"{_times(self.epsilon)} times as likely as {change}{exception}."
        )
        if self.trust is not Trust.CENTRAL:
            sentence += f" Trust: {self.trust.value}."
        if self.numerics is Numerics.IDEALIZED:
            sentence += " This holds for real numbers; floating-point rounding is not covered."
            if self.caveat is not None:
                sentence += f" {self.caveat}"
        return sentence

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain data."""
        return {
            "epsilon": "infinity" if self.epsilon == math.inf else float(self.epsilon),
            "delta": float(self.delta),
            "unit": self.unit,
            "relation": self.relation.name.lower(),
            "trust": self.trust.name.lower(),
            "numerics": self.numerics.value,
            "data_name": self.data_name,
            "caveat": self.caveat,
            "events": [event.to_dict() for event in self.events],
            "sentence": str(self),
        }


def _times(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else "a number too large to print"
