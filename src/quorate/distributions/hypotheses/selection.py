"""Private choice of one of finitely many distributions (F7)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.users.crowd import Crowd
from quorate.distributions.hypotheses.clip import Clip, Votes
from quorate.distributions.hypotheses.families import DuelTable, Family, PairwiseFamily
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError, SchemaError
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.choices.choose import ChooseBest

__all__ = ["HypothesisSelector", "choose_member"]


def choose_member(
    people: People,
    family: Family,
    *,
    clip: Clip | Votes,
    epsilon: float,
    account: Account,
) -> int:
    """Return the index of the member with the best worst duel, by one purely private choice.

    Privacy: the core clips a user's contribution to a duel to [-T, T] for T = ``clip.limit(...)``,
    or to less, whatever the records are. The sum over users moves by at most 2 T when a user is
    replaced and by T when one is added or removed, and so does the largest of several sums. This is
    ``clip.sensitivity(...)``, and the choice costs ``epsilon``.

    >>> from quorate.core.account.account import Account
    >>> from quorate.distributions.hypotheses.families import DiscreteFamily
    >>> from quorate.core.users import UserData
    >>> data = UserData.from_arrays([[0.0]] * 400, users=np.arange(400))
    >>> people = People(data, Relation.REPLACE)
    >>> known = {"clip": Clip(0.5), "epsilon": 1.0, "account": Account.open(epsilon=1.0)}
    >>> choose_member(people, DiscreteFamily([[0.1, 0.9], [0.9, 0.1]]), **known)
    1
    """
    chooser = ChooseBest(
        candidates=family.size,
        epsilon=epsilon,
        sensitivity=clip.sensitivity(family.unit, account.relation),
        relation=account.relation,
    )
    table = DuelTable(family, clip)
    return chooser.release(-table.worst(people.scores(table)), account=account)


class HypothesisSelector(UserEstimator):
    r"""Choose the member of a family of densities that is nearest to the users' records.

    For every pair of members the set is used where the first has the larger density. For each user
    it is computed how much less often the records fall into this set than the first member
    predicts. These numbers are clipped and summed over users. The loss of a member is its worst
    comparison. With ``clip=Votes()`` every user votes instead, in every comparison, for the member
    under which the records are likelier.

    Learning
    --------
    concept class : a finite family of densities,
        :class:`~quorate.distributions.hypotheses.families.Family`; covers of larger families are in
        :mod:`quorate.distributions.hypotheses.covers`
    setting : users i.i.d., records of one user i.i.d.; the truth within 0.1 alpha of a member
    users needed : :math:`\tilde O(\ln(|F|/\beta)(1/\varepsilon + 1/(\alpha\varepsilon\sqrt m) +
        1/(\alpha^2 m)))` for total variation alpha (Theorem 41 of [1]_)

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the family and all parameters; under ``Relation.REPLACE`` the number of users
    numerics : exact
    proof : :func:`choose_member`: a user's clipped contribution moves a member's worst duel by at
        most 2T when the user is replaced, and by T when one is added. A vote is 1, 0 or -1 and
        likewise a function of the user's own records, so T = 1. The choice is one release of
        :class:`~quorate.mechanisms.ChooseBest`. Released: ``index_``.

    Complexity
    ----------
    Time :math:`O(n|F|^2k)` for n users and k points, memory :math:`O(|F|^2)`; for densities on
    numbers :math:`O(N|F|^2)` with N records. A
    :class:`~quorate.distributions.hypotheses.covers.SimplexGrid` needs :math:`O(2^k(nI + |F|))`.

    Parameters
    ----------
    family : Family
    epsilon : float, default=1.0
    clip : Clip or Votes, default=Clip(0.5)
        The clipping of a user's contribution to a duel; by default half the standard deviation by
        chance. ``Clip.published(m, alpha=...)`` is the clip of the paper. ``Votes()`` is more
        accurate for users with tens of records if some member is close to the truth; it needs a
        family with a table of all duels.
    delta : 0.0
        Only pure differential privacy is supported; any other value is refused.
    relation, ledger, data_name, random_state
        As in every estimator; ``random_state`` seeds :meth:`sample`.

    Attributes
    ----------
    index_ : int
        The index of the chosen member.
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
       examples per user. NeurIPS 2023. Theorems 37 and 41.

    Examples
    --------
    >>> from quorate.distributions.hypotheses.families import DiscreteFamily
    >>> rng = np.random.default_rng(0)
    >>> records = rng.choice(3, size=(60 * 20, 1), p=[0.7, 0.2, 0.1])
    >>> family = DiscreteFamily([[0.1, 0.2, 0.7], [0.7, 0.2, 0.1], [0.4, 0.3, 0.3]])
    >>> chooser = HypothesisSelector(family).fit(records, users=np.arange(1200) // 20)
    >>> chooser.index_
    1
    >>> chooser.score_samples([[0]]).round(2).tolist()
    [-0.36]
    """

    _single_feature = True
    _takes_crowds = True
    _uses_delta = False

    def __init__(
        self,
        family: Family,
        epsilon: float = 1.0,
        *,
        clip: Clip | Votes | None = None,
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.family = family
        self.epsilon = epsilon
        self.clip = clip
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> HypothesisSelector:
        """Choose a member; the data are ``(X, users=...)`` or a ``UserData``."""
        del y
        clip = self._checked_clip()
        _ = self.family.shape  # too many members are refused before the charge
        self._check_features(_columns(X))
        account = self._charge(X, None, users)
        people = self._population(X, None, users)
        self._check_features(people.n_features)
        index = choose_member(people, self.family, clip=clip, epsilon=self.epsilon, account=account)
        self.guarantee_ = self._promise(account)
        self.index_ = index
        self.algorithm_ = Route(
            name="duels", reason=f"the best worst duel among {self.family.size} members."
        )
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the log density of the chosen member at each record."""
        return self.family.log_density(self._features(X), self.index_)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> NDArray[np.float64]:
        """Draw records from the chosen member; post-processing, at no cost."""
        seed = self.random_state if random_state is None else random_state
        return self.family.sample(self.index_, n_samples, seed)

    def _check_features(self, found: int | None) -> None:
        expected = self.family.n_features
        if found is not None and found != expected:
            raise SchemaError(f"Expected {expected} feature(s) in X, got {found}.")

    def _checked_clip(self) -> Clip | Votes:
        if not isinstance(self.family, Family):
            raise ParameterError(
                f"Expected family to be a Family, got {type(self.family).__name__}. See "
                "quorate.distributions.hypotheses.families."
            )
        clip = Clip(0.5) if self.clip is None else self.clip
        if not isinstance(clip, Clip | Votes):
            raise ParameterError(f"Expected clip to be a Clip or Votes, got {type(clip).__name__}.")
        if isinstance(clip, Votes) and not isinstance(self.family, PairwiseFamily):
            raise ParameterError(
                "Votes need a family with a table of all duels, such as DiscreteFamily; got "
                f"{type(self.family).__name__}."
            )
        return clip


def _columns(X: Any) -> int | None:
    """Return the number of features of a table, if it is known without reading the table."""
    if isinstance(X, Crowd):
        return X.n_features
    if isinstance(X, list):
        return len(X[0]) if X and isinstance(X[0], list | tuple) else None
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return shape[1] if len(shape) == 2 else None
