"""Budgets: limits, what is spent and by which releases, and the answers that were paid for."""
