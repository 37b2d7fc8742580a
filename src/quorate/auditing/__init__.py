"""Audits that anyone can run: exact, by replay, and from samples.

* :mod:`quorate.auditing.exact`: all small data sets and all pairs of neighbours; gives the true
  epsilon.
* :mod:`quorate.auditing.enumeration`: the output law of real code, for the exact audit.
* :mod:`quorate.auditing.replay`: neighbouring data and the same released values must give the same
  control flow, shapes, exceptions and attributes.
* :mod:`quorate.auditing.recording`: noise that lists its calls and can be given to other data.
* :mod:`quorate.auditing.lower_bounds`: lower bounds on the epsilon of a black box, from samples.

None of them reads real data: they run on small made-up data sets.
"""

from __future__ import annotations

from quorate.auditing.enumeration import Cells, Raised, enumerate_runs
from quorate.auditing.exact import ExactAudit, SmallWorld, audit_exactly
from quorate.auditing.laws import (
    Law,
    discrete_gaussian_mass,
    discrete_laplace_mass,
    gumbel_max_mass,
    independent_laws,
    permute_and_flip_mass,
)
from quorate.auditing.lower_bounds import LowerBound, epsilon_lower_bound
from quorate.auditing.recording import Draw, RecordedNoise, ReplayedNoise
from quorate.auditing.replay import ReplayMode, ReplayReport, replay
from quorate.exceptions import AuditError, EnumerationError, ReplayMismatchError

__all__ = [
    "AuditError",
    "Cells",
    "Draw",
    "EnumerationError",
    "ExactAudit",
    "Law",
    "LowerBound",
    "Raised",
    "RecordedNoise",
    "ReplayMismatchError",
    "ReplayMode",
    "ReplayReport",
    "ReplayedNoise",
    "SmallWorld",
    "audit_exactly",
    "discrete_gaussian_mass",
    "discrete_laplace_mass",
    "enumerate_runs",
    "epsilon_lower_bound",
    "gumbel_max_mass",
    "independent_laws",
    "permute_and_flip_mass",
    "replay",
]
