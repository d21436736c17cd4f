"""The mechanism applied: group aggregates in, private ones out."""
