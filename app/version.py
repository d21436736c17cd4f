"""The version of the service, as it is installed."""

import importlib.metadata

__all__ = ["VERSION"]

VERSION = importlib.metadata.version("gaussian-sparse-histogram-service")
