"""Proof that travels with files: the signing key of the service, its published keys, and the check of files."""
