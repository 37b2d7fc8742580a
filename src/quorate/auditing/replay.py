"""Replay: given equal released values, runs on neighbouring data must be indistinguishable.

A release is private because of its noise. Everything else must be a function of released values and
public parameters: the number, shape and scale of releases, exceptions, warnings, logs, prints, and
the attributes of fitted objects. A replay runs a program on one data set and records its
*transcript* (the result of each noise call). Then it runs the program on a neighbour with the same
transcript, and compares everything observable. Nothing may differ, not even the values of fitted
attributes. Any difference is a function of the data that no mechanism has released.

This detects leaks in the code between mechanisms: an error that depends on a record, a number of
iterations that depends on the data, ``classes_`` taken from ``y``, a scale computed from a private
sum. It cannot judge the noise itself, because it replaces the noisy values; that is the task of
:mod:`quorate.auditing.exact`. One replay follows one path: use several seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.auditing.observations import Observation, observe
from quorate.auditing.recording import Draw, RecordedNoise
from quorate.core.noise import NoiseSource, SeededNoise, use_noise
from quorate.core.noise.composed_laws import Sampler
from quorate.exceptions import ParameterError, ReplayMismatchError

__all__ = ["ReplayMode", "ReplayReport", "replay"]

Data = TypeVar("Data")


class ReplayMode(Enum):
    """What both runs share: released values, or noise.

    >>> [mode.value for mode in ReplayMode]
    ['the same released values', 'the same noise']
    """

    TRANSCRIPT = "the same released values"
    NOISE = "the same noise"


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """The differences between two runs that should be indistinguishable.

    Attributes
    ----------
    differences : tuple of str
        One sentence each; empty if the runs could not be distinguished.
    calls : tuple of str
        The noise calls of the first run.

    Examples
    --------
    >>> report = ReplayReport(differences=(), calls=("geometric(scale=1.0) of shape (1,)",))
    >>> print(report)
    The two runs look the same (1 noise call).
    """

    differences: tuple[str, ...]
    calls: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the runs could not be distinguished."""
        return not self.differences

    def __str__(self) -> str:
        noise = "1 noise call" if len(self.calls) == 1 else f"{len(self.calls)} noise calls"
        if self.same:
            return f"The two runs look the same ({noise})."
        lines = "\n".join(f"- {difference}" for difference in self.differences)
        hint = "" if self.calls else " Build the mechanisms inside run, or they draw secure noise."
        return f"The two runs can be told apart ({noise}).{hint}\n{lines}"


def replay(
    run: Callable[[Data], Any],
    data: Data,
    neighbour: Data,
    *,
    mode: ReplayMode = ReplayMode.TRANSCRIPT,
    seed: int = 0,
) -> ReplayReport:
    """Run a program on neighbouring data with the same transcript and compare what can be seen.

    Parameters
    ----------
    run : callable
        Takes a data set, makes releases with the ambient noise and returns its result: a number, an
        array, a fitted estimator. All attributes are compared, also private ones, because they are
        written when an object is saved.
    data, neighbour : object
        Two data sets that differ in one user.
    mode : ReplayMode, default=ReplayMode.TRANSCRIPT
        ``NOISE`` repeats the noise instead of the released values. Released values then differ, so
        only types, shapes and dtypes are compared, and a scale that legitimately depends on an
        earlier release is also reported.
    seed : int, default=0
        Chooses the transcript; public randomness must be seeded inside ``run``.

    Returns
    -------
    ReplayReport

    Examples
    --------
    >>> from quorate.core.noise import ambient_noise
    >>> def noisy_sum(values):
    ...     return ambient_noise().discrete_laplace(np.array([sum(values)]), scale=2.0)
    >>> replay(noisy_sum, [1, 0, 1], [1, 1, 1]).same
    True
    >>> def stops_early(values):
    ...     if sum(values) < 3:
    ...         return ambient_noise().discrete_laplace(np.array([sum(values)]), scale=2.0)
    >>> print(replay(stops_early, [1, 0, 1], [1, 1, 1]))
    The two runs can be told apart (1 noise call).
    - Noise call 0 was discrete_laplace(scale=2.0) of shape (1,); the neighbour made no such call.
    - The result is a ndarray; for the neighbour a NoneType.
    """
    _validate.non_negative_integer(seed=seed)
    if mode is ReplayMode.TRANSCRIPT:
        recording = _Recording(seed)
        first = _observe(run, data, recording)
        second = _observe(run, neighbour, forced := _Forced(seed, recording))
        calls = tuple(str(call) for call in recording.calls)
        differences = forced.mismatches()
    elif mode is ReplayMode.NOISE:
        recorded = RecordedNoise(seed)
        first = _observe(run, data, recorded)
        second = _observe(run, neighbour, replayed := recorded.replay())
        calls = tuple(str(draw) for draw in recorded.log)
        differences = []
        if not isinstance(second.error, ReplayMismatchError):
            try:
                replayed.finish()
            except ReplayMismatchError as mismatch:
                differences.append(str(mismatch))
    else:
        raise ParameterError(f"Expected mode to be a ReplayMode, got mode={mode!r}.")
    differences += first.differences(second, values=mode is ReplayMode.TRANSCRIPT)
    return ReplayReport(differences=tuple(differences), calls=calls)


