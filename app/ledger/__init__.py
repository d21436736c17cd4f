"""The ledger: budgets with their limits and charges, the answers of paid releases, and access keys."""
