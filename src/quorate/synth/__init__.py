"""Synthetic people: a private model of people with several records each, and samples from it.

* :mod:`quorate.synth.user_synthesizer`: the estimator.
* :mod:`quorate.synth.rounds`: the private queries of a fit, and their shares of the budget.
* :mod:`quorate.synth.contributions`: the contribution of one person to each query.
* :mod:`quorate.synth.shrinkage`: noisy tables, shrunk towards independence.
* :mod:`quorate.synth.tree`: distributions whose dependences form a tree.
* :mod:`quorate.synth.released`: the model, its errors, and samples from it.
* :mod:`quorate.synth.columns`: labels and numbers encoded as integers.
"""

from __future__ import annotations

from quorate.synth.released import PairError, RepeatRate, SynthError, SyntheticModel
from quorate.synth.user_synthesizer import UserSynthesizer

__all__ = ["PairError", "RepeatRate", "SynthError", "SyntheticModel", "UserSynthesizer"]
