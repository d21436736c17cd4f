"""What a release key may ask: the settings that bound every release, over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.settings import Settings, settings_or_exit
from tests.app.budgets.test_budgets import LIMIT, SECRET
from tests.app.client import CASE_STUDY, Client, Json, problem_errors
from tests.app.http.test_access import Guarded

LOUD: Json = {"c_u": 1, "tau": 1, "tau_star": 1.5, "sigma": 0.001}
GROUPS: Json = {"keys": ["a"], "counts": [2]}


class Bounded(Guarded):
    """A service with rules, and a budget."""

    def __init__(self, ledger: str) -> None:
        Client.__init__(
            self,
            ledger=ledger,
            ledger_secret=SECRET,
            require_budget=True,
            least_sigma=10.0,
            most_epsilon=1.0,
            most_delta=1e-4,
        )
        assert self.put("web", LIMIT).status_code == 200

    def release(self, key: str | None, mechanism: Json, budget: str | None) -> httpx.Response:
        body = {"mechanism": mechanism, "groups": GROUPS} | ({} if budget is None else {"budget": budget})
        return self.ask("POST", "/release", key, body, **_idempotent(budget))

    def table(self, key: str | None, mechanism: Json, budget: str | None) -> httpx.Response:
        request = {"mechanism": mechanism, "count_column": "users", "key_columns": ["url"]}
        request |= {} if budget is None else {"budget": budget}
        files = {"request": (None, json.dumps(request)), "table": ("t", b"x")}
        headers = _idempotent(budget) | ({} if key is None else {"authorization": f"Bearer {key}"})
        return self.request("POST", "/release/table", files=files, headers=headers)


def _idempotent(budget: str | None) -> dict[str, str]:
    return {} if budget is None else {"idempotency-key": "1"}


@pytest.fixture
def bounded(tmp_path: Path) -> Iterator[Bounded]:
    made = Bounded(str(tmp_path / "ledger.sqlite3"))
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def test_a_key_without_admin_cannot_publish_a_small_count_with_little_noise(bounded: Bounded) -> None:
    key = bounded.make_key("release")

    for ask in (bounded.release, bounded.table):
        assert "/budget" in problem_errors(ask(key, CASE_STUDY, None), 422, "invalid-request")
        assert "GSH_REQUIRE_BUDGET" in ask(key, LOUD, None).json()["detail"]
        refused = problem_errors(ask(key, LOUD, "web"), 422, "limit-exceeded")
        assert refused == {"/mechanism/sigma": "must be at least 10 (GSH_LEAST_SIGMA)"}
        many = LOUD | {"sigma": 20, "c_u": 10**6, "tau_star": 900}
        assert "/mechanism" in problem_errors(ask(key, many, "web"), 422, "limit-exceeded")
    charged = bounded.ask(
        "POST", "/budgets/web/charges", key, {"mechanism": {"c_u": 1, "sigma": 0.001}}, **_idempotent("web")
    )
    problem_errors(charged, 422, "limit-exceeded")
    assert bounded.release(key, CASE_STUDY, "web").status_code == 200
    assert bounded.ask("GET", "/budgets/web", key).json()["spent"]["releases"] == 1


def test_before_the_first_access_key_the_rules_are_for_everyone(bounded: Bounded) -> None:
    problem_errors(bounded.release(None, LOUD, "web"), 422, "limit-exceeded")


def test_an_access_key_with_admin_is_exempt_and_accounting_is_not_bounded(bounded: Bounded) -> None:
    key = bounded.make_key("release", "admin")

    assert bounded.release(key, LOUD, None).json()["groups"]["keys"] == ["a"]
    assert bounded.point(LOUD, 1.0)["delta"] == 1.0


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"MOST_EPSILON": "1"}, "GSH_MOST_DELTA: Value error, must be set together with GSH_MOST_EPSILON\n"),
        ({"MOST_DELTA": "1e-5"}, "GSH_MOST_DELTA: Value error, must be set together with GSH_MOST_EPSILON\n"),
        ({"LEAST_SIGMA": "0"}, "GSH_LEAST_SIGMA: Input should be greater than 0\n"),
        ({"MOST_EPSILON": "nan", "MOST_DELTA": "0.1"}, "GSH_MOST_EPSILON: Input should be a finite number\n"),
    ],
)
def test_a_wrong_rule_ends_the_start_with_a_line(
    settings: dict[str, str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"GSH_{name}", value)

    with pytest.raises(SystemExit):
        settings_or_exit()
    assert capsys.readouterr().err == line


def test_both_bounds_together_are_accepted() -> None:
    assert Settings(most_epsilon=0, most_delta=0.5).least_sigma is None
