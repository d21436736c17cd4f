"""GET /metrics: the counts are right, labels are bounded, and no posted data is in it."""

import random
import re
import string
from pathlib import Path

import httpx
import pytest

from tests.app.client import CASE_STUDY, Client, Json
from tests.app.malformed import BODIES, WORD

LABELS = re.compile(r'(\w+)="([^"]*)"')
ROUTES = {
    "/account/exact",
    "/account/add-deltas",
    "/bound",
    "/calibrate",
    "/compare",
    "/intervals",
    "/real-releases",
    "/utility",
    "/release",
    "/release/table",
    "/budgets",
    "/budgets/{id}",
    "/budgets/{id}/charges",
    "/budgets/{id}/preview",
    "/budgets/{id}/verify",
    "/healthz",
    "/readyz",
    "/version",
    "/metrics",
    "/",
    "/what-epsilon-means",
    "/docs",
    "/openapi.json",
    "/web",
    "/plotly",
    "/swagger",
    "none",
}
CAPS = ("mu_squared", "hazard")
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"}


def label_values(client: Client) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for name in client.metrics():
        for label, value in LABELS.findall(name):
            values.setdefault(label, set()).add(value)
    return values


def requests(client: Client, method: str, route: str, status: int) -> float:
    name = f'gsh_requests_total{{method="{method}",route="{route}",status="{status}"}}'
    return client.metrics().get(name, 0)


def hits_and_misses(client: Client) -> tuple[float, float]:
    metrics = client.metrics()
    return metrics["gsh_cache_hits_total"], metrics["gsh_cache_misses_total"]


def test_requests_and_latency_are_counted_by_route_and_status() -> None:
    client = Client()
    for _ in range(3):
        client.post("/account/exact", {"mechanism": CASE_STUDY, "epsilon": 0.349})
    client.post("/account/exact", {"mechanism": CASE_STUDY})
    client.get("/account/exact")
    client.get("/nothing")

    assert requests(client, "POST", "/account/exact", 200) == 3
    assert requests(client, "POST", "/account/exact", 422) == 1
    assert requests(client, "GET", "/account/exact", 405) == 1
    assert requests(client, "GET", "none", 404) == 1
    for status, times in ((200, 3), (422, 1)):
        labels = f'method="POST",route="/account/exact",status="{status}"'
        assert client.metrics()[f"gsh_request_seconds_count{{{labels}}}"] == times
        assert client.metrics()[f'gsh_request_seconds_bucket{{le="+Inf",{labels}}}'] == times


def test_hits_and_misses_of_the_cache_are_visible() -> None:
    client = Client()
    body = {"mechanism": CASE_STUDY, "epsilon": [0.1, 0.2, 0.3]}

    assert hits_and_misses(client) == (0, 0)
    client.answer("/account/exact", body)
    assert hits_and_misses(client) == (0, 3)
    client.answer("/account/exact", body)
    assert hits_and_misses(client) == (3, 3)
    client.answer("/account/add-deltas", body)
    assert hits_and_misses(client) == (3, 6)


def test_the_least_recently_used_point_goes_first() -> None:
    client = Client(cache_size=2)
    for epsilon in (0.1, 0.2, 0.1, 0.3):
        client.point(CASE_STUDY, epsilon)
    assert hits_and_misses(client) == (1, 3)

    client.point(CASE_STUDY, 0.1)
    assert hits_and_misses(client) == (2, 3)
    client.point(CASE_STUDY, 0.2)
    assert hits_and_misses(client) == (2, 4)


def test_a_cache_of_size_zero_never_hits() -> None:
    client = Client(cache_size=0)
    answers = [client.point(CASE_STUDY, 0.349) for _ in range(2)]

    assert answers[0] == answers[1]
    assert hits_and_misses(client) == (0, 2)