def _observe(run: Callable[[Data], Any], data: Data, source: NoiseSource) -> Observation:
    with use_noise(source):
        return observe(lambda: run(data))


class _Recording(NoiseSource):
    """Draws seeded noise and records the transcript: each request and its result."""

    def __init__(self, seed: int) -> None:
        self._seeded = SeededNoise(seed)
        self.calls: list[Draw] = []
        self.outcomes: list[Any] = []

    def _give(self, call: Draw, drawn: Any) -> Any:
        self.calls.append(call)
        self.outcomes.append(drawn)
        return drawn

    def _sample(self, method: str, public: dict[str, Any], draw: Sampler, held: Any) -> int:
        return int(self._give(Draw(method=method, parameters=public), draw(self._seeded)))

    def _add(self, law: str, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        call = Draw(method=law, parameters={"scale": scale}, shape=values.shape)
        noisy: NDArray[np.int64] = self._give(call, self._seeded._add(law, values, scale))
        return noisy.copy()

    def _choose(self, law: str, scores: NDArray[np.int64], scale: float) -> int:
        call = Draw(method=law, parameters={"scale": scale}, shape=scores.shape)
        return int(self._give(call, self._seeded._choose(law, scores, scale)))

    def _uniform_below(self, upper: int) -> int:
        call = Draw(method="uniform_below", parameters={"upper": upper})
        return int(self._give(call, self._seeded._uniform_below(upper)))

    def _bernoulli_exp(self, x: Fraction) -> bool:
        # The chance of a coin may be a private number; only its side is released.
        call = Draw(method="bernoulli_exp", parameters={})
        return bool(self._give(call, self._seeded._bernoulli_exp(x)))


class _Forced(_Recording):
    """Returns the values of the transcript, whatever the data are.

    Noise is still drawn, to observe exceptions that a sampler raises for some data.
    """

    def __init__(self, seed: int, transcript: _Recording) -> None:
        super().__init__(seed)
        self._transcript = transcript

    def _give(self, call: Draw, drawn: Any) -> Any:
        index = len(self.calls)
        super()._give(call, drawn)
        # After the first difference the runs are strangers: go on with noise of its own.
        if self._transcript.calls[index : index + 1] == [call]:
            return self._transcript.outcomes[index]
        return drawn

    def mismatches(self) -> list[str]:
        first, second = self._transcript.calls, self.calls
        for index, (mine, theirs) in enumerate(zip(first, second, strict=False)):
            if mine != theirs:
                return [f"Noise call {index} was {mine}; for the neighbour it was {theirs}."]
        if len(second) < len(first):
            missing = first[len(second)]
            return [f"Noise call {len(second)} was {missing}; the neighbour made no such call."]
        if len(second) > len(first):
            return [
                f"The neighbour made {len(second) - len(first)} more noise calls, the first of "
                f"them {second[len(first)]}."
            ]
        return []
