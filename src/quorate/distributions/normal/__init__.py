"""Normal distributions: ``gaussian`` the estimator · ``rows`` what a user adds to it."""

from __future__ import annotations
