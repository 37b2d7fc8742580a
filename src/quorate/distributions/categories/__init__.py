"""Distributions over categories.

``discrete`` one column of labels · ``product`` several · ``routes`` the algorithms · ``rule`` the
choice between them · ``trimming`` users near a centre, and the others · ``popular`` labels that
many users hold.
"""

from __future__ import annotations
