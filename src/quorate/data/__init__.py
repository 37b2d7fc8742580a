"""Data sources: tables, frames, files, databases and clusters become records by user.

``tables`` arrays and columns · ``frames`` tables with the Arrow interface · ``sources`` the
constructors of ``UserData`` · ``coding``, ``dates``, ``labels`` encodings of columns · ``by_name``
columns by name · ``by_group`` records by user and group · ``files`` CSV and Parquet · ``engines``
parts of whole users on disk, on Dask and on Spark.
"""
