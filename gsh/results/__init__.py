"""Results: private tables with their certificate, as publish, the client and read give them.

private_tables.py   the interface of all results
averages.py         means and ratios as columns: what follows from published numbers
budget_use.py       what a release used of its budget
rest.py             what groups have beyond their published children
reading.py          read: files and folders that were published
arrow_streams.py    Arrow that may be hostile
parquet_files.py    Parquet that may be hostile
parts.py            the parts that Spark writes, and the digest of their rows
given_files.py      files in memory, read as those of a folder
certificates.py     certificates that may be hostile, of files and servers
locations.py        paths and URIs
"""
