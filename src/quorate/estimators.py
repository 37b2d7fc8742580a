"""The base of all estimators: charge the budget, read the data, state the guarantee.

The scikit-learn estimator API, with the parts that leak replaced:

* ``fit(X, y, *, users)`` or ``fit(crowd)``, such as a UserData; ``users=None`` is refused, because
  one row is not one person;
* the declared budget is charged to the ledger *before* any data are touched, so a crash costs
  budget and never leaks;
* every draw of noise is taken from one account, which refuses what was not declared;
* checks look at parameters, shapes and column names, never at a value: NaN and infinities are
  legal inputs and are bounded like every other value;
* a fitted estimator states its guarantee, which algorithm was used, and why, in public numbers.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from quorate import _validate
from quorate._validate import exact, float_up, is_frame
from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.account.parts import SharedAccount, close, only_gaussian
from quorate.core.guarantees import Event, Guarantee, Relation, Trust
from quorate.core.people import People
from quorate.core.public_randomness import public_generator
from quorate.core.users import UserData
from quorate.core.users.closed import closed
from quorate.core.users.crowd import Crowd
from quorate.core.users.data import named_users
from quorate.data.by_name import takes_names
from quorate.data.coding import CodedTable, Coding, coded_columns
from quorate.data.frames import as_table, open_frame
from quorate.data.tables import (
    as_feature_matrix,
    check_rows,
    column_names,
    declared_names,
    without_rows,
)
from quorate.exceptions import (
    NumericalFailure,
    ParameterError,
    QuorateError,
    RelationMismatchError,
    SchemaError,
)
from quorate.ledger.ledger import Charge, Ledger
from quorate.ranges import coded_bounds, dates_among

__all__ = ["NotFitted", "Route", "UserEstimator"]

# Methods of estimators that look at records.
_LOOKS = frozenset({"ask", "cross_validate", "fit", "fit_from", "score_users"})


def _booleans(table: Any) -> list[str]:
    """Return the columns of a frame that are declared as booleans."""
    import pyarrow as pa

    empty = without_rows(table) if is_frame(table) and declared_names(table) is not None else None
    if empty is None:
        return []
    return [field.name for field in open_frame(empty).schema if pa.types.is_boolean(field.type)]


def _other_names(seen: Any, names: Any) -> str:
    return (
        "The feature names should match those that were passed during fit: expected "
        f"{list(seen)}, got {list(names)}."
    )


class NotFitted(QuorateError, NotFittedError):  # type: ignore[misc]
    """A fitted attribute was read before ``fit``."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """The algorithm that made a release, and the reason; a function of public and released numbers.

    Attributes
    ----------
    name : str
        The value of ``algorithm=`` that selects this algorithm.
    reason : str
    spread : float or None
        Private estimate of how far one user lies from the centre, if there is one.
    records : float or None
        Number of records from which on a user has full weight, if users were weighted.

    Examples
    --------
    >>> print(Route(name="clip", reason="Too few users for a private radius."))
    clip: Too few users for a private radius.
    """

    name: str
    reason: str
    spread: float | None = None
    records: float | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and isinstance(self.reason, str)):
            raise ParameterError("Expected the name of an algorithm and a reason, as text.")

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


# The account of each fit, which alone opens what its people say.
_PAYING: WeakKeyDictionary[UserEstimator, Account] = WeakKeyDictionary()


class UserEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators that protect whole users.

    Subclasses store their parameters in ``__init__`` and write ``fit`` as::

        account = self._charge(X, y, users)       # refuse wrong use, then pay, before data are read
        data = self._gather(X, y, users)          # records grouped by user
        ...                                       # every draw is taken from the account
        self.guarantee_ = self._promise(account)  # what was declared, with what was drawn
        self.mean_ = mean                         # nothing is set that was not promised

    Common parameters: ``epsilon``, ``delta``, ``relation``, ``ledger``, ``data_name``,
    ``random_state``. A parameter that a subclass does not have keeps its default.
    """

    # Lets pipelines and searches pass ``users`` on without being asked to.
    __metadata_request__fit = {"users": True}  # noqa: RUF012 - scikit-learn reads this attribute

    # Estimators of one feature take it as a vector too.
    _single_feature = False
    # Whether users may lie in parts, wherever those are.
    _takes_crowds = False
    # The charge of a fit that is not over.
    _receipt: Charge | None = None
    # The account that the next fit borrows from, if any.
    _lender: SharedAccount | None = None
    # Whether ``fit`` opens a desk that goes on drawing from its account.
    _draws_later = False
    # Whether a delta is of any use: one that is not would be charged for nothing.
    _uses_delta = True
    # Whether ``categories`` and ``bounds`` say how columns of a table become numbers.
    _codes_columns = False
    # Whether a column of X may hold labels of any kind, which the estimator reads itself.
    _reads_labels = False
    # Whether ``users="column"`` is left in the table, which the estimator reads column by column.
    _reads_users_by_name = False

    epsilon: float
    bounds: Any = None
    categories: Any = None
    delta: float = 0.0
    relation: Relation = Relation.REPLACE
    ledger: Ledger | None = None
    data_name: str | None = None
    random_state: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for name in _LOOKS & vars(cls).keys():
            setattr(cls, name, closed(takes_names(vars(cls)[name])))
        super().__init_subclass__(**kwargs)

    def __getattr__(self, name: str) -> Any:
        # Called for what is not there; a release that is not there has not been made.
        if name.endswith("_") and name[0] != "_" and "guarantee_" not in vars(self):
            raise NotFitted(
                f"This {type(self).__name__} instance is not fitted yet: call fit before asking "
                f"for {name}."
            )
        if isinstance(own := inspect.getattr_static(type(self), name, None), property):
            # A property of ours refused with a reason of its own: let it speak.
            return own.__get__(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = True
        return tags

    @property
    def _caveat(self) -> str | None:
        """Why the guarantee is only idealized, or None; depends on parameters only."""
        return None

    @property
    def _only_gaussian(self) -> bool:
        """Whether pure mechanisms are also counted as Gaussian ones if delta > 0."""
        return False

    @property
    def _labels(self) -> Sequence[Any] | None:
        """The public labels of ``y``, if it has any."""
        return getattr(self, "classes", None)

    @property
    def _charged_delta(self) -> float:
        """The delta that a fit can use; depends on parameters only."""
        return self.delta

    @property
    def _trust(self) -> Trust:
        """Whom users have to trust; depends on parameters only."""
        return Trust.CENTRAL

    def _charge(
        self,
        X: Any,
        y: Any = None,
        users: Any = None,
        *,
        target: bool = False,
        reserve: Fraction | float = 0,
        aside: Fraction | float = 0,
    ) -> Account:
        """Refuse wrong use, then charge the budget, and return the account of the fit.

        Only types, shapes and the unit of ``X``, ``y`` and ``users`` are checked, never their
        values. So a mistake in the call costs nothing, and a crash after the charge costs budget.
        ``reserve`` is the part of ``delta`` for mechanisms with a failure probability of their own.
        ``aside`` is the part of epsilon for pure mechanisms beside Gaussian noise.
        """
        _validate.positive(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        if not self._uses_delta and self.delta != 0:
            raise ParameterError(
                f"{type(self).__name__} is purely private: it would charge delta={self.delta!r} "
                "and not use it. Leave delta out."
            )
        if not isinstance(self.relation, Relation):
            raise ParameterError(
                f"Expected relation to be Relation.REPLACE or Relation.ADD_REMOVE, got "
                f"relation={self.relation!r}."
            )
        if self.random_state is not None:
            public_generator(self.random_state)
        self._check_use(X, y, users, target=target)
        self._warn_of_repeated_fits()
        receipt: Charge | None = None
        opened = Account.open if self._lender is None else self._lender.lend
        account = opened(
            epsilon=self.epsilon,
            delta=self._charged_delta,
            relation=self.relation,
            reserve=reserve,
            aside=aside,
            unit=X.unit if isinstance(X, Crowd) else "user",
            trust=self._trust,
        )
        self.__dict__.pop("_lender", None)
        _PAYING[self] = account
        if self._caveat is not None:
            account.declared = account.declared.idealized(self._caveat)
        if self.ledger is not None:
            if not isinstance(self.ledger, Ledger):
                raise ParameterError(
                    f"Expected ledger to be a quorate.Ledger, got {type(self.ledger).__name__}."
                )
            if self.data_name is None:
                raise ParameterError(
                    "Expected data_name= beside ledger=: the name under which the data set's "
                    "budget was set with Ledger.set_budget."
                )
            events = (
                (only_gaussian(account),) if self._only_gaussian and self._charged_delta > 0 else ()
            )
            charged = replace(account.declared, events=events)
            receipt = self._pay_ledger(self.ledger, charged, self.data_name)
            account.declared = account.declared.charged_to(self.data_name)
        self._forget()
        self._receipt = receipt
        self._declared = account.declared
        return account

    def _pay_ledger(self, ledger: Ledger, charged: Guarantee, name: str) -> Charge | None:
        """Charge a fit to the budget of ``name``; return None if nothing can be refunded later."""
        return ledger.charge(name, charged, purpose=type(self).__name__)

    def _warn_of_repeated_fits(self) -> None:
        """Warn before the charge if scikit-learn's search or cross-validation calls ``fit``.

        Each of its fits is paid for.

        A fit with a checkpoint is refused there, because all fits would share the checkpoint.
        """
        frame = inspect.currentframe()
        while frame is not None:
            module = str(frame.f_globals.get("__name__", ""))
            if module.startswith("sklearn.model_selection."):
                warnings.warn(
                    f"scikit-learn fits {type(self).__name__} once for each fold and candidate, "
                    f"and every fit spends epsilon={self.epsilon:g} again on the same people: the "
                    "cost is the sum of all fits. Use PrivateGridSearch or "
                    "private_cross_val_score, which pay once.",
                    UserWarning,
                    stacklevel=2,
                )
                if getattr(self, "checkpoint", None) is not None:
                    raise ParameterError(
                        "Expected no checkpoint= in a search of scikit-learn: all fits would "
                        "continue from the same file, and be scored on people used for training."
                    )
                return
            frame = frame.f_back

    def draw_from(self, account: SharedAccount) -> Self:
        """Let the next fit take its budget from ``account``, which records every draw.

        This is for estimators that consist of several fits about the same people under one
        guarantee.
        """
        self._lender = account
        return self

    def _settle(self, account: Account) -> None:
        """Report what was really drawn to the ledger, which may have been charged more."""
        if self._receipt is None or self._draws_later:
            return
        account.refuse_elsewhere()  # the process that draws says what was drawn
        close(account)
        if self.ledger is not None:
            self.ledger.settle(self._receipt, (account.event,))
        self._receipt = None

    @property
    def columns_(self) -> tuple[str, ...]:
        """The names of the numeric columns that results refer to, in their order."""
        coding, names = self._coding, getattr(self, "feature_names_in_", None)
        if coding is not None:
            return coding.names
        if names is None:
            return tuple(f"x{place}" for place in range(self.n_features_in_))
        return tuple(str(name) for name in names)

    @property
    def _coding(self) -> Coding | None:
        """How the columns of the last fit are encoded as numbers; None if they are numbers."""
        coded, names = self._coded_columns(), getattr(self, "feature_names_in_", None)
        return (
            Coding.of([str(name) for name in names], coded) if coded and names is not None else None
        )

    def _coded_columns(self) -> dict[str, Any]:
        if not self._codes_columns or (self.categories is None and self.bounds is None):
            return {}
        dates = dates_among(self.bounds)
        if self.categories is None and not dates:
            return {}
        return coded_columns(self.categories, dates)

    def _as_numbers(self, X: Any) -> Any:
        """Return ``X`` as a table of numbers without reading it; refuse unsuitable column types."""
        coded = self._coded_columns()
        if not coded or isinstance(X, CodedTable):
            return X
        names = declared_names(X)
        if names is None:
            raise ParameterError(
                "Categories and dates are columns of a table with names: pass a frame (pandas, "
                "polars, Arrow), or UserData.from_frame(table, categories=..., dates=...)."
            )
        if isinstance(X, Crowd):
            Coding.recognised(names, coded)
            return X
        coding = Coding.of(names, coded)
        if (empty := without_rows(X)) is not None:
            coding.check(open_frame(empty).schema)
        return CodedTable(X, coding)

    def _public_bounds(self, X: Any) -> Any:
        """Return ``bounds`` for the numeric columns of ``X``."""
        coded = self._coded_columns()
        if isinstance(X, Crowd):
            names = X.feature_names
            coding = Coding.recognised(names, coded) if coded and names is not None else None
            return self.bounds if coding is None else coded_bounds(self.bounds, coding)
        bounds, table = self.bounds, X.table if isinstance(X, CodedTable) else X
        if self._codes_columns and isinstance(bounds, Mapping) and None not in bounds:
            bounds = {**dict.fromkeys(_booleans(table), (0.0, 1.0)), **bounds}
        return coded_bounds(bounds, X.coding) if isinstance(X, CodedTable) else bounds

    def _check_use(self, X: Any, y: Any, users: Any, *, target: bool) -> None:
        """Refuse wrong types and shapes."""
        name = type(self).__name__
        if isinstance(X, Crowd):
            if not (self._takes_crowds or isinstance(X, UserData)):
                raise ParameterError(
                    f"{name} takes a UserData, whose records are all in memory, got "
                    f"{type(X).__name__}."
                )
            if y is not None or users is not None:
                raise ParameterError(
                    "Expected either a UserData alone or X, y and users=; got a UserData together "
                    "with y or users."
                )
            has_target = X.has_target
        else:
            has_target = y is not None
            check_rows(
                X,
                y,
                users,
                asked_by=name,
                single=self._single_feature,
                of_numbers=not self._reads_labels,
                classes=self._labels,
            )
        if target and not has_target:
            raise SchemaError(
                f"{name} requires y to be passed, but the target y is None. Pass y, or build the "
                "UserData with target=."
            )

    def refuse_hopeless(self, n_users: int, n_features: int) -> None:
        """Raise if public numbers show that the fit cannot work; most estimators never raise."""

    def _forget(self) -> None:
        """Delete what an earlier fit released. No old number may stand beside a new guarantee."""
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_"]:
            delattr(self, name)

    def _gather(
        self,
        X: Any,
        y: Any = None,
        users: Any = None,
        *,
        classes: Sequence[Any] | None = None,
    ) -> UserData:
        """Return the records grouped by user, all of them in memory."""
        return cast("UserData", self._crowd(X, y, users, classes=classes))

    def _crowd(
        self,
        X: Any,
        y: Any = None,
        users: Any = None,
        *,
        classes: Sequence[Any] | None = None,
        order: Any = None,
    ) -> Crowd:
        """Return the records grouped by user; set the public schema attributes.

        ``classes`` are the public labels of ``y``, which is replaced by the index of each label;
        ``order`` says which of a user's records come first.
        """
        data: Crowd
        if isinstance(X, Crowd):
            data, names = X, X.feature_names
            if names is not None and (coded := self._coded_columns()):
                names = Coding.recognised(names, coded).sources
        else:
            rows, names = as_feature_matrix(X, single=self._single_feature)
            held = UserData.from_arrays(rows, y, users=users, classes=classes, order=order)
            data = named_users(held, names)
            if data.unit != self._declared.unit:
                raise ParameterError(
                    f"Several id columns protect a {data.unit}, not a user; the guarantee has to "
                    "say so: pass UserData.from_arrays(X, y, users=..., unit='person x day')."
                )
            if isinstance(X, CodedTable):
                names = X.coding.sources
        if self.relation is Relation.REPLACE and data.is_empty:
            raise SchemaError(
                "Expected at least one user under Relation.REPLACE, where their number is public, "
                "got none. Are the ids in users= integers, text or dates?"
            )
        self._describe(names, data.n_features)
        return data

    def _population(
        self,
        X: Any,
        y: Any = None,
        users: Any = None,
        *,
        classes: Sequence[Any] | None = None,
        order: Any = None,
    ) -> People:
        """Return the people that the fit may query; set the public schema attributes.

        See :meth:`_crowd`.
        """
        if not isinstance(X, People):
            crowd = self._crowd(X, y, users, classes=classes, order=order)
            return self._people_of(crowd)
        names = X.feature_names
        if names is not None and (coded := self._coded_columns()):
            names = Coding.recognised(names, coded).sources
        self._describe(names, X.n_features)
        return X

    def _people_of(self, crowd: Crowd) -> People:
        """Return people about whom only the account of this fit opens what they say."""
        return People(crowd, self.relation, among=_PAYING.get(self))

    def _describe(self, names: Sequence[str] | None, n_features: int) -> None:
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self.n_features_in_ = n_features if names is None else len(names)

    def _features(self, X: Any) -> NDArray[np.float64]:
        """Return ``X`` as the matrix ``predict`` works on, with the columns seen in ``fit``.

        If some columns are encoded, ``X`` may be the original table or the encoded numbers.
        """
        X = as_table(X)
        coding, seen = self._coding, getattr(self, "feature_names_in_", None)
        if coding is not None and column_names(X) in (None, coding.sources) and is_frame(X):
            return coding.matrix(X)
        if coding is not None and is_frame(X) and column_names(X) != coding.names:
            raise SchemaError(_other_names(coding.sources, column_names(X)))
        matrix, names = as_feature_matrix(X, single=self._single_feature)
        if names is not None and seen is not None and self.columns_ != names:
            raise SchemaError(_other_names(seen, names))
        width = len(self.columns_)
        if matrix.shape[1] != width:
            raise SchemaError(
                f"X has {matrix.shape[1]} features, but {type(self).__name__} is expecting "
                f"{width} features as input."
            )
        return matrix

    def _promise(self, spent: Account | Event, *, after: Guarantee | None = None) -> Guarantee:
        """Return the declared guarantee together with what was drawn or priced.

        An account has already refused whatever exceeds the declared budget. An event is priced
        here.

        ``after`` is the guarantee of an earlier release that this one continues. The result then
        carries both, and their costs add up as if both were about the same users.

        A price above the declared budget means a bug in the planning. Then an error is raised,
        because the declared guarantee would be false.
        """
        declared = self._declared
        if isinstance(spent, Account):
            event = spent.event
            if spent.declared is not declared:
                raise NumericalFailure(
                    f"{type(self).__name__} drew from another account than the one it charged: no "
                    "guarantee is claimed. Please report this."
                )
            self._settle(spent)
        else:
            event = spent
            cost = price(event, delta=declared.delta, relation=declared.relation)
            if not cost <= declared.epsilon:
                raise NumericalFailure(
                    f"{type(self).__name__} planned a cost of epsilon={cost!r} for a declared "
                    f"epsilon={declared.epsilon!r}: no guarantee is claimed. Please report this."
                )
        if after is None:
            return replace(declared, events=(event,))
        if (after.unit, after.relation) != (declared.unit, declared.relation):
            raise RelationMismatchError(
                f"An earlier fit protects a {after.unit} ({after.relation.value}), this one a "
                f"{declared.unit} ({declared.relation.value}): start from a fresh model."
            )
        return replace(
            declared,
            epsilon=float_up(exact(after.epsilon) + exact(declared.epsilon)),
            delta=min(float_up(exact(after.delta) + exact(declared.delta)), 1.0),
            numerics=declared.numerics.weakest(after.numerics),
            events=(*after.events, event),
        )
