"""What the documents have from the code: transcripts, tables, numbers and pictures. The tests compare them.

``python -m docs.generate`` writes all of it again, except three that take longer or need more:
``python -m docs.generate.notebook``, ``python -m docs.generate.terminal`` and ``make screenshot``.
"""

from pathlib import Path

__all__ = ["ROOT"]

ROOT = Path(__file__).parents[2]