COLUMNS = {"names": ["a"], "covariance": [[1e8]], "sensitivity": {"kind": "l2", "bound": 1}}
NEIGHBOURS: list[Json] = [
    {},
    {"c_u": 51915},
    {"tau": 2},
    {"tau_star": 13949},
    {"sigma": 2229},
    {"aggregates": {"mu_0": 0.0001}},
    {"aggregates": COLUMNS},
    {"aggregates": COLUMNS | {"covariance": [[2e8]]}},
    {"aggregates": COLUMNS | {"sensitivity": {"kind": "l2", "bound": 2}}},
]


@pytest.mark.parametrize("query", [{"epsilon": 0.349}, {"delta": 0.349}], ids=["by ε", "by δ"])
@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
def test_requests_that_differ_never_share_a_cached_answer(client: Client, accounting: str, query: Json) -> None:
    """Requests that differ in one value, each sent twice. The answers equal those of a service without a cache."""
    forgetful = Client(cache_size=0)

    for change in NEIGHBOURS * 2:
        body = {"mechanism": CASE_STUDY | change, **query}
        assert client.answer(f"/account/{accounting}", body) == forgetful.answer(f"/account/{accounting}", body)


def test_labels_are_bounded_for_any_request() -> None:
    """A thousand unknown paths and methods add no label value beyond the known ones."""
    client = Client()
    draw = random.Random(5)

    async def scenario(http: httpx.AsyncClient) -> None:
        for _ in range(1000):
            word = "".join(draw.choices(string.ascii_letters, k=8))
            prefix = draw.choice(
                ["/", "/account/", "/account/exact/", "/swagger/", "/web/", "/calibrate?", "/healthz/"]
            )
            await http.request(draw.choice(["GET", "POST", "BREW", word.upper()]), prefix + word)

    client.together(scenario)

    values = label_values(client)
    assert values["route"] <= ROUTES
    assert values["method"] <= METHODS
    assert values["status"] <= {"200", "307", "404", "405", "415", "400", "422"}
    assert set(values) == {"method", "route", "status", "le"}


def test_nothing_posted_is_in_the_metrics() -> None:
    client = Client()
    for malformed in BODIES:
        client.post(malformed.path, malformed.body)
    client.request("GET", f"/{WORD}?{WORD}=918273645", headers={WORD: WORD})

    exposition = client.get("/metrics").text

    assert WORD not in exposition
    assert "918273645" not in exposition


def test_the_exposition_is_prometheus_text() -> None:
    response = Client().get("/metrics")

    assert response.headers["content-type"].startswith("text/plain; version=")
    assert response.text.endswith("\n")


@pytest.mark.parametrize("by_name", [False, True])
def test_budgets_are_named_only_if_the_operator_wants_it(tmp_path: Path, by_name: bool) -> None:
    """Otherwise there are only the largest shares and the fewest days of all."""
    client = Client(ledger=str(tmp_path / "ledger.sqlite3"), budgets_in_metrics=by_name)
    for name, epsilon in (("secret-project", 1), ("web", 2)):
        client.request("PUT", f"/budgets/{name}", json={"epsilon": epsilon, "delta": 1e-4})
        charge = {"json": {"mechanism": CASE_STUDY}, "headers": {"idempotency-key": name}}
        assert client.request("POST", f"/budgets/{name}/charges", **charge).status_code == 200
    shown = {name: client.get(f"/budgets/{name}").json() for name in ("secret-project", "web")}

    metrics = client.metrics()

    used = {name: value for name, value in metrics.items() if name.startswith("gsh_budget_used")}
    left = {name: value for name, value in metrics.items() if name.startswith("gsh_budget_days_left")}
    if by_name:
        assert max(used[f'gsh_budget_used{{budget="web",cap="{cap}"}}'] for cap in CAPS) == shown["web"]["used"]
        assert left == {f'gsh_budget_days_left{{budget="{name}"}}': shown[name]["days_left"] for name in shown}
        return
    assert max(used.values()) == shown["secret-project"]["used"]
    assert used.keys() == {f'gsh_budget_used{{cap="{cap}"}}' for cap in CAPS}
    assert left == {"gsh_budget_days_left": shown["secret-project"]["days_left"]}
    assert "secret-project" not in client.get("/metrics").text
