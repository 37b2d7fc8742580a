"""Quick exact audits: the real code with every outcome of its noise, for very small data sets.

Each audit computes the true epsilon of a release over all pairs of neighbouring small data sets,
including records far outside the bounds, and compares it with the claimed epsilon. A second run
with half the noise must be detected, because an audit that cannot fail proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.auditing import Cells, ExactAudit, SmallWorld, audit_exactly, enumerate_runs
from quorate.core.bounds.grid import Grid, Interval
from quorate.core.by_hand import line_by_hand, rows_by_hand, sealed_by_hand
from quorate.core.guarantees import Guarantee
from quorate.core.moves import Moves
from quorate.exceptions import ParameterError
from quorate.learners.threshold import ThresholdLearner
from quorate.means.median import PrivateMedian
from quorate.means.user_mean import UserMean
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.quantiles import PrivateQuantile
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum

__all__ = ["AUDITS", "Audit", "run_audit"]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A release, the small data sets it is audited on, and the guarantee it claims for them.

    ``run`` takes the records of all users and a factor by which the noise is made too small.
    """

    summary: str
    claim: Guarantee
    world: SmallWorld
    run: Callable[[tuple[Any, ...], float], Any]
    cells: Cells = field(default_factory=Cells)


def run_audit(name: str, *, broken: bool = False) -> ExactAudit:
    """Run the audit ``name``; ``broken`` halves the noise without changing the claim.

    >>> run_audit("noisy-count").holds, run_audit("noisy-count", broken=True).holds
    (True, False)
    """
    if name not in AUDITS:
        raise ParameterError(f"Expected an audit among {', '.join(AUDITS)}, got {name!r}.")
    audit = AUDITS[name]
    factor = 2.0 if broken else 1.0
    return audit_exactly(
        lambda records: enumerate_runs(lambda _: audit.run(records, factor), cells=audit.cells),
        audit.world,
        audit.claim,
    )


_GRID = Grid(Interval(-1.0, 1.0), step=2.0**-4)


def _laplace(factor: float = 1.0) -> LaplaceSum:
    return LaplaceSum(grid=_GRID, epsilon=factor)


def _gaussian(factor: float = 1.0) -> GaussianSum:
    return GaussianSum(grid=_GRID, noise_multiplier=2.7 / factor, delta=1e-3)


def _count(factor: float = 1.0) -> NoisyCount:
    return NoisyCount(epsilon=factor)


def _best(factor: float = 1.0) -> ChooseBest:
    return ChooseBest(candidates=2, epsilon=4.0 * factor, sensitivity=4)


def _ordered(factor: float = 1.0) -> ChooseOrdered:
    return ChooseOrdered(epsilon=2.0 * factor, sensitivity=4)


def _quantile(factor: float = 1.0) -> PrivateQuantile:
    return PrivateQuantile(domain=(0, 40), epsilon=factor)


def _column(records: tuple[Any, ...]) -> NDArray[np.float64]:
    return np.array(records, dtype=np.float64).reshape(-1, 1)


def _votes(records: tuple[Any, ...]) -> NDArray[np.int64]:
    given = np.array(records, dtype=np.int64).reshape(-1, 2)
    total: NDArray[np.int64] = np.clip(given, -2, 2).sum(axis=0)
    return total


def _median_fit(records: tuple[Any, ...], factor: float) -> Any:
    median = PrivateMedian(epsilon=factor, bounds=(0.0, 6.0), resolution=0.5)
    median.fit(_column(records), users=range(len(records)))
    return median.median_, median.error_.rank


def _mean_fit(records: tuple[Any, ...], factor: float) -> Any:
    mean = UserMean(epsilon=factor, bounds=1.0, algorithm="clip")
    return mean.fit(_column(records), users=range(len(records))).mean_


def _threshold_fit(records: tuple[Any, ...], factor: float) -> Any:
    rows = [row for records_of_user in records for row in records_of_user]
    users = [i for i, records_of_user in enumerate(records) for _ in records_of_user]
    X = np.array([[x] for x, _ in rows], dtype=np.float64)
    y = np.array([label for _, label in rows])
    return ThresholdLearner(epsilon=factor, domain=(0, 3)).fit(X, y, users=users).index_


_LINE = SmallWorld(records=(-9.0, -1.0, 0.3, 1.0, math.nan, math.inf), n_users=2)
_PAIRS = SmallWorld(records=((2, -2), (-2, 2), (0, 0), (9, -9), (-9, 0)), n_users=2)
_HOLDINGS = (((0, 0), (1, 0)), ((2, 1),), ((1, 1), (99, 0), (0, 0)))

AUDITS: dict[str, Audit] = {
    "laplace-sum": Audit(
        summary="a clipped sum with discrete Laplace noise",
        claim=_laplace().guarantee,
        world=_LINE,
        run=lambda records, factor: _laplace(factor).release_values(_column(records), count=2),
        cells=Cells(width=0.5, reach=2.5),
    ),
    "gaussian-sum": Audit(
        summary="a clipped sum with discrete Gaussian noise",
        claim=_gaussian().guarantee,
        world=SmallWorld(records=(-9.0, 1.0, math.nan), n_users=1),
        run=lambda records, factor: _gaussian(factor).release_values(_column(records), count=1),
        cells=Cells(width=0.05, reach=4.0),
    ),
    "noisy-count": Audit(
        summary="a count of users",
        claim=_count().guarantee,
        world=SmallWorld(records=(0.0, 1.0, 7.0, math.nan), n_users=2),
        run=lambda records, factor: _count(factor).release_values(np.array(records)),
        cells=Cells(reach=3.0),
    ),
    "choose-best": Audit(
        summary="the best of a few candidates",
        claim=_best().guarantee,
        world=_PAIRS,
        run=lambda records, factor: _best(factor).release(
            sealed_by_hand(_votes(records), Moves.of_scores(4, coordinates=2, one_sided=False))
        ),
    ),
    "choose-ordered": Audit(
        summary="a point of an ordered domain, piece by piece",
        claim=_ordered().guarantee,
        world=_PAIRS,
        run=lambda records, factor: _ordered(factor).release(
            line_by_hand(np.array([1, 40], dtype=np.uint64), _votes(records), sensitivity=4),
            lower=-3,
        ),
    ),
    "quantile": Audit(
        summary="a quantile of one integer per user",
        claim=_quantile().guarantee,
        world=SmallWorld(records=(-7, 1, 50), n_users=3, ordered=False),
        run=lambda records, factor: _quantile(factor).release(
            rows_by_hand(np.array(records, dtype=np.int64))
        ),
    ),
    "mean": Audit(
        summary="a whole fit of UserMean, clipped to its range",
        claim=Guarantee(epsilon=1.0),
        world=SmallWorld(records=_LINE.records, n_users=2, ordered=False),
        run=_mean_fit,
        cells=Cells(width=1.5, reach=3.0),
    ),
    "median": Audit(
        summary="a whole fit of PrivateMedian, including its measured rank error",
        claim=Guarantee(epsilon=1.0),
        world=SmallWorld(records=(math.inf, -9.0, 99.0), n_users=2, ordered=False),
        run=_median_fit,
        cells=Cells(reach=0.5),
    ),
    "threshold": Audit(
        summary="a whole fit of ThresholdLearner, users with different numbers of records",
        claim=Guarantee(epsilon=1.0),
        world=SmallWorld(records=_HOLDINGS, n_users=3),
        run=_threshold_fit,
    ),
}
"""What can be audited, by name."""
