"""The OpenAPI document, made complete for readers and for client generators."""
