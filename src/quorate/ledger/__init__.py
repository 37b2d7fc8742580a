"""Budgets across runs: append-only, charged before data are read, tight, per period.

``ledger`` the file that people open · ``entries`` what is written into it · ``append_only`` how ·
``spending`` how charges add up · ``planned_spending`` lists of releases that are fixed in advance ·
``calendars`` budgets that come back.
"""

from quorate.ledger.ledger import Ledger

__all__ = ["Ledger"]
