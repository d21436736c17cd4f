"""Accounting over HTTP: account, calibrate, compare, intervals, utility, and the bounding query."""
