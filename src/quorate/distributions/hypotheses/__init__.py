"""One of finitely many densities.

``selection`` the private choice · ``families`` densities and their comparisons (duels) · ``covers``
finite covers of larger families · ``clip`` the effect of one user on a duel.
"""

from __future__ import annotations
