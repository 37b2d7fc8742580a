"""A mechanism together with the noise that it is to draw: what a test holds in its hand."""

import functools

from quorate.core.account.account import Account
from quorate.core.guarantees import Gaussian, Relation
from quorate.core.noise import use_noise
from sealing import all_sealed_for


def gaussian_account(mu, relation=Relation.REPLACE):
    """Return an account that holds the square of ``mu``; its noise is that of the moment."""
    return Account.for_event(Gaussian(1.0 / mu), relation=relation)


class Drawing:
    """Stands in for ``mechanism``; whatever is called on it draws from ``noise``."""

    def __init__(self, mechanism, noise):
        self._mechanism, self._noise = mechanism, noise

    def __getattr__(self, name):
        with use_noise(self._noise):
            found = getattr(self._mechanism, name)
        if not callable(found):
            return found

        @functools.wraps(found)
        def call(*arguments, **keywords):
            if name == "release":
                arguments = all_sealed_for(self._mechanism, arguments)
            with use_noise(self._noise):
                return found(*arguments, **keywords)

        return call
