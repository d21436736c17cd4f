"""Exact, certified privacy accounting for the Gaussian sparse histogram mechanism, and the mechanism itself."""
