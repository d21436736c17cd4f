"""Certified arithmetic and searches over doubles. Nothing here knows of privacy."""
