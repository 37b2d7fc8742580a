"""What both neural estimators share: parameters, the order of a fit, and outputs."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.grid import Box
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users import UserData
from quorate.core.users.store import settled_users
from quorate.data.tables import declared_names
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Charge, Ledger
from quorate.models.optimization.descent import Optimizer
from quorate.models.optimization.gradients import TraceStep, check_budget
from quorate.models.optimization.optimizers import Adam
from quorate.models.public_inputs import FeatureRange, refuse_partial_fit, refuse_weights
from quorate.nets.checkpoints import Checkpoint
from quorate.nets.linear_ends import LinearEnds
from quorate.nets.networks import Network, check_on_made_up_users, open_network
from quorate.nets.optax_steps import optimizer_of
from quorate.nets.training import Recipe, open_training, recipe_for
from quorate.ranges import as_limits, declared_features, declared_limits

__all__ = ["NeuralModel"]

Vector = NDArray[np.float64]

# Parameters that are no part of what a checkpoint is about, or that text cannot say: weights are
# compared as they are.
_SAYS_NOTHING = (
    "module",
    "optimizer",
    "warm_start",
    "checkpoint",
    "progress",
    "ledger",
    "random_state",
)

# Typical outputs before anything is known. If all shares of classes are as likely as each other,
# outputs of a softmax have a Gumbel distribution. A number is anywhere between its limits.
_SPREADS = {"classes": math.pi / math.sqrt(6.0), "number": 1.0 / math.sqrt(3.0)}

# Networks of fitted estimators: they are compiled, and no part of what was released.
_OPENED: WeakKeyDictionary[Any, tuple[Network, float]] = WeakKeyDictionary()


class NeuralModel(UserEstimator):
    """Base of the neural estimators: private training, with parameters described by the subclasses.

    A fit takes these steps in this order: check parameters; build the network and try it on made-up
    users; charge; group the records; train; state the guarantee.
    """

    _takes_crowds = True
    _codes_columns = True
    _head = "classes"
    # The checkpoint of a fit that is under way.
    _held: Checkpoint | None = None

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        module: Any = None,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
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
        self.module = module
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.shape = shape
        self.hidden = hidden
        self.frozen = frozen
        self.records_per_step = records_per_step
        self.steps = steps
        self.batch_rate = batch_rate
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.progress = progress
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    @property
    def _only_gaussian(self) -> bool:
        # By default it may be a chain on secret samples, which no single Gaussian covers.
        return self.batch_rate == 1.0

    @property
    def partial_fit(self) -> Any:
        """Always refused; the message says why."""
        refuse_partial_fit(type(self).__name__)

    def fit(self, X: Any, y: Any = None, *, users: Any = None, **refused: Any) -> Self:
        """Train on records ``X``, targets ``y`` and the ids ``users``, or on a UserData.

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
        return self._fit(X, y, users)

    def _outputs(self) -> int:
        """Return how many outputs a network needs."""
        raise NotImplementedError

    def _scaled_targets(self, targets: Vector) -> Vector:
        return targets

    def _set_public(self) -> None:
        """Set the fitted attributes that follow from parameters alone."""

    def _check_parameters(self) -> None:
        _validate.positive_integer(hidden=self.hidden, records_per_step=self.records_per_step)
        if self.steps is not None:
            _validate.positive_integer(steps=self.steps)
        if self.learning_rate is not None:
            _validate.positive(learning_rate=self.learning_rate)
        _validate.one_of((None, False, True), progress=self.progress)
        _validate.delta(delta=self.delta)
        everybody = self.batch_rate is None or self.batch_rate == 1.0
        check_budget(
            epsilon=self.epsilon, delta=self.delta, rate=None if everybody else self.batch_rate
        )
        if self.optimizer is not None:
            optimizer_of(self.optimizer)
        if self.optimizer is not None and self.learning_rate is not None:
            raise ParameterError("Expected learning_rate= or optimizer=, which has its own.")
        if not (self.checkpoint is None or isinstance(self.checkpoint, str | os.PathLike)):
            raise ParameterError(
                f"Expected checkpoint= as the name of a file, got {type(self.checkpoint).__name__}."
            )
        if self.checkpoint is not None and self._lender is not None:
            raise ParameterError(
                "Expected no checkpoint= in a fit that borrows its budget: a later run could not "
                "pay for its steps."
            )
        if isinstance(self.frozen, str):
            raise ParameterError(
                f"Expected frozen as a sequence of names of weights, got {self.frozen!r}."
            )
        if self.shape is not None:
            for size in self.shape:
                _validate.positive_integer(shape=size)
        if not everybody and self.steps is None and self.relation is not Relation.REPLACE:
            raise ParameterError(
                "batch_rate= needs a public number of steps: give steps=, as the number of users "
                "is private under Relation.ADD_REMOVE."
            )

    def _fit(self, X: Any, y: Any, users: Any, *, classes: Sequence[Any] | None = None) -> Self:
        # Before the charge: a refusal costs nothing, as it follows from public knowledge.
        self._check_parameters()
        outputs = self._outputs()
        X, shape = self._flat(X, self.shape)
        X = self._as_numbers(X)
        if self.bounds is not None:
            Box(*declared_limits(self._public_bounds(X), X))
        start, before = self._start()
        told = declared_features(X)
        if told:
            _refuse_weights_of_another(start, self._opened_network(told, outputs, shape)[0])
        self._held = None
        account = self._charge(X, y, users, target=True)
        data = self._population(X, y, users, classes=classes)
        network, length = self._opened_network(data.n_features, outputs, shape)
        _refuse_weights_of_another(start, network)
        if network.caveat is not None:
            account.declared = account.declared.idealized(network.caveat)
            self._declared = account.declared
        limits = np.zeros((2, 0))
        if (bounds := self._public_bounds(X)) is not None:
            limits = np.array(as_limits(bounds, data.n_features, declared_names(X)))
        scaled = partial(
            _settled,
            rows=_range(limits).scaled if limits.size else None,
            targets=self._scaled_targets,
        )
        training = open_training(
            data.derive(scaled, keep=True),
            account,
            network,
            recipe=partial(self._recipe, weights=network.initial.size, length=length),
            optimizer=self._optimizer,
            records=int(self.records_per_step),
            radius=length,
            word=int(public_generator(self.random_state).integers(2**62)),
            initial=start,
            checkpoint=self._opened_checkpoint(),
            ends=self._ends(),
        )
        weights = training.run(progress=self.progress)
        # Weights that go on from a release carry what it promised.
        self.guarantee_ = self._promise(account, after=before)
        self.weights_, self.frozen_ = weights, network.frozen
        self.limits_ = limits
        self.shape_ = (data.n_features,) if shape is None else shape
        self.history_: tuple[TraceStep, ...] = tuple(training.trace)
        self.algorithm_ = _route(training.recipe, network)
        self._set_public()
        return self

    def _recipe(self, n_users: float, *, weights: int, length: float) -> Recipe:
        return recipe_for(
            n_users=n_users,
            weights=weights,
            length=length,
            spread=_SPREADS[self._head],
            steps=self.steps,
            rate=self.batch_rate,
            learning_rate=self.learning_rate,
        )

    def _optimizer(self, recipe: Recipe) -> Optimizer:
        if self.optimizer is not None:
            return optimizer_of(self.optimizer)
        return Adam(learning_rate=recipe.learning_rate)

    def _ends(self) -> LinearEnds | None:
        """Return what runs before the first step and after the last one, or None."""
        return None

    def _start(self) -> tuple[Vector | None, Guarantee | None]:
        """Return the initial weights, and their guarantee if an earlier fit released them."""
        if isinstance(self.warm_start, bool):
            if self.warm_start and hasattr(self, "weights_"):
                return self.weights_, self.guarantee_
            return None, None
        weights = np.array(self.warm_start, dtype=np.float64)
        if weights.ndim != 1 or not np.all(np.isfinite(weights)):
            raise ParameterError(
                "Expected warm_start=True, or public weights as one vector of finite numbers "
                "like weights_."
            )
        return weights, None

    # Checkpoints.

    def _opened_checkpoint(self) -> Checkpoint | None:
        if self._held is None and self.checkpoint is not None:
            self._held = Checkpoint(self.checkpoint, self._design())
        return self._held

    def _design(self) -> str:
        """Return a hash of the public parameters that can be written as text."""
        given = {
            name: held
            for name, held in sorted(self.get_params(deep=False).items())
            if name not in _SAYS_NOTHING
        }
        return hashlib.sha256(repr((type(self).__name__, given)).encode()).hexdigest()

    def _pay_ledger(self, ledger: Ledger, charged: Guarantee, name: str) -> Charge | None:
        held = self._opened_checkpoint()
        if held is None:
            return super()._pay_ledger(ledger, charged, name)
        return held.pay(ledger, charged, name, purpose=type(self).__name__)

    def _flat(self, X: Any, shape: Sequence[int] | None) -> tuple[Any, tuple[int, ...] | None]:
        """Return an array of any rank with one row per record, and the public shape of a record."""
        known = None if shape is None else tuple(shape)
        if self.module is None or not isinstance(X, np.ndarray) or X.ndim <= 2:
            return X, known
        if known not in (None, X.shape[1:]):
            raise ParameterError(f"Expected records of shape {known}, got {X.shape[1:]}.")
        return np.ascontiguousarray(X).reshape(len(X), -1), X.shape[1:]

    def _opened_network(
        self, features: int, outputs: int, shape: tuple[int, ...] | None
    ) -> tuple[Network, float]:
        """Return the network and the typical length of a gradient, both public."""
        state = 0 if self.random_state is None else self.random_state
        seed = int(state) if isinstance(state, int | np.integer) else 0
        if self.module is None:
            if self.frozen or self.shape is not None:
                raise ParameterError(
                    "Expected frozen= and shape= only beside a module of your own: the default "
                    "network takes rows of numbers."
                )
            return _default(features, self._head, outputs, int(self.hidden), seed)
        shape = (features,) if shape is None else shape
        held = _OPENED.get(self)
        if held is not None and held[0].module is self.module and held[0].shape == shape:
            return held
        network = open_network(
            self.module,
            features=features,
            shape=shape,
            head=self._head,
            outputs=outputs,
            hidden=int(self.hidden),
            frozen=tuple(self.frozen),
            seed=seed,
        )
        network.module, network.shape = self.module, shape
        classes = outputs if self._head == "classes" else 0
        opened = network, check_on_made_up_users(network, features=features, classes=classes)
        _OPENED[self] = opened
        return opened

    def _network_outputs(self, X: Any) -> Vector:
        """Return the outputs of the network for each row; NaN for rows with missing values."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        rows = self._features(self._flat(X, self.shape_)[0])
        known = _validate.finite_rows(rows)
        with np.errstate(all="ignore"):
            scaled = _range(self.limits_).scaled(rows) if self.limits_.size else rows
            network, _ = self._opened_network(rows.shape[1], self._outputs(), self.shape_)
            _refuse_other_frozen_weights(self.frozen_, network)
            found = network.outputs(self.weights_, np.where(known[:, None], scaled, 0.0))
        found = found.reshape(len(rows), -1)
        found[~known] = np.nan
        return found


def _refuse_weights_of_another(start: Vector | None, network: Network) -> None:
    if start is not None and start.shape != network.initial.shape:
        raise ParameterError(
            f"Expected warm_start= with the {network.initial.size} weights of this network, got "
            f"{start.size}."
        )


def _refuse_other_frozen_weights(known: str, network: Network) -> None:
    if known != network.frozen:
        raise ParameterError(
            "Expected the network of the fit: some of its numbers that are not trained (frozen "
            "weights, buffers) have changed since."
        )


def _range(limits: Vector) -> FeatureRange:
    return FeatureRange((limits[0], limits[1]), limits.shape[1])


@lru_cache(maxsize=16)
def _default(
    features: int, head: str, outputs: int, hidden: int, seed: int
) -> tuple[Network, float]:
    """Return the default network, compiled once for all fits of one shape."""
    network = open_network(
        None,
        features=features,
        shape=None,
        head=head,
        outputs=outputs,
        hidden=hidden,
        frozen=(),
        seed=seed,
    )
    classes = outputs if head == "classes" else 0
    return network, check_on_made_up_users(network, features=features, classes=classes)


def _settled(
    users: UserData, *, rows: Callable[..., Vector] | None, targets: Callable[[Vector], Vector]
) -> UserData:
    """Return users with scaled records, in an order that does not depend on who else joined."""
    return settled_users(users.with_plain_zeros(), rows, targets)


def _route(recipe: Recipe, network: Network) -> Route:
    who = "everybody" if recipe.rate >= 1.0 else f"a secret sample of {recipe.rate:.3g}"
    return Route(
        name="training",
        reason=f"{recipe.steps} steps of {network.initial.size} weights, each on {who}.",
    )
