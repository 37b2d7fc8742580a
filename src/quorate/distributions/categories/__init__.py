"""Distributions over categories.

``discrete`` one column of labels · ``product`` several · ``routes`` the algorithms ·
``expected_errors`` the choice between them · ``trimming`` users near a centre, and the others ·
``popular`` labels that many users have.
"""

from __future__ import annotations
