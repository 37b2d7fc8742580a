"""Rules about Boolean features: conjunctions, decision lists, parities."""

from __future__ import annotations
