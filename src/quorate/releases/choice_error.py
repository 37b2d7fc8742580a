"""How much worse than the best a private choice may be: what ``error_`` of a rule tells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from quorate.releases.stated_error import StatedError

__all__ = ["CONFIDENCE", "ChoiceError"]

CONFIDENCE = 0.95
"""With which most errors are stated."""

_COVERS = (
    "The private choice among all candidates on these people, by what it counts ({counts}); not "
    "the sampling of the people, and not what that leaves out."
)


@dataclass(frozen=True, kw_only=True)
class ChoiceError(StatedError):
    """How much worse than the best candidate the chosen one may be, by what was counted.

    ``worst`` is the bound that the mechanism proves, at public and released numbers, and needs no
    assumption about people. ``bound`` is the same, or less under the assumption that ``covers``
    names.

    Attributes
    ----------
    bound : float
        In ``unit``; infinite where nothing can be stated.
    unit : str
        "people": so many people's whole say in what is counted.
    share : float or None
        The same as a share of all people, where their number is public.
    confidence, coordinates, worst, covers
        See :class:`~quorate.releases.stated_error.StatedError`.

    Examples
    --------
    >>> error = ChoiceError.of_people(24.0, counts="mistakes", n_users=1000)
    >>> print(error)
    at most 24 people (2.4%) worse than the best, with probability 95%
    >>> ChoiceError.unknown("Nobody knows.").covers
    'No statement: nobody knows.'
    """

    bound: float
    unit: str = "people"
    share: float | None = None
    confidence: float = CONFIDENCE
    coordinates: tuple[float, ...] = ()
    worst: float = math.inf
    covers: str

    @classmethod
    def of_people(
        cls, people: float, *, counts: str, n_users: int | None, confidence: float = CONFIDENCE
    ) -> ChoiceError:
        """Return the error of a choice whose score is at most ``people`` people's say worse.

        ``n_users`` is their number where it is public.
        """
        return cls(
            bound=float(people),
            share=None if n_users is None else min(1.0, people / max(1, n_users)),
            confidence=confidence,
            coordinates=(float(people),) if people > 0 else (),
            worst=float(people),
            covers=_COVERS.format(counts=counts),
        )

    def assuming(self, people: float, assumption: str, *, n_users: int) -> ChoiceError:
        """Return the error with a smaller bound that holds under an assumption, and says so.

        >>> proved = ChoiceError.of_people(80.0, counts="mistakes", n_users=1000)
        >>> usual = proved.assuming(20.0, "people are as usual", n_users=1000)
        >>> usual.bound, usual.worst, usual.covers[-59:]
        (20.0, 80.0, 'The bound assumes that people are as usual; worst, nothing.')
        """
        return replace(
            self,
            bound=float(people),
            share=min(1.0, people / max(1, n_users)),
            coordinates=(float(people),),
            covers=f"{self.covers} The bound assumes that {assumption}; worst, nothing.",
        )

    @classmethod
    def of_share(cls, share: float, *, unit: str, confidence: float, covers: str) -> ChoiceError:
        """Return an error that is itself a share, of records or of an answer."""
        return cls(
            bound=float(share),
            unit=unit,
            confidence=confidence,
            coordinates=(float(share),) if share > 0 else (),
            worst=math.inf,
            covers=covers,
        )

    @classmethod
    def unknown(cls, reason: str) -> ChoiceError:
        """Return that nothing is stated, and why."""
        covers = f"No statement: {reason[0].lower()}{reason[1:]}"
        return cls(bound=math.inf, coordinates=(math.inf,), covers=covers)

    @property
    def stated(self) -> bool:
        """Whether anything is stated."""
        return math.isfinite(self.bound)

    def __str__(self) -> str:
        if not self.stated:
            return self.covers
        sure = f"with probability {self.confidence:.0%}"
        if self.unit != "people":
            return f"at most {self.bound:.3g} ({self.unit}), {sure}"
        share = "" if self.share is None else f" ({self.share:.1%})"
        return f"at most {self.bound:,.0f} people{share} worse than the best, {sure}"
