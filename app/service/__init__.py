"""Use cases of the service, without HTTP."""
