"""Budgets across runs: append-only, charged before data are read, with tight composition.

``ledger`` the class that people use · ``entries`` its entries · ``append_only`` its file ·
``spending`` composition of charges · ``planned_spending`` budgets that are lists of planned
releases · ``calendars`` budgets per day, week, month, quarter or year.
"""

from quorate.ledger.ledger import Ledger

__all__ = ["Ledger"]
