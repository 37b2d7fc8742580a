"""How many records a typical user holds: stated publicly, or bought roughly.

The number is private. It only helps to plan how many steps pay off; a wrong one costs accuracy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.mechanisms.noisy_search import NoisySearch, looks_needed
from quorate.releases.user_releases import UserReleases

__all__ = ["RECORD_LADDER", "check_records", "typical_records"]

RECORD_LADDER = 2.0 ** np.arange(16.0)
"""Candidates of the rough estimate."""

_LARGEST_SHARE = 0.04


def check_records(records: Any) -> None:
    """Refuse what is neither a public number nor ``"auto"``.

    >>> check_records("auto")
    """
    if isinstance(records, str):
        if records != "auto":
            raise ParameterError(
                f"Expected records to be a public number or 'auto', got records={records!r}."
            )
    else:
        _validate.positive_integer(records=records)


def typical_records(run: UserReleases, records: int | str) -> float:
    """Return the public number, or release the power of two that half of the users reach.

    Examples
    --------
    >>> from quorate.engines import LocalEngine
    >>> from quorate.guarantees import Relation
    >>> from quorate.users import UserData
    >>> people = UserData(np.zeros((30_000, 1)), offsets=np.arange(0, 30_001, 6))
    >>> run = UserReleases.start(people, LocalEngine(), mu=1.0, relation=Relation.REPLACE)
    >>> typical_records(run, "auto"), typical_records(run, 7)
    (8.0, 7.0)
    """
    if not isinstance(records, str):
        return float(records)
    looks = looks_needed(RECORD_LADDER.size)
    square = min(looks / (run.n_users / 8.0) ** 2, _LARGEST_SHARE * run.allowance.mu**2)
    search = NoisySearch(
        thresholds=np.asarray(RECORD_LADDER, dtype=np.float64),
        target=run.n_users / 2.0,
        noise_multiplier=run.allowance.take(square) * math.sqrt(looks),
        relation=run.relation,
    )
    return float(RECORD_LADDER[search.release(run.data.record_counts())])
