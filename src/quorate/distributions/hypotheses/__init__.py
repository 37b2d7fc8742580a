"""One of finitely many densities.

``selection`` the private choice · ``families`` densities and their duels · ``covers`` finite covers
of larger families · ``clip`` how far one user may move a duel.
"""

from __future__ import annotations
