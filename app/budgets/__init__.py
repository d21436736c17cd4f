"""Budgets over HTTP: limits, charges, previews and histories."""
