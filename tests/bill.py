"""What a fit really drew, added up by somebody who has never heard of the account.

:class:`Bill` is a noise source. With every draw it looks who is drawing (the mechanism in the stack
of calls) and writes down (how far one user moves what is released) / (scale of the noise), from
sensitivities that stand here once more, by their proofs. A draw by somebody who is not in the list
is an unpaid look.
"""

import inspect
import math
from fractions import Fraction
from functools import cache

from scipy.special import ndtr, ndtri

from measured_bill import Cost
from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Box
from quorate.core.bounds.or_absent import OrAbsent
from quorate.core.bounds.simplex import Simplex
from quorate.core.bounds.trimmed import Trimmed
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.mechanisms.laws import law_of

# The noisy search adds its noise to sixteen times a count, which one user moves by 1.
_FINENESS = 16


def _l1(mechanism):
    steps = mechanism.grid.bound.change(mechanism.relation)[0] / mechanism.grid.step
    # One number is cut towards the centre to whole steps; in several, parts of steps may add up.
    return float(math.floor(steps)) if mechanism.grid.bound.dimension == 1 else steps


def _l2(mechanism):
    """Return how far one user moves a sum in the L2 norm, in steps: of whole ones for blocks."""
    if isinstance(mechanism.grid.bound, Blocks):
        parts = mechanism.grid.bound.parts
        return math.sqrt(sum(_squared(part, mechanism) for part in parts))
    return mechanism.grid.bound.change(mechanism.relation)[1] / mechanism.grid.step


def _squared(part, mechanism):
    """Return the largest squared distance of two vectors in whole steps, or of one from nobody."""
    reach = Fraction(part.radius) / Fraction(mechanism.grid.step)
    times = 1
    if mechanism.relation is Relation.REPLACE and (part.dimension > 1 or part.signed):
        # Opposite ways, or at a right angle where nothing is negative.
        times = 4 if part.signed else 2
    whole = math.floor(times * reach**2)
    if part.entry < math.inf:
        entry = math.floor(Fraction(part.entry) / Fraction(mechanism.grid.step))
        whole = min(whole, part.dimension * entry**2)
    return whole


def _balance(mechanism):
    """Return how far one user moves max(all rises, all falls), twice: what balances is one move.

    Shares: who comes lets a whole rise, who goes lets a whole fall, who is replaced does both; the
    larger one is a whole in each case. Offsets within r of a centre rise and fall by r / 2 at most,
    and what is not an offset is r long in coordinates of its own, where moves are as in L1.
    """
    bound, step = mechanism.grid.bound, mechanism.grid.step
    if isinstance(bound, Simplex):
        return 2.0 / step
    assert isinstance(bound, Trimmed), f"nobody has proved how far {bound} moves what balances"
    assert bound.norm == 1
    return bound.radius * (2.0 if mechanism.relation is Relation.REPLACE else 1.0) / step


def _largest(mechanism):
    """Return how far one user moves the largest coordinate of a box, and a vote beside it (L1).

    Who is replaced moves a coordinate by a side; who is absent then moves it by half a side at most
    and votes.
    """
    bound, step = mechanism.grid.bound, mechanism.grid.step
    replaced = mechanism.relation is Relation.REPLACE
    if isinstance(bound, OrAbsent):
        assert replaced, "votes are for a public number of users"
        half = bound.inner.largest_offset
        return max(2.0 * half, half + bound.vote) / step
    assert isinstance(bound, Box), f"nobody has proved how far {bound} moves its largest coordinate"
    side = float((bound.upper - bound.lower).max())
    return (side if replaced else bound.largest_offset) / step


def _longest(mechanism):
    """Return how far one user moves the longest of several vectors, in the L1 norm, in steps."""
    apart = 2.0 if mechanism.relation is Relation.REPLACE else 1.0
    lengths = []
    for part in mechanism.grid.bound.parts:
        # Nobody is further from anybody in one coordinate that cannot be negative.
        alone = part.dimension == 1 and not part.signed
        moved = part.radius * (1.0 if alone else apart)
        assert part.norm == 1
        lengths.append(min(moved, part.dimension * part.entry) / mechanism.grid.step)
    return max(lengths)


