"""The result of a plan: the requested number, its bounds, simpler methods, and one sentence.

A plan is made from public numbers before any data are read. It has a *calibrated* number (the error
that the library's own algorithm reaches, checked by simulation in ``benchmarks/planner.py``), the
published upper bound with its theorem, the lower bound that no method can beat, and the needs of
simpler methods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.core.guarantees import Relation
from quorate.exceptions import MissingExtraError

__all__ = ["Baseline", "Curve", "Plan", "PublishedBound"]

_NEVER = "out of reach"


def _count(value: float | None) -> str:
    """Return a number of users as text.

    >>> _count(1234.0), _count(None)
    ('1,234', 'out of reach')
    """
    if value is None or not math.isfinite(value):
        return _NEVER
    return f"{math.ceil(value):,}" if value < 1e12 else f"{value:.2g}"


def _users(value: float | None) -> str:
    """Return "1 user", or a number of users, as text.

    >>> _users(1.0), _users(20.0), _users(None)
    ('1 user', '20 users', 'a number of users out of reach')
    """
    said = _count(value)
    if said == _NEVER:
        return f"a number of users {_NEVER}"
    return "1 user" if said == "1" else f"{said} users"


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"


def _number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return _NEVER
    return f"{value:.3g}"


def _finite(value: float | None) -> float | None:
    """Return None for infinity, which JSON cannot hold."""
    return None if value is None or not math.isfinite(value) else value


@dataclass(frozen=True, kw_only=True)
class PublishedBound:
    """A theorem about the number of users, evaluated with its own constants.

    Attributes
    ----------
    users : float or None
        Users that suffice (upper bound) or without which no method succeeds (lower bound);
        ``None`` if the theorem does not apply.
    theorem : str
        The source of the proof.
    holds : bool
        Whether the conditions of the theorem are met, so that the number is proved here.
    note : str
        The conditions, or the constant used where the paper leaves one open.

    Examples
    --------
    >>> PublishedBound(users=40.0, theorem="Lemma 4", holds=True, note="pure privacy").users
    40.0
    """

    users: float | None
    theorem: str
    holds: bool
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Return the bound as plain values."""
        return {
            "users": _finite(self.users),
            "theorem": self.theorem,
            "holds": self.holds,
            "note": self.note,
        }


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The users and the error of a simpler method for user-level privacy.

    Attributes
    ----------
    name : str
    users : int or None
        Users needed for the error of the plan; ``None`` if it is out of reach.
    error : float
        Error at the users of the plan.

    Examples
    --------
    >>> Baseline(name="group privacy", users=90_000, error=0.4).name
    'group privacy'
    """

    name: str
    users: int | None
    error: float

    def to_dict(self) -> dict[str, Any]:
        """Return the baseline as plain values."""
        return {"name": self.name, "users": self.users, "error": _finite(self.error)}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The error as a function of the number of users, for one method.

    Examples
    --------
    >>> Curve(name="quorate", users=(10, 20), errors=(0.2, 0.1)).errors[-1]
    0.1
    """

    name: str
    users: tuple[int, ...]
    errors: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain values."""
        return {
            "name": self.name,
            "users": list(self.users),
            "errors": [_finite(error) for error in self.errors],
        }


@dataclass(frozen=True, kw_only=True)
class Plan:
    """An answer to "are we quorate?", from public numbers.

    Attributes
    ----------
    task : str
    solved_for : {"users", "error", "epsilon", "nothing"}
        Which number was computed; ``"nothing"`` if users, error and epsilon were all given.
    users : int or None
        The planned number of users, given or solved for; ``None`` if no number of users suffices.
    records : int
        Records per user.
    epsilon : float or None
        The epsilon, given or solved for; ``None`` if no epsilon suffices.
    delta, confidence : float
    error : float
        The target error, or the expected error if no target was given.
    relation : Relation
    size : tuple of (str, number or range) pairs
        The other numbers that describe the task: dimension, domain, ...
    error_meaning : str
        What "error" means for this task, in words.
    users_needed : int or None
        Users needed for ``error`` at ``epsilon``.
    error_expected : float
        The error is at most this with probability ``confidence``, for ``users`` users at
        ``epsilon``.
    upper, lower : PublishedBound
    sufficient, necessary : tuple of PublishedBound
        Further theorems: sufficient numbers of users, and necessary ones.
    baselines : tuple of Baseline
    algorithm, reason : str
        The algorithm that ``auto`` would use, and why.
    warning : str or None
        Why the plan is hopeless; ``None`` if it is not.
    advice : tuple of str
        What would reduce the error most, and whether to collect more users or more records.
    changes : tuple of (str, float) pairs
        The share of the error that is left after doubling users, records or epsilon; the best
        first.
    curves : tuple of Curve
        The error against the number of users: first the library's algorithm, then simpler methods.

    Examples
    --------
    >>> from quorate.planning import plan
    >>> answer = plan("median", users=1000, epsilon=1.0, error=0.1)
    >>> answer.quorate
    True
    >>> print(answer.sentence[4:])
    users needed, 1,000 planned: quorate.
    """

    task: str
    solved_for: str
    users: int | None
    records: int
    epsilon: float | None
    delta: float
    error: float
    confidence: float
    relation: Relation
    size: tuple[tuple[str, Any], ...]
    error_meaning: str
    users_needed: int | None
    error_expected: float
    upper: PublishedBound
    lower: PublishedBound
    sufficient: tuple[PublishedBound, ...] = ()
    necessary: tuple[PublishedBound, ...] = ()
    baselines: tuple[Baseline, ...]
    algorithm: str
    reason: str
    warning: str | None
    advice: tuple[str, ...]
    changes: tuple[tuple[str, float], ...]
    curves: tuple[Curve, ...]

    @property
    def quorate(self) -> bool:
        """Whether the planned users suffice."""
        if self.users is None or self.users_needed is None or self.epsilon is None:
            return False
        return self.users >= self.users_needed

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if self.solved_for == "users":
            if self.users is None:
                return f"No number of users reaches an error of {_number(self.error)}: not quorate."
            return f"{_users(self.users_needed)} needed."
        if self.solved_for == "error":
            return (
                f"{_users(self.users)} reach an error of {_number(self.error)} with "
                f"{self.confidence:.0%} confidence."
            )
        if self.solved_for == "epsilon":
            if self.epsilon is None:
                return (
                    f"No epsilon lets {_users(self.users)} reach an error of "
                    f"{_number(self.error)}: not quorate."
                )
            return f"Epsilon {_number(self.epsilon)} needed for {_users(self.users)}."
        verdict = "quorate" if self.quorate else "not quorate"
        return f"{_users(self.users_needed)} needed, {_count(self.users)} planned: {verdict}."

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """The plan as pairs of a label and a text, for tables."""
        privacy = f"epsilon {_number(self.epsilon)}"
        if self.delta:
            privacy += f", delta {self.delta:g}"
        described = ", ".join(f"{name} {_size(value)}" for name, value in self.size)
        rows = [
            ("task", f"{self.task} ({described})" if described else self.task),
            ("privacy", f"{privacy}; neighbours {self.relation.value}"),
            ("error means", self.error_meaning),
            ("users planned", f"{_count(self.users)} with {_records(self.records)} each"),
            ("users needed", f"{_count(self.users_needed)} for error {_number(self.error)}"),
            (
                "error expected",
                f"{_number(self.error_expected)} with {self.confidence:.0%} confidence",
            ),
            ("algorithm", f"{self.algorithm}: {self.reason}"),
            ("proved to suffice", _bound_text(self.upper)),
            *(("also", _bound_text(bound)) for bound in self.sufficient),
            ("proved to be needed", _bound_text(self.lower)),
            *(("also", _bound_text(bound)) for bound in self.necessary),
        ]
        for baseline in self.baselines:
            text = f"{_users(baseline.users)}; error {_number(baseline.error)} as planned"
            rows.append((baseline.name, text))
        rows.extend(("advice", line) for line in self.advice)
        if self.warning:
            rows.append(("warning", self.warning))
        return tuple(rows)

    @property
    def table(self) -> str:
        """The plan as a table of plain text, the sentence last."""
        width = max(len(label) for label, _ in self.rows)
        lines = [f"{label:<{width}}  {text}" for label, text in self.rows]
        return "\n".join([*lines, "", self.sentence])

    def __str__(self) -> str:
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values that fit into JSON; infinities become ``None``."""
        return {
            "task": self.task,
            "solved_for": self.solved_for,
            "users": self.users,
            "records": self.records,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "error": _finite(self.error),
            "confidence": self.confidence,
            "relation": self.relation.name.lower(),
            "size": dict(self.size),
            "error_meaning": self.error_meaning,
            "users_needed": self.users_needed,
            "error_expected": _finite(self.error_expected),
            "quorate": self.quorate,
            "sentence": self.sentence,
            "upper": self.upper.to_dict(),
            "lower": self.lower.to_dict(),
            "sufficient": [bound.to_dict() for bound in self.sufficient],
            "necessary": [bound.to_dict() for bound in self.necessary],
            "baselines": [baseline.to_dict() for baseline in self.baselines],
            "algorithm": self.algorithm,
            "reason": self.reason,
            "warning": self.warning,
            "advice": list(self.advice),
            "changes": dict(self.changes),
            "curves": [curve.to_dict() for curve in self.curves],
        }

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the error against users with the planned point; needs matplotlib.

        Parameters
        ----------
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise MissingExtraError(
                "Plan.plot needs matplotlib; install it with: pip install 'quorate[plot]'."
            ) from None
        figure = Figure(figsize=(7.0, 4.5), layout="constrained")
        axes = figure.subplots()
        for place, curve in enumerate(self.curves):
            points = [
                (n, e) for n, e in zip(curve.users, curve.errors, strict=True) if math.isfinite(e)
            ]
            style = "-" if place == 0 else "--"
            axes.plot([n for n, _ in points], [e for _, e in points], style, label=curve.name)
        if self.users is not None and math.isfinite(self.error_expected):
            axes.plot([self.users], [self.error_expected], "o", color="black", label="this plan")
        axes.set(xscale="log", yscale="log", xlabel="users", ylabel=self.error_meaning)
        axes.set_title(self.sentence)
        axes.legend()
        if path is not None:
            figure.savefig(path)
        return figure


def _size(value: float | tuple[float, float]) -> str:
    """Return a number, or the ends of a range, as text."""
    ends = value if isinstance(value, tuple | list) else (value,)
    return " to ".join(f"{end:,.12g}" for end in ends)


def _bound_text(bound: PublishedBound) -> str:
    if bound.users is None:
        return f"nothing ({bound.theorem}: {bound.note})"
    proved = "" if bound.holds else "not proved here; "
    return f"{_users(bound.users)} ({bound.theorem}; {proved}{bound.note})"
