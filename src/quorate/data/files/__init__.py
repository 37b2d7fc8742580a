"""Reading and writing files: tables, model files, and atomic writes.

``table_files`` tables by column names · ``csv_lines`` CSV text · ``dialects`` separators and
encodings · ``atomic`` files written completely or not at all · ``one_writer`` databases of things
that may be done only once.
"""

from __future__ import annotations
