"""Noise sources that record their calls and replay the results on other data; for tests.

Each call draws from its own seeded stream, numbered by the order of calls. So a replay returns the
same integers, noise and uniform numbers for any data, and refuses another sequence of calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.noise import NoiseSource, SeededNoise
from quorate.core.noise.composed_laws import Sampler
from quorate.exceptions import ReplayMismatchError

__all__ = ["Draw", "RecordedNoise", "ReplayedNoise"]


@dataclass(frozen=True, kw_only=True)
class Draw:
    """The public facts of one call of a noise source.

    >>> print(Draw(method="geometric", parameters={"scale": 1.0}, shape=(3,)))
    geometric(scale=1.0) of shape (3,)
    """

    method: str
    parameters: dict[str, Any]
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.method}({parameters}) of shape {self.shape}"


class RecordedNoise(NoiseSource):
    """Seeded noise that lists its calls in ``log`` and can be replayed on other data.

    >>> recorded = RecordedNoise(3)
    >>> first = recorded.discrete_laplace(np.array([0, 0]), scale=5.0)
    >>> again = recorded.replay().discrete_laplace(np.array([100, 0]), scale=5.0)
    >>> (again - first).tolist()
    [100, 0]
    >>> recorded.log[0].method, recorded.log[0].shape
    ('discrete_laplace', (2,))
    """

    def __init__(self, seed: int) -> None:
        _validate.non_negative_integer(seed=seed)
        self._seed = seed
        self.log: list[Draw] = []

    def replay(self) -> ReplayedNoise:
        """Return a source that repeats this noise and refuses any other sequence of calls."""
        return ReplayedNoise(self._seed, self.log)

    def _sample(self, method: str, public: dict[str, Any], draw: Sampler, held: Any) -> int:
        return draw(self._stream(Draw(method=method, parameters=public)))

    def _stream(self, draw: Draw) -> SeededNoise:
        """Log a call and return the recorded noise of this call."""
        self.log.append(draw)
        return SeededNoise([self._seed, len(self.log)])

    def _add(self, law: str, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        stream = self._stream(Draw(method=law, parameters={"scale": scale}, shape=values.shape))
        return stream._add(law, values, scale)

    def _choose(self, law: str, scores: NDArray[np.int64], scale: float) -> int:
        stream = self._stream(Draw(method=law, parameters={"scale": scale}, shape=scores.shape))
        return stream._choose(law, scores, scale)

    def _uniform_below(self, upper: int) -> int:
        stream = self._stream(Draw(method="uniform_below", parameters={"upper": upper}))
        return stream._uniform_below(upper)

    def _uniform_words(self, count: int) -> NDArray[np.uint64]:
        stream = self._stream(Draw(method="uniform_words", parameters={}, shape=(count,)))
        return stream._uniform_words(count)

    def _bernoulli_exp(self, x: Fraction) -> bool:
        stream = self._stream(Draw(method="bernoulli_exp", parameters={"x": x}))
        return stream._bernoulli_exp(x)


class ReplayedNoise(RecordedNoise):
    """The noise of a recording, used on other data; any other sequence of calls is refused.

    Obtained from :meth:`RecordedNoise.replay`; call :meth:`finish` at the end, because drawing less
    noise than was recorded is a difference too.

    >>> recorded = RecordedNoise(3)
    >>> noisy = recorded.geometric(np.array([1, 2]), scale=5.0)
    >>> replayed = recorded.replay()
    >>> replayed.geometric(np.array([1, 2, 3]), scale=5.0)
    Traceback (most recent call last):
        ...
    quorate.exceptions.ReplayMismatchError: Call 0 was recorded as geometric(scale=5.0) of shape
    (2,) but is replayed as geometric(scale=5.0) of shape (3,); ...
    """

    def __init__(self, seed: int, expected: list[Draw]) -> None:
        super().__init__(seed)
        self._expected = list(expected)

    def finish(self) -> None:
        """Raise an error if the recording has more calls.

        >>> RecordedNoise(1).replay().finish()
        """
        if len(self.log) < len(self._expected):
            self._refuse(len(self.log), "not replayed")

    def _stream(self, draw: Draw) -> SeededNoise:
        index = len(self.log)
        if self._expected[index : index + 1] != [draw]:
            self._refuse(index, f"replayed as {draw}")
        return super()._stream(draw)

    def _refuse(self, index: int, replayed: str) -> NoReturn:
        expected = self._expected[index] if index < len(self._expected) else "nothing"
        raise ReplayMismatchError(
            f"Call {index} was recorded as {expected} but is {replayed}; which noise is drawn "
            "depends on the data."
        )
