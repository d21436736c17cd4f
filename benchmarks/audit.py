"""What an audit of a black box finds: ``python -m benchmarks.audit [AUDITS [BLOCKS]]``.

Engines with one fault each, and engines as stated, are run on the tables of ``gsh.audit``: how many of so many audits
find a fault. docs/math/engines.md has the table.
"""

import sys
from collections.abc import Iterator, Mapping

import numpy as np

import gsh
from benchmarks.markdown import table
from tests.gsh.library.black_boxes import FAULTS, SAID, Box

__all__ = ["main"]


def main(audits: int = 1000, blocks: int = 500) -> None:
    print(f"\n{blocks} blocks, 2 runs, level 0.9999\n")
    print(table(("engine", "audits", "faults found"), list(_rows(audits, blocks))))


def _rows(audits: int, blocks: int) -> Iterator[tuple[str, str, str]]:
    each = audits // len(SAID)
    for noise, said in SAID.items():
        yield f"as stated, {noise}", str(each), _found(said, {}, each, blocks)
    for name, (said, changed) in FAULTS.items():
        yield name, str(audits // 20), _found(said, changed, audits // 20, blocks)


def _found(said: Mapping[str, object], changed: Mapping[str, object], audits: int, blocks: int) -> str:
    boxes = (Box(np.random.default_rng(seed), said, changed) for seed in range(audits))
    return str(sum(not gsh.audit(box, **said, blocks=blocks).is_as_stated for box in boxes))  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
