"""Numerical methods: certified arithmetic, Newton's method, and searches. Nothing here knows of privacy.

doubles    the doubles next to a number, and their positions in order
balls      certified rounding and comparison
newton     roots to start a search from
search     the double or integer where a predicate changes; the minimum of a function
"""
