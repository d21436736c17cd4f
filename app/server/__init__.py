"""The process: its start, its forks, signals, logs and the health check of a container."""
