"""shim"""
from gsh.histogram import tables as _t
from gsh.histogram.tables import Format, Limits, write_table
def read_table(source, limits, csv_types=None): return _t.read_table(source, limits)
def format_of(source): return "parquet" if source.slice(0, min(4, source.size)).to_pybytes() == b"PAR1" else "arrow"
