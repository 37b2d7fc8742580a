"""Reuse of freed memory.

Fresh memory is slow, because the system provides it page by page and clears each page when it is
first used. Allocating a million cells takes longer than filling them, and a fit creates and drops
some thirty arrays of that size. C libraries keep freed memory, up to a limit. In GNU/Linux the
limit follows the largest block that was ever freed. So one block is allocated and freed without
being used. From then on arrays up to its size are made of reused memory. On other systems this has
no effect.
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
