r"""Short lists of hypotheses that most samples share, and one hypothesis from many lists (G3, G4).

:class:`ListLearner` keeps the hypotheses of small error on a sample and reduces them to at most
:math:`2^d` predictions of the optimal online learner, where d is the Littlestone dimension. It
follows the reduction of [1]_ in spirit and in its components, in a simpler form without a theorem
about its stability, which is measured (``benchmarks/agreement.py``).
:class:`~quorate.papers.stability.proved_lists.ProvedListLearner` has such a theorem, with longer
lists. :class:`ListRule` is Algorithm 1 of [2]_. A user divides the records into chunks and drops
hypotheses that err on fresh records. The hypotheses in many lists of the first chunks are kept and
weighted by how often they are in lists of the other chunks. The shared seed chooses among them.

References
----------
.. [1] Ghazi, Golowich, Kumar, Manurangsi. Sample-efficient proper PAC learning with approximate
   differential privacy. STOC 2021.
.. [2] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS 2021,
   Definitions 14 and 16, Lemma 19, Algorithm 1.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.users import UserData
from quorate.core.users.public_choices import in_own_order
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept, labelled_records
from quorate.learners.concepts.dimensions import TooMuchWork
from quorate.learners.concepts.tables import FiniteTable
from quorate.papers.stability.correlated_sampling import outcome_id
from quorate.papers.stability.littlestone import VersionSpaces, space_of
from quorate.papers.stability.rules import Keys, StableRule, key_array
from quorate.papers.stability.shared_seed import SharedSeed, hash_word

__all__ = ["ListLearner", "ListRule", "filter_records", "published_chunks"]

LARGEST_DOMAIN = 256
"""Points of a domain: a hypothesis is a key of as many bits."""


@dataclass(frozen=True, eq=False)
class ListLearner:
    r"""Reduce a sample to a list of at most :math:`2^d` hypotheses (G3).

    Let V be the hypotheses of error at most :math:`\alpha/2`. If some point, in a public order,
    lowers the dimension of V on both of its sides, continue with both sides; otherwise list the
    predictions of the optimal learner on V. Hypotheses may lie outside of the class.

    Parameters
    ----------
    concepts : FiniteTable
        The class, on a finite domain of at most 256 points.
    alpha : float, default=0.02
        Desired error.

    Examples
    --------
    >>> learner = ListLearner(FiniteTable(np.tri(8, 7, -1)))
    >>> learner.dimension, learner.longest
    (3, 8)
    >>> learner.list_of(learner.spaces.everything)
    (0, 15)
    """

    concepts: FiniteTable
    alpha: float = 0.02

    def __post_init__(self) -> None:
        _validate.probability(alpha=self.alpha)
        if not isinstance(self.concepts, FiniteTable):
            raise ParameterError(
                f"Expected a FiniteTable, got {type(self.concepts).__name__}; list the class by "
                "FiniteTable(concepts.predictions(domain).T, domain=domain)."
            )
        if self.concepts.table.shape[1] > LARGEST_DOMAIN:
            raise ParameterError(
                f"Expected a domain of at most {LARGEST_DOMAIN} points, got "
                f"{self.concepts.table.shape[1]}."
            )
        _ = self.dimension  # a class that is too much work is refused before anybody's records

    @cached_property
    def spaces(self) -> VersionSpaces:
        """Version spaces of the class."""
        return VersionSpaces(self.concepts.table)

    @cached_property
    def dimension(self) -> int:
        """The Littlestone dimension d."""
        return self.spaces.dimension(self.spaces.everything)

    @property
    def longest(self) -> int:
        """The largest length of a list, 2^d."""
        return 1 << self.dimension

    def list_of(self, space: int) -> tuple[int, ...]:
        """Return the list of a version space, without repetitions, in a public order.

        Version spaces are private, so nothing about them is cached. If one takes too many steps its
        list is empty, independently of earlier calls.
        """
        try:
            return self._listed(space, self.spaces.afresh())
        except TooMuchWork:
            return ()

    def _listed(self, space: int, spaces: VersionSpaces) -> tuple[int, ...]:
        if space == 0:
            return ()
        sides = spaces.splits(space)
        if sides is None:
            return (spaces.optimal(space),)
        return tuple(dict.fromkeys(h for side in sides for h in self._listed(side, spaces)))

    def lists(self, users: UserData) -> list[tuple[int, ...]]:
        """Return the list of each user (one sample each); empty if no hypothesis fits."""
        allowed = np.floor(self.alpha / 2 * users.record_counts())
        found: list[tuple[int, ...]] = []
        list_of = cache(self.list_of)
        for block, mistakes in self.concepts.mistakes_in_batches(users):
            fits = mistakes <= allowed[block, np.newaxis]
            found += [list_of(space_of(row)) for row in fits]
        return found

    def filtered(self, lists: list[tuple[int, ...]], fresh: UserData) -> list[tuple[int, ...]]:
        """Keep hypotheses with an error of at most 1.5 alpha on fresh records (Lemma 19).

        ``fresh`` contains one user for each list.
        """
        different = list(dict.fromkeys(h for each in lists for h in each))
        if not different:
            return lists
        rows = np.array([_row(h, self.concepts.table.shape[1]) for h in different])
        listed = FiniteTable(rows, domain=self.concepts.points)
        place = {h: i for i, h in enumerate(different)}
        allowed, kept = 1.5 * self.alpha * fresh.record_counts(), []
        for block, mistakes in listed.mistakes_in_batches(fresh):
            fine = mistakes <= allowed[block, np.newaxis]
            kept += [
                tuple(h for h in each if row[place[h]])
                for each, row in zip(lists[block], fine, strict=True)
            ]
        return kept


def filter_records(
    *, longest: int, alpha: float, zeta: float, constants: str = "calibrated"
) -> int:
    """Return the fresh records that Lemma 19 needs, by exact tails or as published.

    The published number is 100 ln(L / zeta) / alpha^2. The exact number is the smallest m with L
    P[Bin(m, 2 alpha) <= 1.5 alpha m] <= zeta.

    >>> filter_records(longest=8, alpha=0.2, zeta=0.05)
    151
    >>> filter_records(longest=8, alpha=0.2, zeta=0.05, constants="published")
    12688
    """
    from scipy.stats import binom

    _validate.positive_integer(longest=longest)
    _validate.probability(alpha=alpha, zeta=zeta)
    _validate.one_of(("calibrated", "published"), constants=constants)
    published = math.ceil(100 * math.log(longest / zeta) / alpha**2)
    if constants == "published":
        return published
    sizes = np.arange(1, published + 1)
    kept = binom.cdf(np.floor(1.5 * alpha * sizes), sizes, min(1.0, 2 * alpha))
    too_few = np.flatnonzero(longest * kept > zeta)
    return int(sizes[too_few[-1]]) + 1 if too_few.size else 1


def published_chunks(*, longest: int, eta: float, beta: float) -> tuple[float, float, float, float]:
    """Return tau, gamma, k1 and k2 of Theorem 20, for lists that share a hypothesis with ``eta``.

    >>> tau, gamma, k1, k2 = published_chunks(longest=8, eta=0.5, beta=0.1)
    >>> k2 > 1e20
    True
    """
    _validate.probability(eta=eta, beta=beta)
    tau = eta / 2
    spread = math.log(longest / (beta * tau))
    gamma = 1e6 * spread / tau
    return tau, gamma, 1e6 * spread / tau**2, math.ceil(1e6 * gamma**2 * spread / beta**4)


@dataclass(frozen=True, eq=False)
class ListRule(StableRule):
    r"""Decide by many lists and a shared seed (G4, Algorithm 1).

    A user's records are shuffled by the shared seed and cut into chunks. Hypotheses with an error
    above :math:`1.5\alpha` on a chunk's fresh records are removed from its list (Lemma 19).
    Hypotheses in at least ``share`` of the lists of the first ``first`` chunks are kept. Each gets
    the weight :math:`e^{\gamma Q}`, where Q is its share of the lists of the other chunks. The
    shared seed chooses one by its identity, not by its position in the list. Without any
    hypothesis, or with fewer than two chunks, the key is 0, "always 0".

    Parameters
    ----------
    learner : ListLearner
    chunk : int, default=64
        Records per chunk; an incomplete chunk is dropped.
    fresh : int, optional
        Additional records of each chunk that filter its list, as Theorem 20 assumes;
        :func:`filter_records` returns the number. By default the records of the next chunk are
        used, which needs no additional records but makes lists of neighbouring chunks slightly
        dependent.
    first, others : int, default=8
        Numbers of chunks that propose hypotheses, and of chunks that weight them.
    share : float, default=0.5
        The published tau.
    gamma : float, default=20.0

    Examples
    --------
    >>> table = FiniteTable(np.tri(8, 7, -1))
    >>> x = np.tile(np.arange(7), 40)
    >>> users = UserData.from_arrays(x[:, None], x < 3, users=np.repeat([1, 2], 140))
    >>> rule = ListRule(ListLearner(table), chunk=14, first=5, others=5)
    >>> print(rule.concept(rule.decide(users, SharedSeed(0))[1], SharedSeed(0)))
    Predict 1 if x is 0 or 1 or 2, else 0.
    """

    learner: ListLearner
    chunk: int = 64
    first: int = 8
    others: int = 8
    share: float = 0.5
    gamma: float = 20.0
    fresh: int | None = None

    @classmethod
    def published(cls, learner: ListLearner, *, chunk: int, eta: float, beta: float) -> ListRule:
        """Return the rule with every constant of Theorem 20 (:func:`published_chunks`).

        ``eta`` is how often lists of ``chunk`` records share a hypothesis. Fresh records filter
        each list as Lemma 19 prints it, with the failure probability that the theorem assumes.
        Nobody has :attr:`records_needed` records, so it is only for comparison.

        >>> table = FiniteTable(np.tri(4, 3, -1))
        >>> rule = ListRule.published(ListLearner(table), chunk=40, eta=0.09, beta=0.05)
        >>> rule.records_needed > 1e20
        True
        """
        tau, gamma, first, others = published_chunks(longest=learner.longest, eta=eta, beta=beta)
        zeta = (beta * eta**2 / (1e6 * math.log(learner.longest / eta))) ** 2
        fresh = filter_records(
            longest=learner.longest, alpha=learner.alpha, zeta=zeta, constants="published"
        )
        return cls(
            learner,
            chunk=chunk,
            fresh=fresh,
            first=math.ceil(first),
            others=math.ceil(others),
            share=tau,
            gamma=gamma,
        )

    @property
    def records_needed(self) -> int:
        """Number of records for all chunks."""
        return (self.first + self.others) * (self.chunk + (self.fresh or 0))

    def __post_init__(self) -> None:
        _validate.positive_integer(chunk=self.chunk, first=self.first, others=self.others)
        if self.fresh is not None:
            _validate.positive_integer(fresh=self.fresh)
        _validate.fraction(share=self.share)
        _validate.positive(gamma=self.gamma)

    @property
    def points(self) -> int:
        """Number of points of the domain; a key has one bit for each."""
        return int(self.learner.concepts.table.shape[1])

    @property
    def size(self) -> int:
        """The number of all predictions on the domain.

        Lists may contain hypotheses outside of the class.
        """
        return 1 << self.points

    @property
    def n_features(self) -> int:
        """The number of columns of ``X``."""
        return self.learner.concepts.n_features

    def concept(self, key: int, seed: SharedSeed) -> Concept:
        """Return the rule whose predictions are the bits of the key."""
        del seed
        row = _row(int(key), self.points)
        return FiniteTable(row[np.newaxis], domain=self.learner.concepts.points).concept(0)

    def decide(self, users: UserData, seed: SharedSeed) -> Keys:
        """Return the hypothesis of each user."""
        samples, owner = self._chunks(users, seed)
        lists = self._filtered_lists(samples, owner)
        keys_of_stream = seed.keys("lists")
        bounds = np.searchsorted(owner, np.arange(users.n_users + 1)).tolist()
        keys = [self._one(lists[start:stop], keys_of_stream) for start, stop in pairwise(bounds)]
        return key_array(keys, size=self.size)

    def _filtered_lists(self, samples: UserData, owner: NDArray[np.int64]) -> list[tuple[int, ...]]:
        """Return the list of each chunk without hypotheses that err on its fresh records."""
        held = self.chunk + (self.fresh or 0)
        places = np.arange(samples.n_records).reshape(-1, held)
        learning, fresh = places[:, : self.chunk], places[:, self.chunk :]
        if self.fresh is None:
            # The next chunk of the same user; the first one follows the last.
            following = np.arange(len(owner)) + 1
            starts = np.searchsorted(owner, owner)
            last = np.append(owner[1:] != owner[:-1], True) if len(owner) else owner.astype(bool)
            following[last] = starts[last]
            fresh = learning[following]
        lists = self.learner.lists(_samples(samples, learning))
        return self.learner.filtered(lists, _samples(samples, fresh))

    def _one(self, lists: list[tuple[int, ...]], stream: tuple[int, int]) -> int:
        proposing = lists[: max(1, len(lists) * self.first // (self.first + self.others))]
        weighing = lists[len(proposing) :]
        if not weighing:
            return 0
        proposed = Counter(h for each in proposing for h in each)
        kept = [h for h, n in proposed.items() if n >= self.share * len(proposing)]
        seen = Counter(h for each in weighing for h in each)
        weights = [self.gamma * seen[h] / len(weighing) for h in kept]
        scores = zip(weights, self._gumbels(kept, stream), kept, strict=True)
        return max(((w + g, -h) for w, g, h in scores), default=(0.0, 0))[1] * -1

    @staticmethod
    def _gumbels(hypotheses: list[int], stream: tuple[int, int]) -> list[float]:
        """Return the shared Gumbel numbers, which belong to hypotheses and not to positions."""
        return [_gumbel(outcome_id(h), stream) for h in hypotheses]

    def _chunks(self, users: UserData, seed: SharedSeed) -> tuple[UserData, NDArray[np.int64]]:
        """Return each chunk as one user, and the index of the real user it belongs to."""
        # Which records lie together is drawn by the seed from what the user holds.
        users = in_own_order(users, word=seed.words("order", np.zeros(1, np.int64))[0])
        records = labelled_records(users, n_features=self.n_features)
        counts = records.counts()
        within = np.arange(len(records.user)) - (np.cumsum(counts) - counts)[records.user]
        held = self.chunk + (self.fresh or 0)
        most = np.minimum(counts // held, self.first + self.others)
        kept = np.flatnonzero(within // held < most[records.user])
        owner = np.repeat(np.arange(records.n_users), most)
        chunks = UserData.from_arrays(
            records.X[kept],
            records.y[kept].astype(np.int64),
            users=np.repeat(np.arange(len(owner)), held),
        )
        return chunks, owner


def _samples(users: UserData, places: NDArray[np.int64]) -> UserData:
    """Return a data set with one user for each row of record indices."""
    y = None if users.y is None else users.y[places.ravel()]
    offsets = np.arange(len(places) + 1) * places.shape[1]
    return UserData(users.X[places.ravel()], y, offsets=offsets)


def _row(hypothesis: int, points: int) -> NDArray[np.int8]:
    raw = np.frombuffer(hypothesis.to_bytes((points + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(raw, bitorder="little")[:points].astype(np.int8)


def _gumbel(identity: int, stream: tuple[int, int]) -> float:
    uniform = ((hash_word(identity, stream) >> 12) + 0.5) * 2.0**-52
    return -math.log(-math.log(uniform))
