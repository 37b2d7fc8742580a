"""Private regression by a neural network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.ledger.ledger import Ledger
from quorate.models.public_inputs import target_range
from quorate.nets.base import NeuralModel
from quorate.nets.linear_ends import LinearEnds

__all__ = ["NeuralRegressor"]

Vector = NDArray[np.float64]


class NeuralRegressor(RegressorMixin, NeuralModel):  # type: ignore[misc]
    r"""A neural network that predicts a number, hiding any one user's whole record.

    The model minimises the mean over users of each user's mean squared error by noisy gradient
    steps; see :class:`~quorate.nets.classification.NeuralClassifier`. The default network starts at
    a linear model, which costs half of the budget. It ends with a linear regression on its outputs
    before and after the steps, so that little is lost if the truth is linear.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters (the module with its initial weights among them), the number of features
        and, under ``Relation.REPLACE``, the number of users; released: ``weights_``, ``history_``
    numerics : exact
    proof : As for :class:`~quorate.nets.classification.NeuralClassifier`, with another loss. Before
        and after the steps, :class:`~quorate.models.LinearRegression` draws from the same account.
        The second regression uses outputs of public networks for each user's own records.

    Utility
    -------
    If the truth is linear, about as for :class:`~quorate.models.LinearRegression` with 0.7 of mu.
    Otherwise as for :class:`~quorate.nets.classification.NeuralClassifier`. With a module of your
    own, public weights or secret samples there are no linear regressions, only gradient steps.

    Complexity
    ----------
    As for :class:`~quorate.nets.classification.NeuralClassifier`.

    Parameters
    ----------
    module : Equinox module, pair of functions, torch.nn.Module or None, default=None
        The network; it predicts the target in half-widths of ``target_bounds`` around their
        middle.
    epsilon, delta : float
        ``delta`` > 0.
    target_bounds : pair, default=None
        Public limits of the target; predictions are clipped to them. Without them targets are used
        without scaling.
    bounds, categories, shape, hidden, frozen, records_per_step, steps, batch_rate, learning_rate
        See :class:`~quorate.nets.classification.NeuralClassifier`.
    optimizer, warm_start, checkpoint
        See :class:`~quorate.nets.classification.NeuralClassifier`.
    progress, relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    weights_, frozen_, limits_, shape_, history_, algorithm_, guarantee_
        See :class:`~quorate.nets.classification.NeuralClassifier`.

    References
    ----------
    See :class:`~quorate.nets.classification.NeuralClassifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(6000, 1))
    >>> people = np.repeat(np.arange(3000), 2)
    >>> model = NeuralRegressor(
    ...     epsilon=8.0, bounds=1.0, target_bounds=(0.0, 1.0), hidden=8, random_state=0
    ... )
    >>> bool(model.fit(X, np.abs(X[:, 0]), users=people).score(X, np.abs(X[:, 0])) > 0.3)
    True
    """

    _head = "number"

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        module: Any = None,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        target_bounds: Any = None,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        shape: tuple[int, ...] | None = None,
        hidden: int = 32,
        frozen: Sequence[str] = (),
        records_per_step: int = 64,
        steps: int | None = None,
        batch_rate: float | None = None,
        learning_rate: float | None = None,
        optimizer: Any = None,
        warm_start: Any = False,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            module,
            epsilon,
            delta=delta,
            bounds=bounds,
            categories=categories,
            shape=shape,
            hidden=hidden,
            frozen=frozen,
            records_per_step=records_per_step,
            steps=steps,
            batch_rate=batch_rate,
            learning_rate=learning_rate,
            optimizer=optimizer,
            warm_start=warm_start,
            checkpoint=checkpoint,
            progress=progress,
            relation=relation,
            ledger=ledger,
            data_name=data_name,
            random_state=random_state,
        )
        self.target_bounds = target_bounds

    def predict(self, X: Any) -> Vector:
        """Return the predicted number of each row; NaN for a row with a missing value."""
        limits, outputs = target_range(self.target_bounds), self._network_outputs(X)[:, 0]
        if not limits.bounded:
            return outputs
        outputs = np.clip(outputs, -1.0, 1.0)
        return np.asarray(limits.centre[0] + limits.half_width[0] * outputs)

    def _outputs(self) -> int:
        return 1

    def _ends(self) -> LinearEnds | None:
        if self.module is not None or self._start()[0] is not None:
            return None
        return LinearEnds(
            hidden=int(self.hidden),
            bounded=target_range(self.target_bounds).bounded,
            within=self.bounds is not None,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        target_range(self.target_bounds)

    def _scaled_targets(self, targets: Vector) -> Vector:
        limits = target_range(self.target_bounds)
        return limits.scaled(targets[:, None])[:, 0] if limits.bounded else targets
