"""Synthetic people: a private model of people with several records each, to draw others from.

* :mod:`quorate.synth.user_synthesizer`: the estimator.
* :mod:`quorate.synth.rounds`: what it asks of people, and for how much of the budget.
* :mod:`quorate.synth.contributions`: what one person adds to what is asked.
* :mod:`quorate.synth.tree`: distributions whose dependences form a tree, from noisy tables.
* :mod:`quorate.synth.released`: the model, its errors, and samples of it.
* :mod:`quorate.synth.columns`: labels and numbers as codes.
"""

from __future__ import annotations

from quorate.synth.released import PairError, RepeatRate, SynthError, SyntheticModel
from quorate.synth.user_synthesizer import UserSynthesizer

__all__ = ["PairError", "RepeatRate", "SynthError", "SyntheticModel", "UserSynthesizer"]
