"""The exact law of a sampler: all its uniform integers walked, each path with its probability."""

from collections import Counter
from fractions import Fraction

from quorate.core.noise import NoiseSource


class Exhausted(Exception):
    """The script ended before the sampler did."""


class Scripted(NoiseSource):
    """Answers from a script, so that every path of a sampler can be walked."""

    def __init__(self, script):
        self.script, self.asked = list(script), []

    def _uniform_below(self, upper):
        self.asked.append(upper)
        if len(self.asked) > len(self.script):
            raise Exhausted
        return self.script[len(self.asked) - 1]

    def _add(self, law, values, scale):
        raise NotImplementedError

    def _choose(self, law, scores, scale):
        raise NotImplementedError


def law_of_all_paths(run, *, smallest):
    """Return the chance of each outcome of ``run(source)``, and the chance left undecided.

    Paths are followed as long as they are more likely than ``smallest``.
    """
    found, undecided, stack = Counter(), Fraction(0), [((), Fraction(1))]
    while stack:
        script, chance = stack.pop()
        source = Scripted(script)
        try:
            found[run(source)] += chance
        except Exhausted:
            upper = source.asked[-1]
            if chance / upper < smallest:
                undecided += chance
            else:
                stack += [((*script, v), chance / upper) for v in range(upper)]
    return found, undecided
