"""Publishing with DuckDB, inside this process.  [docs/publish.md]

publishing.py   publish: from events to a private table with its certificate
job.py          what publications of one table and of several share
tables.py       the same for several tables of one release
public_keys.py  public keys as a table: other records are left out, groups without records are completed
sources.py      files, tables, relations and frames as events, with the kinds of their columns
files.py        Parquet, CSV and JSON lines as scans: nothing is guessed from records
aggregates.py   queries at once, or bucket by bucket within the memory limit; the bounding query, its sums as numbers
coded.py        several tables from one pass over the events: users and key values become numbers first
written.py      results, written to their file or folder
surveying.py    users by bins; survey: a noisy histogram by itself
two_stages.py   publish with bounds that a survey chooses
previewing.py   preview: how much of the events each C_u keeps, for the owner's eyes
clipping.py     what clips and C_u do to sums, for the preview
workspace.py    a connection and a private folder that nothing outlives
"""

try:
    import duckdb  # noqa: F401
except ModuleNotFoundError:
    detail = "gsh.publish needs DuckDB: pip install 'gaussian-sparse-histogram[duckdb]'"
    raise ModuleNotFoundError(detail, name="duckdb") from None

from gsh.duckdb.publishing import publish

__all__ = ["publish"]
