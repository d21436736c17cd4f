"""Tests of the HTTP API: examples, errors, the OpenAPI document, metrics, logs, and a real process."""
