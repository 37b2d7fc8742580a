r"""The public description of a collection, which both sides have before any data exist.

A task is a small JSON file. It states the query, the number of candidates, the guarantee, the form
of the reports, and the public seed of everything users must agree on. Its SHA-256 is its identity
and is part of every message, so messages of two tasks never mix. The shared randomness is derived
from seed *and* identity, so a seed that is used again in another task gives other random numbers
there.

Canonical form: one flat object with sorted keys, no spaces, every value a string of printable ASCII
(numbers as decimals, the seed as hexadecimal). So every language can write it, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from quorate import _validate
from quorate.core.guarantees import Approximate, Event, Guarantee, Pure, Relation, Trust
from quorate.core.public_randomness import RandomState, public_generator
from quorate.exceptions import ParameterError, SchemaError
from quorate.local.randomizers.hashed import COIN_BITS, WORD_BITS, HashedResponse
from quorate.local.reliability import liars_withstood, shuffled_response
from quorate.local.shuffling.blanket import blanket_delta

__all__ = ["SCHEME", "Role", "Task"]

SCHEME = "quorate-hashed-1"
"""The randomizer and the wire format of a task; another number would mean other probabilities."""

PLURALITY = "plurality"
"""The default decision: a device names the value that most of its records hold."""

_SEED_BYTES = 32
_MOST_USERS = 2**53
"""Beyond, a share of them is no exact float."""
_NUMBERS = {"candidates": int, "users": int, "width": int, "keep": int}
_REALS = ("epsilon", "delta", "honest", "report_epsilon")
_WORDS = ("name", "decision", "unit")
_FIELDS = {*_NUMBERS, *_REALS, *_WORDS, "scheme", "seed", "trust"}

Role = str
"""The observer: ``"network"`` and ``"shuffler"`` see single messages, ``"server"`` the messages
that it receives, ``"public"`` the result."""


@dataclass(frozen=True, kw_only=True)
class Task:
    r"""What is collected, from whom, and the guarantee for each of them.

    Made by :meth:`local` or :meth:`shuffle`, which choose the report; read by :meth:`from_json`,
    which refuses reports that exceed the guarantee.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP for one message, with ``report_epsilon``; after shuffling
        :math:`(\varepsilon, \delta)`-DP with ``epsilon`` and ``delta`` against whoever sees the
        shuffled messages
    neighbours : replace all records of one user
    trust : local, or shuffle
    public : the task, how many messages there are and who sent one
    numerics : exact
    proof : :class:`~quorate.local.randomizers.hashed.HashedResponse` for one message;
        :mod:`~quorate.local.shuffling.blanket` for floor(``honest`` x ``users``) honest ones
    robustness : a liar moves the difference of two candidates by at most ``response.influence``
        votes; :meth:`withstands` gives the share of liars that a plurality survives
    messages : one message of fixed length a user, one round

    Parameters
    ----------
    name : str
        A name for people to read; printable ASCII, like all texts here.
    candidates : int
    epsilon, delta : float
        The guarantee; ``delta`` is zero in the local model.
    trust : Trust
        ``LOCAL`` or ``SHUFFLE``.
    users : int
        The number of messages for which the shuffler waits; in the local model the expected number.
    honest : float
        Share of senders who follow the protocol; public, and part of the guarantee.
    seed : str
        64 hexadecimal digits, fixed before any data exist.
    width : int
    report_epsilon : float
        The report's parameters; see :class:`HashedResponse`.
    unit : str
    decision : str
        How a device chooses its candidate.

    Examples
    --------
    >>> task = Task.local(name="favourite", candidates=2**14, epsilon=1.0, seed="00" * 32)
    >>> task.id
    '95241a6c72772c7e'
    >>> Task.from_json(task.to_json()) == task
    True
    >>> Task.shuffle(
    ...     name="favourite", candidates=2**14, epsilon=1.0, delta=1e-6, users=100
    ... ).guarantees()["public"].delta
    1e-06
    """

    name: str
    candidates: int
    epsilon: float
    delta: float
    trust: Trust
    users: int
    honest: float
    seed: str
    width: int
    report_epsilon: float
    unit: str = "user"
    decision: str = PLURALITY

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon, report_epsilon=self.report_epsilon)
        _validate.delta(delta=self.delta)
        _validate.one_of((Trust.LOCAL, Trust.SHUFFLE), trust=self.trust)
        _validate.positive_integer(users=self.users)
        _validate.fraction(honest=self.honest)
        if self.users > _MOST_USERS:
            raise ParameterError(f"Expected at most {_MOST_USERS} users, got more.")
        for field in _WORDS:
            _refuse_unprintable(field, getattr(self, field))
        _refuse_no_seed(self.seed)
        for field in _REALS:
            object.__setattr__(self, field, float(getattr(self, field)))
        for field in ("candidates", "users", "width"):
            object.__setattr__(self, field, int(getattr(self, field)))
        if self.candidates > 2**WORD_BITS:
            raise ParameterError(
                f"Expected at most 2**{WORD_BITS} candidates, of which messages have room, got "
                f"candidates={self.candidates!r}."
            )
        self._refuse_too_much()

    @classmethod
    def local(
        cls,
        *,
        name: str,
        candidates: int,
        epsilon: float,
        users: int = 1,
        seed: str | RandomState = None,
        unit: str = "user",
        decision: str = PLURALITY,
    ) -> Task:
        """Return a task of the local model: every message alone is ``epsilon``-DP."""
        response = HashedResponse(candidates=candidates, epsilon=epsilon)
        return cls(
            name=name,
            candidates=candidates,
            epsilon=epsilon,
            delta=0.0,
            trust=Trust.LOCAL,
            users=users,
            honest=1.0,
            seed=_seed(seed),
            width=int(response.width or 0),
            report_epsilon=float(epsilon),
            unit=unit,
            decision=decision,
        )

    @classmethod
    def shuffle(
        cls,
        *,
        name: str,
        candidates: int,
        epsilon: float,
        delta: float,
        users: int,
        honest: float = 1.0,
        seed: str | RandomState = None,
        unit: str = "user",
        decision: str = PLURALITY,
    ) -> Task:
        """Describe a collection through a shuffler that waits for ``users`` messages."""
        _validate.positive(epsilon=epsilon)
        _validate.probability(delta=delta)
        _validate.positive_integer(users=users)
        hiding = max(1, math.floor(_share(honest) * users))
        response = shuffled_response(int(candidates), float(epsilon), float(delta), hiding)
        return cls(
            name=name,
            candidates=candidates,
            epsilon=epsilon,
            delta=delta,
            trust=Trust.SHUFFLE,
            users=users,
            honest=honest,
            seed=_seed(seed),
            width=int(response.width or 0),
            report_epsilon=float(response.epsilon),
            unit=unit,
            decision=decision,
        )

    @cached_property
    def response(self) -> HashedResponse:
        """The randomizer of every client."""
        return HashedResponse(
            candidates=self.candidates, epsilon=self.report_epsilon, width=self.width
        )

    @property
    def honest_users(self) -> int:
        """The number of users whose messages hide each other."""
        return math.floor(self.honest * self.users)

    def to_dict(self) -> dict[str, str]:
        """Return the canonical description: flat, every value a string."""
        return {
            "candidates": str(self.candidates),
            "decision": self.decision,
            "delta": repr(self.delta),
            "epsilon": repr(self.epsilon),
            "honest": repr(self.honest),
            "keep": str(self.response.threshold),
            "name": self.name,
            "report_epsilon": repr(self.report_epsilon),
            "scheme": SCHEME,
            "seed": self.seed,
            "trust": self.trust.name.lower(),
            "unit": self.unit,
            "users": str(self.users),
            "width": str(self.width),
        }

    def to_json(self) -> str:
        """Return the canonical text, whose SHA-256 identifies the task."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Task:
        """Read a task and refuse anything that :meth:`to_dict` would not have written.

        >>> Task.from_json("{}")
        Traceback (most recent call last):
            ...
        quorate.exceptions.SchemaError: Expected a task with the fields candidates, decision, ...
        """
        document = _flat_object(text)
        if document["scheme"] != SCHEME:
            raise SchemaError(f"Expected the scheme {SCHEME!r}, got {document['scheme']!r}.")
        try:
            read: dict[str, Any] = {name: kind(document[name]) for name, kind in _NUMBERS.items()}
            read |= {name: float(document[name]) for name in _REALS}
            read["trust"] = Trust[document["trust"].upper()]
        except (ValueError, KeyError):
            raise SchemaError("Expected decimal numbers and a trust model in the task.") from None
        keep = read.pop("keep")
        read |= {name: document[name] for name in (*_WORDS, "seed")}
        task = cls(**read)
        if keep != task.response.threshold or task.to_dict() != document:
            raise SchemaError(
                "Expected the canonical description of a task, with the keep that belongs to its "
                "report_epsilon; got another. Write it with Task.to_json."
            )
        return task

    @cached_property
    def digest(self) -> bytes:
        """The whole identity: SHA-256 of the canonical text."""
        return hashlib.sha256(self.to_json().encode("ascii")).digest()

    @property
    def id(self) -> str:
        """The first eight bytes of the task's identity; every message contains them."""
        return self.digest[:8].hex()

    @property
    def shared_seed(self) -> int:
        """The public seed that the users' stable learners share; it differs between tasks."""
        return int.from_bytes(hashlib.sha256(b"quorate seed" + self.digest).digest()[:16], "big")

    def guarantees(self, *, shuffled: int | None = None) -> dict[Role, Guarantee]:
        """Return a user's guarantee against each kind of adversary.

        Parameters
        ----------
        shuffled : int or None, default=None The size of the batch; if it is smaller than ``users``,
            the report alone protects its sender. ``None`` means the number that the task states.

        Examples
        --------
        >>> task = Task.shuffle(name="t", candidates=8, epsilon=1.0, delta=1e-6, users=50)
        >>> task.guarantees()["network"].epsilon > task.guarantees()["server"].epsilon
        True
        >>> task.guarantees(shuffled=49)["server"] == task.guarantees()["network"]
        True
        """
        alone = self._guarantee(Pure(self.report_epsilon), Trust.LOCAL)
        together = alone
        if self.trust is Trust.SHUFFLE and (shuffled is None or shuffled >= self.users):
            together = self._guarantee(Approximate(self.epsilon, self.delta), Trust.SHUFFLE)
        return {"network": alone, "shuffler": alone, "server": together, "public": together}

    def _guarantee(self, event: Event, trust: Trust) -> Guarantee:
        return Guarantee(
            epsilon=getattr(event, "epsilon", math.inf),
            delta=getattr(event, "delta", 0.0),
            unit=self.unit,
            relation=Relation.REPLACE,
            trust=trust,
            events=(event,),
        )

    def withstands(self, plurality: float) -> float:
        """Return the share of dishonest users against which a plurality of honest users still wins.

        >>> task = Task.local(name="t", candidates=2**14, epsilon=1.0)
        >>> round(task.withstands(0.8), 3)
        0.153
        """
        return liars_withstood(self.response, plurality=plurality)

    def renewed(self, seed: str | RandomState = None) -> Task:
        """Return the same task with another seed: a new collection."""
        return replace(self, seed=_seed(seed))

    def _refuse_too_much(self) -> None:
        """Refuse a report with a larger privacy loss than the guarantee states."""
        if self.trust is Trust.LOCAL:
            if self.delta != 0 or self.report_epsilon > self.epsilon:
                raise ParameterError(
                    "Expected delta = 0 and report_epsilon <= epsilon in the local model, got "
                    f"delta={self.delta!r}, report_epsilon={self.report_epsilon!r}, "
                    f"epsilon={self.epsilon!r}."
                )
            return
        if self.report_epsilon <= self.epsilon:
            return
        price = blanket_delta(
            self.epsilon,
            users=max(1, self.honest_users),
            width=self.width,
            keep=self.response.threshold / 2**COIN_BITS,
            levels=self.response.levels,
        )
        if not price <= self.delta:
            raise ParameterError(
                f"Expected a report that {self.honest_users} honest users can hide, got "
                f"report_epsilon={self.report_epsilon!r}, which costs delta={price:.3g} at "
                f"epsilon={self.epsilon!r}; write the task with Task.shuffle."
            )


