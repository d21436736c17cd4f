"""What every request passes: the connection, the dispatcher, access, bodies, JSON routes, problems and metrics."""
