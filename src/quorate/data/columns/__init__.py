"""What stands in a column: cells without a declared type, ids of users, and orders of their own.

``cells`` and ``kinds`` how one cell is read · ``ids`` from ids to users · ``id_forms`` and ``keys``
ids in other forms, and in pieces of a table · ``seats`` ids that are array indices · ``marks``
which of a user's records comes first.
"""

from __future__ import annotations
