"""The output law of real code, by running it with every outcome of its noise.

Formulas audit a single mechanism, but most violations are in the code between mechanisms: a bound
taken from the data, a missing clip, a second release that nobody charged. :func:`enumerate_runs`
runs the real code as often as its noise has outcomes, and adds up the probabilities of the results.
With :func:`~quorate.auditing.exact.audit_exactly` this audits whole estimators on a few users.

Additive noise has infinitely many outcomes, so each value is reported as the *cell* of integers it
falls into. A cell is a post-processing of the value, so the same claim must hold for code that gets
cells. With cells of one integer this is the real code except in the tails. Large uniform integers
are also reported in cells. The probability that a run gets a cell instead of the value itself is
the law's ``coarse`` mass.

Limits: the number of runs is the product of the numbers of outcomes of all draws of one run (a
vector of d noisy coordinates has cells^d); public randomness must be seeded; and rejection loops
are stopped after ``max_draws``, which becomes ``lost`` mass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.auditing.laws import (
    Law,
    gaussian_interval,
    geometric_interval,
    gumbel_max_mass,
    laplace_interval,
    permute_and_flip_mass,
)
from quorate.auditing.outcomes import Outcomes, cell_outcomes, uniform_cells
from quorate.core.noise import NoiseSource, use_noise
from quorate.core.noise.composed_laws import Sampler
from quorate.exceptions import AuditError, EnumerationError
from quorate.mechanisms.laws import law_of

__all__ = ["Cells", "Raised", "enumerate_runs", "freeze"]


@dataclass(frozen=True, kw_only=True)
class Cells:
    """How noisy integers are grouped: equal cells around zero, and one for each tail.

    The cells of a draw depend on its public scale only, never on the values.

    Parameters
    ----------
    width : float, default=0.0
        Width of a cell in units of the noise scale, at least one integer. Zero keeps every integer
        separate, which is exact and only possible on coarse grids.
    reach : float, default=4.0
        How many scales the cells reach to either side of zero; larger values belong to the last
        cell. It must cover the true values, or the audit misses losses.

    Examples
    --------
    >>> Cells(reach=2.0).representatives(1.5)
    range(-3, 4)
    >>> Cells(width=1.0, reach=2.0).representatives(1e6)
    range(-2000000, 3000000, 1000000)
    """

    width: float = 0.0
    reach: float = 4.0

    def __post_init__(self) -> None:
        _validate.non_negative(width=self.width)
        _validate.positive(reach=self.reach)

    def representatives(self, scale: float) -> range:
        """Return the middles of the cells for noise of ``scale``."""
        step = max(1, round(self.width * scale))
        last = step * max(1, math.ceil(self.reach * scale / step))
        return range(-last, last + step, step)


@dataclass(frozen=True)
class Raised:
    """An exception as an output: its type and message are visible to everybody.

    >>> list(enumerate_runs(lambda noise: 1 / 0))
    [Raised(kind='ZeroDivisionError', message='division by zero')]
    """

    kind: str
    message: str


_INTERVALS: dict[str, Callable[[float, int | None, int | None], float]] = {
    "discrete_laplace": lambda scale, low, high: laplace_interval(low, high, scale=scale),
    "discrete_gaussian": lambda scale, low, high: gaussian_interval(low, high, sigma=scale),
    "geometric": lambda scale, low, high: geometric_interval(low, high, scale=scale),
}

_CHOICES: dict[str, Callable[..., Law]] = {
    "permute_and_flip": permute_and_flip_mass,
    "gumbel_max": gumbel_max_mass,
}


_PLAIN = frozenset({bool, int, str, type(None)})


class _Cut(BaseException):
    """Ends a run with too many draws.

    It is not an ``Exception``, so that programs do not catch it.
    """


def enumerate_runs(
    run: Callable[[NoiseSource], Any],
    *,
    cells: Cells | None = None,
    max_runs: int = 20_000,
    max_draws: int = 100,
    max_uniform: int = 1_000,
) -> Law:
    """Return the law of what ``run`` returns, over all outcomes of its noise.

    Parameters
    ----------
    run : callable
        Takes a noise source and returns the published result, or raises. All code inside that uses
        the ambient noise uses this source as well. Arrays, lists and dicts are frozen by
        :func:`freeze`; an exception becomes :class:`Raised`.
    cells : Cells, default=Cells()
        How noisy integers are grouped.
    max_runs : int, default=20_000
        More runs than this are refused.
    max_draws : int, default=100
        A run with more draws is stopped; its probability is lost.
    max_uniform : int, default=1_000
        Uniform integers below a larger bound, and points chosen from a larger ordered domain, are
        reported in this many cells.

    Returns
    -------
    Law

    Examples
    --------
    >>> def noisy_majority(noise):
    ...     return bool(noise.discrete_laplace(np.array([1]), scale=1.0)[0] > 0)
    >>> law = enumerate_runs(noisy_majority)
    >>> round(law[True], 6) == round(1 / (1 + math.exp(-1)), 6)
    True
    >>> enumerate_runs(lambda noise: noise.uniform_below(7), max_runs=6)
    Traceback (most recent call last):
        ...
    quorate.exceptions.EnumerationError: Expected at most max_runs=6 runs, got more. ...
    """
    _validate.positive_integer(max_runs=max_runs, max_draws=max_draws, max_uniform=max_uniform)
    source = _EnumeratedNoise(cells or Cells(), max_draws, max_uniform)
    masses: dict[Hashable, list[float]] = {}
    lost: list[float] = []
    coarse: list[float] = []
    with use_noise(source):
        for _ in range(max_runs):
            source.rewind()
            try:
                output = _outcome(run, source)
            except _Cut:
                lost.append(source.probability)
            else:
                masses.setdefault(output, []).append(source.probability)
                coarse.append(source.probability * (1.0 - source.exact))
            if not source.advance():
                return Law(
                    {output: math.fsum(parts) for output, parts in masses.items()},
                    lost=min(1.0, math.fsum(lost)),
                    coarse=min(1.0, math.fsum(coarse)),
                )
    raise EnumerationError(
        f"Expected at most max_runs={max_runs} runs, got more. Give wider or fewer cells=, a "
        f"smaller domain, or fewer releases."
    )


def freeze(value: Any) -> Hashable:
    """Return a hashable copy of arrays, lists, dicts and sets; dtype and shape are kept.

    >>> freeze([np.array([1.0, 2.0])])
    (('float64', (2,), (1.0, 2.0)),)
    """
    if type(value) in _PLAIN:  # the common case first: what follows asks eight times
        plain: Hashable = value
        return plain
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, tuple(freeze(v) for v in value.ravel().tolist()))
    if isinstance(value, np.generic):
        return (str(value.dtype), freeze(value.item()))
    if isinstance(value, list | tuple):
        return tuple(freeze(v) for v in value)
    if isinstance(value, dict):
        return tuple((freeze(k), freeze(v)) for k, v in value.items())
    if isinstance(value, set | frozenset):
        return frozenset(freeze(v) for v in value)
    if isinstance(value, float) and math.isnan(value):
        return "nan"  # NaN differs from itself and would be counted apart each time
    if isinstance(value, Hashable):
        return value
    raise EnumerationError(
        f"Expected a hashable output, got one of type {type(value).__name__}; return what is "
        f"public."
    )


def _outcome(run: Callable[[NoiseSource], Any], source: NoiseSource) -> Hashable:
    try:
        return freeze(run(source))
    except AuditError:
        raise
    except Exception as error:
        # What the program raises is part of its output, whatever it is.
        return Raised(type(error).__name__, str(error))


@dataclass(frozen=True)
class _Branch:
    """A draw of the current path: the request, its possible outcomes and the present outcome."""

    asked: Hashable
    outcomes: Outcomes
    taken: int = 0


class _EnumeratedNoise(NoiseSource):
    """Follows one path through the tree of outcomes; ``advance`` moves to the next path."""

    def __init__(self, cells: Cells, max_draws: int, max_uniform: int) -> None:
        self._cells = cells
        self._max_draws = max_draws
        self._max_uniform = max_uniform
        self._path: list[_Branch] = []
        self.rewind()

    def rewind(self) -> None:
        self._depth = 0
        self.probability = 1.0
        self.exact = 1.0

    def advance(self) -> bool:
        """Move to the next path in depth-first order; return False after the last one."""
        if self._depth < len(self._path):
            raise self._not_repeatable()
        while self._path:
            branch = self._path.pop()
            if branch.taken + 1 < len(branch.outcomes.values):
                self._path.append(replace(branch, taken=branch.taken + 1))
                return True
        return False

    def _draw(self, asked: Hashable, outcomes: Callable[[], Outcomes]) -> Any:
        if self._depth >= self._max_draws:
            raise _Cut
        if self._depth == len(self._path):
            self._path.append(_Branch(asked, outcomes()))
        branch = self._path[self._depth]
        if branch.asked != asked:
            raise self._not_repeatable()
        self._depth += 1
        self.probability *= branch.outcomes.masses[branch.taken]
        self.exact *= branch.outcomes.exact[branch.taken]
        return branch.outcomes.values[branch.taken]

    @staticmethod
    def _not_repeatable() -> EnumerationError:
        return EnumerationError(
            "The program drew other noise when it was given the same outcomes again; fix its "
            "random_state and start each run from the same objects."
        )

    def _add(self, law: str, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        if law in ("balanced_laplace", "blocks_laplace", "cube_laplace"):
            if values.size > 1:
                raise EnumerationError("Joint noise of several coordinates is one draw.")
            # A single coordinate that balances counts twice, also as what is missing to 0.
            law, scale = "discrete_laplace", scale / (2 if law == "balanced_laplace" else 1)
        points = self._cells.representatives(scale)
        noisy = [
            self._draw((law, scale, value), partial(_cell_outcomes, law, scale, value, points))
            for value in values.ravel().tolist()
        ]
        return np.array(noisy, dtype=np.int64).reshape(values.shape)

    def _truncated(self, size: int, scale: float, reach: int) -> NDArray[np.int64]:
        def outcomes() -> Outcomes:
            values = range(-reach, reach + 1)
            weights = [math.exp(-abs(z) / scale) for z in values]
            total = math.fsum(weights)
            return Outcomes.possible(values, [weight / total for weight in weights])

        asked = ("truncated_laplace", scale, reach)
        return np.array([self._draw(asked, outcomes) for _ in range(size)], dtype=np.int64)

    def _choose(self, law: str, scores: NDArray[np.int64], scale: float) -> int:
        def outcomes() -> Outcomes:
            chances = _CHOICES[law](scores, scale=scale)
            return Outcomes.possible(list(chances), list(chances.values()))

        return int(self._draw((law, scale, scores.tobytes()), outcomes))

    def _bernoulli_exp(self, x: Fraction) -> bool:
        chances = [math.exp(-x), -math.expm1(-x)]
        outcomes = partial(Outcomes.possible, [True, False], chances)
        return bool(self._draw(("bernoulli_exp", x), outcomes))

    def _uniform_below(self, upper: int) -> int:
        def outcomes() -> Outcomes:
            cells = uniform_cells(upper, self._max_uniform)
            sizes = [high - low for low, high in cells]
            middles = [low + size // 2 for (low, _), size in zip(cells, sizes, strict=True)]
            chances, shares = [size / upper for size in sizes], [1 / size for size in sizes]
            return Outcomes.possible(middles, chances, shares)

        return int(self._draw(("uniform_below", upper), outcomes))

    def _sample(self, method: str, public: dict[str, Any], draw: Sampler, held: Any) -> int:
        def outcomes() -> Outcomes:
            return cell_outcomes(law_of(method, public, held), self._max_uniform)

        return int(self._draw((method, *public.items()), outcomes))


# Without the cache a vector's second coordinate would be worked out for each outcome of its first.
@lru_cache(maxsize=1024)
def _cell_outcomes(law: str, scale: float, value: int, points: range) -> Outcomes:
    """Return the law of ``value`` plus noise, in intervals of integers around ``points``."""
    mass = partial(_INTERVALS[law], scale)
    before = (points.step - 1) // 2
    after = points.step // 2
    masses, shares = [], []
    for point in points:
        low = None if point == points[0] else point - before - value
        high = None if point == points[-1] else point + after - value
        masses.append(mass(low, high))
        literal = mass(point - value, point - value)
        shares.append(literal / masses[-1] if masses[-1] > 0 else 1.0)
    return Outcomes.possible(points, masses, shares)
