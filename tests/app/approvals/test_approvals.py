"""/approvals over HTTP, and the requests that wait there: 202 until another access key has approved them."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gsh
from gsh.client import ApprovalRefused, AwaitsApproval, NoSecondKey
from tests.app.access.test_access_keys import Office
from tests.app.budgets.test_budgets import LIMIT, Bank
from tests.app.client import CASE_STUDY, Json, problem_errors
from tests.app.http.test_access import PAID
from tests.app.process import Service
from tests.gsh.cli.running import run
from tests.gsh.histogram.uploads import as_bytes

ONCE = {"idempotency-key": "46"}
OPEN: Json = {"mechanism": CASE_STUDY, "budget": "web"}
CHARGE: Json = {"mechanism": CASE_STUDY}
REASON = {"reason": "as planned"}


class Guarded(Office):
    """A service with a budget that demands approvals, an administrator who asks, a job, and an officer."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.officer = self.made(self.admin, scopes=["admin"], note="officer")["key"]
        self.job = self.made(self.admin, scopes=["release"], note="job")["key"]
        assert self.put_as(self.admin, approval="releases").status_code == 200

    def put_as(self, key: str, **further: Any) -> Any:
        return self.fresh("PUT", "/budgets/web", key, LIMIT | {"reason": "a test"} | further)

    def decide(self, location: str, decision: str = "approve", key: str | None = None) -> Any:
        return self.fresh("POST", f"{location}/{decision}", key or self.officer, REASON)

    def spent(self) -> int:
        return int(self.fresh("GET", "/budgets/web", self.admin).json()["spent"]["releases"])


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    made = Guarded(str(tmp_path / "ledger.sqlite3"))
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def test_a_raised_limit_waits_for_another_administrator(guarded: Guarded) -> None:
    waits = guarded.put_as(guarded.admin, epsilon=2.0)

    assert waits.status_code == 202
    shown, location = waits.json(), waits.headers["location"]
    assert location == f"/approvals/{shown['id']}"
    assert (shown["kind"], shown["state"], shown["budget"], shown["decision"]) == ("change", "waiting", "web", None)
    assert shown["changes"] == [{"field": "epsilon", "before": 1.0, "after": 2.0}]
    assert guarded.fresh("GET", "/budgets/web", guarded.admin).json()["limit"]["epsilon"] == 1.0
    problem_errors(guarded.decide(location, key=guarded.admin), 403, "no-second-key")
    done = guarded.decide(location).json()
    assert (done["state"], done["decision"]["reason"]) == ("done", "as planned")
    assert guarded.fresh("GET", "/budgets/web", guarded.admin).json()["limit"]["epsilon"] == 2.0
    problem_errors(guarded.decide(location, "refuse"), 409, "already-decided")


@pytest.mark.parametrize(("path", "body"), [("/release", PAID), ("/releases", OPEN), ("/budgets/web/charges", CHARGE)])
def test_a_release_is_made_when_its_request_comes_again_after_the_approval(
    guarded: Guarded, path: str, body: Json
) -> None:
    waits = guarded.fresh("POST", path, guarded.job, body, **ONCE)

    assert waits.status_code == 202, waits.text
    assert (waits.json()["kind"], waits.json()["idempotency_key"]) == ("release", "46")
    assert guarded.fresh("POST", path, guarded.job, body, **ONCE).json() == waits.json()
    assert guarded.spent() == 0
    assert guarded.decide(waits.headers["location"]).json()["state"] == "approved"
    other = body | {"mechanism": CASE_STUDY | {"tau_star": 14_000}}
    problem_errors(guarded.fresh("POST", path, guarded.job, other, **ONCE), 422, "key-reused")
    made = guarded.fresh("POST", path, guarded.job, body, **ONCE)
    assert made.is_success
    assert made.status_code != 202
    assert guarded.spent() == 1
    assert guarded.fresh("GET", waits.headers["location"], guarded.job).json()["state"] == "done"
    assert guarded.fresh("GET", "/budgets/web/verify", guarded.job).json()["intact"]


def test_a_table_waits_too_and_has_the_approved_rows_in_whatever_order(guarded: Guarded) -> None:
    request = {"mechanism": CASE_STUDY, "budget": "web", "count_column": "users", "key_columns": ["url"]}

    def post(urls: list[str]) -> Any:
        table = as_bytes("arrow", pa.table({"url": urls, "users": [70_000] * len(urls)}))
        files = {"request": (None, json.dumps(request)), "table": ("t", table)}
        headers = ONCE | {"authorization": f"Bearer {guarded.job}"}
        return guarded.request("POST", "/release/table", files=files, headers=headers)

    waits = post(["a", "b"])
    assert waits.status_code == 202
    guarded.decide(waits.headers["location"])

    problem_errors(post(["a", "c"]), 422, "key-reused")
    assert post(["b", "a"]).status_code == 200
    assert guarded.spent() == 1


