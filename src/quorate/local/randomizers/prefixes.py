"""The most popular of up to 2^256 candidates in one round, prefix by prefix (Lemma 13 of G7).

Half of the users (a quarter beyond 2^40 candidates, a sixteenth beyond 2^160) report the first bits
of their candidate, the others more bits. Each user draws the level by coins, so nobody answers
twice and nobody waits for others. The server keeps the ``beam`` most popular prefixes of one level
and counts all their extensions at the next.
"""

from __future__ import annotations

import numpy as np

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.local.randomizers.counts import EstimatedVotes, _votes, count_votes, extensions, scaled
from quorate.local.randomizers.hashed import HashedResponse, Reports

__all__ = ["find_popular"]

BEAM = 32
"""Prefixes kept from one level to the next."""


def find_popular(
    reports: Reports, response: HashedResponse, *, count: int = 16, beam: int = BEAM
) -> EstimatedVotes:
    """Return the ``count`` candidates with the most estimated votes, the most popular first.

    With one level all candidates are compared; with several only those whose prefixes were among
    the ``beam`` most popular at every level before.

    >>> response = HashedResponse(candidates=2**32, epsilon=4.0)
    >>> reports = response.respond(np.full(600, 123_456_789))
    >>> find_popular(reports, response).winner
    123456789
    """
    _validate.positive_integer(count=count, beam=beam)
    if response.levels == 1:
        return count_votes(reports, response).top(count)
    prefixes, known = np.zeros(1, dtype=np.int64), 0
    for level, length in enumerate(response.prefix_bits):
        part = reports.at(level)
        keep = count if level == response.levels - 1 else beam
        found = [
            _best(part, response, prefix=int(prefix), known=known, length=length, count=keep)
            for prefix in prefixes
        ]
        votes = EstimatedVotes(
            np.concatenate([each.candidates for each in found]),
            np.concatenate([each.votes for each in found]),
            np.concatenate([each.standard_errors for each in found]),
            len(part),
        ).top(keep)
        prefixes, known = votes.candidates, length
    if votes.candidates.size == 0:
        raise ParameterError("Expected at least one candidate, got none.")
    return scaled(votes, len(reports))


def _best(
    part: Reports, response: HashedResponse, *, prefix: int, known: int, length: int, count: int
) -> EstimatedVotes:
    """Return the most popular extensions of one prefix, among those that are candidates."""
    more = length - known
    agreement = extensions(part, response, prefix=prefix, prefix_bits=known, bits=more)
    # The last candidate's prefix is the last one that any candidate has.
    last = (response.candidates - 1) >> (response.bits - length)
    agreement = agreement[: max(0, last - (prefix << more) + 1)]
    few = np.arange(len(agreement))
    if count < len(agreement):
        few = np.flatnonzero(agreement >= np.partition(agreement, -count)[-count])
    if response.wide:
        few = few.astype(object)
    named = (prefix << more) + few
    return _votes(named, agreement[few.astype(np.int64)], len(part), response).top(count)
