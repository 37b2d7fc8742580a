r"""The account of one fit: every draw of noise is recorded when it is drawn, or refused.

An account is opened with the declared budget and passed to all code that draws noise. A draw states
the sensitivity of what is released and the scale of the noise. The account computes the cost of the
draw from these two numbers, records the event, and only then adds noise. Nothing else states what
was spent. So every draw is paid for, and no payment covers two draws.

Two *filters* decide whether a draw fits. Each allows adaptive composition, in which the next draw
may depend on all earlier answers:

* *pure*: the epsilons of all draws, as exact fractions, add up to at most :math:`\varepsilon`;
* *Gaussian*: the squares of the parameters of Gaussian differential privacy add up to at most
  :math:`\mu^2`, where :math:`\mu`-GDP is :math:`(\varepsilon, \delta - r)`-DP;
  :func:`~quorate.core.account.costs.as_gaussian` gives the square of a pure draw. [1]_

A draw is allowed if either filter allows it. Draws with a failure probability of their own
(:class:`~quorate.core.guarantees.Approximate`) take it from the reserve :math:`r`. A part of
epsilon may be set aside for pure draws beside Gaussian noise. Both are fixed when the account is
opened. The proof is in ``docs/proofs/account.md``.

References
----------
.. [1] Smith, Thakurta. Fully adaptive composition for Gaussian differential privacy.
   arXiv:2210.17520. Rogers, Roth, Ullman, Vadhan. Privacy odometers and filters. NeurIPS 2016.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import (
    exact,
    exact_ratio,
    float_down,
    float_up,
    pure_loss,
    ratio_root_down,
    ratio_root_up,
)
from quorate.core.account.compose import price
from quorate.core.account.costs import (
    PricedChain,
    covers_of_each,
    draw_costs,
    gdp_mu,
    promise_of,
    words,
)
from quorate.core.bounds.grid import Law
from quorate.core.forgetting import forgetting
from quorate.core.guarantees import (
    UNITS,
    DrawCosts,
    Event,
    Guarantee,
    Nothing,
    Relation,
    Repeated,
    Trust,
    compose_events,
    gaussian_costs,
)
from quorate.core.moves import GridMoves
from quorate.core.noise import NoiseSource, ambient_noise
from quorate.core.noise.composed_laws import SECRETS, Sampler, secret_order
from quorate.core.noise.sources import DrawnAhead
from quorate.core.once import OnceOnly
from quorate.core.sealed import Sealed, check_sealed, opened
from quorate.exceptions import NumericalFailure, ParameterError, RelationMismatchError, SealedError

__all__ = ["Account", "noise_for", "sample_for", "smallest_of_visits"]

Integers = NDArray[np.int64]

_NONE = Fraction(0)
# Shares of a budget are planned in floating point; what is drawn is compared exactly.
_BITS = Fraction(1, 2**30)


class Account(OnceOnly):
    """The budget of one fit and its draws; it works in one process only, and cannot be copied.

    Parameters
    ----------
    epsilon, delta : float or Fraction
        The declared budget; a ``Fraction`` is kept exactly.
    relation : Relation
    reserve : float or Fraction, default=0
        The part of ``delta`` for draws with a failure probability of their own.
    aside : float or Fraction, default=0
        The part of ``epsilon`` for pure draws beside Gaussian noise.
    noise : NoiseSource, optional
        The source of noise; by default the ambient one at the moment when the account is opened.

    Examples
    --------
    >>> from quorate.core.people import People
    >>> from quorate.core.users import UserData
    >>> data = UserData.from_arrays([[1.0], [5.0]], users=["ann", "bob"])
    >>> counts = People(data, Relation.REPLACE).counts(UserData.record_counts, [1])
    >>> account = Account.open(epsilon=Fraction(1, 3))
    >>> account.laplace(counts, scale=6.0).shape
    (1,)
    >>> account.left, account.event
    (Fraction(1, 6), Pure(epsilon=0.16666666666666669))
    >>> account.laplace(counts, scale=5.0)
    Traceback (most recent call last):
        ...
    quorate.exceptions.NumericalFailure: A draw of pure loss 0.2 does not fit into what is left of
    epsilon=0.333333, delta=0: nothing was drawn. Please report this.
    """

    def __init__(
        self,
        *,
        epsilon: Fraction,
        square: Fraction,
        reserve: Fraction,
        noise: NoiseSource,
        declared: Guarantee,
        parent: Account | None = None,
    ) -> None:
        super().__init__(parent)
        self.declared = declared
        self.epsilon = epsilon
        self.square = square
        self.reserve = reserve
        self.aside = _NONE
        self._noise = noise
        self._parent = parent
        self._lock: threading.RLock = threading.RLock() if parent is None else parent._lock
        self._pure_only = True
        self._pure = self._aside = self._failures = _NONE
        self._squares = 0  # in units, like _square
        self._drawn: Counter[Event] = Counter()
        self._groups: list[list[Account]] = []
        self._plan: PricedChain | None = None
        self._ahead: DrawnAhead | None = None
        # The account of the whole fit, which all its parts are about.
        self._whole: Account = self if parent is None else parent._whole
        # Who has paid for all of it ahead: it is about the same people.
        self._payer: Account | None = None

    @classmethod
    def open(
        cls,
        *,
        epsilon: float | Fraction,
        delta: float | Fraction = 0.0,
        relation: Relation = Relation.REPLACE,
        reserve: float | Fraction = 0,
        aside: float | Fraction = 0,
        noise: NoiseSource | None = None,
        unit: str = "user",
        trust: Trust = Trust.CENTRAL,
    ) -> Self:
        """Open an account for a declared budget.

        >>> Account.open(epsilon=1.0, delta=1e-6).square > Fraction(5, 100)
        True
        """
        _validate.positive(epsilon=epsilon)
        _validate.delta(delta=delta)
        _validate.one_of(tuple(Relation), relation=relation)
        whole, kept = exact(delta), exact(reserve)
        if not 0 <= kept <= whole:
            raise ParameterError(f"Expected 0 <= reserve <= delta={delta!r}, got {reserve!r}.")
        noise = ambient_noise() if noise is None else noise
        declared = Guarantee(
            epsilon=float_up(epsilon),
            delta=float_up(delta),
            unit=unit,
            relation=relation,
            trust=trust,
            numerics=noise.numerics,
        )
        account = cls(
            epsilon=exact(epsilon), square=Fraction(0), reserve=kept, noise=noise, declared=declared
        )
        account.set_aside(aside)
        return account

    @classmethod
    def of_release(cls, account: Account | None, mechanism: Any) -> Account:
        """Return ``account`` after checking its relation, or a new account for this release alone.

        A mechanism that is used without an account is charged exactly its guarantee. A mechanism
        for another neighbouring relation than the account's is refused.
        """
        relation: Relation = mechanism.relation
        if account is None:
            return cls.for_event(mechanism.event, relation=relation)
        if account.relation is not relation:
            raise RelationMismatchError(
                f"{type(mechanism).__name__} hides neighbours that {relation.value}, the account "
                f"is about those that {account.relation.value}."
            )
        return account

    @classmethod
    def for_event(
        cls,
        event: Event,
        *,
        relation: Relation = Relation.REPLACE,
        noise: NoiseSource | None = None,
    ) -> Account:
        """Open an account that can pay for exactly ``event``, whatever it costs and for any delta.

        >>> Account.for_event(Nothing()).square
        Fraction(0, 1)
        """
        noise = ambient_noise() if noise is None else noise
        _, (pure, square, failures) = draw_costs(event)
        return cls(
            epsilon=_NONE if pure is None else pure,
            square=Fraction(square or 0, UNITS),
            reserve=failures,
            noise=noise,
            declared=promise_of(event, relation, noise.numerics),
        )

    @property
    def relation(self) -> Relation:
        """The neighbouring relation of the account."""
        return self.declared.relation

    @property
    def left(self) -> Fraction:
        """The remaining pure epsilon; zero once Gaussian noise has been drawn."""
        with self._lock:
            own = self.epsilon - self._pure if self._pure_only else self.aside - self._aside
            return own if self._parent is None else min(own, self._parent.left)

    @property
    def square(self) -> Fraction:
        """The squared parameter of Gaussian differential privacy of the opening budget."""
        return Fraction(self._square, UNITS)

    @square.setter
    def square(self, square: Fraction) -> None:
        self._square = square.numerator * UNITS // square.denominator

    @property
    def square_left(self) -> Fraction:
        """The remaining part of mu squared."""
        return Fraction(self._units_left(), UNITS)

    def _units_left(self) -> int:
        with self._lock:
            own = max(0, self._square - self._squares)
            return own if self._parent is None else min(own, self._parent._units_left())

    @property
    def mu(self) -> float:
        """The parameter of Gaussian differential privacy of the whole account, rounded down."""
        return ratio_root_down(self._square, UNITS)

    def set_aside(self, epsilon: Fraction | float) -> None:
        """Reserve ``epsilon`` for pure draws beside Gaussian noise; only before the first draw."""
        if self._is_begun() or self._parent is not None:
            raise ParameterError("Expected to set epsilon aside before anything is drawn.")
        if not 0 <= exact(epsilon) <= self.epsilon:
            raise ParameterError(f"Expected to set aside a part of epsilon, got {epsilon!r}.")
        self.aside = exact(epsilon)
        left, delta = self.epsilon - self.aside, exact(self.declared.delta) - self.reserve
        mu = gdp_mu(float_down(left), float_down(delta)) if left > 0 and delta > 0 else 0.0
        self.square = exact(mu) ** 2

    def part(self, share: Fraction | float) -> Account:
        """Return an account that may spend ``share`` of the opening budget of this one.

        Several parts may be open at once; everything they draw is also drawn from this account.

        >>> Account.open(epsilon=1.0).part(Fraction(1, 3)).left
        Fraction(1, 3)
        """
        _validate.fraction(share=share)
        return self._child(exact(share) * self.epsilon, exact(share) * self.square)

    def part_of(
        self, *, epsilon: Fraction | float | None = None, square: Fraction | float | None = None
    ) -> Account:
        """Return an account with a part of the pure epsilon, or a part of mu squared.

        >>> Account.open(epsilon=1.0).part_of(epsilon=0.25).left
        Fraction(1, 4)
        """
        return self._child(
            Fraction(0) if epsilon is None else exact(epsilon),
            Fraction(0) if square is None else exact(square),
        )

    def rest(self) -> Account:
        """Return an account with the whole remaining budget."""
        return self._child(self.left, self.square_left)

    def multiplier(self, square: Fraction | float, *, count: int = 1) -> float:
        """Return the smallest noise multiplier of ``count`` Gaussian releases that cost ``square``.

        If floating-point rounding makes the last share a few bits too large, it is reduced to what
        is left.

        >>> Account.open(epsilon=3.0, delta=1e-6).multiplier(Fraction(1, 4))
        2.0
        """
        _validate.positive(square=square)
        (top, bottom), left = exact_ratio(square), self._units_left()
        if top * UNITS > left * bottom:
            if Fraction(top, bottom) * (1 - _BITS) > Fraction(left, UNITS):
                raise NumericalFailure(
                    f"A step asked for a square of {float(square):.6g} where "
                    f"{left / UNITS:.6g} is left: nothing was drawn. Please report this."
                )
            top, bottom = left, UNITS
        return ratio_root_up(count * bottom, top)

    def _child(self, epsilon: Fraction, square: Fraction) -> Account:
        return Account(
            epsilon=epsilon,
            square=square,
            reserve=self.reserve,
            noise=self._noise,
            declared=self.declared,
            parent=self,
        )

    # Draws. Each writes down what it costs before it adds noise.

    def laplace(self, total: Sealed, *, scale: float | Fraction) -> Integers:
        """Release a sealed vector with discrete Laplace noise; its L1 sensitivity is the cost."""
        scale = self._checked(total, scale)
        noise = self._source(pure_loss(total.moves.l1, scale))
        return noise.discrete_laplace(opened(total), scale=scale)

    def gaussian(self, total: Sealed, *, sigma: float) -> Integers:
        """Release a sealed vector with discrete Gaussian noise.

        Its L2 sensitivity determines the cost.
        """
        sigma = self._checked(total, sigma)
        event, costs = gaussian_costs(sigma, total.moves.l2_squared)
        noise, numbers = self._pay(event, costs), opened(total)
        with self._lock:
            noisy = None if self._ahead is None else self._ahead.add(numbers, sigma=sigma)
        return noise.discrete_gaussian(numbers, sigma=sigma) if noisy is None else noisy

    def joint(self, total: Sealed, law: Law, *, scale: float | Fraction) -> Integers:
        """Release a sum of bounded vectors with noise whose coordinates depend on each other.

        ``cube_laplace`` is for vectors in a box, ``blocks_laplace`` for several vectors each, and
        ``balanced_laplace`` for shares of one whole. Coordinates beside these get independent
        Laplace noise of the same scale.
        """
        scale = self._checked(total, scale)
        if not isinstance(total.moves, GridMoves):
            raise SealedError("Expected a total of contributions on a grid: people.total(...).")
        shape, moved = total.moves.joint(law)
        noise, numbers = self._source(pure_loss(moved, scale)), opened(total)
        width = math.prod(shape)
        inside, beside = numbers[:width], numbers[width:]
        if inside.size:
            inside = getattr(noise, law)(inside.reshape(shape), scale=scale).ravel()
        if beside.size:
            beside = noise.discrete_laplace(beside, scale=scale)
        return np.append(inside, beside)

    def draw_ahead(self, sigmas: Sequence[float], *, size: int) -> None:
        """Draw noise for later Gaussian releases; each release is charged when it uses its vector.

        >>> account = Account.open(epsilon=1.0, delta=1e-6)
        >>> account.draw_ahead([50.0, 60.0], size=3)
        >>> account.event
        Nothing()
        """
        ahead = self._noise.gaussian_ahead(sigmas, size=size) if self._plan is None else None
        with self._lock:
            self._ahead = ahead

    def permute_and_flip(self, scores: Sealed, *, scale: float | Fraction) -> int:
        """Choose by permute-and-flip; the sensitivity of score differences gives the cost."""
        scale = self._checked(scores, scale)
        noise = self._source(pure_loss(scores.moves.spread, scale))
        return noise.permute_and_flip(opened(scores), scale=scale)

    def gumbel_max(self, scores: Sealed, *, scale: float | Fraction) -> int:
        """Choose by the exponential mechanism; the cost is that of :meth:`permute_and_flip`."""
        scale = self._checked(scores, scale)
        noise = self._source(pure_loss(scores.moves.spread, scale))
        return noise.gumbel_max(opened(scores), scale=scale)

    def pay(self, event: Event | Fraction) -> None:
        """Record ``event``; refuse one that does not fit. Nothing is drawn.

        A ``Fraction`` stands for a pure loss.

        >>> account = Account.open(epsilon=1.0)
        >>> account.pay(Fraction(1, 2))
        >>> account.left
        Fraction(1, 2)
        """
        self._source(event)

    def secret_order(self, size: int) -> Integers:
        """Return the numbers below ``size`` in a uniformly random, secret order.

        It costs nothing, because it does not depend on the data.

        >>> sorted(Account.open(epsilon=1.0).secret_order(3).tolist())
        [0, 1, 2]
        """
        return secret_order(size, secret=self._noise.uniform_below(SECRETS))

    # Secret samples of the users.

    def reserve_chain(self, event: Event) -> None:
        """Reserve the whole account for a chain of events that is fixed before anything is drawn.

        The filters are needed if each draw may be chosen after the last answer. A chain whose
        length and noise are public can be priced as a whole, often at a lower cost. The privacy
        curves of chains on secret samples cross, so no filter covers a choice between them. From
        then on each elementary event of the chain may be drawn once (or one that costs less in its
        place), and Gaussian noise on all users up to the sum of its squares.

        >>> account = Account.open(epsilon=1.0, delta=1e-6)
        >>> from quorate.core.guarantees import Composed, Gaussian, Subsampled
        >>> steps = Repeated(Subsampled(Gaussian(2.0), rate=0.01), 10)
        >>> account.reserve_chain(Composed((Gaussian(9.0), steps)))
        >>> round(81 * float(account.square), 9)
        1.0
        """
        with self._lock:
            if self._is_begun() or self._parent is not None:
                raise ParameterError("Expected a plan before anything is drawn, for a whole fit.")
            cost = price(event, delta=self.declared.delta, relation=self.relation)
            if not cost <= float_down(exact(self.declared.epsilon) - self.aside):
                raise NumericalFailure(
                    f"A plan costs epsilon={cost!r} where {self.declared.epsilon!r} was declared: "
                    "nothing was drawn."
                )
            self._plan, self.square = PricedChain.of(event)
            self.epsilon = self.reserve = _NONE

    def _is_begun(self, besides: Sequence[Account] = ()) -> bool:
        """Whether anything was drawn, or was planned for groups other than the given ones."""
        groups = [group for family in self._groups for group in family if group not in besides]
        return bool(self._drawn) or any(g._drawn or g._plan is not None for g in groups)

    # The promise.

    @property
    def event(self) -> Event:
        """The event of everything that was drawn."""
        with self._lock:
            parts = [
                event if count == 1 else Repeated(event, count)
                for event, count in self._drawn.items()
            ]
            for groups in self._groups:
                drawn = [group.event for group in groups if group._drawn]
                parts += [self._envelope(drawn)] if drawn else []
        return compose_events(parts) if parts else Nothing()

    def _envelope(self, drawn: Sequence[Event]) -> Event:
        """Return the cheapest event, at the declared delta, that covers each of ``drawn``."""
        delta = self.declared.delta
        able = covers_of_each(drawn)
        return min(able, key=lambda event: price(event, delta=delta, relation=self.relation))

    def guarantee(self) -> Guarantee:
        """Return the declared guarantee with the events that were drawn under it."""
        return replace(self.declared, events=(self.event,))

    def _checked(self, sealed: Sealed, scale: float | Fraction) -> float:
        """Refuse numbers not sealed, or about other people; return the scale as a float."""
        check_sealed(sealed, Sealed)
        self.check_seal(sealed)
        return float_up(scale)

    def check_seal(self, sealed: Any) -> None:
        """Refuse numbers sealed under another relation, or about other people."""
        if sealed.relation is not self.relation:
            raise RelationMismatchError(
                f"This number hides neighbours that {sealed.relation.value}, the account is about "
                f"those that {self.relation.value}."
            )
        self._check_people(sealed)

    def _check_people(self, sealed: Any) -> None:
        """Refuse a number about the people of a sample, of a group, or of another fit."""
        if self._payer is not None:
            self._payer._check_people(sealed)
        elif self._parent is not None:
            self._parent._check_people(sealed)
        elif isinstance(sealed.among, Account) and sealed.among._whole is not self._whole:
            raise SealedError(
                "This number is about the people of another fit and can only be released by the "
                "account of that fit. Pass that account: a second account is not part of the "
                "guarantee."
            )

    def _source(self, event: Event | Fraction) -> NoiseSource:
        return self._pay(*draw_costs(event))

    def _pay(self, event: Event, costs: DrawCosts) -> NoiseSource:
        self.refuse_elsewhere()
        with self._lock:
            self._check(event, costs)
            self._write(event, costs)
        return self._noise

    def _check(self, event: Event, costs: DrawCosts) -> None:
        pure, square, failures = costs
        by_plan = self._plan is not None and self._plan.step_for(event, pure) is not None
        by_sum = pure is not None and self._pure_only and self._pure + pure <= self.epsilon
        if pure is not None and not by_sum and self._fits_aside(pure):
            square = 0
        by_squares = not by_sum and square is not None and self._squares + square <= self._square
        fails = bool(failures) and self._failures + failures > self.reserve
        if not (by_plan or by_sum or by_squares) or fails:
            raise NumericalFailure(
                f"A draw of {words(event, pure)} does not fit into what is left of "
                f"epsilon={self.declared.epsilon:.6g}, delta={self.declared.delta:.6g}: nothing "
                "was drawn. Please report this."
            )
        self._ask_parent(event, costs)

    def _write(self, event: Event, costs: DrawCosts) -> None:
        self._drawn[event] += 1
        self._spend(event, costs)
        self._tell_parent(event, costs)

    def _spend(self, event: Event, costs: DrawCosts) -> None:
        pure, square, failures = costs
        self._failures = self._failures + failures if failures else self._failures
        if self._plan is not None and self._plan.take(event, pure):
            return  # it was priced as a whole: its steps cost the filters nothing more
        self._pure_only &= pure is not None
        self._pure = self._pure + pure if pure else self._pure  # fractions add slowly, zeros too
        if pure is not None and self._fits_aside(pure):
            self._aside += pure
        else:
            # A draw that one filter cannot cover closes that filter: it never holds again.
            self._squares += square if square is not None else self._square + UNITS

    def _fits_aside(self, pure: Fraction | None) -> bool:
        if pure is None or (pure and not self.aside):  # the common cases: nothing was set aside
            return False
        return self._aside + pure <= self.aside

    def _ask_parent(self, event: Event, costs: DrawCosts) -> None:
        if self._parent is not None:
            self._parent._check(event, costs)

    def _tell_parent(self, event: Event, costs: DrawCosts) -> None:
        if self._parent is not None:
            self._parent._write(event, costs)


# For closed operations: mechanisms whose law has a proof of its own, beside them. A test over the
# imports lists them; nobody else gets hold of a source of noise.


def noise_for(account: Account, event: Event | Fraction) -> NoiseSource:
    """Record ``event`` and return the source from which the operation draws its noise.

    >>> noise_for(Account.open(epsilon=1.0), Fraction(1, 2)).uniform_below(1)
    0
    """
    return account._source(event)


def sample_for(
    account: Account,
    method: str,
    draw: Sampler,
    *,
    held: Any,
    loss: Fraction,
    **public: Any,
) -> int:
    """Return the outcome of an exact sampler whose law is ``loss``-DP, by its own proof.

    ``held`` contains what determines the law; only audits use it.
    """
    return account._source(loss).sample(method, draw, held=held, **public)


def smallest_of_visits(
    account: Account,
    visit: Callable[[int, Account], float],
    *,
    loss: Fraction,
    candidates: int,
    visits: int,
) -> tuple[int, float]:
    """Return the candidate with the smallest value in a secret number of visits, and this value.

    Each visit goes to a uniformly random candidate and may spend ``loss``. After each visit a coin
    of chance 1 / ``visits`` ends the game. Releasing the best of a geometric number of visits costs
    three times as much as one visit (Theorem 3.2 of Liu and Talwar, arXiv:1811.07971), however many
    there were; this is charged once, before the first. A visit must not store what it finds.

    >>> def look(candidate, own):
    ...     own.pay(Fraction(1, 4))
    ...     return 7.0
    >>> account = Account.open(epsilon=1.0)
    >>> smallest_of_visits(account, look, loss=Fraction(1, 4), candidates=1, visits=3), account.left
    ((0, 7.0), Fraction(1, 4))
    """
    noise = account._source(3 * loss)
    best, place = math.inf, 0
    with forgetting(visit):
        while True:
            candidate = noise.uniform_below(candidates)
            own = Account.open(epsilon=loss, relation=account.relation, noise=noise)
            own._payer = account
            try:
                value = visit(candidate, own)
            finally:  # what it leaves is paid by nobody afterwards
                own.epsilon = _NONE
            if value < best:
                best, place = value, candidate
            if noise.uniform_below(visits) == 0:
                return place, best
