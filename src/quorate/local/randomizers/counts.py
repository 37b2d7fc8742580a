r"""From reports to votes: how many answers agree with each candidate, for all at once.

An answer y under masks a agrees with candidate v if :math:`y = h_a(v)`. By Fourier expansion
:math:`[y = h_a(v)] = 2^{-s} \sum_c (-1)^{c \cdot y} (-1)^{\langle c A, v \rangle}` over all c in
:math:`\{0,1\}^s`, where :math:`cA` is the sum of the masks that c selects. So every report adds a
sign at :math:`2^s - 1` positions, and one integer Walsh-Hadamard transform gives the agreement with
all candidates. There is no loop over users, and the order of messages does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.local.randomizers.hashed import HashedResponse, Reports, hashes, parities, wide_field

__all__ = ["EstimatedVotes", "count_votes", "estimate_votes", "walsh_hadamard"]


@dataclass(frozen=True)
class EstimatedVotes:
    """Estimated votes of some candidates, scaled to all users, with their standard errors.

    Parameters
    ----------
    candidates : array of int64
        An array of Python integers if candidates have more than 63 bits.
    votes : array of float64
        Unbiased if the candidates were fixed beforehand, so some are negative. For candidates that
        were picked because they looked popular the estimates are a little too large.
    standard_errors : array of float64
    users : int
        How many reports were counted.

    Examples
    --------
    >>> response = HashedResponse(candidates=4, epsilon=8.0)
    >>> votes = count_votes(response.respond(np.full(1000, 2)), response)
    >>> votes.winner, abs(votes.votes[2] - 1000) < 100
    (2, np.True_)
    """

    candidates: NDArray[Any]
    votes: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    users: int

    @property
    def winner(self) -> int:
        """The candidate with the most estimated votes; the smallest one of several."""
        best = self.candidates[self.votes == np.max(self.votes)]
        return int(np.min(best))

    @property
    def shares(self) -> NDArray[np.float64]:
        """Estimated votes as shares of all users."""
        return self.votes / max(1, self.users)

    def top(self, count: int) -> EstimatedVotes:
        """Return the ``count`` candidates with the most estimated votes, the most popular first."""
        few = np.arange(len(self.votes))
        if count < len(self.votes):
            least = np.partition(self.votes, -count)[-count]
            few = np.flatnonzero(self.votes >= least)
        # Of equal ones the smallest first; a stable sort of objects, which lexsort does not take.
        few = few[np.argsort(self.candidates[few], kind="stable")]
        order = few[np.argsort(-self.votes[few], kind="stable")][:count]
        return EstimatedVotes(
            self.candidates[order], self.votes[order], self.standard_errors[order], self.users
        )


def walsh_hadamard(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of all values with the signs of every parity; the length is a power of two.

    >>> walsh_hadamard(np.array([1, 0, 0, 2])).tolist()
    [3, -1, -1, 3]
    """
    table = np.array(values, dtype=np.int64)
    half = 1
    while half < len(table):
        pairs = table.reshape(-1, 2, half)
        even = pairs[:, 0] + pairs[:, 1]
        np.subtract(pairs[:, 0], pairs[:, 1], out=pairs[:, 1])
        pairs[:, 0] = even
        half *= 2
    return table


def count_votes(reports: Reports, response: HashedResponse) -> EstimatedVotes:
    """Estimate the votes of every candidate; for at most 2^20 candidates (one level)."""
    agreement = extensions(reports, response, prefix=0, prefix_bits=0, bits=response.bits)
    return _votes(
        np.arange(response.candidates), agreement[: response.candidates], len(reports), response
    )


def estimate_votes(
    candidates: NDArray[np.int64], reports: Reports, response: HashedResponse
) -> EstimatedVotes:
    """Estimate the votes of the given candidates from the reports about whole candidates.

    >>> response = HashedResponse(candidates=2**32, epsilon=8.0)
    >>> votes = estimate_votes(np.array([7]), response.respond(np.full(2000, 7)), response)
    >>> abs(votes.votes[0] - 2000) < 6 * votes.standard_errors[0]
    np.True_
    """
    whole = reports.at(response.levels - 1)
    keys = np.asarray(candidates, dtype=object if response.wide else np.int64)
    words = response.as_words(keys)
    matches = [np.count_nonzero(hashes(whole.masks, key) == whole.answers) for key in words]
    answers = 2 ** int(response.width or 0)
    agreement = np.array([answers * match - len(whole) for match in matches], dtype=np.int64)
    return scaled(_votes(keys, agreement, len(whole), response), len(reports))


def extensions(
    reports: Reports, response: HashedResponse, *, prefix: int, prefix_bits: int, bits: int
) -> NDArray[np.int64]:
    """Return 2^s matches - n for all ``bits``-bit extensions of a prefix of ``prefix_bits`` bits.

    The reports are those of one level, which are about prefix_bits + bits bits.
    """
    width = int(response.width or 0)
    low = response.bits - prefix_bits - bits
    place = response.as_words(np.array([prefix << (response.bits - prefix_bits)], dtype=object))[0]
    # A cell is an index and, as its lowest bit, a sign.
    cell_bits = np.uint64(2 ** (bits + 1) - 2)
    spectrum = np.zeros(2 ** (bits + 1), dtype=np.int64)
    for selected in range(1, 2**width):
        chosen = [reports.masks[i] for i in range(width) if selected >> i & 1]
        mask = chosen[0] if len(chosen) == 1 else np.bitwise_xor.reduce(chosen)
        signs = np.bitwise_count(reports.answers & np.uint8(selected))
        if prefix_bits:
            signs ^= parities(mask, place)
        if response.wide:
            cells = wide_field(mask, low, bits)[:, 0] << np.uint64(1)
        else:
            cells = mask << np.uint64(1) if low == 0 else mask >> np.uint64(low - 1)
            cells &= cell_bits
        cells |= signs & np.uint8(1)
        spectrum += np.bincount(cells.view(np.int64), minlength=len(spectrum))
    return walsh_hadamard(spectrum[0::2] - spectrum[1::2])


def _votes(
    candidates: NDArray[Any],
    agreement: NDArray[np.int64],
    users: int,
    response: HashedResponse,
) -> EstimatedVotes:
    answers = 2 ** int(response.width or 0)
    votes = agreement / (answers * float(response.gain))
    supporters = np.clip(votes, 0.0, users)
    rare = response.variance(others=1.0)
    spread = rare * (users - supporters)
    spread += response.variance(others=0.0, supporters=1.0) * supporters
    return EstimatedVotes(candidates, votes, np.sqrt(spread), users)


def scaled(votes: EstimatedVotes, users: int) -> EstimatedVotes:
    """Scale votes of one level's users to all users; the draw of the level adds its variance."""
    share = votes.users / users if users else 1.0
    if votes.users in (0, users):
        return EstimatedVotes(votes.candidates, votes.votes, votes.standard_errors, users)
    supporters = np.clip(votes.votes, 0.0, votes.users)
    spread = votes.standard_errors**2 + supporters * (1 - supporters / votes.users) * (1 - share)
    return EstimatedVotes(votes.candidates, votes.votes / share, np.sqrt(spread) / share, users)
