"""Normal distributions: ``gaussian`` the estimator · ``rows`` the contribution of a user."""

from __future__ import annotations
