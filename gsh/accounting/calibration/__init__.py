"""The least noise and threshold, or the largest C_u, for a target."""
