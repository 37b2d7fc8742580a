"""Reading and writing files: tables, model files, and atomic writes.

``table_files`` tables by name of column · ``csv_lines`` their text form · ``model_files`` what a
fit released, to predict with elsewhere · ``plain_data`` the plain values inside · ``atomic`` whole
files or none · ``one_writer`` databases that remember what is done once.
"""

from __future__ import annotations
