"""Budgets: their limits, their charges, and the answers of paid releases."""
