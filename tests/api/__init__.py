"""The HTTP contract, held to the letter: examples, errors, the OpenAPI document, metrics, logs, and a real process."""
