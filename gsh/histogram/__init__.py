"""The mechanism applied: true groups in, private groups out. Noise, thresholds, group keys and tables."""
