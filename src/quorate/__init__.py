"""Quorate: learning with user-level differential privacy."""
