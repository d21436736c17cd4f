"""Text from elsewhere, made safe to print: a terminal shows it, and never obeys it.

Escape sequences, control characters, line ends and marks that turn the direction of writing become visible escapes,
such as \\x1b and \\u202e.
"""

import json

__all__ = ["visible", "visible_json"]


def visible(text: str) -> str:
    """The text in one line, with an escape in place of every character that has no picture."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def visible_json(written: str) -> str:
    """The same JSON value, with JSON's own escapes. Line ends between the members stay."""
    if written.replace("\n", "").isprintable():
        return written
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in written)
