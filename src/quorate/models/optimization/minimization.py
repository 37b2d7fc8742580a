"""Minimise a mean of arbitrary user losses privately, by first-order steps (U5, Algorithm 3).

Linear models can do better, see :mod:`quorate.models.base`. The steps are those of the same descent
(:mod:`quorate.models.optimization.descent`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.people import People
from quorate.core.users.crowd import Crowd
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.user_releases import UserReleases, typical_records
from quorate.models.losses import Loss
from quorate.models.optimization.descent import AveragedDescent, Minimum, Optimizer, descend
from quorate.models.optimization.gradients import (
    ClippedGradients,
    GradientRelease,
    check_budget,
    check_records,
    plan_steps,
)
from quorate.models.optimization.minibatches import check_public_steps, open_sampled_run, setup_mu
from quorate.models.optimization.optimizers import Adam

__all__ = ["initial_point", "minimize", "with_caveat"]

Vector = NDArray[np.float64]


def minimize(  # noqa: PLR0913 - the common keywords
    data: Crowd,
    loss: Loss,
    *,
    epsilon: float,
    delta: float,
    relation: Relation = Relation.REPLACE,
    optimizer: Optimizer | None = None,
    gradients: GradientRelease | None = None,
    steps: int | None = None,
    initial: ArrayLike | None = None,
    curvature: float | None = None,
    records: int | str = "auto",
    batch_rate: float | None = None,
    progress: bool | None = None,
) -> Minimum:
    r"""Minimise the mean over users of their losses, hiding any one user's whole record.

    Query, update, aggregate: Algorithm 7 of [1]_ on released gradients.

    Privacy
    -------
    guarantee : (``epsilon``, ``delta``)-DP, in ``Minimum.guarantee``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the loss, the number of features and, under ``Relation.REPLACE``, the
        number of users; released: the radii, the noisy gradients and what follows from them
    numerics : exact
    proof : Every step is a Gaussian mechanism on clipped user gradients, and every radius a noisy
        search. Each takes its part of one :class:`~quorate.core.account.account.Account`, and the
        squares never add up to more than the whole. With minibatches the steps are Poisson samples
        priced by the accountant; with
        :class:`~quorate.models.optimization.winsorized_gradients.WinsorizedGradients` the steps are
        queries of one winsorized mean. Optimisers see released gradients only.

    Utility
    -------
    For n users whose gradients spread by :math:`\tau` the noise of the whole run is about
    :math:`2\tau\sqrt d/(n\mu)` in the gradient, :math:`\mu` = ``gdp_mu(epsilon, delta)``; with m
    records per user :math:`\tau` falls as :math:`1/\sqrt m`.

    Complexity
    ----------
    One pass over the records per step and two more for radii; memory for one gradient per user, in
    parts.

    Parameters
    ----------
    data : UserData or another crowd
    loss : Loss
        A loss written by the caller is called for one user at a time. Within
        :class:`~quorate.models.vectorized.Vectorized` it is called with many users, and the
        guarantee says so.
    epsilon, delta : float
    relation : Relation, default=Relation.REPLACE
    optimizer : Optimizer, default=Adam, or AveragedDescent if ``curvature`` is given
    gradients : GradientRelease, default=ClippedGradients()
    steps : int, optional
        By default planned from the users, the parameters and the records per user.
    initial : array, default=zeros
        The starting point; public, or released before.
    curvature : float, optional
        Upper bound of the second derivative of the loss in the parameters, if public.
    records : int or "auto", default="auto"
        Number of records of a typical user: a public number, or ``"auto"`` for a rough private
        estimate. It is only used to plan ``steps``.
    batch_rate : float, optional
        Probability with which a user takes part in a step; by default all users take part in all
        steps. The chain of steps is priced as a whole before anything is drawn, including
        everything that the setup may need. What the setup does not use is not spent, so the real
        cost is below the guarantee (four fifths of epsilon if the curvature is known).
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal only.

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845, Alg. 3.

    Examples
    --------
    >>> from quorate.models.regression_losses import SquaredLoss
    >>> from quorate.core.users import UserData
    >>> rows = np.random.default_rng(0).normal(size=(8000, 2))
    >>> people = UserData(rows, rows @ [1.0, -1.0], offsets=np.arange(0, 8001, 2))
    >>> minimum = minimize(
    ...     people, SquaredLoss(), epsilon=4.0, delta=1e-6, curvature=1.0, records=2
    ... )
    >>> bool(np.abs(minimum.theta - [1.0, -1.0, 0.0]).max() < 0.3)
    True
    >>> minimum.guarantee.epsilon
    4.0
    """
    check_budget(epsilon=epsilon, delta=delta, rate=batch_rate)
    check_records(records)
    if batch_rate is not None:
        check_public_steps(steps=steps, records=records, relation=relation)
    if not isinstance(data, Crowd):
        raise SchemaError(f"Expected a UserData, got {type(data).__name__}.")
    dimension = loss.dimension(data.n_features)
    theta = initial_point(initial, dimension)
    if steps is not None:
        _validate.positive_integer(steps=steps)
    if curvature is not None:
        _validate.positive(curvature=curvature)
    account = Account.open(epsilon=epsilon, delta=delta, relation=relation, unit=data.unit)
    people = People(data, relation, among=account)
    if batch_rate is not None and steps is None:
        steps = plan_steps(
            n_users=people.n_users,
            mu=setup_mu(account),
            records=float(records),
            dimension=dimension,
        )
    if batch_rate is None:
        run = UserReleases.start(people, account)
    else:
        run = open_sampled_run(people, account, rate=batch_rate, steps=steps)
    if steps is None:
        steps = plan_steps(
            n_users=run.n_users,
            mu=account.mu,
            records=typical_records(run, records),
            dimension=dimension,
        )
    if optimizer is None:
        optimizer = Adam() if curvature is None else AveragedDescent()
    minimum = descend(
        run,
        loss,
        steps=steps,
        optimizer=optimizer,
        gradients=ClippedGradients() if gradients is None else gradients,
        initial=theta,
        curvature=1.0 if curvature is None else curvature,
        shrinkage=0.0,
        progress=progress,
    )
    return Minimum(
        theta=minimum.theta,
        event=minimum.event,
        trace=minimum.trace,
        guarantee=with_caveat(account.guarantee(), loss),
    )


def with_caveat(guarantee: Guarantee, loss: Loss) -> Guarantee:
    """Return the guarantee, marked as idealized if the loss makes it so."""
    return guarantee if loss.caveat is None else guarantee.idealized(loss.caveat)


def initial_point(initial: Any, dimension: int) -> Vector:
    """Return a checked starting point; zeros by default.

    >>> initial_point(None, 2)
    array([0., 0.])
    """
    if initial is None:
        return np.zeros(dimension)
    theta = np.array(initial, dtype=np.float64)
    if theta.shape != (dimension,) or not np.all(np.isfinite(theta)):
        raise ParameterError(
            f"Expected initial to be {dimension} finite numbers, got shape {theta.shape}."
        )
    return theta
