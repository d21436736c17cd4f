"""The forms of a certificate for readers without this code: a JSON Schema, an entry for a registry, a page to print."""
