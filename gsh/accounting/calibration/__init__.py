"""Calibration: the smallest noise and threshold, or the largest C_u, for a target or for the remaining budget."""
