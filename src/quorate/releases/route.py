"""Which algorithm a fit took, and why: what every estimator calls ``algorithm_``."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.exceptions import ParameterError

__all__ = ["Route"]


@dataclass(frozen=True, kw_only=True)
class Route:
    """Which algorithm made a release, and why; a function of public and released numbers.

    Attributes
    ----------
    name : str
        The word by which ``algorithm=`` asks for it.
    reason : str
    spread : float or None
        Released estimate of how far one user lies from the centre, if it was bought.
    records : float or None
        Number of records from which on a user has full weight, if users were weighted.

    Examples
    --------
    >>> print(Route(name="clip", reason="Too few users for a private radius."))
    clip: Too few users for a private radius.
    """

    name: str
    reason: str
    spread: float | None = None
    records: float | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and isinstance(self.reason, str)):
            raise ParameterError("Expected the name of an algorithm and a reason, as text.")

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"
