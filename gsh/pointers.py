"""JSON Pointers, by which errors say where a fault is.  [RFC 6901]"""

__all__ = ["pointer_part"]


def pointer_part(name: str) -> str:
    """A name as one part of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")
