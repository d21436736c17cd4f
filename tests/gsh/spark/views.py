"""Events, a release of them, and what is left of it."""

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gsh
from tests.app.process import Service

RELEASE: dict[str, Any] = {
    "user": "user_id",
    "by": ["url", "country"],
    "sums": {"likes": (0, 3), "seconds": (0, 600), "paid": (0, 9.99)},
    "events": {"views": 5},
    "units": {"seconds": 0.25, "paid": 0.01},
    "c_u": 3,
    "caps": {"likes": 2},
    "epsilon": 8,
    "delta": 1e-2,
    "partitions": 3,
}

TABLES: dict[str, Any] = {
    "user": "user_id",
    "tables": {
        "by_country": gsh.Table(by="country", public_keys=["FR", "JP", "XX"], c_u=1, sums={"likes": (0, 3)}),
        "by_url": gsh.Table(
            by=["url"], public_keys=[None, "https://example.org/1", "https://example.org/99"], c_u=2, share=2
        ),
        "detail": gsh.Table(
            **{name: RELEASE[name] for name in ("by", "events", "units", "c_u", "caps")},
            sums={"likes": (0, 3), "paid": (0, 9.99)},
            means={"seconds": (0, 600)},
            ratios={"likes_per_view": ("likes", "views")},
            round=True,
        ),
    },
    "names": {"count": "people"},
    "epsilon": 20,
    "delta": 1e-2,
    "partitions": 3,
}
"""Several tables of the same events: with public keys, of which some have no event, and without."""


def views(order: int = 0, late: int = 0) -> pa.Table:
    """Some thousand events of 300 users in 16 groups, in one of many orders; with late ones if asked."""
    lots = np.random.default_rng(7)
    rows = 4000
    users, sites = lots.integers(0, 300, rows), lots.zipf(1.3, rows) % 8
    table = pa.table(
        {
            "user_id": pa.array([None if user == 0 else f"u{user}" for user in users]),
            "url": pa.array([None if site == 7 else f"https://example.org/{site}" for site in sites]),
            "country": pa.array([("FR", "JP")[user % 2] for user in users]),
            "likes": lots.integers(0, 3, rows),
            "seconds": np.where(users % 11 == 0, np.nan, lots.exponential(60, rows)),
            "paid": pa.array([Decimal(cents).scaleb(-4) for cents in range(rows)], pa.decimal128(12, 4)),
        }
    )
    if late:
        others = pa.array([f"x{number}" for number in range(late)])
        table = pa.concat_tables([table, table.slice(0, late).set_column(0, "user_id", others)])
    return table.take(np.random.default_rng(order).permutation(len(table))) if order else table


def files_in(folder: Path) -> dict[str, bytes]:
    """The files of rows, byte for byte, also those in folders of tables."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("part-*.parquet"))}


def rows_in(folder: Path) -> dict[str, bytes]:
    """The rows of each file, byte for byte. Each process of Java writes the metadata of a file in another order."""
    rows = {}
    for path in sorted(folder.rglob("part-*.parquet")):
        sink = pa.BufferOutputStream()
        table = pq.read_table(path).replace_schema_metadata(None)
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table.combine_chunks())
        rows[str(path.relative_to(folder))] = sink.getvalue().to_pybytes()
    return rows


def entries(service: Service, budget: str, once: str) -> Counter[str]:
    """How often the history of a budget has a charge and a commit of a release."""
    found = service.get(f"/budgets/{budget}/charges?limit=1000").json()["entries"]
    named = [(each["kind"], each["details"]) for each in found]
    return Counter(kind for kind, said in named if once in (said.get("idempotency_key"), said.get("key")))
