"""The process: connections, forks, signals, logs, metrics and health checks."""
