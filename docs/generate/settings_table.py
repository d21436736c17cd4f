"""The table of settings in docs/operations.md."""

import re

from app.settings import Settings
from docs.generate import ROOT

__all__ = ["OPERATIONS", "settings_table", "shown_settings_table"]

OPERATIONS = ROOT / "docs" / "operations.md"

_TABLE = re.compile(r"(?<=\| variable \| default \| meaning \|\n\|---\|---\|---\|\n)(?:\|.*\n)+")


def settings_table() -> str:
    """Each variable with its default and its meaning, in the code's order and words."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else str(field.default)
        default = default.lower() if isinstance(field.default, bool) else default
        rows.append(f"| `GSH_{name.upper()}` | `{default or '(empty)'}` | {field.description} |\n")
    return "".join(rows)


def shown_settings_table() -> str:
    found = _TABLE.search(OPERATIONS.read_text())
    assert found is not None
    return found[0]
