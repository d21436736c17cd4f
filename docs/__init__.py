"""The documents. The package ``generate`` writes what comes from code."""
