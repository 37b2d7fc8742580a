"""What people see: report pages, figures and the demonstration.

The highest rooms below the command line: they explain what was released.
"""

from __future__ import annotations
