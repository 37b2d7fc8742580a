"""A hashed report as a transparent randomizer, for use in a local oracle (K5)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import exact
from quorate.core.noise import NoiseSource
from quorate.local.randomizers.hashed import HashedResponse, candidates_of
from quorate.local.randomizers.known_laws import Randomizer

__all__ = ["HashedAnswer"]


@dataclass(frozen=True)
class HashedAnswer(Randomizer):
    """Answer for one candidate of many with (masks, answer, level), as a hashed report does.

    Parameters
    ----------
    response : HashedResponse

    Examples
    --------
    >>> answer = HashedAnswer(HashedResponse(candidates=4, epsilon=1.0, width=1))
    >>> likely, unlikely = (answer.probability(((3,), y, 0), 1) for y in (1, 0))
    >>> bool(2.71 < likely / unlikely < 2.7183)
    True
    """

    response: HashedResponse

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """The cost of one answer."""
        return self.response.epsilon

    @property
    def cost(self) -> Fraction:
        """The exact cost of one answer."""
        return exact(self.response.epsilon)

    def draw(self, values: Any, noise: NoiseSource) -> NDArray[Any]:
        """Return (masks, answer, level) for each value; random bits for users without one."""
        named = self._candidates(values)
        words = noise.uniform_words(len(named) * self.response.words)
        reports = self.response.from_words(named, words)
        answers = np.empty(len(named), dtype=object)
        for place in range(len(named)):
            masks = tuple(int(mask) for mask in reports.masks[:, place])
            answers[place] = masks, int(reports.answers[place]), int(reports.levels[place])
        return answers

    def probability(self, answer: Any, value: Any) -> float:
        """Return the probability of (masks, answer, level) for ``value``."""
        masks, reported, level = answer
        response, candidate = self.response, int(self._candidates([value])[0])
        allowed = response.prefix_masks[level]
        if any(mask & ~allowed for mask in masks):
            return 0.0
        hashed = sum(((m & candidate).bit_count() & 1) << i for i, m in enumerate(masks))
        kept = response.keep if 0 <= candidate < response.candidates else Fraction(0)
        chance = (1 - kept) / 2 ** len(masks) + kept * (reported == hashed)
        public = Fraction(1, response.levels * 2 ** (allowed.bit_count() * len(masks)))
        return float(public * chance)

    def _candidates(self, values: Any) -> NDArray[np.int64]:
        numbers = np.asarray(values, dtype=np.float64)
        good = (numbers >= 0) & (numbers < self.response.candidates) & (numbers < 2.0**53)
        return candidates_of(np.where(good, numbers, -1).astype(np.int64))
