"""From the records of a frame or a crowd to what each person holds in each group, fast.

``reading`` records under the numbers of their groups · ``frames`` those of a frame whose groups are
known · ``short_texts`` labels in a column of texts · ``person_cells`` exact integers per person and
group · ``filling`` all cells in one pass · ``background`` work in a second thread ·
``reused_memory`` memory that is used again.
"""

from __future__ import annotations
