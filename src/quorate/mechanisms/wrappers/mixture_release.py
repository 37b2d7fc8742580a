r"""An exact draw from a mixture of finite laws, which a noisy limit selects; or no output.

This is the last step of a conversion by enumeration
(:class:`quorate.papers.conversion.ItemToUser`): for every value r of the noisy limit there is a
mixture of laws with integer weights, or none. Limit and mixture are drawn with integers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account, noise_for
from quorate.core.guarantees import Approximate, Guarantee, Relation
from quorate.core.noise import NoiseSource, ambient_noise
from quorate.core.noise.truncated_laplace import TruncatedLaplace
from quorate.exceptions import SchemaError
from quorate.mechanisms.laws import PiecewiseLaw

__all__ = ["Mixture", "MixtureRelease"]

Weights = tuple[int, ...]
"""A law over outputs 0, 1, ...: integers of any size, not all zero."""


@dataclass(frozen=True)
class Mixture:
    """Choose a law by integer shares, then an output by its integer weights.

    >>> Mixture((1, 1), ((1, 0), (1, 1))).probabilities().tolist()
    [0.75, 0.25]
    """

    shares: Weights
    laws: tuple[Weights, ...]

    def __post_init__(self) -> None:
        for weights in (self.shares, *self.laws):
            if min(weights) < 0 or not sum(weights) > 0:
                raise SchemaError("Expected weights of at least zero, and not all zero.")

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of the output in floating point."""
        whole = sum(self.shares)
        rows = [
            [share / whole * (weight / sum(law)) for weight in law]
            for share, law in zip(self.shares, self.laws, strict=True)
        ]
        return np.asarray(np.sum(rows, axis=0))

    def draw(self, noise: NoiseSource) -> int:
        """Return an output; the noise source must have been paid already."""
        return _pick(self.laws[_pick(self.shares, noise)], noise)


@dataclass(frozen=True, kw_only=True)
class MixtureRelease:
    r"""Draw a limit and then an output of its mixture, or release nothing.

    Privacy
    -------
    guarantee : :math:`(\varepsilon, \delta)`-DP as ``event`` says, by the proof of the code that
        builds the mixtures
    neighbours : replace all records of one user
    trust : central
    public : the number of ``outputs`` and all parameters
    numerics : exact
    proof : Lemma 18 of Ghazi et al. (NeurIPS 2023) for the mixtures of
        :class:`quorate.papers.conversion.ItemToUser`; this class adds that the draw follows the
        law to the last bit.

    Utility
    -------
    The law of the output is ``law(mixtures)``.

    Complexity
    ----------
    One draw of the limit and two uniform integers.

    Parameters
    ----------
    limit : TruncatedLaplace
    event : Approximate
    outputs : int

    References
    ----------
    .. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
       examples per user. NeurIPS 2023. Algorithm 1.

    Examples
    --------
    >>> limit = TruncatedLaplace(1.0, reach=1)
    >>> release = MixtureRelease(limit=limit, event=Approximate(3.0, 0.6), outputs=2)
    >>> certain = Mixture((1,), ((0, 1),))
    >>> release.release([certain, certain, certain])
    1
    >>> release.release([None, None, None]) is None
    True
    """

    limit: TruncatedLaplace
    event: Approximate
    outputs: int

    relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive_integer(outputs=self.outputs)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release."""
        return Guarantee(
            epsilon=self.event.epsilon,
            delta=self.event.delta,
            relation=self.relation,
            numerics=ambient_noise().numerics,
            events=(self.event,),
        )

    def law(self, mixtures: Sequence[Mixture | None]) -> NDArray[np.float64]:
        """Return the probability of no output, then of each output; in floating point."""
        masses = np.zeros(1 + self.outputs)
        for chance, mixture in zip(self.limit.probabilities, mixtures, strict=True):
            if mixture is None:
                masses[0] += chance
            else:
                masses[1:] += chance * mixture.probabilities()
        return masses

    def release(
        self, mixtures: Sequence[Mixture | None], *, account: Account | None = None
    ) -> int | None:
        """Return an output, or None; ``mixtures`` has one entry for each value of the limit."""
        if len(mixtures) != 2 * self.limit.reach + 1:
            raise SchemaError("Expected one mixture for each value of the limit.")

        def draw(source: NoiseSource) -> int:
            mixture = mixtures[self.limit.draw(source)]
            return 0 if mixture is None else 1 + mixture.draw(source)

        ones = np.ones(1 + self.outputs, dtype=np.int64)
        place = noise_for(Account.of_release(account, self), self.event).sample(
            "mixture",
            draw,
            held=lambda: PiecewiseLaw(0, ones, self.law(mixtures)),
            outputs=self.outputs,
        )
        return None if place == 0 else place - 1


def _pick(weights: Weights, noise: NoiseSource) -> int:
    """Return an index with probability proportional to its integer weight."""
    left = noise.uniform_below(sum(weights))
    for place, weight in enumerate(weights):
        if left < weight:
            return place
        left -= weight
    raise SchemaError("Expected weights that add up.")
