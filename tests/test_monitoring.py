"""The dashboard and the alerts: every query parses, and asks for metrics and labels that the service has."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.app.client import CASE_STUDY, Client
from tests.clients.generated import run

ROOT = Path(__file__).parent.parent
MONITORING = ROOT / "deploy" / "kubernetes" / "monitoring"
BOARD = json.loads((ROOT / "deploy" / "grafana" / "dashboard.json").read_text())
ALERTS = yaml.safe_load((MONITORING / "alerts.yaml").read_text())
RULES = [rule for group in ALERTS["spec"]["groups"] for rule in group["rules"]]
QUERIES = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]] + [
    rule["expr"] for rule in RULES
]
TARGET = {"job", "namespace", "instance", "pod", "container"}
"""Labels that Prometheus adds to each metric."""
OTHERS = {"up", "container_memory_working_set_bytes", "container_cpu_usage_seconds_total"}
"""Metrics of Prometheus itself and of Kubernetes."""
MODULES = ROOT / "node_modules"


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, set[str]]]:
    """The metrics of a service that has answered, charged and refused: their labels and values."""
    client = Client(ledger=str(tmp_path_factory.mktemp("ledger") / "ledger.sqlite3"), budgets_in_metrics=True)
    client.request("PUT", "/budgets/web", json={"epsilon": 1, "delta": 1e-4})
    charge = {"json": {"mechanism": CASE_STUDY}, "headers": {"idempotency-key": "w1"}}
    assert client.request("POST", "/budgets/web/charges", **charge).status_code == 200
    client.point(CASE_STUDY, 1.0)
    client.request("POST", "/release", json={"mechanism": CASE_STUDY, "groups": {"keys": ["a"], "counts": [90_000]}})
    client.request("GET", "/budgets", headers={"x-forwarded-for": "192.0.2.1"})
    client.app.state.services.metrics.refuse_connection(408)
    found: dict[str, dict[str, set[str]]] = {}
    for sample in client.metrics():
        name, _, labels = sample.partition("{")
        values = found.setdefault(name, {})
        for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
            values.setdefault(label, set()).add(value)
    return found


def parsed(query: str) -> Any:
    """Grafana's variables stand for a namespace and a duration."""
    return promql_parser.parse(query.replace("$__rate_interval", "5m").replace("$namespace", "gsh"))


def selectors(node: Any) -> Iterator[Any]:
    """All selections of series in a query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for name in ("expr", "lhs", "rhs", "vector_selector"):
        if getattr(node, name, None) is not None:
            yield from selectors(getattr(node, name))
    for argument in getattr(node, "args", None) or []:
        yield from selectors(argument)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_asks_for_metrics_and_labels_that_exist(query: str, exposed: dict[str, dict[str, set[str]]]) -> None:
    found = list(selectors(parsed(query)))

    assert found
    for selector in found:
        assert selector.name in exposed.keys() | OTHERS, selector.name
        known = TARGET | exposed.get(selector.name, {}).keys()
        assert {matcher.name for matcher in selector.matchers.matchers} <= known
    grouped = {label for labels in re.findall(r"by \(([^)]*)\)", query) for label in re.split(r",\s*", labels)}
    assert grouped <= TARGET.union(*(exposed.get(selector.name, {}) for selector in found))


def test_routes_and_statuses_in_queries_are_those_of_the_service(exposed: dict[str, dict[str, set[str]]]) -> None:
    paths = json.loads((ROOT / "openapi" / "openapi.json").read_text())["paths"].keys()
    matchers = [matcher for query in QUERIES for each in selectors(parsed(query)) for matcher in each.matchers.matchers]
    routes = {route for matcher in matchers if matcher.name == "route" for route in matcher.value.split("|")}

    assert routes <= paths
    assert {matcher.value for matcher in matchers if matcher.name == "job"} == {"gsh"}
    assert exposed["gsh_requests_total"]["status"] == {"200", "403"}


def test_the_queries_use_every_metric_of_the_service(exposed: dict[str, dict[str, set[str]]]) -> None:
    used = {selector.name for query in QUERIES for selector in selectors(parsed(query))}
    ours = {name for name in exposed if not name.endswith(("_created", "_sum", "_count"))}

    assert ours <= used


def test_grafana_knows_every_field_of_the_dashboard() -> None:
    """Its published types keep only the fields that they know."""
    register_default_plugins()
    kept = json.loads(JSONEncoder().encode(Dashboard.from_json(BOARD)))

    assert missing(BOARD, kept) == []
    BOARD["panels"][0]["fieldConfig"]["defaults"]["units"] = "s"
    try:
        assert missing(BOARD, json.loads(JSONEncoder().encode(Dashboard.from_json(BOARD)))) != []
    finally:
        del BOARD["panels"][0]["fieldConfig"]["defaults"]["units"]


def missing(given: Any, kept: Any, place: str = "") -> list[str]:
    """The places in which a document has other values, or has nothing."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [each for name in given for each in missing(given[name], kept.get(name), f"{place}/{name}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        pairs = enumerate(zip(given, kept, strict=True))
        return [each for number, pair in pairs for each in missing(*pair, f"{place}/{number}")]
    return [] if given == kept else [place]


def test_panels_have_their_own_numbers_and_places() -> None:
    places = [panel["gridPos"] for panel in BOARD["panels"]]
    numbers = [panel["id"] for panel in BOARD["panels"]]
    cells = [
        cell
        for place in places
        for cell in itertools.product(
            range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        )
    ]

    assert len(numbers) == len(set(numbers))
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert all(panel["title"] and panel["description"] for panel in BOARD["panels"])


