"""The local model: what one user's device answers.

``randomizers`` the answers and their laws · ``local_oracle`` questions, charged before they are
drawn.
"""

from __future__ import annotations
