"""Rules about numbers: cut-offs, intervals, boxes, stumps, points, halfspaces; public domains."""

from __future__ import annotations