def _difference(mechanism):
    one_way = mechanism.one_sided and mechanism.relation is Relation.ADD_REMOVE
    return float(mechanism.sensitivity) * (1 if one_way else 2)


def _one_vote(mechanism):
    """Return how far a vote for one key in place of another, or of nobody, moves votes (L1)."""
    return 2.0 if mechanism.relation is Relation.REPLACE else 1.0


def _lengths(mechanism):
    """Return how far one user moves what keys get: one length, or two at a right angle."""
    return 2.0**17 * (math.sqrt(2.0) if mechanism.relation is Relation.REPLACE else 1.0)


def _rank(mechanism):
    """Return how far one user moves b times a rank, for the quantile a / b.

    Who is replaced crosses a point and counts b; who comes counts b - a on one side of it, or takes
    a away from the other.
    """
    share = Fraction(str(mechanism.quantile))
    a, b = share.numerator, share.denominator
    return float(b if mechanism.relation is Relation.REPLACE else max(a, b - a))


def _numbers(mechanism):
    """Return how far one user moves what synthetic people ask about, in the L2 norm.

    A tally of one label, in whole multiples: who is replaced leaves one count and enters another.
    How many records lie above a public table, of each of several: a person's records are capped,
    and each of them that comes or goes moves one such number by one at most.
    """
    apart = 2.0 if mechanism.relation is Relation.REPLACE else 1.0
    frame = inspect.currentframe()
    while frame.f_code.co_name not in ("_tally", "_distances"):
        frame = frame.f_back
    if frame.f_code.co_name == "_tally":
        return 64 * math.sqrt(apart)
    known = frame.f_locals
    return math.sqrt(len(known["tables"])) * apart * known["held"].cap / known["step"]


MOVES = {
    "GaussianSum": _l2,
    "NoisyNumbers": _numbers,
    "LaplaceSum": _l1,
    "BalancedSum": _balance,
    "CubeSum": _largest,
    "BlockSum": _longest,
    "NoisyTally": _one_vote,
    "NoisyCount": lambda _: 1.0,
    "NoisySearch": lambda _: float(_FINENESS),
    "ChooseBest": _difference,
    "ChooseOrdered": _difference,
    "RoundQuantile": lambda mechanism: 2.0 * _rank(mechanism),
    "NoisyRank": _rank,
    "ChooseKey": _one_vote,
    "SetUnion": _lengths,
    "StableChoice": _one_vote,
    "PrivateCompare": lambda mechanism: float(mechanism.sensitivity),
}


def drawing():
    """Return the mechanism that is drawing and whether it works on a secret sample."""
    frame, mechanism, sampled = inspect.currentframe(), None, False
    while (frame := frame.f_back) is not None:
        caller = frame.f_locals.get("self")
        name = type(caller).__name__
        if name in MOVES and (mechanism is None or name == "RoundQuantile"):
            mechanism = caller
        sampled |= name == "SampleAccount"
    return mechanism, sampled


def visiting():
    """Return the visit that a game of random restarts is making, if one is."""
    frame = inspect.currentframe()
    while (frame := frame.f_back) is not None:
        if frame.f_code.co_name == "smallest_of_visits":
            return frame.f_locals["own"]
    return None


