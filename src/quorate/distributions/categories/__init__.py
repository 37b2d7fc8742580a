"""Distributions over categories.

``discrete`` one column of labels · ``product`` several · ``routes`` the ways to shares · ``rule``
which of them is best · ``trimming`` users near a centre, and the others · ``popular`` labels that
many hold.
"""

from __future__ import annotations
