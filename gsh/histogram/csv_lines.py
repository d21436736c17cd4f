"""Where the rows of a CSV table are: the line in which each begins, and its number of cells. For errors only.

Lines are counted as an editor does: those inside of quoted cells too, and the header line is 1.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gsh.histogram.arrays import Positions

__all__ = ["line_of_row", "uneven_line"]

_BLOCK = 1 << 20
_QUOTE, _COMMA, _CR, _LF = b'",\r\n'


def line_of_row(source: pa.Buffer, row: int) -> int:
    """The line in which a row begins. Row 0 is the one after the header line."""
    place = row + 1
    for lines, _ in _rows(source):
        if place < len(lines):
            return int(lines[place])
        place -= len(lines)
    raise IndexError(row)


def uneven_line(source: pa.Buffer) -> tuple[int, int, int] | None:
    """The first line whose number of cells is not that of the header line: the line, and both numbers."""
    expected = None
    for lines, widths in _rows(source):
        expected = int(widths[0]) if expected is None and len(widths) else expected
        others = np.flatnonzero(widths != expected)
        if len(others) and expected is not None:
            return int(lines[others[0]]), int(widths[others[0]]), expected
    return None


def _rows(source: pa.Buffer) -> Iterator[tuple[Positions, Positions]]:
    """For the rows that end in each block of bytes: the lines in which they begin, and their numbers of cells."""
    content = np.frombuffer(source, np.uint8)
    line, line_ends, quotes, separators = 1, 0, 0, 0
    for start in range(0, len(content), _BLOCK):
        block = content[start : start + _BLOCK]
        following = np.append(content[start + 1 : start + len(block) + 1], np.uint8(0))[: len(block)]
        is_outside = (quotes + np.cumsum(block == _QUOTE, dtype=np.int64)) % 2 == 0
        is_line_end = (block == _LF) | ((block == _CR) & (following != _LF))
        ends = np.flatnonzero(is_line_end & is_outside)
        commas = np.flatnonzero((block == _COMMA) & is_outside)
        before = np.searchsorted(commas, ends)
        widths = 1 + np.diff(before, prepend=-separators)
        after = 1 + line_ends + np.searchsorted(np.flatnonzero(is_line_end), ends, side="right")
        yield np.append(line, after)[: len(ends)].astype(np.int32), widths.astype(np.int32)
        separators = len(commas) - int(before[-1]) if len(ends) else separators + len(commas)
        line = int(after[-1]) if len(ends) else line
        line_ends += int(np.count_nonzero(is_line_end))
        quotes += int(np.count_nonzero(block == _QUOTE))
    if len(content) and content[-1] not in (_CR, _LF):
        yield np.array([line], np.int32), np.array([separators + 1], np.int32)