def test_a_refused_release_stays_refused_for_its_reason(guarded: Guarded) -> None:
    waits = guarded.fresh("POST", "/release", guarded.job, PAID, **ONCE)
    guarded.decide(waits.headers["location"], "refuse")

    refused = guarded.fresh("POST", "/release", guarded.job, PAID, **ONCE)

    problem_errors(refused, 409, "approval-refused")
    assert "as planned" in refused.json()["detail"]
    assert guarded.spent() == 0


def test_a_key_that_is_revoked_after_the_approval_releases_nothing(guarded: Guarded) -> None:
    waits = guarded.fresh("POST", "/release", guarded.job, PAID, **ONCE)
    guarded.decide(waits.headers["location"])
    assert guarded.fresh("DELETE", f"/access-keys/{guarded.job.split('_')[1]}", guarded.admin).is_success

    problem_errors(guarded.fresh("POST", "/release", guarded.job, PAID, **ONCE), 401, "key-required")
    assert guarded.spent() == 0


def test_requests_are_listed_for_those_who_may_use_their_budget(guarded: Guarded) -> None:
    waits = guarded.fresh("POST", "/release", guarded.job, PAID, **ONCE)
    other = guarded.made(guarded.admin, scopes=["admin"], budgets=["ads"])["key"]
    auditor = guarded.made(guarded.admin, scopes=["audit"])["key"]

    def listed(key: str, query: str = "") -> list[str]:
        found = guarded.fresh("GET", f"/approvals{query}", key).json()["approvals"]
        return [each["id"] for each in found]

    assert listed(auditor) == listed(guarded.job, "?state=waiting") == [waits.json()["id"]]
    assert listed(other) == listed(auditor, "?state=done") == []
    for decision in ("approve", "refuse"):
        problem_errors(guarded.decide(waits.headers["location"], decision, other), 404, "unknown-approval")
        problem_errors(guarded.decide(waits.headers["location"], decision, auditor), 403, "not-allowed")
        problem_errors(guarded.decide(waits.headers["location"], decision, guarded.job), 403, "not-allowed")


def test_without_access_keys_no_budget_can_demand_approvals(tmp_path: Path) -> None:
    bank = Bank(str(tmp_path / "ledger.sqlite3"))
    refused = bank.put("ads", LIMIT | {"approval": "limits"})
    assert "/approval" in problem_errors(refused, 422, "invalid-request")
    bank.app.state.services.ledger_pool.close()


def _raised(call: Callable[[], object]) -> AwaitsApproval:
    with pytest.raises(AwaitsApproval) as found:
        call()
    return found.value


@pytest.mark.slow
def test_the_client_and_the_command_wait_and_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 7, until another access key has approved it."""
    first, (budget, once) = "first-" + "k" * 40, ("web", "46")
    with Service(temporary=tmp_path, admin_key=first) as running, ExitStack() as clients:
        monkeypatch.setenv("GSH_URL", running.url)

        def client(key: str) -> gsh.Client:
            return clients.enter_context(gsh.Client(running.url, key=key))

        admin = client(first)
        officer_key = admin.access_keys.create(["admin"], note="officer").key
        job_key = admin.access_keys.create(["release"], budgets=["web*"]).key
        officer, job = client(officer_key), client(job_key)
        admin.budgets.put(budget, epsilon=1, delta=1e-4, approval="releases")
        mechanism = gsh.Mechanism(**CASE_STUDY)
        waits = _raised(lambda: job.budgets.charge(budget, mechanism, once=once))
        raised = _raised(lambda: admin.budgets.put(budget, epsilon=2, delta=1e-4, reason="more"))

        with pytest.raises(NoSecondKey):
            admin.approvals.approve(raised.approval, reason="mine")
        assert {each.id for each in officer.approvals} == {waits.approval, raised.approval}
        assert officer.approvals[raised.approval].kind == "change"
        officer.approvals.approve(waits.approval, reason="as planned")
        assert job.budgets.charge(budget, mechanism, once=once).number == 5

        files = {"job": job_key, "officer": officer_key}
        for name, key in files.items():
            (tmp_path / name).write_text(key)
        charge = "budgets charge web --once 47 --c-u 1 --tau-star 60000 --sigma 5000 --key-file"
        assert run(f"{charge} {tmp_path / 'job'}").code == 7
        assert "47: mu_squared" in run(f"approvals --state waiting --key-file {tmp_path / 'officer'}").text
        (second,) = (each for each in officer.approvals.list("waiting") if each.kind == "release")
        refused = run(f"approvals refuse {second.id} --reason unplanned --key-file {tmp_path / 'officer'} --json")
        assert refused.document["state"] == "refused"
        with pytest.raises(ApprovalRefused, match="unplanned"):
            job.budgets.charge(budget, gsh.Mechanism(c_u=1, tau=1, tau_star=60000, sigma=5000), once="47")
