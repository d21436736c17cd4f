"""SQL dialects: how each spells the few things that the lots and the bounds need.

Tests execute DuckDB, PostgreSQL and Spark against the reference. Presto and Trino are translated to DuckDB first, and
Snowflake and BigQuery are only parsed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from gsh.arguments import text
from gsh.errors import InvalidParameter
from gsh.events.kinds import Kind, digits, family

__all__ = ["DIALECTS", "Dialect", "DialectName", "check_characters", "dialect_named"]

DialectName = Literal["duckdb", "postgres", "spark", "snowflake", "bigquery", "presto", "trino"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spelling of one dialect. In texts, ``{0}`` is the argument."""

    name: str
    string: str
    """The type of texts."""
    texts: Mapping[str, str]
    """The canonical text of a value, by the family of its kind; else a cast."""
    is_executed: bool = True
    """Whether our tests run the queries on the engine itself."""
    is_translated: bool = False
    """Whether our tests translate the queries to DuckDB, and run them there."""
    quote: str = '"'
    """The mark around names."""
    escapes: bool = False
    """Whether a backslash in a string escapes the next character."""
    escapes_names: bool = False
    """Whether it does so in a name. Elsewhere a mark in a name is doubled."""
    double: str = "DOUBLE"
    decimal: str = "DECIMAL({0}, {1})"
    """The type of decimals of so many digits, of which some are after the point."""
    integer: str = "BIGINT"
    """The type of 64-bit integers."""
    added: str = "CAST({0} AS BIGINT)"
    """How the integer of a record becomes a number that can be added up without overflow. DuckDB adds it up in 128
    bits, and PostgreSQL in NUMERIC."""
    widened: str = "{0}"
    """The same for a number of the type ``integer``."""
    inlined: str = ""
    """What keeps a common table expression from being stored before it is read."""
    md5: str = "md5({0})"
    is_nan: str = "isnan({0})"
    most_bytes: int | None = None
    """The engine cuts longer names, without an error. None: it does not."""
    replaces_variables: bool = False
    """Whether the engine replaces ${...} in the text of a query, also inside quotes. Spark's reader of Parquet does it
    with names too, and then reads nulls."""

    noisy_count: str | None = None
    """The number of rows with Gaussian noise of the standard deviation ``{0}``, rounded; None: the engine adds none."""
    noisy_sum: str | None = None
    """The sum of ``{0}`` with noise of the standard deviation ``{1}``."""

    @property
    def tested(self) -> str:
        """How the queries were tested, in words."""
        if self.is_executed:
            return "tested on this engine"
        how = "tested in a translation to DuckDB" if self.is_translated else "only its syntax is tested"
        return f"not executed here: {how}"

    def check_name(self, pointer: str, name: str) -> None:
        """Refuse a name that the engine would read as another one, although it is quoted."""
        if self.most_bytes is not None and len(name.encode()) > self.most_bytes:
            detail = f"must be a name of at most {self.most_bytes} bytes: {self.name} cuts longer names"
            raise InvalidParameter(pointer, detail)
        if self.replaces_variables and _VARIABLE in name:
            detail = f"must be a name without {_VARIABLE}: {self.name} replaces variables in names; rename the column"
            raise InvalidParameter(pointer, detail)

    def identifier(self, name: str) -> str:
        """The name of a column, quoted. In the text of a query, ``check_name`` comes first."""
        return self._quoted(name, self.quote, is_escaped=self.escapes_names)

    def literal(self, text: str) -> str:
        """A string."""
        written = self._quoted(text, "'", is_escaped=self.escapes)
        return written.replace(_VARIABLE, "\\u0024{") if self.replaces_variables else written

    @staticmethod
    def _quoted(text: str, mark: str, *, is_escaped: bool) -> str:
        if is_escaped:
            escaped = text.replace("\\", "\\\\").replace(mark, f"\\{mark}").replace("\n", "\\n").replace("\r", "\\r")
        else:
            escaped = text.replace(mark, 2 * mark)
        return f"{mark}{escaped}{mark}"

    def text(self, kind: Kind, value: str) -> str:
        """The canonical text of a value that is not missing.

        strings                    themselves
        integers, decimals         all digits, without zeros at the end after the point: -12, 1.5
        Booleans                   true, false
        dates                      days since 1970-01-01
        timestamps                 microseconds since 1970-01-01, of the instant or of the local time
        infinite ones of both      infinity, -infinity
        UUIDs                      lower case, with hyphens
        """
        spelled = self.texts.get(family(kind))
        if spelled is None:
            return f"CAST({value} AS {self.string})"
        if spelled == _NONE:
            raise InvalidParameter("types", f"must be of a kind that {self.name} has: not {family(kind)}")
        scale = digits(kind)[1] if family(kind) == "decimal" else 0
        return spelled.format(value, scale, self.string)

    def as_double(self, value: str) -> str:
        """The nearest double of a number."""
        return f"CAST({value} AS {self.double})"


