"""Whether the ledger is what it was: entries against rows, levels, approvals, and heads noted earlier."""
