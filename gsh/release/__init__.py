"""The mechanism applied: true counts and values of groups in, private ones out."""