def _share(honest: float) -> float:
    _validate.fraction(honest=honest)
    return honest


def _seed(given: str | RandomState) -> str:
    if isinstance(given, str):
        return given
    return public_generator(given).bytes(_SEED_BYTES).hex()


def _refuse_no_seed(seed: object) -> None:
    if not (
        isinstance(seed, str)
        and len(seed) == 2 * _SEED_BYTES
        and set(seed) <= set("0123456789abcdef")
    ):
        raise ParameterError(f"Expected seed to be 64 hexadecimal digits, got seed={seed!r}.")


def _refuse_unprintable(field: str, word: object) -> None:
    fine = isinstance(word, str) and len(word) <= 200 and word.strip() != ""
    if not (fine and all(" " <= c <= "~" and c not in '"\\' for c in str(word))):
        raise ParameterError(
            f"Expected {field} to be 1 to 200 printable ASCII characters without quotes and "
            f"backslashes, got {field}={word!r}."
        )


def _flat_object(text: str | bytes) -> dict[str, str]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError("Expected a task as JSON, got something else.") from None
    flat = isinstance(document, dict) and all(isinstance(v, str) for v in document.values())
    if not flat or set(document) != _FIELDS:
        raise SchemaError(
            f"Expected a task with the fields {', '.join(sorted(_FIELDS))}, all of them strings."
        )
    return dict(document)
