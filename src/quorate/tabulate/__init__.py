"""Everyday statistics that protect whole people: counts, sums, means and group-bys.

What people do before they fit a model. A person may hold many records, in many groups; what they
add to all numbers of a table is bounded as one vector, whose length is stated or found privately.

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
