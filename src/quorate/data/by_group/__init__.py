"""Counts and sums by user and group, computed quickly from the records of a table or a crowd.

``reading`` group numbers of records · ``frames`` records of a table whose groups are known ·
``short_texts`` labels in a text column · ``person_cells`` exact integers per user and group ·
``filling`` all cells in one pass · ``background`` a second thread · ``reused_memory`` reuse of
memory.
"""

from __future__ import annotations