def test_the_operations_guide_says_what_to_do_for_every_alert() -> None:
    guide = (ROOT / "docs" / "operations.md").read_text()

    assert re.findall(r"^\| `(Gsh\w+)` \|", guide, re.MULTILINE) == [rule["alert"] for rule in RULES]


# What Prometheus reads every minute, and the alerts that fire after some minutes.
REQUESTS = 'gsh_requests_total{job="gsh", instance="a", route="/release", status="%d"}'
SCENES: dict[str, tuple[dict[str, str], set[str]]] = {
    "all is well": ({'up{job="gsh", instance="a"}': "1x30", REQUESTS % 200: "0+60x30"}, set()),
    "nobody answers": ({'up{job="gsh", instance="a"}': "0x30"}, {"GshDown", "GshInstanceDown"}),
    "one of two answers": (
        {'up{job="gsh", instance="a"}': "0x30", 'up{job="gsh", instance="b"}': "1x30"},
        {"GshInstanceDown"},
    ),
    "the ledger is down": (
        {'up{job="gsh", instance="a"}': "1x30", 'gsh_ledger_up{job="gsh", instance="a"}': "0x30"},
        {"GshLedgerDown"},
    ),
    "the first error ever": ({'up{job="gsh", instance="a"}': "1x30", REQUESTS % 500: "_x25 1x5"}, {"GshErrors"}),
    "another error": ({'up{job="gsh", instance="a"}': "1x30", REQUESTS % 502: "4x25 5x5"}, {"GshErrors"}),
    "an old error": ({'up{job="gsh", instance="a"}': "1x30", REQUESTS % 500: "1x30"}, set()),
    "one of ten is busy": (
        {'up{job="gsh", instance="a"}': "1x30", REQUESTS % 200: "0+54x30", REQUESTS % 503: "0+6x30"},
        {"GshBusy"},
    ),
    "one of a hundred is busy": (
        {'up{job="gsh", instance="a"}': "1x30", REQUESTS % 200: "0+99x30", REQUESTS % 503: "0+1x30"},
        set(),
    ),
    "slow": (
        {
            'up{job="gsh", instance="a"}': "1x30",
            'gsh_request_seconds_bucket{job="gsh", route="/account/exact", le="0.25"}': "0+90x30",
            'gsh_request_seconds_bucket{job="gsh", route="/account/exact", le="0.5"}': "0+100x30",
            'gsh_request_seconds_bucket{job="gsh", route="/account/exact", le="+Inf"}': "0+100x30",
        },
        {"GshSlow"},
    ),
    "a budget that ends soon": (
        {
            'up{job="gsh", instance="a"}': "1x30",
            'gsh_budget_used{job="gsh", instance="a", budget="web", cap="hazard"}': "0.8x30",
            'gsh_budget_days_left{job="gsh", instance="a", budget="web"}': "13x30",
            'gsh_budget_days_left{job="gsh", instance="a", budget="ads"}': "15x30",
        },
        {"GshBudgetEnds"},
    ),
    "a budget that is nearly used, and one that has ended as planned": (
        {
            'up{job="gsh", instance="a"}': "1x30",
            'gsh_budget_used{job="gsh", instance="a", cap="hazard"}': "0.91x30",
            'gsh_budget_days_left{job="gsh", instance="a"}': "15x30",
            'gsh_budget_used{job="gsh", instance="a", budget="old", cap="hazard"}': "1x30",
        },
        {"GshBudgetUsed"},
    ),
    "somebody guesses": (
        {
            'up{job="gsh", instance="a"}': "1x30",
            'gsh_access_refusals_total{job="gsh", instance="a", reason="unknown"}': "0+300x30",
        },
        {"GshRefusals"},
    ),
}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, of Prometheus, is not installed")
@pytest.mark.parametrize("scene", SCENES)
def test_alerts_fire_when_they_should_and_only_then(scene: str, tmp_path: Path) -> None:
    """By Prometheus' own evaluation, at the 29th minute."""
    series, expected = SCENES[scene]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(ALERTS["spec"]))
    firing = 'count by (alertname) (ALERTS{alertstate="firing"})'
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(expected)]
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": firing, "eval_time": "29m", "exp_samples": samples}],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))

    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_operator_knows_every_field_of_its_resources(tmp_path: Path) -> None:
    """By the operator's published types. TypeScript finds a name that they do not have."""
    assert (MODULES / "@kubernetes-models").exists(), "make node_modules/stamp installs the types"
    documents = [yaml.safe_load((MONITORING / name).read_text()) for name in ("service-monitor.yaml", "alerts.yaml")]
    misspelt = json.loads(json.dumps(documents[0]))
    misspelt["spec"]["endpoints"][0]["intervall"] = "30s"
    lines = [
        f'import type {{ I{kind} }} from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/{kind}";'
        for kind in (document["kind"] for document in documents)
    ]
    lines += [
        f"export const r{number}: I{document['kind']} = {json.dumps(document)};"
        for number, document in enumerate(documents)
    ]
    lines += ["// @ts-expect-error", f"export const misspelt: IServiceMonitor = {json.dumps(misspelt)};"]
    (tmp_path / "resources.ts").write_text("\n".join(lines))
    (tmp_path / "node_modules").symlink_to(MODULES)

    options = ("--noEmit", "--strict", "--skipLibCheck", "--preserveSymlinks")
    options += ("--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler")
    run(MODULES / ".bin" / "tsc", *options, tmp_path / "resources.ts")
