"""Private classification by a neural network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.models.public_inputs import refuse_weights
from quorate.nets.base import NeuralModel

__all__ = ["NeuralClassifier"]

Vector = NDArray[np.float64]


class NeuralClassifier(ClassifierMixin, NeuralModel):  # type: ignore[misc]
    r"""A neural network that predicts a label, hiding any one user's whole record.

    The model minimises the mean over users of each user's mean log-loss by noisy gradient steps.
    The clipping radius is adapted during training at no extra cost, and all settings have defaults
    from public numbers. So there is nothing to tune on private data.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters (the module with its initial weights and the classes among them), the
        number of features and, under ``Relation.REPLACE``, the number of users; released:
        ``weights_``, ``history_``
    numerics : exact
    proof : Each step is a Gaussian mechanism on one bounded integer vector per user. The vector is
        the mean gradient of the user's records, clipped to a ball and rounded, together with its
        lift (:mod:`quorate.core.bounds.lifted_ball`). It is computed in a batch of a fixed public
        shape, at a position that depends on ids alone (:mod:`quorate.core.placed`). Steps share one
        :class:`~quorate.core.account.account.Account`; steps on secret samples are priced as one
        chain before anything is drawn. Radii and weights are computed from released numbers. If a
        device does not give the same bits for the same batch, the guarantee is marked as idealized.

    Utility
    -------
    Let :math:`\mu` = ``gdp_mu(epsilon, delta)``, with n users, W weights and T steps. The noise of
    a step has length about :math:`2C\sqrt{WT}/(n\mu)`, for gradients clipped to length C. If
    :math:`n\mu < 2\sqrt W`, a linear model is more accurate.

    Complexity
    ----------
    One gradient per user and step; memory for the gradients of one batch, at most 2^18 numbers or
    one user, whatever the number of users.

    Parameters
    ----------
    module : Equinox module, pair of functions, torch.nn.Module or None, default=None
        The network, with public initial weights. Functions are ``init(key)``, which returns
        weights, and ``apply(weights, rows)``, which returns one row of scores for each record.
        ``None`` is a network with one hidden layer and a direct linear path.
    epsilon, delta : float
        ``delta`` > 0.
    classes : sequence, default=(0, 1)
        Public labels; records with another label are dropped. In a ``UserData`` the targets are
        indices of labels (0, 1, ...) already.
    bounds : None, float, pair, dict or Box, default=None
        Public limits of the features. Values outside are clipped, and the network gets features in
        [-1, 1]. Without bounds features are used without scaling.
    categories : dict, optional
        Public values by column; each becomes a column of zeros and ones.
    shape : tuple of int, optional
        The shape of one record; by default that of ``X``.
    hidden : int, default=32
        Number of hidden units of the default network.
    frozen : sequence of str, default=()
        Prefixes of the names of weights that are not trained.
    records_per_step : int, default=64
        If a user has more records, each step uses that many of them, chosen by public randomness.
    steps : int, optional
        Number of steps; by default from public numbers, see
        :func:`~quorate.nets.training.recipe_for`.
    batch_rate : float, optional
        Probability with which a user takes part in a step; 1 means all users in all steps.
    learning_rate : float, optional
        Learning rate of Adam at the first step; it decreases linearly to zero.
    optimizer : optimizer of optax or of ``quorate.models``, optional
        Replaces Adam.
    warm_start : bool or array, default=False
        Public initial weights, one vector like ``weights_``. ``True`` continues from the last fit,
        and ``guarantee_`` is then that of both fits together.
    checkpoint : path, optional
        A file for the state of the training; it holds released numbers only. A fit that was
        interrupted continues from it, with the same data and parameters, and pays nothing again.
        The step during which it was interrupted is lost. A finished training is read from its file,
        so another training needs another file. With a ledger, copies of the file are refused.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal only.
    relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    classes_ : array
    weights_ : array
        The trained weights, as one vector.
    frozen_ : str
        A hash of the numbers of the network that were not trained; empty where all were.
    limits_ : array of shape (2, features)
        The public limits of the numeric columns; empty without ``bounds``.
    shape_ : tuple of int
        The shape of one record.
    history_ : tuple of TraceStep
        Radius, noise and length of each released gradient.
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] McMahan et al. Learning differentially private recurrent language models. ICLR 2018,
       arXiv:1710.06963.
    .. [2] Abadi et al. Deep learning with differential privacy. CCS 2016, arXiv:1607.00133.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(6000, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> people = np.repeat(np.arange(3000), 2)
    >>> model = NeuralClassifier(epsilon=8.0, bounds=1.0, hidden=8, random_state=0)
    >>> model = model.fit(X, y, users=people)
    >>> bool(model.score(X, y) > 0.7), model.guarantee_.epsilon
    (True, 8.0)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    """

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        module: Any = None,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        classes: Sequence[Any] = (0, 1),
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
        self.classes = classes

    def fit(self, X: Any, y: Any = None, *, users: Any = None, **refused: Any) -> Self:
        """Train on records ``X``, labels ``y`` and the ids ``users``, or on a UserData.

        Records whose label is not among ``classes`` are left out. In a UserData the target is the
        index of the label (``UserData.from_frame(..., classes=...)``).

        Parameters
        ----------
        X : array, frame or UserData
            An array may have any number of axes; the first axis is that of the records.
        y : array of shape (records,)
        users : array of shape (records,) or str
            The user id of each row, or the name of the column of ``X`` with the ids.
        refused : dict
            ``sample_weight`` is refused, with the reason.
        """
        refuse_weights(type(self).__name__, refused)
        return self._fit(X, y, users, classes=self._check_classes())

    def predict_proba(self, X: Any) -> Vector:
        """Return the probability of each class: (records, classes)."""
        scores = self._network_outputs(X)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Vector:
        """Return the logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely label. A row with a missing value has no label.

        Its prediction is NaN if labels are numbers (the result is then an array of floats),
        otherwise None.
        """
        shares = self.predict_proba(X)
        unknown = np.isnan(shares).any(axis=1)
        labels = np.asarray(self.classes_[np.nan_to_num(shares).argmax(axis=1)])
        if not unknown.any():
            return labels
        numbers = labels.dtype.kind in "iuf"
        labels = labels.astype(np.result_type(labels, np.float64) if numbers else object)
        labels[unknown] = np.nan if numbers else None
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of records predicted correctly.

        A record with a missing value counts as wrong.
        """
        labels = self.predict(X)
        known = np.array([label is not None and label == label for label in labels.tolist()])
        hits = known & (labels == np.asarray(y).ravel())
        return float(np.average(hits, weights=sample_weight))

    def _outputs(self) -> int:
        return len(self._check_classes())

    def _set_public(self) -> None:
        self.classes_ = np.asarray(self.classes)

    def _check_classes(self) -> tuple[Any, ...]:
        plain = not isinstance(self.classes, str | bytes) and np.ndim(self.classes) == 1
        labels = tuple(np.asarray(self.classes).tolist()) if plain else ()
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise ParameterError(
                f"Expected at least two different public labels, got classes={self.classes!r}. "
                "They must not be taken from the data."
            )
        return labels
