"""Releases: made from posted groups or tables, opened for other engines, and read again."""
