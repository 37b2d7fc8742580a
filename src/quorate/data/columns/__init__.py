"""Columns: cells without a declared type, ids of users, and orders of a user's records.

``cells`` and ``kinds`` reading of single cells · ``ids`` from ids to users · ``id_forms`` and
``keys`` ids in other forms, and in pieces of a table · ``seats`` ids as array indices · ``marks``
the order of a user's records.
"""

from __future__ import annotations