class Bill(SeededNoise):
    """Seeded noise that adds up what it is asked for; ``group`` sorts draws about other users."""

    def __init__(self, seed=0):
        super().__init__(seed)
        self.group = None
        self.pure, self.squares, self.sampled = {}, {}, []
        self.pure_squares = {}
        self.visits = {}
        self.joint = None

    def _add(self, law, values, scale):
        mechanism, sampled = drawing()
        assert mechanism is not None, f"an unpaid look: {law} of scale {scale}"
        ratio = MOVES[type(mechanism).__name__](mechanism) / scale
        joint, self.joint = self.joint, None
        if law in ("balanced_laplace", "blocks_laplace", "cube_laplace"):
            self.joint = mechanism, scale
            self._note_pure(ratio)
        elif joint is not None and joint[0] is mechanism and law == "discrete_laplace":
            # What lies beside it in the same release: one user moves all coordinates together by
            # this much, and the first draw has noted it. A third draw would be noted.
            assert scale >= joint[1], "the rest of a release has less noise than was noted"
        elif law == "discrete_gaussian" and sampled:
            self.sampled.append(ratio)
        elif law == "discrete_gaussian":
            self._note(self.squares, ratio**2)
        else:
            self._note_pure(ratio)
        return super()._add(law, values, scale)

    def _balanced(self, values, scale):
        """Draw tries that nobody sees in private: the noise as a whole has been noted."""
        return SeededNoise(self.uniform_below(2**30))._balanced(values, scale)

    def _cube(self, values, scale):
        """The same."""
        return SeededNoise(self.uniform_below(2**30))._cube(values, scale)

    def _blocks(self, values, scale):
        """The same."""
        return SeededNoise(self.uniform_below(2**30))._blocks(values, scale)

    def _truncated(self, size, scale, reach):
        """Note the noise once: what comes out too large is drawn again, and nobody sees it."""
        mechanism, _ = drawing()
        assert mechanism is not None, f"an unpaid look: truncated noise of scale {scale}"
        self._note(self.pure, MOVES[type(mechanism).__name__](mechanism) / scale)
        return SeededNoise(self.uniform_below(2**30))._truncated(size, scale, reach)

    def _choose(self, law, scores, scale):
        mechanism, _ = drawing()
        assert mechanism is not None, f"an unpaid look: {law} of scale {scale}"
        self._note_pure(MOVES[type(mechanism).__name__](mechanism) / scale)
        return super()._choose(law, scores, scale)

    def _sample(self, method, public, draw, held):
        mechanism, sampled = drawing()
        if mechanism is None and sampled and method == "secret_sample":
            # Coins that look at nobody: one flat piece. What they are worth is the rate of a
            # release on the sample, which is noted with its noise.
            assert len(law_of(method, public, held).lengths) == 1, (
                "a secret sample that prefers somebody"
            )
            return super()._sample(method, public, draw, held)
        assert mechanism is not None, f"an unpaid look: {method}"
        self._note_pure(float(public["rate"]) * MOVES[type(mechanism).__name__](mechanism))
        return super()._sample(method, public, draw, held)

    def _note_pure(self, cost):
        if (visit := visiting()) is not None:
            # The best of a secret number of visits costs three times what one does (Liu, Talwar).
            self.visits[visit] = self.visits.get(visit, 0.0) + cost
            return
        self._note(self.pure, cost)
        # The worst mechanism of this loss is randomised response: e^cost / (1 + e^cost) is told
        # from the rest as two normal laws mu apart are at their middle.
        self._note(self.pure_squares, (-2.0 * ndtri(1.0 / (1.0 + math.exp(cost)))) ** 2)

    def _note(self, book, cost):
        book[self.group] = book.get(self.group, 0.0) + cost

    @staticmethod
    def _total(book):
        """Add what is about everybody to the costliest of groups that share nobody."""
        groups = [cost for group, cost in book.items() if group is not None]
        return book.get(None, 0.0) + max(groups, default=0.0)

    @property
    def cost(self):
        """What was drawn: losses that add up, and squares of Gaussian ones that do."""
        visits = 3.0 * max(self.visits.values(), default=0.0)
        return Cost(self._total(self.pure) + visits, self._total(self.squares))

    def epsilon(self, delta):
        """Return the epsilon of everything at ``delta``: pure losses and the Gaussian profile.

        Beside Gaussian noise pure losses add up, or count as Gaussian ones, whichever is less.
        """
        squares = self._total(self.squares)
        visits = 3.0 * max(self.visits.values(), default=0.0)
        if not squares:
            return self._total(self.pure) + visits
        assert not visits, "nobody has proved what restarts beside Gaussian noise cost"
        apart = self._total(self.pure) + gaussian_epsilon(math.sqrt(squares), delta)
        together = math.sqrt(squares + self._total(self.pure_squares))
        return min(apart, gaussian_epsilon(together, delta))


@cache
def gaussian_epsilon(mu, delta):
    """Return the smallest epsilon of ``mu``-GDP at ``delta``, by bisection of its definition."""

    def excess(epsilon):
        ratio = epsilon / mu
        return ndtr(mu / 2 - ratio) - math.exp(epsilon) * ndtr(-mu / 2 - ratio) - delta

    low, high = 0.0, 1.0
    while excess(high) > 0:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high
