"""Budgets: what each data set may spend, what it has spent, and the answers that were paid for."""
