"""Report pages, figures and the demonstration.

They present what was released and compute nothing private.
"""

from __future__ import annotations