_NONE: Final = "none"
_VARIABLE: Final = "${"
_TRIMMED = "rtrim(rtrim(CAST({0} AS {2}), '0'), '.')"


def _or_infinite(finite: str) -> str:
    """The text of a date or a timestamp that may be infinite: then ``infinity`` or ``-infinity``."""
    return f"CASE WHEN isfinite({{0}}) THEN {finite} ELSE CAST({{0}} AS {{2}}) END"


_DUCKDB = Dialect(
    name="duckdb",
    string="VARCHAR",
    inlined="NOT MATERIALIZED ",
    texts={
        "decimal": _TRIMMED,
        "date": _or_infinite("CAST({0} - DATE '1970-01-01' AS {2})"),
        "timestamp": _or_infinite("CAST(epoch_us({0}) AS {2})"),
        "timestamp_ns": _or_infinite("CAST(epoch_ns({0}) AS {2})"),
        "timestamptz": _or_infinite("CAST(epoch_us({0}) AS {2})"),
    },
)
_POSTGRES = Dialect(
    name="postgres",
    string="TEXT",
    double="DOUBLE PRECISION",
    decimal="NUMERIC",
    inlined="NOT MATERIALIZED ",
    md5='md5({0}) COLLATE "C"',
    is_nan="{0} = 'NaN'",
    texts={
        "decimal": "CAST(trim_scale({0}) AS {2})",
        "date": _or_infinite("CAST({0} - DATE '1970-01-01' AS {2})"),
        "timestamp": _or_infinite("CAST(CAST(EXTRACT(EPOCH FROM {0}) * 1000000 AS BIGINT) AS {2})"),
        "timestamp_ns": _NONE,
        "timestamptz": _or_infinite("CAST(CAST(EXTRACT(EPOCH FROM {0}) * 1000000 AS BIGINT) AS {2})"),
    },
    most_bytes=63,
)
_SPARK = Dialect(
    name="spark",
    quote="`",
    escapes=True,
    string="STRING",
    added="CAST({0} AS DECIMAL(20, 0))",  # SUM of BIGINT would overflow; of this it is DECIMAL(30, 0)
    widened="CAST({0} AS DECIMAL(20, 0))",
    texts={
        # A cast writes small decimals with an exponent, unless ANSI mode is on. This writes commas.
        "decimal": "TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM REPLACE(format_number({0}, {1}), ',', '')))",
        "date": "CAST(unix_date({0}) AS {2})",
        # The difference of two local times does not depend on the time zone of the session.
        "timestamp": "CAST(CAST(CAST(CAST({0} - TIMESTAMP_NTZ'1970-01-01 00:00:00' AS INTERVAL SECOND) "
        "AS DECIMAL(19, 6)) * 1000000 AS DECIMAL(20, 0)) AS {2})",
        "timestamp_ns": _NONE,
        "timestamptz": "CAST(unix_micros({0}) AS {2})",
        "uuid": _NONE,
    },
    replaces_variables=True,
)
_SNOWFLAKE = Dialect(
    name="snowflake",
    is_executed=False,
    escapes=True,
    string="VARCHAR",
    double="FLOAT",
    decimal="NUMBER({0}, {1})",
    integer="NUMBER(38, 0)",
    added="CAST({0} AS NUMBER(38, 0))",
    md5="MD5({0})",
    is_nan="{0} = 'NaN'",
    texts={
        "decimal": _TRIMMED,
        "date": "CAST(DATEDIFF(day, DATE '1970-01-01', {0}) AS {2})",
        "timestamp": "CAST(DATE_PART(epoch_microsecond, {0}) AS {2})",
        "timestamp_ns": "CAST(DATE_PART(epoch_nanosecond, {0}) AS {2})",
        "timestamptz": "CAST(DATE_PART(epoch_microsecond, {0}) AS {2})",
        "uuid": _NONE,
    },
)
_BIGQUERY = Dialect(
    name="bigquery",
    is_executed=False,
    quote="`",
    escapes=True,
    escapes_names=True,
    string="STRING",
    double="FLOAT64",
    decimal="BIGNUMERIC",
    integer="INT64",
    added="CAST({0} AS NUMERIC)",  # SUM of INT64 would overflow
    widened="CAST({0} AS NUMERIC)",
    md5="TO_HEX(MD5({0}))",
    is_nan="IS_NAN({0})",
    texts={
        "decimal": "CAST({0} AS {2})",  # it writes no zeros at the end
        "date": "CAST(UNIX_DATE({0}) AS {2})",
        "timestamp": "CAST(DATETIME_DIFF({0}, DATETIME '1970-01-01 00:00:00', MICROSECOND) AS {2})",
        "timestamp_ns": _NONE,
        "timestamptz": "CAST(UNIX_MICROS({0}) AS {2})",
        "uuid": _NONE,
    },
)

