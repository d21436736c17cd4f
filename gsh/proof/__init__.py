"""Proof that travels with a file: signed certificates, and their verification without a service."""
