"""From tables, frames, files, databases and clusters to people.

``tables`` arrays and columns · ``frames`` everything that speaks Arrow · ``sources`` the
constructors of ``UserData`` · ``coding``, ``dates``, ``labels`` how columns are read · ``by_name``
columns by their names · ``by_group`` what each person holds in each group · ``files`` CSV and
Parquet · ``engines`` parts of whole users on disk, on Dask and on Spark.
"""