_MICROSECONDS = (
    "CAST(date_diff('second', TIMESTAMP '1970-01-01 00:00:00{zone}', date_trunc('second', {{0}})) * 1000000 "
    "+ CAST(rpad(COALESCE(regexp_extract(CAST({{0}} AS {{2}}), '\\.([0-9]+)', 1), '0'), 6, '0') AS BIGINT) AS {{2}})"
)
_TRINO = Dialect(
    name="trino",
    is_executed=False,
    is_translated=True,
    string="VARCHAR",
    added="CAST({0} AS DECIMAL(20, 0))",  # SUM of BIGINT would overflow
    widened="CAST({0} AS DECIMAL(20, 0))",
    md5="lower(to_hex(md5(to_utf8({0}))))",
    is_nan="is_nan({0})",
    texts={
        "decimal": "regexp_replace(CAST({0} AS {2}), '\\.?0+$', '')",  # it has a point
        "date": "CAST(date_diff('day', DATE '1970-01-01', {0}) AS {2})",
        "timestamp": _MICROSECONDS.format(zone=""),
        "timestamp_ns": _NONE,
        "timestamptz": _MICROSECONDS.format(zone=" UTC"),
    },
)
_PRESTO = replace(
    _TRINO, name="presto", noisy_count="noisy_count_gaussian(1, {0!r})", noisy_sum="noisy_sum_gaussian({0}, {1!r})"
)

DIALECTS: Final[Mapping[str, Dialect]] = {
    dialect.name: dialect for dialect in (_DUCKDB, _POSTGRES, _SPARK, _SNOWFLAKE, _BIGQUERY, _PRESTO, _TRINO)
}


def dialect_named(name: str) -> Dialect:
    """The dialect of a name."""
    if name not in DIALECTS:
        raise InvalidParameter("dialect", f"must be one of {', '.join(DIALECTS)}")
    return DIALECTS[name]


def check_characters(pointer: str, name: str) -> None:
    """Refuse a name that some engine cannot have."""
    if "\0" in text(pointer, name):
        raise InvalidParameter(pointer, "must have no NUL character: engines end a name or a query there")
