"""What is promised to a person: the types every release carries.

A :class:`Guarantee` says how much anybody can learn about one user, which data sets count as
neighbours, whom the users must trust, and whether the promise holds for the numbers the computer
really produced. It prints itself as one sentence that a privacy officer can quote.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from quorate import _validate
from quorate.exceptions import ParameterError

__all__ = ["TRUST", "Guarantee", "Numerics", "PricedEvent", "Relation", "Trust"]


class Relation(Enum):
    """Which two data sets must look alike, and so what is public about who is in them.

    ``REPLACE``: the ids of the users and their number n are public; hidden is what a user holds.
    Public choices about users may therefore rank ids: who is on which side of a split, in which
    half of a search or phase of a minimisation, and which records a cap keeps follow from ids, n
    and a public seed. Whoever must hide *that* somebody is in the data chooses ``ADD_REMOVE``:
    there neither ids nor n are public, grids and refusals do not follow n, and a public choice
    about one user depends on that user's id alone.

    >>> Relation.ADD_REMOVE.value
    'add or remove all records of one user'
    """

    REPLACE = "replace all records of one user"
    ADD_REMOVE = "add or remove all records of one user"


class Trust(Enum):
    """Whom a user has to trust with raw records.

    >>> Trust.LOCAL.value
    'nobody: each user adds the noise before anything leaves the device'
    """

    CENTRAL = "the curator sees the records and releases only noisy answers"
    SHUFFLE = "nobody sees a user's records; a shuffler hides who sent which message"
    LOCAL = "nobody: each user adds the noise before anything leaves the device"


TRUST = {trust.name.lower(): trust for trust in Trust}
"""The word for each model of trust, as parameters of estimators spell it."""


class Numerics(Enum):
    """Whether the promise holds for the computer's numbers or only for real numbers."""

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


class PricedEvent(Protocol):
    """What the accountant priced; see :mod:`quorate.accounting.events`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A user-level differential-privacy guarantee.

    Parameters
    ----------
    epsilon : float
        Privacy loss of one user's whole record; infinite means "no guarantee".
    delta : float, default=0.0
        Probability with which the bound on the loss may fail.
    unit : str, default="user"
        The word for what is protected: "patient", "person x day".
    relation : Relation, default=Relation.REPLACE
    trust : Trust, default=Trust.CENTRAL
    numerics : Numerics, default=Numerics.EXACT
        ``VOID`` marks a release whose noise came from a test double: it promises nothing.
    events : tuple of events, default=()
        What the figure was computed from.
    data_name : str or None, default=None
        Name of the data set whose ledger was charged; ``None`` if there was no ledger.
    caveat : str or None, default=None
        Why the promise is only ``IDEALIZED``, in one sentence.

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
    events: tuple[PricedEvent, ...] = ()
    data_name: str | None = None
    caveat: str | None = None

    def __post_init__(self) -> None:
        if self.epsilon != math.inf:
            _validate.non_negative(epsilon=self.epsilon)
        _validate.fraction(delta=self.delta)
        for name in ("epsilon", "delta"):
            given = getattr(self, name)
            rounded = float(given)
            up = rounded if rounded >= given else math.nextafter(rounded, math.inf)
            object.__setattr__(self, name, up)
        if not (isinstance(self.unit, str) and self.unit.strip()):
            raise ParameterError(f"Expected unit to be a word, got unit={self.unit!r}.")
        for name, kind in (("relation", Relation), ("trust", Trust), ("numerics", Numerics)):
            if not isinstance(getattr(self, name), kind):
                raise ParameterError(
                    f"Expected {name} to be a {kind.__name__}, got {name}={getattr(self, name)!r}."
                )

    @property
    def holds(self) -> bool:
        """Whether anything is promised at all.

        >>> Guarantee(epsilon=1.0, numerics=Numerics.VOID).holds
        False
        """
        return self.numerics is not Numerics.VOID and self.epsilon < math.inf and self.delta < 1

    def charged_to(self, data_name: str) -> Guarantee:
        """Return the same promise with the name of the data set whose ledger paid for it."""
        return replace(self, data_name=data_name)

    def idealized(self, caveat: str) -> Guarantee:
        """Return the same promise, for real numbers only, and why.

        >>> Guarantee(epsilon=1.0).idealized("A model sees all users at once.").numerics.value
        'idealized'
        """
        return replace(self, numerics=self.numerics.weakest(Numerics.IDEALIZED), caveat=caveat)

    def __str__(self) -> str:
        if self.numerics is Numerics.VOID:
            return f"No guarantee for any {self.unit}: the noise came from a test double."
        if not self.holds:
            return f"No guarantee for any {self.unit}: the privacy loss could not be bounded."
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

    def to_json(self) -> str:
        """Return the guarantee as a JSON document.

        >>> json.loads(Guarantee(epsilon=1.0).to_json())["relation"]
        'replace'
        """
        return json.dumps(self.to_dict(), ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Guarantee:
        """Read back what :meth:`to_dict` wrote; events stay plain data and are not read.

        >>> Guarantee.from_dict(Guarantee(epsilon=2.0).to_dict()).epsilon
        2.0
        """
        epsilon = document["epsilon"]
        return cls(
            epsilon=math.inf if epsilon == "infinity" else float(epsilon),
            delta=float(document["delta"]),
            unit=str(document["unit"]),
            relation=Relation[str(document["relation"]).upper()],
            trust=Trust[str(document["trust"]).upper()],
            numerics=Numerics(document["numerics"]),
            data_name=document["data_name"],
            caveat=document.get("caveat"),
        )


def _times(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else "a number too large to print"
