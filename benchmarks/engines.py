"""What other engines claim next to what is certified: ``python -m benchmarks.engines``, with the ``bench`` extra.

OpenDP and python-dp are called here. PipelineDP and Tumult Core are called in the environments build/pipelinedp-env and
build/tumult-env of the Makefile, if they exist. All δ are rounded to the nearest. docs/math/engines.md has the table.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import opendp.prelude as dp
from pydp.algorithms import partition_selection

import gsh
from benchmarks.markdown import table
from gsh.accounting.engines.presets import PRESETS

ROOT = Path(__file__).parent.parent
GIVEN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("opendp-laplace", {"scale": 10, "c_u": 5, "threshold": 150, "epsilon": 0.5}),
    ("opendp-laplace", {"scale": 1, "c_u": 1, "threshold": 5, "epsilon": 1.0}),
    ("opendp-laplace-float", {"scale": 10, "c_u": 5, "threshold": 150, "epsilon": 0.5}),
    ("opendp-gaussian", {"scale": 10, "c_u": 5, "threshold": 60, "epsilon": 1.5}),
    ("opendp-gaussian", {"scale": 10, "c_u": 5, "threshold": 60, "epsilon": 1.0}),
    ("opendp-gaussian-float", {"scale": 10, "c_u": 5, "threshold": 60, "epsilon": 1.5}),
    ("python-dp-laplace", {"c_u": 10, "epsilon": 1.0, "delta": 1e-6}),
    ("python-dp-gaussian", {"c_u": 10, "epsilon": 1.0, "delta": 1e-6}),
    ("python-dp-truncated-geometric", {"c_u": 10, "epsilon": 1.0, "delta": 1e-6}),
    ("pipelinedp-laplace", {"c_u": 10, "epsilon": 1.0, "delta": 1e-6}),
    ("pipelinedp-gaussian", {"c_u": 10, "epsilon": 1.0, "delta": 1e-6}),
    ("tumult", {"scale": 10, "c_u": 5, "threshold": 150, "epsilon": 0.5}),
    ("tumult", {"scale": 1, "c_u": 1, "threshold": 15, "epsilon": 1.0}),
    ("presto", {"scale": 20, "c_u": 10, "threshold": 120, "epsilon": 1.0}),
    ("zetasql", {"c_u": 10, "epsilon": 1.0, "delta": 1e-6}),
    ("zetasql", {"c_u": 4, "epsilon": 1.0, "delta": 1.3e-6}),
)


def main() -> None:
    rows = []
    for preset, given in GIVEN:
        found = gsh.engine(preset=preset, **given)
        claim = found.claims[0].delta if found.claims else None
        tool = PRESETS[preset]  # type: ignore[index]
        at = ", ".join(f"{name} {value:g}" for name, value in given.items())
        printed = _printed(preset, given)
        rows.append(
            [
                f"`{preset}` ({tool.tool} {tool.version})",
                at,
                printed or "not run",
                "none" if claim is None else f"{claim:.4e}",
                f"{found.delta:.4e}" + ("" if found.is_exact else " (bound)"),
                "" if claim is None else f"{found.delta / claim:.3f}",
            ]
        )
    columns = ("preset", "parameters", "the tool prints", "its claim", "certified δ", "certified/claim")
    print(table(columns, rows))


def _printed(preset: str, given: dict[str, Any]) -> str | None:
    kind, _, rest = preset.partition("-")
    if kind == "opendp":
        return f"δ {_opendp(rest, **given):.4e}"
    if preset.startswith("python-dp-"):
        strategy = preset.removeprefix("python-dp-").replace("-", "_")
        return _kept(
            partition_selection.create_partition_strategy(strategy, given["epsilon"], given["delta"], given["c_u"])
        )
    if kind in _ELSEWHERE:
        return _elsewhere(kind, rest, given)
    return None


def _opendp(kind: str, *, scale: float, c_u: int, threshold: float, epsilon: float) -> float:
    dp.enable_features("contrib")
    number: Any = float if kind.endswith("float") else int
    values = dp.atom_domain(T=number, nan=False) if number is float else dp.atom_domain(T=number)
    domain = dp.map_domain(dp.atom_domain(T=str), values)
    if kind.startswith("laplace"):
        metric = dp.l01inf_distance(dp.absolute_distance(T=number))
        measurement = dp.m.make_laplace_threshold(domain, metric, scale=float(scale), threshold=number(threshold))
        stated, delta = measurement.map((c_u, number(c_u), number(1)))
        assert stated <= epsilon
        return float(delta)
    metric = dp.l02inf_distance(dp.absolute_distance(T=float))
    measurement = dp.m.make_gaussian_threshold(domain, metric, scale=float(scale), threshold=number(threshold))
    profile, delta = dp.c.make_zCDP_to_approxDP(measurement).map((c_u, c_u**0.5, 1.0))
    return float(profile.delta(epsilon) + delta)


def _kept(strategy: Any) -> str:
    """The threshold, and the probability that a group of one user is kept."""
    threshold = f"T {strategy.threshold:.4f}, " if hasattr(strategy, "threshold") else ""
    return f"{threshold}kept {strategy.probability_of_keep(1):.4e}"


_ELSEWHERE = {
    "pipelinedp": """
import pipeline_dp, sys
from pipeline_dp import partition_selection as selection
kinds = pipeline_dp.PartitionSelectionStrategy
kind = {"laplace": kinds.LAPLACE_THRESHOLDING, "gaussian": kinds.GAUSSIAN_THRESHOLDING}[name]
made = selection.create_partition_selection_strategy(kind, given["epsilon"], given["delta"], given["c_u"])
print(f"T {made.threshold:.4f}, kept {made.probability_of_keep(1):.4e}")
""",
    "tumult": """
from tmlt.core.domains.spark_domains import SparkDataFrameDomain, SparkStringColumnDescriptor
from tmlt.core.measurements.spark_measurements import GeometricPartitionSelection
domain = SparkDataFrameDomain({"key": SparkStringColumnDescriptor()})
made = GeometricPartitionSelection(domain, threshold=given["threshold"], alpha=given["scale"])
print(f"δ {made.privacy_function(given['c_u'])[1].to_float(round_up=True):.4e}")
""",
}
"""Programs for the environments build/NAME-env."""


def _elsewhere(kind: str, name: str, given: dict[str, Any]) -> str | None:
    python = ROOT / "build" / f"{kind}-env" / "bin" / "python"
    if not python.exists():
        return None
    program = f"import json\nname, given = {name!r}, json.loads({json.dumps(given)!r})\n{_ELSEWHERE[kind]}"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    main()
