"""What every request passes: the dispatcher, access, bodies, JSON routes, problems, and the OpenAPI document."""
