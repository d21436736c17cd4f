"""/access-keys: access keys, and the history of access."""
