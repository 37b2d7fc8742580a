"""Memory that is used again rather than handed back and asked for anew.

Fresh memory is slow: a system hands it out page by page, and wipes each, when it is first written
to. A million cells take longer to allocate than to fill, and a fit makes and drops some thirty
arrays of that order. C libraries keep what is freed, up to a limit; that of GNU/Linux follows the
largest block that was ever freed. So a block is asked for once and freed, and never written to:
from then on arrays up to its size are made of memory that was used before. Elsewhere this does
nothing.
"""

from __future__ import annotations

from functools import cache

import numpy as np

__all__ = ["keep_freed_memory"]

# machine: the largest size that the limit follows, less what is kept beside a block.
_BYTES = (32 << 20) - (1 << 16)


@cache
def keep_freed_memory() -> None:
    """Keep up to 64 MB of freed memory for new arrays of up to 32 MB each.

    >>> keep_freed_memory()
    """
    np.empty(_BYTES, dtype=np.uint8)
