"""What people see: model files, report pages, figures and the demonstration.

The highest rooms below the command line: they read tables for a fit, write what was released, and
explain it.
"""

from __future__ import annotations
