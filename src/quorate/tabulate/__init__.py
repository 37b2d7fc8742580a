"""Everyday statistics that protect whole people: counts, sums, means and group-bys.

They serve for analysis before a model is fitted. A user may have many records, in many groups. The
contribution of a user to all numbers of a table is clipped as one vector; the largest length is
stated or found privately.

* :mod:`quorate.tabulate.user_count`: how many people, how many records.
* :mod:`quorate.tabulate.user_sum`: sums of columns.
* :mod:`quorate.tabulate.record_mean`: means over records.
* :mod:`quorate.tabulate.user_table`: all of these and medians, by group.
* :mod:`quorate.tabulate.phrases`: texts, words and phrases that many people use.
"""

from __future__ import annotations

from quorate.tabulate.phrases import PhrasesError, PopularPhrases
from quorate.tabulate.record_mean import RecordMean
from quorate.tabulate.released import TableError
from quorate.tabulate.user_count import StatisticError, UserCount
from quorate.tabulate.user_sum import UserSum
from quorate.tabulate.user_table import UserTable

__all__ = [
    "PhrasesError",
    "PopularPhrases",
    "RecordMean",
    "StatisticError",
    "TableError",
    "UserCount",
    "UserSum",
    "UserTable",
]
