"""What happened to a user's data, in the accountant's words.

An event describes a mechanism; :mod:`quorate.accounting.compose` prices it. Sensitivities are
already divided out, so an event means the same under every neighbouring relation: the mechanism
that creates it knows its relation and its sensitivity.

Every event is frozen, compares by value and writes itself as plain data. Numbers may be given as
rationals; they are kept as floats, rounded towards the higher cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quorate import _validate
from quorate.accounting.rounding import float_down, float_up
from quorate.exceptions import ParameterError, UnsupportedEventError

__all__ = [
    "Approximate",
    "Composed",
    "Event",
    "Gaussian",
    "Laplace",
    "Nothing",
    "Pure",
    "Repeated",
    "Subsampled",
    "compose_events",
    "read_event",
]


class Event(ABC):
    """Base of all events."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""


@dataclass(frozen=True)
class Nothing(Event):
    """A release that does not depend on the data.

    >>> Nothing().to_dict()
    {'event': 'nothing'}
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""
        return {"event": "nothing"}


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

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""
        return {"event": "pure", "epsilon": self.epsilon}


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

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""
        return {"event": "approximate", "epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True)
class Laplace(Event):
    """Continuous Laplace noise on one number, of scale ``noise_multiplier`` x its sensitivity.

    Alone it costs ``Pure(1 / noise_multiplier)``; in a chain with delta > 0 a little less.

    Discrete Laplace noise must be described by :class:`Pure`, which is why no mechanism of Quorate
    emits this event. With scale b and integer sensitivity D, the discrete profile equals the
    continuous one at epsilon = (D - 2j) / b for j = 0, ..., D and joins these points by straight
    lines in exp(epsilon). The continuous profile is strictly convex there, so the discrete one lies
    *above* it in between: it is not a post-processing of continuous noise of the same scale. See
    ``docs/proofs/composition.md``.

    >>> Laplace(2.0).to_dict()
    {'event': 'laplace', 'noise_multiplier': 2.0}
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)
        object.__setattr__(self, "noise_multiplier", float_down(self.noise_multiplier))
        _validate.positive(noise_multiplier=self.noise_multiplier)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""
        return {"event": "laplace", "noise_multiplier": self.noise_multiplier}


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise of standard deviation ``noise_multiplier`` x L2 sensitivity.

    A discrete Gaussian is described by the slightly smaller multiplier of the continuous one that
    it is a post-processing of; see ``docs/proofs/discrete_gaussian.md``.

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

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""
        return {"event": "gaussian", "noise_multiplier": self.noise_multiplier}


@dataclass(frozen=True)
class Subsampled(Event):
    """``event`` on a Poisson sample: each user takes part with probability ``rate``, secretly.

    ``event`` describes the mechanism on the sample *for a user who comes or stays away*: its
    sensitivity is how far one user's presence can move the result, whatever relation the chain is
    priced under. For a sum of vectors of norm at most C that is C, not the diameter 2C. Under
    replacement the accountant adds the rest itself: a replaced user moves additive noise by twice
    the sensitivity and is a group of two for anything else; see ``docs/proofs/composition.md``.
    Hence ``Subsampled(Gaussian(2.0), rate=1.0)`` costs ``Gaussian(1.0)`` under replacement.

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

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""
        return {"event": "subsampled", "rate": self.rate, "of": self.event.to_dict()}


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

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""
        return {"event": "repeated", "count": self.count, "of": self.event.to_dict()}


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

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""
        return {"event": "composed", "of": [event.to_dict() for event in self.events]}


def compose_events(events: Iterable[Event]) -> Event:
    """Return one event for all of ``events``; a single one stays itself.

    >>> compose_events([Pure(0.5)])
    Pure(epsilon=0.5)
    """
    collected = tuple(events)
    return collected[0] if len(collected) == 1 else Composed(collected)


def read_event(document: Mapping[str, Any]) -> Event:
    """Return the event that wrote ``document``.

    >>> read_event(Subsampled(Repeated(Gaussian(2.0), 3), rate=0.5).to_dict())
    Subsampled(event=Repeated(event=Gaussian(noise_multiplier=2.0), count=3), rate=0.5)
    """
    match document:
        case {"event": "nothing"}:
            return Nothing()
        case {"event": "pure", "epsilon": epsilon}:
            return Pure(epsilon)
        case {"event": "approximate", "epsilon": epsilon, "delta": delta}:
            return Approximate(epsilon, delta)
        case {"event": "laplace", "noise_multiplier": multiplier}:
            return Laplace(multiplier)
        case {"event": "gaussian", "noise_multiplier": multiplier}:
            return Gaussian(multiplier)
        case {"event": "subsampled", "rate": rate, "of": part}:
            return Subsampled(read_event(part), rate)
        case {"event": "repeated", "count": count, "of": part}:
            return Repeated(read_event(part), count)
        case {"event": "composed", "of": parts}:
            return Composed(tuple(read_event(part) for part in parts))
    raise UnsupportedEventError(
        f"Expected an event as Event.to_dict writes it, got {document!r}. Was it written by a "
        "newer Quorate?"
    )
