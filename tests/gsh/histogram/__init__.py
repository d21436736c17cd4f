"""The noise and the mechanism applied: exactness bit by bit, distribution, boundary, audit."""
