"""Clients that three generators make from the committed OpenAPI document. No generated code is committed."""
