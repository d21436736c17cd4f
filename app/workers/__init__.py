"""Worker processes: pools of them, the server that forks them, and work in two steps."""
