"""Exact, certified privacy accounting for the Gaussian sparse histogram mechanism, and the mechanism itself.

    import gsh

    found = gsh.calibrate(c_u=51914, epsilon=0.349, delta=1e-5)
    private = gsh.release(found.mechanism, keys=["a.org", "b.org"], counts=[61004, 3])

Each name is loaded when it is first used: numpy with the first mechanism, pyarrow with the first release, SciPy with
the first intervals or the first utility, httpx with the first client, DuckDB with the first publication.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gsh import duckdb, spark
    from gsh.accounting.calibration.after_survey import SurveyPlan, SurveyShare
    from gsh.accounting.mechanism import Aggregates, Mechanism, PlainGaussian, RelativeAggregates, SurveyNoise
    from gsh.accounting.sensitivity import Sensitivity, box, l1, l2, vectors
    from gsh.accuracy.utility import Utility
    from gsh.client.clients import AsyncClient, Client
    from gsh.duckdb.publishing import publish
    from gsh.duckdb.surveying import survey
    from gsh.errors import (
        AccountingError,
        Error,
        EventsError,
        FileError,
        InfeasibleTarget,
        InvalidGroups,
        InvalidParameter,
        ProofError,
        ReleaseError,
        TooManyGroups,
    )
    from gsh.events.plan import Plan
    from gsh.events.published import Published
    from gsh.events.surveys.result import Survey
    from gsh.library.accuracy import Interval, Intervals, Total, Totals, intervals, rest, total, utility
    from gsh.library.auditing import Audit, audit
    from gsh.library.dp_events import GaussianAndDelta, dp_event
    from gsh.library.engines import EnginePrivacy, engine
    from gsh.library.groups import Groups, release
    from gsh.library.means import means, ratios
    from gsh.library.privacy import Curve, Privacy, add_deltas, exact
    from gsh.library.real_releases import RealRelease, real_releases
    from gsh.library.tables import Table, TablesCalibration, TablesPrice, calibrate_tables, compare_tables
    from gsh.library.targets import Calibration, Comparison, Price, calibrate, compare
    from gsh.proof.verification import Verification, verify
    from gsh.results.certificates import read_certificate
    from gsh.results.private_tables import PrivateTables
    from gsh.results.reading import read

    __version__: str

__all__ = [
    "AccountingError",
    "Aggregates",
    "AsyncClient",
    "Audit",
    "Calibration",
    "Client",
    "Comparison",
    "Curve",
    "EnginePrivacy",
    "Error",
    "EventsError",
    "FileError",
    "GaussianAndDelta",
    "Groups",
    "InfeasibleTarget",
    "Interval",
    "Intervals",
    "InvalidGroups",
    "InvalidParameter",
    "Mechanism",
    "PlainGaussian",
    "Plan",
    "Price",
    "Privacy",
    "PrivateTables",
    "ProofError",
    "Published",
    "RealRelease",
    "RelativeAggregates",
    "ReleaseError",
    "Sensitivity",
    "Survey",
    "SurveyNoise",
    "SurveyPlan",
    "SurveyShare",
    "Table",
    "TablesCalibration",
    "TablesPrice",
    "TooManyGroups",
    "Total",
    "Totals",
    "Utility",
    "Verification",
    "__version__",
    "add_deltas",
    "audit",
    "box",
    "calibrate",
    "calibrate_tables",
    "compare",
    "compare_tables",
    "dp_event",
    "duckdb",
    "engine",
    "exact",
    "intervals",
    "l1",
    "l2",
    "means",
    "publish",
    "ratios",
    "read",
    "read_certificate",
    "real_releases",
    "release",
    "rest",
    "spark",
    "survey",
    "total",
    "utility",
    "vectors",
    "verify",
]

_NAMES = {
    "gsh.accounting.calibration.after_survey": ("SurveyPlan", "SurveyShare"),
    "gsh.accounting.mechanism": ("Aggregates", "Mechanism", "PlainGaussian", "RelativeAggregates", "SurveyNoise"),
    "gsh.accounting.sensitivity": ("Sensitivity", "box", "l1", "l2", "vectors"),
    "gsh.accuracy.utility": ("Utility",),
    "gsh.client.clients": ("AsyncClient", "Client"),
    "gsh.duckdb.publishing": ("publish",),
    "gsh.duckdb.surveying": ("survey",),
    "gsh.errors": (
        "AccountingError",
        "Error",
        "EventsError",
        "FileError",
        "InfeasibleTarget",
        "InvalidGroups",
        "InvalidParameter",
        "ProofError",
        "ReleaseError",
        "TooManyGroups",
    ),
    "gsh.events.plan": ("Plan",),
    "gsh.events.published": ("Published",),
    "gsh.events.surveys.result": ("Survey",),
    "gsh.library.accuracy": ("Interval", "Intervals", "Total", "Totals", "intervals", "rest", "total", "utility"),
    "gsh.library.auditing": ("Audit", "audit"),
    "gsh.library.dp_events": ("GaussianAndDelta", "dp_event"),
    "gsh.library.engines": ("EnginePrivacy", "engine"),
    "gsh.library.groups": ("Groups", "release"),
    "gsh.library.means": ("means", "ratios"),
    "gsh.library.privacy": ("Curve", "Privacy", "add_deltas", "exact"),
    "gsh.library.real_releases": ("RealRelease", "real_releases"),
    "gsh.library.tables": ("Table", "TablesCalibration", "TablesPrice", "calibrate_tables", "compare_tables"),
    "gsh.library.targets": ("Calibration", "Comparison", "Price", "calibrate", "compare"),
    "gsh.proof.verification": ("Verification", "verify"),
    "gsh.results.certificates": ("read_certificate",),
    "gsh.results.private_tables": ("PrivateTables",),
    "gsh.results.reading": ("read",),
}
_ENGINES = ("duckdb", "spark")
"""Modules of the front door: ``gsh.duckdb.publish``, ``gsh.spark.publish``."""
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a name when it is first used."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - takes longer to load than all the rest of this module

        value: Any = version("gaussian-sparse-histogram")
    elif name in _ENGINES:
        value = importlib.import_module(f"gsh.{name}")
    elif name in _MODULE_OF:
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    else:
        raise AttributeError(f"module 'gsh' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
